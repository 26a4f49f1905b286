//! R01: the real program is killed at random, again and again, while many customers pay it on three relays.

use std::time::Duration;

use rialto_ledger::look::Source;
use serde_json::json;

use super::super::{Row, Setting};
use super::storm::{Aftermath, ENDS, FLAGS, Size, Storm, exponential, judge, usual};
use crate::crowd::Crowd;
use crate::market::Market;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::random::Random;
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R01", "the provider is killed again and again while customers pay", run);

/// How long a provider lives once it is ready, on average.
const LIFE: Duration = Duration::from_millis(200);

fn run(setting: Setting) -> Score {
    let (calls, kills) = setting.choose((100, 10), (500, 50));
    let size = Size { calls, kills, customers: 6, in_flight: 14 };
    let mut score = Score::default();
    let storms = [Market::holding(), Market::plain()].map(|market| rage(market, size, setting.seed));
    let (kills, took) = storms.iter().fold((0, Duration::ZERO), |sum, one| (sum.0 + one.1, sum.1 + one.2));
    let all: Vec<Aftermath> = storms.into_iter().map(|one| one.0).collect();
    score.exactly("paid jobs", all.iter().map(|one| one.history.requests.len()).sum::<usize>(), 2 * (calls + 1));
    judge(&all, &ENDS, &mut score);
    score.at_least("kills", kills, 2 * size.kills);
    score.tell("seconds", took);
    score.note("one half with held money, the other with ordinary invoices");
    score
}

/// One provider, killed until there were enough calls and kills; then it is left alone until all calls have ended.
fn rage(market: Market, size: Size, seed: u64) -> (Aftermath, usize, Duration) {
    let relays = [(); 3].map(|()| FakeRelay::start());
    let market = market.at(&relays);
    let storm = Storm::new(&market, size, seed, usual);
    let mut random = Random::new(seed);
    let mut provider = market.serve(&FLAGS);
    let crowd = Crowd::new(&market, &provider.pubkey, size.customers, seed);
    std::thread::scope(|scope| {
        scope.spawn(|| storm.post(&crowd));
        while !storm.is_enough() {
            std::thread::sleep(exponential(&mut random, LIFE));
            provider.process.kill();
            storm.killed();
            provider = market.serve(&FLAGS);
        }
    });
    storm.is_over(&crowd);
    // One more life: what is sent again now must be what was sent before.
    provider.process.kill();
    provider = market.serve(&FLAGS);
    crowd.post(0, "note", "last", json!({}));
    storm.is_over(&crowd);
    provider.process.stop();
    let took = storm.took();
    let folder = market.ledger_directory(crowd.provider());
    (storm.aftermath(&crowd, &relays, Source::Sqlite(&folder)), storm.kills(), took)
}
