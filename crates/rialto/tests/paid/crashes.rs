//! A provider that is killed again and again, at random, while many customers pay it: every call is answered once, has its
//! effect at most once, and is paid if and only if it succeeded.
//!
//! In an ordinary run the storms are short. `RIALTO_TORTURE=full` makes each 1,000 calls and at least 100 kills;
//! `RIALTO_SEED` repeats one, as far as a machine with other work can.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rialto_ledger::check::check;
use rialto_ledger::export::{More, export};
use rialto_ledger::look::{Look, Source};
use rialto_payment::amount::Msat;
use rialto_wallet::testing::Course;
use serde_json::json;

use torture::crowd::Crowd;
use torture::market::{BALANCE, CUSTOMER, Market, PROVIDER};
use torture::nostr_side::log::until;
use torture::nostr_side::random::Random;
use torture::nostr_side::runtime;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[case!(with_held_money), case!(with_ordinary_invoices)];

/// What each call costs, in satoshis; see [`FLAGS`].
pub(crate) const PRICE: u64 = 5;

/// How long a provider lives once it is ready, on average.
const LIFE: Duration = Duration::from_millis(200);

/// How long the last calls may take when nobody is killed any more.
const REST: Duration = Duration::from_secs(120);

/// How much is done.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) calls: usize,
    /// At least.
    pub(crate) kills: usize,
    pub(crate) customers: usize,
    pub(crate) in_flight: usize,
}

fn size() -> Size {
    let (calls, kills) = if is_full() { (1000, 100) } else { (200, 20) };
    Size { calls, kills, customers: 6, in_flight: 14 }
}

pub(crate) fn is_full() -> bool {
    std::env::var_os("RIALTO_TORTURE").is_some_and(|how| how == "full")
}

/// Where chance begins; printed, so that it can be given.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("RIALTO_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_secs())
}

fn with_held_money() {
    let market = Market::holding();
    let storm = Storm::new(&market, "held money", size());
    let crowd = storm.rage(&FLAGS);
    storm.every_call_ended_once(&crowd);
    storm.held_money_is_taken_for_successes(&crowd);
    storm.the_ledger_agrees(&crowd, Source::Sqlite(&market.ledger_directory(crowd.provider())));
    the_operator_is_content(&market);
}

fn with_ordinary_invoices() {
    let market = Market::plain();
    let storm = Storm::new(&market, "ordinary invoices", size());
    let crowd = storm.rage(&FLAGS);
    storm.every_call_ended_once(&crowd);
    storm.the_ledger_agrees(&crowd, Source::Sqlite(&market.ledger_directory(crowd.provider())));
    the_operator_is_content(&market);
}

/// What the operator is told about it.
fn the_operator_is_content(market: &Market) {
    let mut check = market.world.rialto("provider", &["ledger", "check"]);
    assert!(check.end().success(), "{}", check.told());
}

/// What the provider is told. Limits are for other tests.
pub(crate) const FLAGS: [&str; 10] = [
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

/// Kills, and calls meanwhile.
pub(crate) struct Storm<'a> {
    pub(crate) market: &'a Market,
    name: &'a str,
    size: Size,
    seed: u64,
    begun: Instant,
    kills: AtomicUsize,
    is_posted: AtomicBool,
}

impl<'a> Storm<'a> {
    pub(crate) fn new(market: &'a Market, name: &'a str, size: Size) -> Self {
        let seed = seed();
        println!("storm with {name}: RIALTO_SEED={seed}, {} calls, at least {} kills", size.calls, size.kills);
        let (begun, kills, is_posted) = (Instant::now(), AtomicUsize::new(0), AtomicBool::new(false));
        Self { market, name, size, seed, begun, kills, is_posted }
    }

    /// One provider, killed until there were enough calls and kills; then it is left alone until all calls have ended.
    fn rage(&self, flags: &[&str]) -> Crowd {
        let mut random = Random::new(self.seed);
        let mut provider = self.market.serve(flags);
        let crowd = Crowd::new(self.market, &provider.pubkey, self.size.customers, self.seed);
        std::thread::scope(|scope| {
            scope.spawn(|| self.post(&crowd));
            while !self.is_enough() {
                std::thread::sleep(exponential(&mut random, LIFE));
                provider.process.kill();
                self.kills.fetch_add(1, Ordering::Relaxed);
                provider = self.market.serve(flags);
            }
        });
        self.wait_for_the_last(&crowd);
        // One more life: what is sent again now must be what was sent before.
        provider.process.kill();
        provider = self.market.serve(flags);
        crowd.post(0, "note", "last", json!({}));
        self.wait_for_the_last(&crowd);
        provider.process.stop();
        crowd
    }

    pub(crate) fn is_enough(&self) -> bool {
        self.is_posted.load(Ordering::Relaxed) && self.kills.load(Ordering::Relaxed) >= self.size.kills
    }

