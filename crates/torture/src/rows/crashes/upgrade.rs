//! R32: a ledger that another version has left in the middle of its work. What an earlier one has begun is finished; what a later
//! one has written is refused, and not touched.
//!
//! `fixtures/ledger` holds a ledger for each version of the tables, as the program of that version left it when it was
//! killed ([`record`] writes the next one). Its times are moved to now, and its invoices made anew, since the network that
//! they were of is gone. Tokens are not among them: a mint would have to be, and R01b ends a provider there.

mod record;

pub use record::record;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rialto_ledger::look::Source;
use rialto_payment::amount::Msat;
use rialto_payment::secret::PaymentHash;
use rialto_payment::wallet::Order;
use rialto_wallet::reference;
use rialto_wallet::testing::Did;
use rusqlite::Connection;

use super::super::{Row, Setting};
use super::storm::PRICE;
use crate::crowd::outcome_of;
use crate::history::History;
use crate::market::{Market, PROVIDER};
use crate::nostr_side::customer::{FEEDBACK, RESPONSE};
use crate::nostr_side::event::unhex;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::{PATIENCE, runtime};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R32", "ledgers of earlier and later versions", run);

/// The key of all these ledgers, and what belongs to it. It has never been anybody's.
const KEY: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const PUBKEY: &str = "1b84c5567b126440995d3ed5aaba0565d71e1834604819ff9c17f5e9d5dd078f";

/// By the version of the tables.
const LEDGERS: [&str; 1] = [include_str!("../../../fixtures/ledger/1.sql")];

/// What was sold by the provider that left them.
const PRICES: [&str; 6] = ["--price", "note=5", "--price", "sulk=5", "--price", "gate=5"];

/// A job that was found.
struct Found {
    id: String,
    stage: i64,
    money: i64,
    is_sent: bool,
    hash: Option<PaymentHash>,
}

/// How a job must end, and how often it must have run by then.
struct End {
    outcome: Option<&'static str>,
    runs: usize,
    is_charged: bool,
}

impl Found {
    /// What recovery demands.
    fn end(&self) -> End {
        let end = |outcome, runs, is_charged| End { outcome, runs, is_charged };
        match (self.stage, self.money) {
            (1 | 2 | 4, _) => end(Some("success"), 1, true),
            (5, _) => end(Some("outcome_unknown"), 0, false),
            (6, 4) => end(Some("success"), 0, true),
            (6, _) => end(Some("tool_error"), 0, false),
            (_, _) if self.is_sent => end(None, 0, true),
            _ => end(Some("success"), 0, true),
        }
    }
}

fn run(_: Setting) -> Score {
    let mut score = Score::default();
    let tried: Vec<Tried> = LEDGERS.iter().map(|ledger| finish(ledger)).collect();
    let known = tried.iter().map(|one| one.version).max().unwrap_or_default();
    let missing = known.saturating_sub(i64::try_from(LEDGERS.len()).unwrap());
    score.none("versions without a ledger to try", u64::try_from(missing).unwrap_or_default());
    score.at_least("jobs that another version had begun", tried.iter().map(|one| one.jobs).sum::<usize>(), 8_usize);
    score.none("jobs that did not end as they should", tried.iter().map(|one| one.wrong.len()).sum::<usize>());
    score.none("findings in the ledgers", tried.iter().map(|one| one.findings).sum::<usize>());
    tried.into_iter().flat_map(|one| one.wrong).take(5).for_each(|words| score.note(words));
    refuse(known + 1, &mut score);
    score
}

struct Tried {
    jobs: usize,
    /// Of the tables, after this program has opened them.
    version: i64,
    wrong: Vec<String>,
    findings: usize,
}

/// A file with the key of all these ledgers.
fn key(market: &Market) -> PathBuf {
    market.keep("key", KEY)
}

fn flags(key: &Path) -> Vec<&str> {
    let mut flags = vec!["--key", key.to_str().unwrap(), "--rate-per-key", "0"];
    flags.extend(PRICES);
    flags
}

/// Opens a ledger with the real program, and lets it do what is to be done.
fn finish(ledger: &str) -> Tried {
    let relay = FakeRelay::start();
    let market = Market::holding().at(std::slice::from_ref(&relay));
    let folder = market.ledger_directory(PUBKEY);
    let connection = restore(ledger, &folder);
    let found = found(&connection);
    recreate(&market, &connection, &found);
    drop(connection);
    let key = key(&market);
    let mut provider = market.serve(&flags(&key));
    for job in found.iter().filter(|job| job.stage <= 2) {
        let is_quote = |event: &crate::nostr_side::event::Event| {
            event.kind == FEEDBACK && event.has_tag("e", &job.id) && event.has_tag("status", "payment-required")
        };
        let quote = relay.wait_for_event("a quote", is_quote);
        market.begin_to_pay(quote.tag("invoice"));
    }
    let mut history = History::default();
    until("every job is done", PATIENCE, || {
        history = History::default();
        history.kept(Source::Sqlite(&folder));
        history.ledger.iter().all(|record| record.stage == "Done")
    });
    for job in found.iter().filter(|job| job.end().outcome.is_some()) {
        relay.event_within(PATIENCE, |event| event.kind == RESPONSE && event.has_tag("e", &job.id));
    }
    provider.process.stop();
    let mut history = History::default();
    let findings = history.kept(Source::Sqlite(&folder)).findings.len();
    history.heard(&[relay]);
    history.paid(&market.bank);
    history.ran(&market.world);
    let version = Connection::open(rialto_ledger::sqlite::file(&folder)).unwrap();
    let version = version.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    let wrong = found.iter().filter_map(|job| wrong(job, &history)).collect();
    Tried { jobs: found.len(), version, wrong, findings }
}

