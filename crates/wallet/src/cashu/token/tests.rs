//! Which coins count as locked. Whatever can be read in two ways counts as open.

use super::{MAX_COINS, Parsed, parse};
use cdk::nuts::{CurrencyUnit, Id, Proof, SecretKey, Token};
use cdk::secret::Secret;
use rialto_payment::wallet::{Error, Lock};
use std::str::FromStr;

const KEY: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const OTHER: &str = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";

fn token(secrets: &[&str]) -> Result<Parsed, Error> {
    let id = Id::from_str("009a1f293253e41e").unwrap();
    let coin = |secret: &&str| Proof::new(2.into(), id, Secret::new(*secret), SecretKey::generate().public_key());
    let coins = secrets.iter().map(coin).collect();
    parse(&Token::new("https://mint.example".parse().unwrap(), coins, None, CurrencyUnit::Sat).to_string())
}

fn secret(data: &str, tags: &str) -> String {
    format!(r#"["P2PK",{{"nonce":"{}","data":"{data}","tags":[{tags}]}}]"#, "5d".repeat(16))
}

fn check(secret: &str, expected: Option<Option<u64>>) {
    let key = <[u8; 32]>::try_from(
        (0..32).map(|at| u8::from_str_radix(&KEY[2 * at..2 * at + 2], 16).unwrap()).collect::<Vec<_>>(),
    );
    let expected = expected.map(|until| Lock { key: key.unwrap(), until });
    assert_eq!(token(&[secret]).unwrap().lock, expected, "{secret}");
}

#[test]
fn a_lock_is_believed_only_if_it_is_beyond_doubt() {
    let (even, odd) = (format!("02{KEY}"), format!("03{KEY}"));
    for (tags, expected) in [
        ("", Some(None)),
        (r#"["sigflag","SIG_INPUTS"]"#, Some(None)),
        (r#"["n_sigs","1"]"#, Some(None)),
        (r#"["locktime","1900000000"]"#, Some(Some(1_900_000_000))),
        (
            r#"["locktime","1900000000"],["refund","02ab"],["n_sigs_refund","1"],["sigflag","SIG_INPUTS"]"#,
            Some(Some(1_900_000_000)),
        ),
        // Others can spend it, or it is not clear who can.
        (r#"["sigflag","SIG_ALL"]"#, None),
        (r#"["sigflag","SIG_SOMETHING"]"#, None),
        (r#"["sigflag"]"#, None),
        (r#"["n_sigs","2"]"#, None),
        (r#"["n_sigs","0"]"#, None),
        (r#"["n_sigs","01"]"#, None),
        (&format!(r#"["pubkeys","{OTHER}"]"#), None),
        (&format!(r#"["pubkeys","{OTHER}"],["n_sigs","2"]"#), None),
        (&format!(r#"["refund","{OTHER}"]"#), None),
        (r#"["locktime","0"]"#, None),
        (r#"["locktime","-1"]"#, None),
        (r#"["locktime","+1900000000"]"#, None),
        (r#"["locktime"," 1900000000"]"#, None),
        (r#"["locktime","1900000000.5"]"#, None),
        (r#"["locktime","1900000000000"]"#, None),
        (r#"["locktime","1900000000","1"]"#, None),
        (r#"["locktime","1900000000"],["locktime","1"]"#, None),
        (r#"["locktime",1900000000]"#, None),
        (r#"["unheard-of","x"]"#, None),
        ("[]", None),
    ] {
        check(&secret(&even, tags), expected);
    }
    check(&secret(&odd, ""), Some(None));
    check(&format!(r#"["P2PK",{{"nonce":"aa","data":"{even}"}}]"#), Some(None));
}

#[test]
fn other_secrets_are_open_to_anybody() {
    let even = format!("02{KEY}");
    for secret in [
        "407915bc212be61a77e3e6d2aeb4c727980bda51cd06a6afc29e2861768a7837".to_owned(),
        String::from("[]"),
        secret(&even, "").replace("P2PK", "HTLC"),
        secret(&even, "").replace("P2PK", "p2pk"),
        secret(KEY, ""),
        secret(&even.to_uppercase(), ""),
        secret(&format!("04{KEY}"), ""),
        secret(&format!("02{}", "ff".repeat(32)), ""),
        format!(r#"["P2PK",{{"nonce":"aa","data":"{OTHER}","data":"{even}"}}]"#),
        format!(r#"["P2PK",{{"nonce":"aa","data":"{even}","extra":1}}]"#),
        format!(r#"["P2PK",{{"nonce":"aa","data":"{even}"}},1]"#),
        format!(r#"["P2PK",{{"nonce":"aa","data":"{even}","tags":[],"tags":[["pubkeys","{OTHER}"]]}}]"#),
        format!(r#"["P2PK",{{"data":"{even}"}}]"#),
    ] {
        check(&secret, None);
    }
}

#[test]
fn all_coins_must_have_the_same_lock() {
    let lock = |number: u8, tags: &str| secret(&format!("02{KEY}"), tags).replace("5d5d", &format!("{number:04x}"));
    let time = r#"["locktime","1900000000"]"#;
    assert!(token(&[&lock(1, time), &lock(2, time)]).unwrap().lock.is_some());
    assert!(token(&[&lock(1, time), &lock(2, "")]).unwrap().lock.is_none());
    assert!(token(&[&lock(1, ""), "plain"]).unwrap().lock.is_none());
    assert!(token(&["plain", &lock(1, "")]).unwrap().lock.is_none());
    let other = secret(OTHER, "");
    assert!(token(&[&lock(1, ""), &other]).unwrap().lock.is_none());
}

#[test]
fn a_token_is_known_by_its_coins() {
    let (one, two) = (token(&["a", "b"]).unwrap(), token(&["b", "a"]).unwrap());
    assert_eq!((one.id(), one.sat), (two.id(), 4));
    assert_ne!(one.id(), token(&["a"]).unwrap().id());
    let point = cdk::dhke::hash_to_curve(b"test_message").unwrap().to_bytes();
    assert_eq!(token(&["test_message"]).unwrap().coins, [point]);
    assert!(token(&["a", "a"]).is_err());
    assert!(token(&[]).is_err());
    let many: Vec<String> = (0..=MAX_COINS).map(|number| number.to_string()).collect();
    assert!(token(&many.iter().map(String::as_str).collect::<Vec<_>>()).is_err());
    assert!(token(&[&"x".repeat(2000)]).is_err());
}
