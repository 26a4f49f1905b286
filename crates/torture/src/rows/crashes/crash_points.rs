//! R01b: a provider that ends before or after each step that counts: whatever was being noted, and whatever the wallet was
//! being asked for. Started again, it finishes every call: one answer, at most one run, and the money where it belongs.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nostr::key::Keys;
use rialto_ledger::job::Stage;
use rialto_ledger::look::Source;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::wallet::Wallet;
use rialto_wallet::reference;
use rialto_wallet::testing::{Options, Style, TestWallet};
use serde_json::json;

use super::super::{Row, Setting};
use crate::fused::{LEDGER, Mark, Orders, Point, Process, Rail, When};
use crate::history::check::check;
use crate::history::{History, Request};
use crate::nostr_side::customer::Customer;
use crate::nostr_side::event::hex_key;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::world::World;
use crate::nostr_side::{PATIENCE, runtime};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R01b", "the provider ends before or after every step", run);

/// Providers that are tried at once.
const AT_ONCE: usize = 3;

/// What each call costs that is not free.
const PRICE_MSAT: u64 = 5000;

/// One life with a sudden end.
#[derive(Debug, Clone, Copy)]
struct Trial {
    rail: Rail,
    tool: &'static str,
    point: Point,
    when: When,
}

/// All that can happen.
fn trials() -> Vec<Trial> {
    use Stage::{Asking, Done, Funded, Quoted, Receiving, Running, Settling};
    let paths = [
        (Rail::Free, vec![Running, Done]),
        (Rail::Invoice, vec![Asking, Quoted, Funded, Running, Done]),
        (Rail::Hold, vec![Asking, Quoted, Funded, Running, Settling, Done]),
        (Rail::Token, vec![Receiving, Funded, Running, Done]),
    ];
    let mut trials = Vec::new();
    for (rail, stages) in paths {
        for tool in ["good", "bad"] {
            let mut points: Vec<Point> = stages.iter().copied().map(Point::Commit).collect();
            match rail {
                Rail::Free => {}
                Rail::Invoice => points.extend([Point::Make, Point::Look]),
                Rail::Hold if tool == "good" => points.extend([Point::Make, Point::Look, Point::Settle]),
                Rail::Hold => points.extend([Point::Make, Point::Look, Point::Cancel]),
                Rail::Token => points.push(Point::Receive),
            }
            points.push(Point::Sent);
            for point in points {
                trials.extend([When::Before, When::After].map(|when| Trial { rail, tool, point, when }));
            }
        }
    }
    trials
}

impl Trial {
    /// How the call must end, and how often it must have run by then.
    fn expected(&self) -> (&'static str, usize) {
        let answered = if self.rail == Rail::Hold { Stage::Settling } else { Stage::Done };
        match (self.point, self.when) {
            // It may have run, and has not; nobody can know.
            (Point::Commit(Stage::Running), When::After) => ("outcome_unknown", 0),
            // It has run, and how it went is lost.
            (Point::Commit(stage), When::Before) if stage == answered => ("outcome_unknown", 1),
            _ if self.tool == "good" => ("success", 1),
            _ => ("tool_error", 1),
        }
    }
}

