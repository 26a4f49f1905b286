//! R08: money that is held is taken if and only if the call succeeds, wherever the provider ends meanwhile.

use std::time::{Duration, Instant, UNIX_EPOCH};

use nostr::key::Keys;
use rialto_ledger::job::Stage;
use rialto_ledger::look::Source;
use serde_json::{Value, json};

use super::super::{Row, Setting};
use super::storm::{Size, Storm, judge};
use crate::crowd::Crowd;
use crate::fused::{LEDGER, Mark, Orders, Point, Process, Rail, TIMEOUT, When};
use crate::history::Fault;
use crate::history::check::holds;
use crate::market::{Market, PROVIDER};
use crate::nostr_side::event::hex_key;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::random::Random;
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R08", "held money is taken if and only if the call succeeds", run);

/// Where a provider may end.
const POINTS: [Point; 11] = [
    Point::Commit(Stage::Asking),
    Point::Commit(Stage::Quoted),
    Point::Commit(Stage::Funded),
    Point::Commit(Stage::Running),
    Point::Commit(Stage::Settling),
    Point::Commit(Stage::Done),
    Point::Make,
    Point::Look,
    Point::Settle,
    Point::Cancel,
    Point::Sent,
];

/// At which of its first visits to the place.
const VISITS: usize = 5;

/// A provider whose fuse does not burn is killed after this time.
const LONGEST_LIFE: Duration = Duration::from_secs(2);

/// Beyond the time that a tool may take, money is held no longer than this.
const SLACK: Duration = Duration::from_secs(10);

/// How the calls may end: as tools and their server do, by the time limit, or unknown.
const ENDS: [&str; 5] = ["success", "tool_error", "internal_error", "timeout", "outcome_unknown"];

fn run(setting: Setting) -> Score {
    let (calls, kills) = setting.choose((150, 20), (1000, 100));
    let size = Size { calls, kills, customers: 8, in_flight: 16 };
    let relay = FakeRelay::start();
    let market = Market::holding().at(std::slice::from_ref(&relay));
    let keys = Keys::generate();
    let orders = Orders {
        relay: relay.url(),
        wallet: market.bank.uri(PROVIDER).unwrap(),
        folder: market.world.path().to_owned(),
        keys: keys.clone(),
        rail: Rail::Hold,
    };
    let storm = Storm::new(&market, size, setting.seed, wish);
    let crowd = Crowd::new(&market, &hex_key(&keys), size.customers, setting.seed);
    let mut random = Random::new(setting.seed);
    std::thread::scope(|scope| {
        scope.spawn(|| storm.post(&crowd));
        while !storm.is_enough() {
            let when = [When::Before, When::After][random.below(2)];
            let mark = Mark { point: POINTS[random.below(POINTS.len())], when, nth: 1 + random.below(VISITS) };
            live(&orders, mark);
            storm.killed();
        }
    });
    let last = Process::start(&orders, None);
    storm.is_over(&crowd);
    drop(last);
    let folder = market.world.path().join(LEDGER);
    let aftermath = storm.aftermath(&crowd, &[relay], Source::Sqlite(&folder));
    let count = |is_meant: fn(&Fault) -> bool| aftermath.violations.iter().filter(|one| is_meant(&one.fault)).count();
    let now = u64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    let holds = holds(&aftermath.history, now);
    let mut score = Score::default();
    score.exactly("jobs", aftermath.history.requests.len(), calls);
    score.none("charged without a success", count(|fault| matches!(fault, Fault::NotReturned { .. })));
    let is_free = |fault: &Fault| matches!(fault, Fault::WrongCharge { .. } | Fault::NeverRan);
    score.none("successes that were not charged", count(is_free));
    score.at_least("payments that were held", holds.len(), calls);
    let longest = Duration::from_millis(holds.into_iter().max().unwrap_or_default());
    score.at_most("longest hold in seconds", longest, TIMEOUT + SLACK);
    score.at_least("ends", storm.kills(), kills);
    score.tell("seconds", storm.took());
    judge(&[aftermath], &ENDS, &mut score);
    score
}

/// Three in ten fail: the tool says so, or its server does, or nobody says anything.
fn wish(random: &mut Random) -> (&'static str, Value) {
    let tool = match random.below(100) {
        0..15 => "bad",
        15..26 => "broken",
        26..30 => "hang",
        _ => "good",
    };
    (tool, json!({}))
}

/// One life.
fn live(orders: &Orders, mark: Mark) {
    let mut process = Process::start(orders, Some(mark));
    let end = Instant::now() + LONGEST_LIFE;
    while !process.is_killed() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
}
