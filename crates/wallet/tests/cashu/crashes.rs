//! Whenever the wallet dies or its mint falls silent: nothing is lost, nothing counts twice.

use super::scene::{Customer, Line, Ours, Wire, eventually, mint, now, refused, sat};
use cdk::nuts::{CurrencyUnit, Token};
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Error, Lock, Order, Purse as _, Standing, Wallet as _};
use std::future::poll_fn;
use std::task::Poll;

/// Polls a future this often and then forgets it, as whoever does not wait any longer does.
async fn abandon<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut future = Box::pin(future);
    let mut left = polls;
    poll_fn(|context| {
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        left -= 1;
        if left == 0 { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_abandoned_at_any_moment_comes_in_once() {
    let Some(mint) = mint() else { return };
    let mut ours = Ours::at(&mint.url).await;
    let customer = Customer::with(mint, &mint.url, 1000).await;
    let mut expected = 0;
    for (number, polls) in [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 25, 30].into_iter().enumerate() {
        let token = match number % 2 {
            0 => customer.plain(21).await,
            _ => customer.locked(21, ours.key.public_key(), None).await,
        };
        let _ = abandon(ours.wallet().receive(&token), polls).await;
        // With and without dying in between.
        if number % 3 != 0 {
            ours.restart().await;
        }
        assert_eq!(ours.wallet().receive(&token).await, Ok(sat(20)), "after {polls} polls");
        expected += 20;
        assert_eq!(ours.balance().await, expected, "after {polls} polls");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_mint_did_and_nobody_heard_of_is_found() {
    let Some(mint) = mint() else { return };
    let wire = Wire::to(mint).await;
    let mut ours = Ours::at(&wire.url).await;
    let customer = Customer::with(mint, &wire.url, 1000).await;
    let mut expected = 0;
    for (line, dies) in [
        (Line::LosesAnswers, false),
        (Line::LosesAnswers, true),
        (Line::LosesRequests, false),
        (Line::LosesRequests, true),
    ] {
        let token = customer.plain(21).await;
        wire.set(line);
        let answer = ours.wallet().receive(&token).await;
        // The mint can still be asked, so that it may have been found out at once.
        assert!(matches!(answer, Ok(_) | Err(Error::Unreachable(_) | Error::Unknown(_))), "{answer:?}");
        if dies {
            ours.restart().await;
        }
        wire.set(Line::Works);
        assert_eq!(ours.wallet().receive(&token).await, Ok(sat(20)));
        expected += 20;
        assert_eq!(ours.balance().await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_somebody_else_took_meanwhile_is_not_counted() {
    let Some(mint) = mint() else { return };
    let wire = Wire::to(mint).await;
    let mut ours = Ours::at(&wire.url).await;
    let thief = Ours::at(&mint.url).await;
    let customer = Customer::with(mint, &wire.url, 1000).await;
    let mut stolen = 0;
    for polls in [4, 6, 7, 8, 9, 10, 12, 14] {
        let token = customer.token(21, None).await;
        let coins = customer.coins(&token).await;
        let same = Token::new(mint.url.parse().unwrap(), coins, None, CurrencyUnit::Sat);
        let (token, same) = (Secret::new(token.to_string()), Secret::new(same.to_string()));
        // Ours is written down as begun and perhaps as sent, but never arrives.
        wire.set(Line::LosesRequests);
        let begun = abandon(ours.wallet().receive(&token), polls).await;
        assert!(!matches!(begun, Some(Ok(_))));
        wire.set(Line::Dead);
        assert_eq!(thief.wallet().receive(&same).await, Ok(sat(20)));
        stolen += 20;
        wire.set(Line::Works);
        for _ in 0..2 {
            ours.restart().await;
            assert_eq!(ours.wallet().receive(&token).await, refused("already spent"), "after {polls} polls");
            assert_eq!(ours.balance().await, 0);
        }
    }
    assert_eq!(thief.balance().await, stolen);
    assert_eq!(ours.unfinished().await, 0, "what can never be finished is not tried for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_abandoned_while_it_was_made_is_ours_or_can_be_taken() {
    let Some(mint) = mint() else { return };
    let mut ours = Ours::at(&mint.url).await;
    let theirs = Ours::at(&mint.url).await;
    ours.fund(mint, 1000).await;
    let lock = Lock { key: theirs.x(), until: Some(now() + 3600) };
    let mut received = 0;
    for polls in [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20] {
        let before = ours.balance().await;
        let sent = abandon(ours.wallet().send(&mint.url, sat(10), lock), polls).await;
        ours.restart().await;
        // The mint may still be busy with what it was asked for.
        eventually(|| async {
            let has_token = !ours.wallet().pending().await.unwrap().is_empty();
            has_token || ours.balance().await == before
        })
        .await;
        let pending = ours.wallet().pending().await.unwrap();
        let after = ours.balance().await;
        assert!(pending.len() <= 1, "after {polls} polls");
        match pending.first() {
            None => {
                assert!(sent.is_none());
                assert_eq!(before, after, "after {polls} polls");
            }
            Some(pending) => {
                assert!(before - after <= 13, "after {polls} polls: {before} {after}");
                assert_eq!(theirs.wallet().receive(&pending.token).await, Ok(sat(10)));
                received += 10;
                assert_eq!(theirs.balance().await, received);
            }
        }
    }
    assert!(received > 0, "some were made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_coins_were_signed_unheard_is_not_lost() {
    let Some(mint) = mint() else { return };
    let wire = Wire::to(mint).await;
    let mut ours = Ours::at(&wire.url).await;
    let theirs = Ours::at(&wire.url).await;
    ours.fund(mint, 100).await;
    for line in [Line::LosesAnswers, Line::LosesRequests] {
        let before = ours.balance().await;
        wire.set(line);
        let lock = Lock { key: theirs.x(), until: Some(now() + 3600) };
        let sent = ours.wallet().send(&wire.url, sat(10), lock).await;
        assert!(matches!(sent, Err(Error::Unknown(_))), "{sent:?}");
        wire.set(Line::Works);
        ours.restart().await;
        let pending = ours.wallet().pending().await.unwrap();
        assert_eq!(pending.len(), 1);
        assert_eq!(theirs.wallet().receive(&pending[0].token).await, Ok(sat(10)));
        assert!(before - ours.balance().await <= 13);
        assert!(ours.wallet().pending().await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn coins_of_a_paid_invoice_that_were_lost_on_their_way_are_fetched_again() {
    let Some(mint) = mint() else { return };
    let wire = Wire::to(mint).await;
    let mut ours = Ours::at(&wire.url).await;
    let mut expected = 0;
    for (line, dies) in [(Line::LosesAnswers, true), (Line::LosesAnswers, false), (Line::LosesRequests, true)] {
        let order = Order { amount: sat(50), memo: String::new(), expiry: 600 };
        let invoice = ours.wallet().make(&order).await.unwrap();
        assert_eq!(ours.wallet().look_up(invoice.hash).await, Ok(Standing::Open));
        mint.pay(&invoice.text);
        wire.set(line);
        let answer = ours.wallet().look_up(invoice.hash).await;
        assert!(!matches!(answer, Ok(Standing::Over | Standing::Missing | Standing::Held { .. })), "{answer:?}");
        if dies {
            ours.restart().await;
        }
        wire.set(Line::Works);
        let settled = Standing::Settled { amount: sat(50) };
        eventually(|| async { ours.wallet().look_up(invoice.hash).await == Ok(settled) }).await;
        expected += 50;
        assert_eq!(ours.balance().await, expected);
        assert_eq!(ours.wallet().look_up(invoice.hash).await, Ok(settled));
        assert_eq!(ours.balance().await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_mint_a_wallet_opens_and_waits() {
    let Some(mint) = mint() else { return };
    let wire = Wire::to(mint).await;
    let mut ours = Ours::at(&wire.url).await;
    ours.fund(mint, 30).await;
    let customer = Customer::with(mint, &wire.url, 100).await;
    let token = customer.plain(21).await;
    wire.set(Line::Dead);
    ours.restart().await;
    assert_eq!(ours.balance().await, 30);
    assert_eq!(ours.wallet().read(&token).unwrap().fee, sat(1), "fees are remembered");
    let answer = ours.wallet().receive(&token).await;
    assert!(matches!(answer, Err(Error::Unreachable(_) | Error::Unknown(_))), "{answer:?}");
    wire.set(Line::Works);
    assert_eq!(ours.wallet().receive(&token).await, Ok(sat(20)));
}
