//! A wallet service for end-to-end tests, as a program of its own.
//!
//! `test_wallet --relay URL [--accounts N] [--balance SAT] [--fee SAT] [--hold-limit SECONDS] [--style N:STYLE[,STYLE]]`
//!
//! Styles are `only-nip04`, `no-hold`, `no-state`, `no-addressee` and `only-lists-payments`. One line of JSON with the
//! addresses of the accounts is printed, then commands are read from stdin, each answered by one line of JSON, until it is
//! closed:
//!
//! * `balance N` — what account N has, in thousandths of a satoshi;
//! * `total` — what there is in all;
//! * `fault [account=N] [method=NAME] [times=N] EFFECT[+EFFECT…]` — what is to go wrong next: `ignore`, `lose`,
//!   `delay:MILLISECONDS`, `twice`, `stranger`, `other-request`, `other-addressee`, `wrong-type`, `wrong-amount`,
//!   `wrong-hash`, `wrong-preimage`, `garbage`, `fail:CODE`, `stick`;
//! * `clear` — nothing goes wrong any more;
//! * `invoice N HASH`, `payment N HASH` — how they are doing;
//! * `arrive HASH`, `return HASH` — ends a payment that is stuck.

#![allow(clippy::print_stdout, reason = "a program whose answers are read from stdout")]

use rialto_payment::amount::Msat;
use rialto_wallet::testing::{Options, Style, TestWallet};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let (relay, options) = arguments(std::env::args().skip(1))?;
    let accounts = options.styles.len();
    let wallet = TestWallet::start(&relay, options).await?;
    let uris: Vec<String> =
        (0..accounts).filter_map(|account| wallet.uri(account)).map(|uri| uri.reveal().to_owned()).collect();
    say(&json!({ "provider": uris.first(), "customer": uris.get(1), "uris": uris }))?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        say(&answer(&wallet, &line).unwrap_or_else(|words| json!({ "error": words })))?;
    }
    Ok(())
}

fn say(value: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<(String, Options), Failure> {
    let mut options = Options::default();
    let (mut relay, mut styles) = (None, Vec::new());
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
        let sat = |value: &str| Msat::from_sat(value.parse().ok()?);
        match name.as_str() {
            "--relay" => relay = Some(value),
            "--accounts" => options.styles = vec![Style::default(); value.parse()?],
            "--balance" => options.balance = sat(&value).ok_or("not an amount")?,
            "--fee" => options.fee = sat(&value).ok_or("not an amount")?,
            "--hold-limit" => options.hold_limit = Some(Duration::from_secs(value.parse()?)),
            "--style" => styles.push(value),
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    for text in styles {
        let (account, names) = text.split_once(':').ok_or("a style is N:STYLE")?;
        let style = options.styles.get_mut(account.parse::<usize>()?).ok_or("there is no such account")?;
        for name in names.split(',') {
            match name {
                "only-nip04" => style.only_nip04 = true,
                "no-hold" => style.no_hold = true,
                "no-state" => style.no_state = true,
                "no-addressee" => style.no_addressee = true,
                "only-lists-payments" => style.only_lists_payments = true,
                _ => return Err(format!("there is no style {name}").into()),
            }
        }
    }
    Ok((relay.ok_or("--relay is needed")?, options))
}

fn answer(wallet: &TestWallet, line: &str) -> Result<Value, String> {
    let (command, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
    let hash = |text: &str| text.parse().map_err(|_| format!("`{text}` is no payment hash"));
    match (command, words.as_slice()) {
        ("balance", [account]) => {
            let balance = wallet.balance(number(account)?).ok_or("there is no such account")?;
            Ok(json!({ "balance_msat": balance.get() }))
        }
        ("total", []) => Ok(json!({ "total_msat": wallet.total().get() })),
        ("fault", _) => {
            wallet.faults().add(rest.parse()?);
            Ok(json!({ "ok": true }))
        }
        ("clear", []) => {
            wallet.faults().clear();
            Ok(json!({ "ok": true }))
        }
        ("invoice", [account, text]) => {
            let stage = wallet.stage(number(account)?, hash(text)?);
            Ok(json!({ "invoice": stage.map(|stage| format!("{stage:?}").to_lowercase()) }))
        }
        ("payment", [account, text]) => {
            let course = wallet.course(number(account)?, hash(text)?);
            Ok(json!({ "payment": course.map(|course| format!("{course:?}").to_lowercase()) }))
        }
        ("arrive" | "return", [text]) => {
            wallet.resolve(hash(text)?, command == "arrive");
            Ok(json!({ "ok": true }))
        }
        _ => Err("there is no such command".to_owned()),
    }
}
