//! Tokens come in: what they are worth, and which are refused.

use super::scene::{Customer, Ours, mint, now, refused, sat};
use cdk::nuts::{CurrencyUnit, SecretKey, Token};
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Error, Lock, Purse as _};

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_worth_what_the_mint_leaves_of_them() {
    let Some(mint) = mint() else { return };
    let ours = Ours::at(&mint.url).await;
    let customer = Customer::with(mint, &mint.url, 200).await;
    let plain = customer.plain(21).await;
    assert_eq!(ours.wallet().receive(&plain).await, Ok(sat(20)));
    assert_eq!(ours.balance().await, 20);
    let read = ours.wallet().read(&plain).unwrap();
    assert_eq!((read.amount, read.fee, read.lock, read.coins.len()), (sat(21), sat(1), None, 3));
    assert_eq!(read.mint, mint.url);

    let until = now() + 3600;
    for (until, balance) in [(Some(until), 40), (None, 60)] {
        let locked = customer.locked(21, ours.key.public_key(), until).await;
        assert_eq!(ours.wallet().read(&locked).unwrap().lock, Some(Lock { key: ours.x(), until }));
        assert_eq!(ours.wallet().receive(&locked).await, Ok(sat(20)));
        assert_eq!(ours.balance().await, balance);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_version_of_tokens_is_read_as_well() {
    let Some(mint) = mint() else { return };
    let ours = Ours::at(&mint.url).await;
    let customer = Customer::with(mint, &mint.url, 100).await;
    let token = customer.token(21, None).await;
    let old = Secret::new(token.to_v3_string());
    assert!(old.reveal().starts_with("cashuA"));
    let (old_one, new_one) =
        (ours.wallet().read(&old).unwrap(), ours.wallet().read(&Secret::new(token.to_string())).unwrap());
    let sorted = |mut coins: Vec<[u8; 33]>| {
        coins.sort_unstable();
        coins
    };
    assert_eq!(sorted(old_one.coins), sorted(new_one.coins));
    assert_eq!(ours.wallet().receive(&old).await, Ok(sat(20)));
    // The same coins in the other clothes are the same token.
    assert_eq!(ours.wallet().receive(&Secret::new(token.to_string())).await, Ok(sat(20)));
    assert_eq!(ours.balance().await, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_token_counts_once_and_what_others_spent_not_at_all() {
    let Some(mint) = mint() else { return };
    let (first, second) = (Ours::at(&mint.url).await, Ours::at(&mint.url).await);
    let customer = Customer::with(mint, &mint.url, 100).await;
    let token = customer.plain(21).await;
    for _ in 0..3 {
        assert_eq!(first.wallet().receive(&token).await, Ok(sat(20)));
        assert_eq!(first.balance().await, 20);
        assert_eq!(second.wallet().receive(&token).await, refused("already spent"));
        assert_eq!(second.balance().await, 0);
    }
    // Many at once are one as well.
    let token = customer.plain(21).await;
    let (a, b, c) =
        tokio::join!(first.wallet().receive(&token), first.wallet().receive(&token), first.wallet().receive(&token));
    assert_eq!((a, b, c), (Ok(sat(20)), Ok(sat(20)), Ok(sat(20))));
    assert_eq!(first.balance().await, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coin_is_worth_something_in_one_token_only() {
    let Some(mint) = mint() else { return };
    let ours = Ours::at(&mint.url).await;
    let customer = Customer::with(mint, &mint.url, 200).await;
    let whole = customer.token(48, None).await;
    let coins = customer.coins(&whole).await;
    assert_eq!(coins.len(), 2);
    let part = |coin: usize| {
        let token = Token::new(mint.url.parse().unwrap(), vec![coins[coin].clone()], None, CurrencyUnit::Sat);
        Secret::new(token.to_string())
    };
    let whole = Secret::new(whole.to_string());
    let worth = u64::from(coins[0].amount) - 1;
    assert_eq!(ours.wallet().receive(&part(0)).await, Ok(sat(worth)));
    assert_eq!(ours.wallet().receive(&whole).await, refused("already spent"));
    // The other coin was not harmed by that.
    assert_eq!(ours.wallet().receive(&part(1)).await, Ok(sat(48 - worth - 2)));
    assert_eq!(ours.wallet().receive(&whole).await, refused("already spent"));
    assert_eq!(ours.balance().await, 46);

    let twice = [coins[0].clone(), coins[0].clone()].to_vec();
    let twice = Token::new(mint.url.parse().unwrap(), twice, None, CurrencyUnit::Sat).to_string();
    assert_eq!(ours.wallet().receive(&Secret::new(twice)).await, refused("a coin is in the token twice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_not_for_us_are_refused_and_not_harmed() {
    let Some(mint) = mint() else { return };
    let (ours, theirs) = (Ours::at(&mint.url).await, Ours::at(&mint.url).await);
    let customer = Customer::with(mint, &mint.url, 200).await;
    let token = customer.locked(21, theirs.key.public_key(), Some(now() + 3600)).await;
    assert_eq!(ours.wallet().read(&token).unwrap().lock.unwrap().key, theirs.x());
    assert_eq!(ours.wallet().receive(&token).await, refused("the token is locked, and not to us"));
    assert_eq!(ours.balance().await, 0);
    assert_eq!(theirs.wallet().receive(&token).await, Ok(sat(20)));

    let coins = customer.coins(&customer.token(8, None).await).await;
    let foreign =
        |mint: &str, unit| Secret::new(Token::new(mint.parse().unwrap(), coins.clone(), None, unit).to_string());
    for (token, words) in [
        (foreign("https://mint.example", CurrencyUnit::Sat), "the mint is not one of those that are trusted"),
        (foreign(&format!("{}/other", mint.url), CurrencyUnit::Sat), "the mint is not one of those that are trusted"),
        (foreign(&mint.url, CurrencyUnit::Usd), "the token is not in satoshis"),
        (Secret::new("lnbc1"), "this is not a token"),
        (Secret::new(""), "this is not a token"),
    ] {
        assert_eq!(ours.wallet().receive(&token).await, refused(words));
    }
    // A coin whose worth is a lie, and one that was never signed.
    let mut lie = coins.clone();
    lie[0].amount = 1024.into();
    let mut forged = coins.clone();
    (forged[0].c, forged[0].dleq) = (SecretKey::generate().public_key(), None);
    for coins in [lie, forged] {
        let token = Secret::new(Token::new(mint.url.parse().unwrap(), coins, None, CurrencyUnit::Sat).to_string());
        let answer = ours.wallet().receive(&token).await;
        assert!(matches!(answer, Err(Error::Refused(_))), "{answer:?}");
    }
    assert_eq!(ours.wallet().receive(&foreign(&mint.url, CurrencyUnit::Sat)).await, Ok(sat(7)));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_comes_in_than_the_cap_allows() {
    let Some(mint) = mint() else { return };
    let (ours, other) = (Ours::with(&[&mint.url], sat(45)).await, Ours::at(&mint.url).await);
    let customer = Customer::with(mint, &mint.url, 200).await;
    let first = customer.plain(21).await;
    assert_eq!(ours.wallet().receive(&first).await, Ok(sat(20)));
    let (second, third) = (customer.plain(21).await, customer.plain(21).await);
    // Both at once must not slip under the cap together.
    let (a, b) = tokio::join!(ours.wallet().receive(&second), ours.wallet().receive(&third));
    let full = refused("the wallet would hold more than 45 sat");
    let left = if a.is_ok() { (&third, b) } else { (&second, a) };
    assert_eq!(left.1, full);
    assert_eq!(ours.balance().await, 40);
    assert_eq!(ours.wallet().receive(&first).await, Ok(sat(20)), "what is here already does not count again");
    assert_eq!(other.wallet().receive(left.0).await, Ok(sat(20)));
}
