//! A provider that ends before or after each step that counts: whatever was being noted, and whatever the wallet was being
//! asked for. Started again, it finishes every call: one answer, at most one run, and the money where it belongs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, reason = "the table of what was tried is worth reading")]

#[path = "crash_points/child.rs"]
mod child;
#[path = "crash_points/fuse.rs"]
mod fuse;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "provider/stage.rs"]
mod stage;

use child::{Orders, Process, Rail, effects};
use fuse::{Fuse, Point, When};
use futures_util::StreamExt as _;
use nostr::prelude::{EventId, Keys, Tag};
use rialto_ledger::check::check;
use rialto_ledger::export::{More, Record, export};
use rialto_ledger::job::Stage;
use rialto_ledger::look::{Look, Source};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::wallet::Wallet;
use rialto_relay::embedded::{self, Relay};
use rialto_relay::sign::sign;
use rialto_wallet::reference;
use rialto_wallet::testing::{Course, Options, Style, TestWallet};
use rialto_wire::dvmcp::answer::Answer;
use rialto_wire::request::Command;
use stage::{Customer, different, within};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Providers that are tried at once.
const AT_ONCE: usize = 3;

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

struct Scene {
    relay: Relay,
    bank: TestWallet,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wherever_it_ends_everything_is_finished() {
    let trials = trials();
    let relay = Relay::start(embedded::Options::default()).await.unwrap();
    // Each trial has a provider and a customer with wallets of their own.
    let pair = |trial: &Trial| [Style { no_hold: trial.rail != Rail::Hold, ..Style::default() }, Style::default()];
    let options = Options { styles: trials.iter().flat_map(pair).collect(), ..Options::default() };
    let total = options.balance.get() * u64::try_from(options.styles.len()).unwrap();
    let bank = TestWallet::start(&relay.url(), options).await.unwrap();
    let scene = Arc::new(Scene { relay, bank });
    let run = |(number, trial): (usize, Trial)| {
        let scene = scene.clone();
        async move { (trial, tokio::spawn(async move { scene.run(number, trial).await }).await.is_ok()) }
    };
    let mut done: Vec<(Trial, bool)> =
        futures_util::stream::iter(trials.into_iter().enumerate()).map(run).buffered(AT_ONCE).collect().await;
    println!("{:8} {:5} {:7} {:22} as it should", "paid by", "tool", "killed", "");
    for (Trial { rail, tool, point, when }, clean) in &done {
        let (rail, when, point) = (format!("{rail:?}"), format!("{when:?}"), format!("{point:?}"));
        println!("{rail:8} {tool:5} {when:7} {point:22} {clean}");
    }
    println!("{} combinations", done.len());
    done.retain(|(_, clean)| !clean);
    assert!(done.is_empty(), "{done:#?}");
    assert_eq!(scene.bank.total().get(), total, "no money is made");
}

impl Scene {
    async fn run(&self, number: usize, trial: Trial) {
        let (seller, buyer) = (2 * number, 2 * number + 1);
        let folder = tempfile::tempdir().unwrap();
        let orders = Orders {
            relay: self.relay.url(),
            wallet: self.bank.uri(seller).unwrap(),
            folder: folder.path().to_owned(),
            keys: Keys::generate(),
            rail: trial.rail,
        };
        let mut buyer_at = Buyer {
            customer: Customer::new(std::slice::from_ref(&self.relay)).await,
            wallet: reference::open(&self.bank.uri(buyer).unwrap()).unwrap().wallet(),
            invoice: None,
        };
        let mut process = Process::start(&orders, Fuse(Some((trial.point, trial.when))));
        let id = buyer_at.ask(&orders.keys, trial, number).await;
        within(async {
            while !process.is_killed() {
                buyer_at.hear(Duration::from_millis(5)).await;
            }
        })
        .await;
        let mut process = Process::start(&orders, Fuse(None));
        let (outcome, runs) = trial.expected();
        within(async {
            while buyer_at.outcome(id).is_none() || !is_done(&orders.folder, id) {
                assert!(!process.is_gone(), "{trial:?}: the second life ended, too");
                buyer_at.hear(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_eq!(buyer_at.outcome(id).as_deref(), Some(outcome), "{trial:?}");
        assert_eq!(effects(&orders.folder), runs, "{trial:?}");
        let (record, findings) = ledger(&orders.folder, id);
        assert_eq!(findings, 0, "{trial:?}");
        self.money(trial, (seller, buyer), &buyer_at, &record, outcome == "success");
    }

    fn money(&self, trial: Trial, who: (usize, usize), buyer: &Buyer, record: &Record, is_success: bool) {
        let whole = Options::default().balance.sat_rounded_down();
        let sat = |account| self.bank.balance(account).unwrap().sat_rounded_down();
        let moved = (sat(who.0) - whole, whole - sat(who.1));
        let course = buyer.invoice.as_ref().and_then(|invoice| self.bank.course(who.1, invoice.hash));
        let credit: i64 = record.credits.iter().map(|credit| credit.msat).sum();
        let (paid, back) = if is_success { (5, 0) } else { (0, 5000) };
        match trial.rail {
            Rail::Free => assert_eq!((moved, course, credit), ((0, 0), None, 0), "{trial:?}"),
            Rail::Hold => {
                let expected = if is_success { Course::Paid } else { Course::Failed };
                assert_eq!((moved, course, credit), ((paid, paid), Some(expected), 0), "{trial:?}");
            }
            Rail::Invoice => assert_eq!((moved, course, credit), ((5, 5), Some(Course::Paid), back), "{trial:?}"),
            Rail::Token => assert_eq!((moved, course, credit), ((0, 0), None, back), "{trial:?}"),
        }
    }
}

struct Buyer {
    customer: Customer,
    wallet: Arc<dyn Wallet>,
    invoice: Option<Invoice>,
}

impl Buyer {
    async fn ask(&self, provider: &Keys, trial: Trial, number: usize) -> EventId {
        let content = format!("{{\"name\":\"{}\",\"parameters\":{{}}}}", trial.tool);
        let mut request = different(self.customer.request(provider, Command::ExecuteTool, &content));
        if trial.rail == Rail::Token {
            request.tags.push(Tag::parse(["cashu", &format!("cashuBtoken{number}")]).unwrap());
        }
        self.customer.publish(&sign(&self.customer.keys, request)).await
    }

    /// Listens for a moment, and pays what is asked for.
    async fn hear(&mut self, patience: Duration) {
        let Ok((_, answer)) = tokio::time::timeout(patience, self.customer.next()).await else { return };
        let Answer::Feedback(feedback) = answer else { return };
        let Some(text) = feedback.invoice else { return };
        let invoice: Invoice = text.parse().unwrap();
        match &self.invoice {
            Some(known) => assert_eq!(known.text, invoice.text, "two invoices for one call"),
            None => {
                self.invoice = Some(invoice.clone());
                let wallet = self.wallet.clone();
                tokio::spawn(async move { drop(wallet.pay(&invoice, Msat::ZERO).await) });
            }
        }
    }

    /// The only final answer, if there is one yet: `success`, or the code of the error.
    fn outcome(&self, id: EventId) -> Option<String> {
        let said = self.customer.said(id);
        let mut finals = said.iter().filter_map(|answer| match answer {
            Answer::Response { content, .. } => Some(content),
            _ => None,
        });
        let content: serde_json::Value = serde_json::from_str(finals.next()?).unwrap();
        assert!(finals.next().is_none(), "two answers");
        Some(match content["isError"].as_bool() {
            Some(true) => content["metadata"]["error"]["code"].as_str().unwrap_or("tool_error").to_owned(),
            _ => "success".to_owned(),
        })
    }
}

fn is_done(folder: &Path, id: EventId) -> bool {
    ledger(folder, id).0.stage == Stage::Done.name()
}

/// What the ledger says about a job, and how much is wrong with it.
fn ledger(folder: &Path, id: EventId) -> (Record, usize) {
    let folder = folder.join("ledger");
    let mut found = None;
    let mut take = |record: Record| {
        found = (record.id == id.to_hex()).then_some(record);
        if found.is_some() { More::No } else { More::Yes }
    };
    // A file that is being looked at stays in one thread.
    let look = async {
        let look = Look::open(Source::Sqlite(&folder)).await.unwrap();
        export(&look, &mut take).await.unwrap();
        check(&look, UNIX_EPOCH.elapsed().unwrap().as_secs()).await.unwrap()
    };
    let report = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(look));
    (found.expect("the job is in the ledger"), report.findings.len())
}