/// What is wrong with how a job ended.
fn wrong(job: &Found, history: &History) -> Option<String> {
    let End { outcome, runs, is_charged } = job.end();
    let answers = history.said.iter().filter(|said| said.request == job.id && said.event.kind == RESPONSE);
    let outcomes: BTreeMap<&str, String> =
        answers.map(|said| (said.event.id.as_str(), outcome_of(&said.event))).collect();
    let is_answered = outcomes.values().map(String::as_str).eq(outcome);
    let record = history.ledger.iter().find(|record| record.id == job.id)?;
    let effect = record.quote.as_ref().map_or("", |quote| quote.tool.as_str());
    // Of each tool only so many have run as there were jobs to be run for it.
    let ran = history.runs.iter().filter(|run| run.effect == format!("{effect} {}", job.stage)).count();
    let hash = record.quote.as_ref().and_then(|quote| quote.payment_hash.clone());
    let is_settled = history.wallet.iter().any(|deed| Some(deed.hash.to_string()) == hash && deed.did == Did::Settled);
    // What was paid to the network that is gone was paid there.
    let is_paid_right = job.stage == 7 || is_settled == is_charged;
    let is_right = is_answered && ran == runs && is_paid_right;
    (!is_right).then(|| {
        format!("stage {} ({}): answered {outcomes:?}, ran {ran} times, charged {is_settled}", job.stage, job.money)
    })
}

/// Writes a ledger into a folder, with its times moved to now.
fn restore(ledger: &str, folder: &Path) -> Connection {
    fs::create_dir_all(folder).unwrap();
    let connection = Connection::open(rialto_ledger::sqlite::file(folder)).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch(ledger).unwrap();
    let last: i64 = connection.query_row("SELECT max(at) FROM job", [], |row| row.get(0)).unwrap();
    let moved = i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap() - last;
    connection.execute("UPDATE job SET came = came + ?1, at = at + ?1", [moved]).unwrap();
    connection.execute("UPDATE quote SET expires = expires + ?1", [moved]).unwrap();
    connection
}

fn found(connection: &Connection) -> Vec<Found> {
    let sql = "SELECT lower(hex(id)), stage, money, sent, lower(hex(hash)) FROM job JOIN quote ON quote.job = id";
    let mut select = connection.prepare(sql).unwrap();
    let rows = select.query_map([], |row| {
        let hash: String = row.get(4)?;
        let is_sent = row.get::<_, i64>(3)? > 0;
        Ok(Found { id: row.get(0)?, stage: row.get(1)?, money: row.get(2)?, is_sent, hash: hash.parse().ok() })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Makes the invoices again that a ledger knows of, and pays those that were paid.
fn recreate(market: &Market, connection: &Connection, found: &[Found]) {
    let _inside = runtime().enter();
    let wallet = reference::open(&market.bank.uri(PROVIDER).unwrap()).unwrap().wallet();
    let order = Order { amount: Msat::from_sat(PRICE).unwrap(), memo: String::new(), expiry: 600 };
    for job in found.iter().filter(|job| job.stage >= 2 && job.stage < 7) {
        let hash = job.hash.expect("a hash");
        let invoice = runtime().block_on(wallet.hold(&order, hash)).unwrap();
        let id = unhex(&job.id).unwrap();
        connection.execute("UPDATE quote SET invoice = ?1 WHERE job = ?2", (&invoice.text, id)).unwrap();
        if job.stage > 2 {
            market.begin_to_pay(&invoice.text);
            let is_held = || market.bank.stage(PROVIDER, hash) == Some(rialto_wallet::testing::Stage::Held);
            until("the money is held", PATIENCE, is_held);
        }
    }
}

/// A ledger of a version that is not known yet, left in the middle of a write.
fn refuse(version: i64, score: &mut Score) {
    let relay = FakeRelay::start();
    let market = Market::holding().at(std::slice::from_ref(&relay));
    let folder = market.ledger_directory(PUBKEY);
    let elsewhere = market.world.path().join("elsewhere");
    // The files of a process that was killed: what it wrote last is not in the first of them yet.
    let open = restore(LEDGERS[LEDGERS.len() - 1], &elsewhere);
    open.pragma_update(None, "user_version", version).unwrap();
    fs::create_dir_all(&folder).unwrap();
    let names = ["ledger.db", "ledger.db-wal"];
    for name in names {
        fs::copy(elsewhere.join(name), folder.join(name)).unwrap();
    }
    drop(open);
    let before = names.map(|name| fs::read(folder.join(name)).unwrap());
    assert!(!before[1].is_empty(), "something was to be left");
    let key = key(&market);
    let wallet = format!("file:{}", market.world.path().join("wallet").display());
    let mut arguments = vec!["serve", "--json", "--relay", &market.places[0], "--wallet", &wallet];
    arguments.extend(flags(&key));
    arguments.extend(["--", "true"]);
    let mut process = market.world.rialto("provider", &arguments);
    let status = process.end();
    let told = process.told();
    let is_clear = !status.success() && told.contains("later version");
    score.exactly("later ledgers that are refused clearly", usize::from(is_clear), 1_usize);
    let after = names.map(|name| fs::read(folder.join(name)).unwrap_or_default());
    score.none("files of theirs that changed", before.iter().zip(&after).filter(|(one, other)| one != other).count());
    score.note(format!("a later ledger: {status}"));
    if !is_clear {
        score.note(told);
    }
}