fn run(_: Setting) -> Score {
    let trials = trials();
    let count = trials.len();
    let relay = FakeRelay::start();
    // Each trial has a provider and a customer with wallets of their own.
    let pair = |trial: &Trial| [Style { no_hold: trial.rail != Rail::Hold, ..Style::default() }, Style::default()];
    let options = Options { styles: trials.iter().flat_map(pair).collect(), ..Options::default() };
    let total = options.balance.get() * u64::try_from(options.styles.len()).unwrap();
    let bank = runtime().block_on(TestWallet::start(&relay.url(), options)).unwrap();
    let queue: Mutex<VecDeque<(usize, Trial)>> = Mutex::new(trials.into_iter().enumerate().collect());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let _inside = runtime().enter();
                loop {
                    let Some((number, trial)) = queue.lock().unwrap().pop_front() else { return };
                    let wrong = match catch_unwind(AssertUnwindSafe(|| try_one(&bank, number, trial))) {
                        Ok(wrong) => wrong,
                        Err(panic) => Some(panic.downcast_ref::<String>().cloned().unwrap_or_default()),
                    };
                    if let Some(wrong) = wrong {
                        failed.lock().unwrap().push(format!("{trial:?}: {wrong}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    let mut score = Score::default();
    score.exactly("clean combinations", count - failed.len(), count);
    score.exactly("satoshis in all", bank.total().get() / 1000, total / 1000);
    failed.into_iter().take(5).for_each(|words| score.note(words));
    score
}

/// One call, one end, one more life; what is wrong with it.
fn try_one(bank: &TestWallet, number: usize, trial: Trial) -> Option<String> {
    let (seller, buyer) = (2 * number, 2 * number + 1);
    let (world, relay, keys) = (World::new(), FakeRelay::start(), Keys::generate());
    let wallet = reference::open(&bank.uri(buyer).unwrap()).unwrap().wallet();
    let orders = Orders {
        relay: relay.url(),
        wallet: bank.uri(seller).unwrap(),
        folder: world.path().to_owned(),
        keys: keys.clone(),
        rail: trial.rail,
    };
    let customer = Customer::new(&relay.url(), &hex_key(&keys));
    let mut process = Process::start(&orders, Some(Mark { point: trial.point, when: trial.when, nth: 1 }));
    let mut draft =
        customer.draft("execute-tool", &json!({ "name": trial.tool, "parameters": { "tag": number.to_string() } }));
    if trial.rail == Rail::Token {
        draft = draft.tag(&["cashu", &format!("cashuBtoken{number}")]);
    }
    let id = customer.post(&draft);
    let mut is_paying = false;
    let mut hear = || is_paying |= pay(&customer, &id, &wallet, is_paying);
    until("the end of the first life", PATIENCE, || {
        hear();
        process.is_killed()
    });
    let mut process = Process::start(&orders, None);
    let folder = world.path().join(LEDGER);
    until("the end of the call", PATIENCE, || {
        hear();
        assert!(!process.is_gone(), "the second life ended, too");
        std::thread::sleep(Duration::from_millis(15));
        !customer.so_far(&id).responses().is_empty() && is_done(&folder, &id)
    });
    drop(process);
    let mut history = History::default();
    let price_msat = if trial.rail == Rail::Free { 0 } else { PRICE_MSAT };
    let request = Request {
        provider: hex_key(&keys),
        payer: buyer,
        payee: seller,
        effect: format!("{} {number}", trial.tool),
        price_msat,
        cap_msat: PRICE_MSAT,
        most_runs: 1,
    };
    history.requests.insert(id.clone(), request);
    history.heard(std::slice::from_ref(&relay));
    history.paid(bank);
    history.ran(&world);
    let report = history.kept(Source::Sqlite(&folder));
    history.answered(&rialto_ledger::sqlite::Sqlite::open(&folder).unwrap());
    if let Some(violation) = check(&history).first() {
        return Some(violation.to_string());
    }
    let outcome = crate::crowd::outcome_of(customer.so_far(&id).response());
    let found = (outcome.as_str(), history.runs.len());
    let is_right = found == trial.expected() && report.findings.is_empty();
    (!is_right).then(|| format!("{found:?}, and in the ledger {:?}", report.findings))
}

/// Pays what is asked for, unless that is being done; says whether it began.
fn pay(customer: &Customer, id: &str, wallet: &Arc<dyn Wallet>, is_paying: bool) -> bool {
    let said = customer.so_far(id);
    let feedback = said.feedback();
    let quote = feedback.iter().find(|event| event.has_tag("status", "payment-required"));
    let Some(quote) = quote.filter(|_| !is_paying) else { return false };
    let (wallet, invoice) = (wallet.clone(), quote.tag("invoice").parse::<Invoice>().unwrap());
    runtime().spawn(async move { drop(wallet.pay(&invoice, Msat::ZERO).await) });
    true
}

fn is_done(folder: &Path, id: &str) -> bool {
    let mut history = History::default();
    history.kept(Source::Sqlite(folder));
    history.ledger.iter().any(|record| record.id == id && record.stage == Stage::Done.name())
}
