//! The wallet's files: nobody else's, one process at a time. No mint is needed for this.

use super::scene::{Ours, sat};
use cdk::nuts::{CurrencyUnit, Id, Proof, SecretKey, Token};
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Error, Order, Purse as _, Wallet as _};
use rialto_wallet::cashu::{Cashu, Unusable};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::str::FromStr as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:9";

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_can_read_the_money() {
    let mut ours = Ours::at(NOWHERE).await;
    let mode = |name: &str| fs::metadata(ours.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("seed"), mode("coins.redb")), (0o700, 0o600, 0o600));
    let seed = fs::read_to_string(ours.path().join("seed")).unwrap();
    assert_eq!(seed.len(), 128);
    ours.restart().await;
    assert_eq!(fs::read_to_string(ours.path().join("seed")).unwrap(), seed, "it is made once");
    let shown = format!("{:?} {:?}", ours.wallet(), ours.settings());
    assert!(!shown.contains(&seed) && !shown.contains(&ours.key.to_secret_hex()), "{shown}");

    let second = Cashu::open(ours.settings()).await;
    assert!(matches!(second, Err(Unusable::InUse(_))), "{second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_that_is_lost_or_open_is_not_replaced() {
    let settings = {
        let ours = Ours::at(NOWHERE).await;
        let settings = ours.settings();
        let kept = ours.directory;
        (settings, kept)
    };
    let (settings, _kept) = settings;
    let seed = settings.directory.join("seed");
    fs::set_permissions(&seed, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(Cashu::open(settings.clone()).await, Err(Unusable::Open(_))));
    fs::set_permissions(&seed, fs::Permissions::from_mode(0o600)).unwrap();
    let text = fs::read_to_string(&seed).unwrap();
    fs::write(&seed, &text[1..]).unwrap();
    assert!(matches!(Cashu::open(settings.clone()).await, Err(Unusable::NoSeed(_))));
    fs::remove_file(&seed).unwrap();
    assert!(matches!(Cashu::open(settings.clone()).await, Err(Unusable::NoSeed(_))));
    fs::write(&seed, text).unwrap();
    fs::set_permissions(&seed, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Cashu::open(settings).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mint_that_only_talks_nonsense_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"nonsense").await;
        }
    });
    // With TLS as well: its own errors are not to bring the process down.
    for scheme in ["https", "http"] {
        let ours = Ours::at(&format!("{scheme}://{place}")).await;
        let order = Order { amount: sat(5), memo: String::new(), expiry: 600 };
        let answer = ours.wallet().make(&order).await;
        assert!(matches!(answer, Err(Error::Unreachable(_) | Error::Refused(_))), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_tokens_are_refused_without_harm() {
    let ours = Ours::at(NOWHERE).await;
    let coin = |number: u8, amount: u64| {
        let secret = cdk::secret::Secret::new(format!("{number:064x}"));
        let id = Id::from_str("009a1f293253e41e").unwrap();
        Proof::new(amount.into(), id, secret, SecretKey::generate().public_key())
    };
    let coins = vec![coin(1, 1), coin(2, 4), coin(3, 16)];
    let token = Token::new(NOWHERE.parse().unwrap(), coins, Some("a memo".into()), CurrencyUnit::Sat);
    let (new, old) = (token.to_string(), token.to_v3_string());
    assert_eq!(ours.wallet().read(&Secret::new(&*new)).unwrap().amount, sat(21));
    assert_eq!(ours.wallet().read(&Secret::new(&*old)).unwrap().amount, sat(21));

    // Marsaglia's xorshift: the same mutations each time.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut refused = 0;
    for round in 0..1500 {
        let mut text = if round % 2 == 0 { new.clone() } else { old.clone() }.into_bytes();
        for _ in 0..=random(4) {
            let place = 6 + random(text.len() - 6);
            match random(4) {
                0 => text[place] = b"ABCDwxyz0189-_"[random(14)],
                1 => drop(text.drain(place..)),
                2 => text.insert(place, b"Aa09"[random(4)]),
                _ => text = [&text[..place], &text[6 + random(place - 5).min(place - 6)..]].concat(),
            }
            if text.len() < 8 {
                break;
            }
        }
        let text = Secret::new(String::from_utf8(text).unwrap());
        match ours.wallet().read(&text) {
            Err(_) => refused += 1,
            Ok(read) => assert!(!read.coins.is_empty() && read.lock.is_none()),
        }
    }
    assert!(refused > 500, "{refused}");
    for long in
        ["cashuA".to_owned() + &"A".repeat(200_000), "cashuB".to_owned() + &"n5".repeat(40_000), "cashuB_____".into()]
    {
        assert!(ours.wallet().read(&Secret::new(long)).is_err());
    }
}
