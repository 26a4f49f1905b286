//! Three workers with one key and one database, of which one is killed again and again: the others finish what it has left,
//! and nothing is done twice. Needs PostgreSQL; without it this is skipped, and said so.

use std::time::Duration;

use nostr::key::Keys;
use rialto_ledger::look::Source;
use rialto_payment::secret::Secret;
use serde_json::json;

use crate::crashes::{FLAGS, Size, Storm, exponential, is_full, seed};
use crate::server;
use torture::crowd::Crowd;
use torture::market::Market;
use torture::nostr_side::random::Random;
use torture::nostr_side::runtime;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[case!(one_of_three_is_killed)];

/// How long the one lives once it is ready, on average.
const LIFE: Duration = Duration::from_millis(200);

/// What a killed worker had waits for its lease to end. So many must be open at once that the others have enough to do.
fn size() -> Size {
    let (calls, kills) = if is_full() { (1000, 100) } else { (120, 10) };
    Size { calls, kills, customers: 24, in_flight: 240 }
}

fn one_of_three_is_killed() {
    let Some(database) = server::shared() else { return };
    let market = Market::holding();
    let keys = Keys::generate();
    let address = Secret::new(database.address());
    let ledger = format!("file:{}", market.keep("ledger", address.reveal()).display());
    let key = market.keep("key", &keys.secret_key().to_secret_hex());
    let mut flags = FLAGS.to_vec();
    flags.extend(["--ledger", &ledger, "--key", key.to_str().unwrap()]);
    let storm = Storm::new(&market, "three workers", size());
    let mut random = Random::new(seed());
    let mut victim = market.serve_worker(0, &flags);
    let mut others = [1, 2].map(|number| market.serve_worker(number, &flags));
    let crowd = Crowd::new(&market, &victim.pubkey, size().customers, seed());
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
    storm.wait_for_the_last(&crowd);
    crowd.post(0, "note", "last", json!({}));
    storm.wait_for_the_last(&crowd);
    for worker in others.iter_mut().chain([&mut victim]) {
        worker.process.stop();
    }
    storm.every_call_ended_once(&crowd);
    storm.held_money_is_taken_for_successes(&crowd);
    println!("storm with three workers: {} calls changed hands", changed_hands(&address, &keys));
    storm.the_ledger_agrees(&crowd, Source::Postgres { address: &address, key: &keys.public_key().to_bytes() });
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
