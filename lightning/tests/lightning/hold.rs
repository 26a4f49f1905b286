//! Money that waits: taken with the right secret, or sent back to whom it came from.

use crate::support::client::{Answer, Cipher, Client};
use crate::support::{World, until};
use nostr::prelude::Event;
use serde_json::{Value, json};

/// What opens a payment, and its hash.
const PREIMAGE: &str = "0707070707070707070707070707070707070707070707070707070707070707";
const HASH: &str = "4bb06f8e4e3a7715d201d573d0aa423762e55dabd61a2c02278fa56cc6d294e0";

/// Begins to pay an invoice; the answer comes when the payee has decided.
async fn begin(payer: &Client, invoice: &Value) -> Event {
    let request = payer.request("pay_invoice", &json!({"invoice": invoice["invoice"]}), Cipher::Nip44, vec![]);
    payer.send(&request).await;
    request
}

async fn hold(payee: &Client, amount: u64, expiry: u64) -> Answer {
    let params = json!({"amount": amount, "payment_hash": HASH, "expiry": expiry, "description": "held"});
    payee.call("make_hold_invoice", params).await
}

async fn settle(payee: &Client) -> Answer {
    payee.call("settle_hold_invoice", json!({"preimage": PREIMAGE})).await
}

async fn cancel(payee: &Client) -> Answer {
    payee.call("cancel_hold_invoice", json!({"payment_hash": HASH})).await
}

fn code(code: &str) -> Answer {
    Err(code.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_payment_is_taken_with_its_preimage() {
    let world = World::start().await;
    let (provider, customer) = (&world.provider, &world.customer);
    let (had, gave) = world.balances().await;
    assert_eq!(settle(provider).await, code("NOT_FOUND"));
    let invoice = hold(provider, 50_000, 600).await.unwrap();
    let hash = &json!(HASH);
    assert_eq!(invoice["payment_hash"], *hash);
    assert_eq!(provider.lookup(hash).await["state"], "pending");
    assert_eq!(settle(provider).await, code("OTHER"));
    // The hash is taken.
    assert_eq!(hold(provider, 1, 600).await, code("OTHER"));

    let paying = begin(customer, &invoice).await;
    let accepted = provider.news("hold_invoice_accepted", hash).await;
    let held = provider.lookup(hash).await;
    assert_eq!((&held["state"], &held["amount"]), (&json!("accepted"), &json!(50_000)));
    assert_eq!(held["settle_deadline"], accepted["settle_deadline"]);
    let height = provider.call("get_info", json!({})).await.unwrap()["block_height"].as_u64().unwrap();
    assert!(held["settle_deadline"].as_u64().unwrap() > height);
    assert!(held.get("preimage").is_none() && held.get("settled_at").is_none());
    // The payer's money is on its way, and the payee does not have it.
    assert_eq!(customer.lookup(hash).await["state"], "pending");
    assert_eq!(world.balances().await, (had, gave - 50_000));
    assert_eq!(customer.answers(&paying), 0);

    assert_eq!(settle(provider).await, Ok(json!({})));
    let paid = customer.answer(&paying, Cipher::Nip44).await.unwrap();
    assert_eq!(paid["preimage"], PREIMAGE);
    world.until_balances((had + 50_000, gave - 50_000)).await;
    let settled = provider.lookup(hash).await;
    assert_eq!((&settled["state"], &settled["preimage"]), (&json!("settled"), &json!(PREIMAGE)));
    assert_eq!(customer.lookup(hash).await["state"], "settled");
    // Again changes nothing, and it is too late to change one's mind.
    assert_eq!(settle(provider).await, Ok(json!({})));
    assert_eq!(cancel(provider).await, code("OTHER"));
    assert_eq!(world.balances().await, (had + 50_000, gave - 50_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_payment_goes_back_when_it_is_cancelled() {
    let world = World::start().await;
    let (provider, customer) = (&world.provider, &world.customer);
    let before = world.balances().await;
    let invoice = hold(provider, 50_000, 600).await.unwrap();
    let paying = begin(customer, &invoice).await;
    provider.news("hold_invoice_accepted", &json!(HASH)).await;
    assert_eq!(world.balances().await, (before.0, before.1 - 50_000));

    assert_eq!(cancel(provider).await, Ok(json!({})));
    assert_eq!(customer.answer(&paying, Cipher::Nip44).await, code("PAYMENT_FAILED"));
    world.until_balances(before).await;
    assert_eq!(provider.lookup(&json!(HASH)).await["state"], "failed");
    assert_eq!(customer.lookup(&json!(HASH)).await["state"], "failed");
    assert_eq!((cancel(provider).await, settle(provider).await), (Ok(json!({})), code("OTHER")));

    // Whoever pays after that gets it back at once.
    let paying = begin(customer, &invoice).await;
    assert_eq!(customer.answer(&paying, Cipher::Nip44).await, code("PAYMENT_FAILED"));
    world.until_balances(before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_invoice_that_nobody_paid_expires() {
    let world = World::start().await;
    let before = world.balances().await;
    let invoice = hold(&world.provider, 50_000, 1).await.unwrap();
    let is_expired = async || (world.provider.lookup(&json!(HASH)).await["state"] == "expired").then_some(());
    until("the invoice to expire", is_expired).await;
    assert_eq!(settle(&world.provider).await, code("OTHER"));
    let paying = begin(&world.customer, &invoice).await;
    assert_eq!(world.customer.answer(&paying, Cipher::Nip44).await, code("PAYMENT_FAILED"));
    assert_eq!(world.balances().await, before);
}
