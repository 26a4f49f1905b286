//! Nostr Wallet Connect with an implementation by others (Alby's SDK) at either end: our connector asks its wallet, and its
//! client asks the wallet of our tests, so that the two of ours do not merely agree with each other.

#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../rialto/tests/interop/peers.rs"]
mod peers;

use peers::Peers;
use rialto_payment::amount::Msat;
use rialto_payment::secret::{Preimage, Secret};
use rialto_payment::wallet::{Abilities, Order, Receipt, Standing, Wallet as _};
use rialto_relay::embedded;
use rialto_wallet::nwc::{Nwc, Patience};
use rialto_wallet::testing::{Options, TestWallet, sign_invoice};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How long Node may take on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Starts the peer; the first thing that it says.
async fn peer(peers: &Peers, arguments: &[&str]) -> (Child, Value) {
    let command = peers.wallet_connect();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the peer starts");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = tokio::time::timeout(LONG, lines.next_line()).await.expect("it says something in time").unwrap();
    (child, serde_json::from_str(&line.expect("it says something")).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn our_connector_asks_a_wallet_by_others() {
    let Some(peers) = Peers::installed() else { return };
    let relay = embedded::Relay::start(embedded::Options::default()).await.unwrap();
    let preimage = Preimage::generate().unwrap();
    let order = Order { amount: Msat::from_sat(10).unwrap(), memo: "a call".to_owned(), expiry: 600 };
    let text = sign_invoice(&order, preimage.hash()).unwrap();
    let (_child, said) = peer(&peers, &["wallet", &relay.url(), &text, &preimage.reveal_hex()]).await;
    let patience = Patience { pay: LONG, other: LONG };
    let wallet = Nwc::open(&Secret::new(said["uri"].as_str().unwrap()), patience).unwrap();
    assert_eq!(wallet.abilities().await, Ok(Abilities { hold: false, pay: true }));
    let invoice = wallet.make(&order).await.unwrap();
    assert_eq!((invoice.text.as_str(), invoice.hash), (text.as_str(), preimage.hash()));
    assert_eq!(wallet.balance().await, Ok(Msat::from_sat(21).unwrap()));
    assert_eq!(wallet.look_up(invoice.hash).await, Ok(Standing::Settled { amount: order.amount }));
    assert_eq!(wallet.look_up(Preimage::new([1; 32]).hash()).await, Ok(Standing::Missing));
    let receipt = Receipt { preimage: Some(preimage), fee: Msat::new(7).unwrap() };
    assert_eq!(wallet.pay(&invoice, Msat::ZERO).await, Ok(receipt));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wallet_of_the_tests_is_asked_by_a_client_of_others() {
    let Some(peers) = Peers::installed() else { return };
    let relay = embedded::Relay::start(embedded::Options::default()).await.unwrap();
    let options =
        Options { balance: Msat::from_sat(100).unwrap(), fee: Msat::from_sat(1).unwrap(), ..Options::default() };
    let wallet = TestWallet::start(&relay.url(), options).await.unwrap();
    let (seller, buyer) = (wallet.uri(0).unwrap(), wallet.uri(1).unwrap());
    let (_child, mut said) = peer(&peers, &["customer", seller.reveal(), buyer.reveal()]).await;
    let methods = said["methods"].take();
    assert!(methods.as_array().unwrap().contains(&json!("settle_hold_invoice")), "{methods}");
    let expected = json!({
        "encryptions": ["nip44_v2", "nip04"],
        "notifications": ["payment_received", "hold_invoice_accepted"],
        "methods": null,
        "encryption": "nip44_v2",
        "paid": true,
        "fees_paid": 1000,
        "state": "settled",
        "again": { "code": "OTHER" },
        "notice": "hold_invoice_accepted",
        "settled": true,
        "balances": [115_000, 83_000],
    });
    assert_eq!(said, expected);
    assert_eq!(wallet.balance(0), Msat::from_sat(115));
    assert_eq!(wallet.total(), Msat::from_sat(200).unwrap());
}
