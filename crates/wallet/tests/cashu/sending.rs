//! Tokens leave, and come back if nobody takes them.

use super::scene::{Ours, eventually, mint, now, refused, sat};
use rialto_payment::wallet::{Error, Lock, Purse as _};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_worth_to_its_receiver_what_was_sent() {
    let Some(mint) = mint() else { return };
    let (ours, theirs) = (Ours::at(&mint.url).await, Ours::at(&mint.url).await);
    ours.fund(mint, 1000).await;
    let mut received = 0;
    for amount in [1, 7, 10, 21, 127, 300] {
        let before = ours.balance().await;
        let lock = Lock { key: theirs.x(), until: Some(now() + 3600) };
        let token = ours.wallet().send(&mint.url, sat(amount), lock).await.unwrap();
        let read = theirs.wallet().read(&token).unwrap();
        assert_eq!(read.lock, Some(lock));
        assert!(read.amount.sat_rounded_down() >= amount);
        assert_eq!(ours.wallet().pending().await.unwrap().len(), 1);
        assert_eq!(theirs.wallet().receive(&token).await, Ok(sat(amount)));
        received += amount;
        assert_eq!(theirs.balance().await, received);
        assert!(ours.wallet().pending().await.unwrap().is_empty(), "it is known to be spent");
        let cost = before - ours.balance().await - amount;
        assert!(cost <= 3, "{amount} sat cost {cost} sat");
    }
    let lock = Lock { key: theirs.x(), until: None };
    assert_eq!(ours.wallet().send(&mint.url, sat(1000), lock).await, Err(Error::Insufficient));
    let untrusted = ours.wallet().send("https://mint.example", sat(1), lock).await;
    assert_eq!(untrusted, refused("the mint is not one of those that are trusted"));
    let forever = ours.wallet().send(&mint.url, sat(5), lock).await.unwrap();
    assert_eq!(theirs.wallet().read(&forever).unwrap().lock, Some(lock));
    let past = ours.wallet().send(&mint.url, sat(5), Lock { until: Some(1000), ..lock }).await;
    assert!(matches!(past, Err(Error::Refused(_))), "{past:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_nobody_took_can_be_taken_back_when_its_time_has_come() {
    let Some(mint) = mint() else { return };
    let (mut ours, theirs) = (Ours::at(&mint.url).await, Ours::at(&mint.url).await);
    ours.fund(mint, 100).await;
    let until = now() + 4;
    let lock = Lock { key: theirs.x(), until: Some(until) };
    let token = ours.wallet().send(&mint.url, sat(40), lock).await.unwrap();
    let early = ours.wallet().take_back(&token).await;
    if now() < until {
        assert_eq!(early, refused("the token is locked, and not to us"));
    }
    drop(token);
    // All that is known of it after a crash.
    ours.restart().await;
    let pending = ours.wallet().pending().await.unwrap();
    assert_eq!((pending.len(), pending[0].amount, pending[0].until), (1, sat(40), Some(until)));
    assert_eq!(pending[0].mint, mint.url);
    eventually(|| async { ours.wallet().take_back(&pending[0].token).await == Ok(sat(40)) }).await;
    assert!(now() >= until);
    assert!(ours.wallet().pending().await.unwrap().is_empty());
    assert!((95..100).contains(&ours.balance().await));
    assert_eq!(theirs.wallet().receive(&pending[0].token).await, refused("already spent"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_taken_cannot_be_taken_back() {
    let Some(mint) = mint() else { return };
    let (ours, theirs) = (Ours::at(&mint.url).await, Ours::at(&mint.url).await);
    ours.fund(mint, 100).await;
    let until = now() + 3;
    let token = ours.wallet().send(&mint.url, sat(40), Lock { key: theirs.x(), until: Some(until) }).await.unwrap();
    assert_eq!(theirs.wallet().receive(&token).await, Ok(sat(40)));
    eventually(|| async { ours.wallet().take_back(&token).await == refused("already spent") }).await;
    assert!(ours.balance().await < 60);
}
