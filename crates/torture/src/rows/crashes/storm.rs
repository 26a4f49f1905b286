//! Many customers who pay, while providers are killed again and again: what is done in such a storm, and what must be so when
//! it is over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rialto_ledger::look::Source;
use rialto_ledger::sqlite::Sqlite;
use serde_json::{Value, json};

use crate::crowd::Crowd;
use crate::history::check::check;
use crate::history::{Fault, History, Violation};
use crate::market::{BALANCE, CUSTOMER, Market, PROVIDER};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::random::Random;
use crate::score::Score;

/// What each call costs, in satoshis.
pub const PRICE: u64 = 5;

/// How long the last calls may take when nobody is killed any more.
const REST: Duration = Duration::from_secs(120);

/// How much is done.
#[derive(Clone, Copy)]
pub struct Size {
    pub calls: usize,
    /// At least.
    pub kills: usize,
    pub customers: usize,
    pub in_flight: usize,
}

/// What customers ask for: a tool and its arguments.
pub type Wish = fn(&mut Random) -> (&'static str, Value);

/// Calls, and kills meanwhile.
pub struct Storm<'a> {
    pub market: &'a Market,
    size: Size,
    seed: u64,
    wish: Wish,
    begun: Instant,
    kills: AtomicUsize,
    is_posted: AtomicBool,
}

/// What came of it.
pub struct Aftermath {
    pub history: History,
    pub violations: Vec<Violation>,
    /// What the ledger itself finds wrong.
    pub findings: usize,
    pub unanswered: usize,
    pub outcomes: BTreeMap<String, usize>,
}

impl<'a> Storm<'a> {
    pub fn new(market: &'a Market, size: Size, seed: u64, wish: Wish) -> Self {
        let (begun, kills, is_posted) = (Instant::now(), AtomicUsize::new(0), AtomicBool::new(false));
        Self { market, size, seed, wish, begun, kills, is_posted }
    }

    pub fn kills(&self) -> usize {
        self.kills.load(Ordering::Relaxed)
    }

    pub fn took(&self) -> Duration {
        self.begun.elapsed()
    }

    pub fn is_enough(&self) -> bool {
        self.is_posted.load(Ordering::Relaxed) && self.kills() >= self.size.kills
    }

    pub fn killed(&self) {
        self.kills.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks for one call after the other, so that some are always open, and not all before the last kill.
    pub fn post(&self, crowd: &Crowd) {
        let Size { calls, kills, customers, in_flight } = self.size;
        let mut random = Random::new(self.seed ^ 0xca11);
        for number in 0..calls {
            let is_time = || number * kills <= (self.kills() + 1) * calls;
            until("the next kill", REST, is_time);
            assert!(crowd.wait(in_flight - 1, REST), "nothing is answered any more: {:?}", crowd.outcomes());
            let (tool, arguments) = (self.wish)(&mut random);
            crowd.post(random.below(customers), tool, &number.to_string(), arguments);
        }
        self.is_posted.store(true, Ordering::Relaxed);
    }

    /// Whether all calls have ended, and no money is on its way any more.
    pub fn is_over(&self, crowd: &Crowd) -> bool {
        let all = || self.market.sat(PROVIDER) + self.market.sat(CUSTOMER);
        let end = Instant::now() + REST;
        crowd.wait(0, REST)
            && std::iter::repeat_with(all).any(|sum| {
                std::thread::sleep(Duration::from_millis(5));
                sum == 2 * BALANCE || Instant::now() > end
            })
            && all() == 2 * BALANCE
    }

    /// What everybody saw, and what is wrong with it. The provider must have ended.
    pub fn aftermath(&self, crowd: &Crowd, relays: &[FakeRelay], source: Source<'_>) -> Aftermath {
        let mut history = History::default();
        history.asked(crowd, 1000 * PRICE);
        history.heard(relays);
        history.paid(&self.market.bank);
        history.ran(&self.market.world);
        let report = history.kept(source);
        if let Source::Sqlite(folder) = source {
            history.answered(&Sqlite::open(folder).unwrap());
        }
        let outcomes = crowd.outcomes();
        let unanswered = crowd.look(|stories| stories.values().filter(|story| story.answers.is_empty()).count());
        let violations = check(&history);
        Aftermath { history, violations, findings: report.findings.len(), unanswered, outcomes }
    }
}

/// The figures that must all be nothing, of all storms together. No call may end in another way than these.
pub fn judge(all: &[Aftermath], ends: &[&str], score: &mut Score) {
    let violations = || all.iter().flat_map(|one| &one.violations);
    let count = |is_meant: &dyn Fn(&Fault) -> bool| violations().filter(|one| is_meant(&one.fault)).count();
    let is_unknown =
        |fault: &Fault| matches!(fault, Fault::NotReturned { outcome, .. } if outcome == "outcome_unknown");
    let is_double = |fault: &Fault| match fault {
        Fault::SharedPayment { .. } | Fault::TwoInvoices { .. } | Fault::PaidTwice => true,
        Fault::WrongCharge { price, taken } => i128::from(*taken) > i128::from(*price),
        _ => false,
    };
    score.none("lost paid jobs", count(&|fault| *fault == Fault::Silence));
    score.none("double effects", count(&|fault| matches!(fault, Fault::RanAgain { .. })));
    score.none("double settlements", count(&is_double));
    score.none("jobs without a terminal answer", all.iter().map(|one| one.unanswered).sum::<usize>());
    score.none("unknown outcomes not credited or cancelled", count(&is_unknown));
    let strange = |one: &Aftermath| -> usize {
        one.outcomes.iter().filter(|(outcome, _)| !ends.contains(&outcome.as_str())).map(|(_, count)| count).sum()
    };
    score.none("jobs that ended otherwise", all.iter().map(strange).sum::<usize>());
    score.none("broken promises in all", violations().count());
    score.none("findings in the ledger", all.iter().map(|one| one.findings).sum::<usize>());
    for violation in violations().take(5) {
        score.note(violation.to_string());
    }
    for one in all {
        score.note(format!("outcomes: {:?}", one.outcomes));
    }
}

/// How a call of the usual ones may end.
pub const ENDS: [&str; 3] = ["success", "tool_error", "outcome_unknown"];

/// The usual wishes: some tools say no, some take a while.
pub fn usual(random: &mut Random) -> (&'static str, Value) {
    match random.below(10) {
        0 => ("sulk", json!({})),
        1..4 => ("nap", json!({ "ms": random.below(60) })),
        _ => ("note", json!({})),
    }
}

/// What a provider is told. Limits are for other rows.
pub const FLAGS: [&str; 10] = [
    "--price",
    "note=5",
    "--price",
    "nap=5",
    "--price",
    "sulk=5",
    "--rate-per-key",
    "0",
    "--max-running-per-key",
    "16",
];

/// A time that may be any, and is `mean` on average.
pub fn exponential(random: &mut Random, mean: Duration) -> Duration {
    let chance = (f64::from(u32::try_from(random.next() >> 32).unwrap()) + 1.0) / (f64::from(u32::MAX) + 1.0);
    mean.mul_f64(-chance.ln())
}
