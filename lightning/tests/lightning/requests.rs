//! Who is answered, how often, and in what words.

use crate::support::client::{Cipher, Client, expiration};
use crate::support::{PATIENCE, World};
use nostr::prelude::{EventBuilder, Filter, FinalizeEvent, Keys, Kind, Tag, Timestamp};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_comes_twice_is_acted_on_once() {
    let world = World::start().await;
    let (provider, customer) = (&world.provider, &world.customer);
    let before = provider.call("list_transactions", json!({"unpaid": true})).await.unwrap();
    assert_eq!(before["transactions"], json!([]));
    let request = provider.request("make_invoice", &json!({"amount": 1_000}), Cipher::Nip44, vec![]);
    // A second connection, so that the relay passes it on as if it were new.
    let other = Client::connect(&provider.uri.to_string()).await;
    for client in [provider, &other, provider] {
        client.send(&request).await;
    }
    let invoice = provider.answer(&request, Cipher::Nip44).await.unwrap();
    let after = provider.call("list_transactions", json!({"unpaid": true})).await.unwrap();
    assert_eq!(after["transactions"].as_array().unwrap().len(), 1);
    assert_eq!(provider.answers(&request), 1);

    let (had, gave) = world.balances().await;
    let paying = customer.request("pay_invoice", &json!({"invoice": invoice["invoice"]}), Cipher::Nip44, vec![]);
    customer.send(&paying).await;
    customer.send(&paying).await;
    customer.answer(&paying, Cipher::Nip44).await.unwrap();
    world.until_balances((had + 1_000, gave - 1_000)).await;
    customer.send(&paying).await;
    // Whoever asks again gets the same answer again, and no other.
    customer.answer_again(&paying).await;
    assert_eq!(customer.answers(&paying), 1);
    assert_eq!(world.balances().await, (had + 1_000, gave - 1_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_is_answered() {
    let world = World::start().await;
    let provider = &world.provider;
    let text = json!({"method": "make_invoice", "params": {"amount": 1_000}}).to_string();
    let stranger = provider.request_by(&Keys::generate(), &text, Cipher::Nip44, vec![]);
    // By our client, but to another wallet.
    let astray = {
        let content = provider.request("get_balance", &json!({}), Cipher::Nip04, vec![]).content;
        let to = Tag::public_key(world.customer.uri.public_key);
        EventBuilder::new(Kind::from(23194), content).tag(to).finalize(&provider.keys).unwrap()
    };
    let past = Timestamp::from(Timestamp::now().as_secs() - 5);
    let late = provider.request("make_invoice", &json!({"amount": 1_000}), Cipher::Nip44, vec![expiration(past)]);
    for event in [&stranger, &astray, &late] {
        // The relay itself may turn away what has expired; what matters is that nothing comes of it.
        provider.pool.publish(event).finished().await;
    }
    let made = provider.call("list_transactions", json!({"unpaid": true})).await.unwrap();
    assert_eq!(made["transactions"], json!([]));
    assert_eq!([&stranger, &astray, &late].map(|event| provider.answers(event)), [0, 0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_says_what_it_is_and_what_it_does_not_know() {
    let world = World::start().await;
    let provider = &world.provider;
    let filter = Filter::new().kind(Kind::from(13194)).author(provider.uri.public_key);
    let info = provider.pool.query(&[filter], PATIENCE).all().await;
    let [info] = info.as_slice() else { panic!("one info event, not {info:?}") };
    let tag =
        |name: &str| info.tags.iter().find(|tag| tag.kind() == name).and_then(|tag| tag.content().map(str::to_owned));
    assert_eq!(tag("encryption").as_deref(), Some("nip44_v2 nip04"));
    assert_eq!(tag("notifications").as_deref(), Some("payment_received payment_sent hold_invoice_accepted"));

    let told = provider.call("get_info", json!({})).await.unwrap();
    assert_eq!((&told["alias"], &told["network"]), (&json!("provider"), &json!("regtest")));
    for method in told["methods"].as_array().unwrap() {
        assert!(info.content.split(' ').any(|word| word == method), "{method}");
    }
    let nothing = json!({"payment_hash": "11".repeat(32)});
    for (method, params, code) in [
        ("pay_keysend", json!({"amount": 1, "pubkey": "02"}), "NOT_IMPLEMENTED"),
        ("lookup_invoice", nothing.clone(), "NOT_FOUND"),
        ("lookup_invoice", json!({}), "OTHER"),
        ("cancel_hold_invoice", nothing, "NOT_FOUND"),
        ("settle_hold_invoice", json!({"preimage": "zz"}), "OTHER"),
        ("make_hold_invoice", json!({"amount": 1}), "OTHER"),
        ("make_invoice", json!({"amount": -1}), "OTHER"),
        ("make_invoice", json!({"amount": 1, "description": "x".repeat(640)}), "OTHER"),
        ("list_transactions", json!({"type": "sideways"}), "OTHER"),
    ] {
        assert_eq!(provider.call(method, params).await, Err(code.to_owned()), "{method}");
    }
    let garbled = provider.request_by(&provider.keys, "not JSON", Cipher::Nip44, vec![]);
    provider.send(&garbled).await;
    assert_eq!(provider.answer(&garbled, Cipher::Nip44).await, Err("OTHER".to_owned()));
    let unknown = provider.request("get_info", &json!({}), Cipher::Nip04, vec![Tag::custom("encryption", ["rot13"])]);
    provider.send(&unknown).await;
    assert_eq!(provider.answer(&unknown, Cipher::Nip44).await, Err("UNSUPPORTED_ENCRYPTION".to_owned()));
}
