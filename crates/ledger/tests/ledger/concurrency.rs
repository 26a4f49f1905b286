//! Many at once, of one worker and, where there can be, of two.

use crate::place::Place;
use crate::steps::{begin, coin, commit, entry, free, id, msat, quote, taken};
use rialto_ledger::job::{Money, Outcome, Refusal, Stage, Step};
use rialto_ledger::ledger::Ledger;
use std::sync::Arc;
use tokio::sync::Barrier;

const AT_ONCE: u64 = 48;

/// Gives all steps at once, every second one to another worker.
async fn race(place: &Place, ledger: &Arc<dyn Ledger>, make: impl Fn(u64) -> Step) -> Vec<Outcome> {
    let other = place.open_beside(ledger).await;
    let barrier = Arc::new(Barrier::new(AT_ONCE as usize));
    let tasks: Vec<_> = (0..AT_ONCE)
        .map(|number| {
            let ledger = if number % 2 == 0 { ledger.clone() } else { other.clone() };
            let (barrier, step) = (barrier.clone(), make(number));
            tokio::spawn(async move {
                barrier.wait().await;
                commit(&*ledger, step).await
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

fn count_taken(outcomes: &[Outcome], otherwise: Refusal) -> usize {
    let taken = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Taken { .. })).count();
    let refused = outcomes.iter().filter(|outcome| **outcome == Outcome::Refused(otherwise)).count();
    assert_eq!(taken + refused, outcomes.len(), "{outcomes:?}");
    taken
}

pub(crate) async fn credit_is_never_negative(place: &Place) {
    let ledger = place.open().await;
    let mut step = begin(1, 1, Stage::Done);
    step.credit = entry(1_050);
    taken(&*ledger, step).await;
    let outcomes = race(place, &ledger, |number| {
        let mut step = begin(100 + number, 1, Stage::Funded);
        step.credit = entry(-100);
        step
    });
    assert_eq!(count_taken(&outcomes.await, Refusal::NoCredit), 10);
    assert_eq!(ledger.account(id(1), "echo").await.unwrap().credit, msat(50));
    assert_eq!(ledger.status().await.unwrap().owed, msat(50));
}

pub(crate) async fn a_hash_pays_for_one_job(place: &Place) {
    let ledger = place.open().await;
    let outcomes = race(place, &ledger, |number| {
        let mut step = begin(number, number, Stage::Quoted);
        step.quote = Some(quote(Some(7), Money::Open));
        step
    });
    assert_eq!(count_taken(&outcomes.await, Refusal::HashUsed), 1);
    assert_eq!(ledger.recent(0).await.unwrap().len(), 1);
}

pub(crate) async fn a_coin_pays_for_one_job(place: &Place) {
    let ledger = place.open().await;
    let outcomes = race(place, &ledger, |number| {
        let mut step = begin(number, number, Stage::Receiving);
        // Own coins before and after the one that all want.
        step.coins = vec![coin(100 + number as u8), coin(7), coin(200 + number as u8)];
        step
    });
    assert_eq!(count_taken(&outcomes.await, Refusal::CoinUsed), 1);
    assert_eq!(place.ask("SELECT 'coin' FROM coin").await.lines().count(), 3);
}

pub(crate) async fn free_calls_end(place: &Place) {
    let ledger = place.open().await;
    let outcomes = race(place, &ledger, |number| {
        let mut step = begin(number, 1, Stage::Funded);
        step.free_use = free(5);
        step
    });
    assert_eq!(count_taken(&outcomes.await, Refusal::NoneFree), 5);
    assert_eq!(ledger.account(id(1), "echo").await.unwrap().free_uses, 5);
}

/// Relays give the same request to everybody, in any order.
pub(crate) async fn one_request_is_begun_once(place: &Place) {
    let ledger = place.open().await;
    let outcomes = race(place, &ledger, |number| begin(number / 8, 1, Stage::Funded));
    assert_eq!(count_taken(&outcomes.await, Refusal::Known(Stage::Funded)), AT_ONCE as usize / 8);
}