    pub(crate) fn killed(&self) {
        self.kills.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks for one call after the other, so that some are always open, and not all before the last kill.
    pub(crate) fn post(&self, crowd: &Crowd) {
        let Size { calls, kills, customers, in_flight } = self.size;
        let mut random = Random::new(self.seed ^ 0xca11);
        for number in 0..calls {
            let is_time = || number * kills <= (self.kills.load(Ordering::Relaxed) + 1) * calls;
            until("the next kill", REST, is_time);
            assert!(crowd.wait(in_flight - 1, REST), "nothing is answered any more: {:?}", crowd.outcomes());
            let (tool, arguments) = match random.below(10) {
                0 => ("sulk", json!({})),
                1..4 => ("nap", json!({ "ms": random.below(60) })),
                _ => ("note", json!({})),
            };
            crowd.post(random.below(customers), tool, &number.to_string(), arguments);
        }
        self.is_posted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn wait_for_the_last(&self, crowd: &Crowd) {
        assert!(crowd.wait(0, REST), "calls without an end: {:?}", crowd.outcomes());
        let all = || self.market.sat(PROVIDER) + self.market.sat(CUSTOMER);
        until("no money is on its way any more", REST, || all() == 2 * BALANCE);
    }

    /// What can be seen from outside, whichever way is paid.
    pub(crate) fn every_call_ended_once(&self, crowd: &Crowd) {
        let mut effects: BTreeMap<String, usize> = BTreeMap::new();
        for effect in self.market.world.effects() {
            *effects.entry(effect).or_default() += 1;
        }
        let twice = effects.values().filter(|count| **count > 1).count();
        let (calls, kills, outcomes) = (self.size.calls, self.kills.load(Ordering::Relaxed), crowd.outcomes());
        let took = self.begun.elapsed().as_secs_f32();
        println!(
            "storm with {}: {calls} calls, {kills} kills, {twice} ran twice, {took:.1} s: {outcomes:?}",
            self.name
        );
        crowd.look(|stories| {
            assert_eq!(stories.len(), calls + 1, "two requests had the same id");
            for (id, story) in stories {
                assert_eq!(story.answers.len(), 1, "answers to {id}: {story:?}");
                let times = effects.get(&story.effect).copied().unwrap_or(0);
                match story.outcome.as_deref() {
                    Some("success" | "tool_error") => assert_eq!(times, 1, "{id}: {story:?}"),
                    Some("outcome_unknown") => assert!(times <= 1, "{id}: {story:?}"),
                    _ => panic!("{id} should not have ended like this: {story:?}"),
                }
            }
        });
        assert_eq!(self.market.bank.total(), Msat::from_sat(2 * BALANCE).unwrap(), "no money is made");
    }

    /// Money that was held is taken for what succeeded, and for nothing else.
    pub(crate) fn held_money_is_taken_for_successes(&self, crowd: &Crowd) {
        crowd.look(|stories| {
            for (id, story) in stories {
                let invoice = story.invoice().unwrap_or_else(|| panic!("{id} cost nothing: {story:?}"));
                let paid = self.market.bank.course(CUSTOMER, invoice.hash) == Some(Course::Paid);
                assert_eq!(paid, story.succeeded(), "{id}: {story:?}");
            }
            let successes = stories.values().filter(|story| story.succeeded()).count();
            assert_eq!(self.market.earned_and_spent().0, PRICE * u64::try_from(successes).unwrap());
        });
    }

    /// The books say the same: what came in is earned, or somebody's credit; and for each customer it adds up.
    pub(crate) fn the_ledger_agrees(&self, crowd: &Crowd, source: Source<'_>) {
        let mut records = Vec::new();
        let report = runtime().block_on(async {
            let look = Look::open(source).await.unwrap();
            export(&look, |record| {
                records.push(record);
                More::Yes
            })
            .await
            .unwrap();
            check(&look, std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()).await.unwrap()
        });
        assert_eq!(report.findings, []);
        let is_done = |id: &String| records.iter().any(|record| record.id == *id && record.stage == "Done");
        crowd.look(|stories| assert!(stories.keys().all(is_done), "some are not done in the ledger"));
        let earned: u64 = records
            .iter()
            .filter_map(|record| record.quote.as_ref())
            .filter(|quote| quote.money == "Taken")
            .map(|quote| quote.price_msat)
            .sum();
        let mut credits: BTreeMap<&str, i64> = BTreeMap::new();
        for record in &records {
            *credits.entry(&record.customer).or_default() +=
                record.credits.iter().map(|credit| credit.msat).sum::<i64>();
        }
        let owed = u64::try_from(credits.values().sum::<i64>()).unwrap();
        assert_eq!(earned + owed, 1000 * self.market.earned_and_spent().0, "earned {earned}, owed {owed}");
        for customer in 0..self.size.customers {
            let (paid, used) = crowd.look(|stories| {
                let own = || stories.values().filter(|story| story.customer == customer);
                let is_paid = |invoice: &rialto_payment::invoice::Invoice| {
                    self.market.bank.course(CUSTOMER, invoice.hash) == Some(Course::Paid)
                };
                let paid: u64 = own()
                    .filter_map(|story| story.invoice())
                    .filter(is_paid)
                    .map(|invoice| invoice.amount.unwrap().get())
                    .sum();
                (paid, own().filter(|story| story.succeeded()).count())
            });
            let used = 1000 * PRICE * u64::try_from(used).unwrap();
            let credit = credits.get(crowd.pubkey(customer).as_str()).copied().unwrap_or(0);
            assert_eq!(paid, used + u64::try_from(credit).unwrap(), "customer {customer}");
        }
    }
}

/// A time that may be any, and is `mean` on average.
pub(crate) fn exponential(random: &mut Random, mean: Duration) -> Duration {
    let chance = (f64::from(u32::try_from(random.next() >> 32).unwrap()) + 1.0) / (f64::from(u32::MAX) + 1.0);
    mean.mul_f64(-chance.ln())
}
