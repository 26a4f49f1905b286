//! Three workers with one key and one database, of which one is killed again and again: the others finish what it has left,
//! and nothing is done twice. Needs PostgreSQL; without it this is skipped, and said so.

use std::time::Duration;

use nostr::key::Keys;
use rialto_ledger::look::Source;
use rialto_payment::secret::Secret;
use serde_json::json;

use crate::server;
use torture::crowd::Crowd;
use torture::market::Market;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::random::Random;
use torture::nostr_side::runtime;
use torture::rows::crashes::storm::{ENDS, FLAGS, Size, Storm, exponential, judge, usual};
use torture::score::Score;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[case!(one_of_three_is_killed)];

/// How long the one lives once it is ready, on average.
const LIFE: Duration = Duration::from_millis(200);

/// What a killed worker had waits for its lease to end. So many must be open at once that the others have enough to do.
/// `RIALTO_TORTURE=full` makes it as long as the crash loop of the scoreboard.
fn size() -> Size {
    let is_full = std::env::var_os("RIALTO_TORTURE").is_some_and(|how| how == "full");
    let (calls, kills) = if is_full { (1000, 100) } else { (120, 10) };
    Size { calls, kills, customers: 24, in_flight: 240 }
}

/// Where chance begins; printed, so that it can be given.
fn seed() -> u64 {
    let given = std::env::var("RIALTO_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().as_secs())
}

fn one_of_three_is_killed() {
    let Some(database) = server::shared() else { return };
    let relay = FakeRelay::start();
    let market = Market::holding().at(std::slice::from_ref(&relay));
    let keys = Keys::generate();
    let address = Secret::new(database.address());
    let ledger = format!("file:{}", market.keep("ledger", address.reveal()).display());
    let key = market.keep("key", &keys.secret_key().to_secret_hex());
    let mut flags = FLAGS.to_vec();
    flags.extend(["--ledger", &ledger, "--key", key.to_str().unwrap()]);
    let (size, seed) = (size(), seed());
    let storm = Storm::new(&market, size, seed, usual);
    let mut random = Random::new(seed);
    let mut victim = market.serve_worker(0, &flags);
    let mut others = [1, 2].map(|number| market.serve_worker(number, &flags));
    let crowd = Crowd::new(&market, &victim.pubkey, size.customers, seed);
    std::thread::scope(|scope| {
        scope.spawn(|| storm.post(&crowd));
        while !storm.is_enough() {
            std::thread::sleep(exponential(&mut random, LIFE));
            victim.process.kill();
            victim = market.serve_worker(0, &flags);
            // Only now: the calls that come next are for all three.
            storm.killed();
        }
    });
    assert!(storm.is_over(&crowd), "calls without an end: {:?}", crowd.outcomes());
    crowd.post(0, "note", "last", json!({}));
    assert!(storm.is_over(&crowd), "calls without an end: {:?}", crowd.outcomes());
    for worker in others.iter_mut().chain([&mut victim]) {
        let status = worker.process.stop();
        assert!(status.success(), "a worker ended with {status}: {}", worker.process.told());
    }
    let mut score = Score::default();
    let source = Source::Postgres { address: &address, key: &keys.public_key().to_bytes() };
    judge(&[storm.aftermath(&crowd, &[relay], source)], &ENDS, &mut score);
    println!(
        "storm with three workers: RIALTO_SEED={seed}, {} kills, {:.1} s, {} calls changed hands, {:?}",
        storm.kills(),
        storm.took().as_secs_f32(),
        changed_hands(&address, &keys),
        score.notes
    );
    assert!(score.passes(), "{score:#?}");
}

/// How many calls another worker has taken over.
fn changed_hands(address: &Secret, keys: &Keys) -> i64 {
    let schema: String = keys.public_key().to_hex().chars().take(16).collect();
    runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(address.reveal(), tokio_postgres::NoTls).await.unwrap();
        runtime().spawn(connection);
        let sql = format!("SELECT count(*) FROM rialto_{schema}.job WHERE fence > 1");
        client.query_one(&sql, &[]).await.unwrap().get(0)
    })
}
