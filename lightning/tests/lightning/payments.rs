//! Money goes from one wallet to the other, exactly once, and both sides say so.

use crate::support::client::Cipher;
use crate::support::{World, until};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_moves_its_value_once() {
    let world = World::start().await;
    let (provider, customer) = (&world.provider, &world.customer);
    let (had, gave) = world.balances().await;
    let invoice = provider.invoice(21_000).await;
    let hash = &invoice["payment_hash"];
    assert_eq!(provider.lookup(hash).await["state"], "pending");

    let paid = customer.call("pay_invoice", json!({"invoice": invoice["invoice"]})).await.unwrap();
    assert_eq!(paid["fees_paid"], 0);
    let received = provider.news("payment_received", hash).await;
    let sent = customer.news("payment_sent", hash).await;
    world.until_balances((had + 21_000, gave - 21_000)).await;

    for (told, looked_up, direction) in
        [(received, provider.lookup(hash).await, "incoming"), (sent, customer.lookup(hash).await, "outgoing")]
    {
        assert_eq!((&looked_up["state"], &looked_up["type"]), (&json!("settled"), &json!(direction)));
        assert_eq!((&looked_up["amount"], &looked_up["preimage"]), (&json!(21_000), &paid["preimage"]));
        assert_eq!(looked_up["description"], "a test");
        assert!(looked_up["settled_at"].as_u64() >= invoice["created_at"].as_u64());
        assert_eq!((&told["amount"], &told["preimage"]), (&json!(21_000), &paid["preimage"]));
    }

    // The same invoice again, by another request: it is paid already.
    let again = customer.call("pay_invoice", json!({"invoice": invoice["invoice"]})).await;
    assert_eq!(again, Err("OTHER".to_owned()));
    // And in the other direction, with the older encryption.
    let back = customer.invoice(4_000).await;
    let request = provider.request("pay_invoice", &json!({"invoice": back["invoice"]}), Cipher::Nip04, vec![]);
    provider.send(&request).await;
    provider.answer(&request, Cipher::Nip04).await.unwrap();
    world.until_balances((had + 17_000, gave - 17_000)).await;

    let list = async |params| provider.call("list_transactions", params).await.unwrap()["transactions"].clone();
    let all = list(json!({})).await;
    assert_eq!((&all[0]["type"], &all[1]["type"]), (&json!("outgoing"), &json!("incoming")));
    assert_eq!(list(json!({"type": "incoming", "limit": 1})).await[0]["payment_hash"], *hash);
    assert_eq!(list(json!({"offset": 2})).await, json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_paid_costs_nothing() {
    let world = World::start().await;
    let (provider, customer) = (&world.provider, &world.customer);
    let before = world.balances().await;

    let short = json!({"amount": 1_000, "expiry": 1});
    let expired = provider.call("make_invoice", short).await.unwrap();
    let is_expired = async || (provider.lookup(&expired["payment_hash"]).await["state"] == "expired").then_some(());
    let all_of_it = provider.invoice(before.1 + 1).await;
    let unpaid = json!({"invoice": all_of_it["invoice"]});
    assert_eq!(customer.call("pay_invoice", unpaid).await, Err("INSUFFICIENT_BALANCE".to_owned()));
    let own = customer.invoice(1_000).await;
    for (params, code) in [
        (json!({"invoice": own["invoice"]}), "PAYMENT_FAILED"),
        (json!({"invoice": "lnbcrt1nonsense"}), "OTHER"),
        (json!({}), "OTHER"),
    ] {
        assert_eq!(customer.call("pay_invoice", params).await, Err(code.to_owned()));
    }
    until("the invoice to expire", is_expired).await;
    let late = customer.call("pay_invoice", json!({"invoice": expired["invoice"]})).await;
    assert_eq!(late, Err("PAYMENT_FAILED".to_owned()));

    assert_eq!(world.balances().await, before);
    assert_eq!(provider.call("list_transactions", json!({})).await.unwrap()["transactions"], json!([]));
    let unpaid = provider.call("list_transactions", json!({"unpaid": true})).await.unwrap();
    assert_eq!(unpaid["transactions"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invoice_without_an_amount_takes_what_the_payer_names() {
    let world = World::start().await;
    let (had, gave) = world.balances().await;
    let open = world.provider.call("make_invoice", json!({"description": "what you like"})).await.unwrap();
    let nothing = world.customer.call("pay_invoice", json!({"invoice": open["invoice"]})).await;
    assert_eq!(nothing, Err("OTHER".to_owned()));
    let some = json!({"invoice": open["invoice"], "amount": 7_000});
    world.customer.call("pay_invoice", some).await.unwrap();
    world.until_balances((had + 7_000, gave - 7_000)).await;
    assert_eq!(world.provider.lookup(&open["payment_hash"]).await["amount"], 7_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_payments_at_once_add_up() {
    let world = World::start().await;
    let (had, gave) = world.balances().await;
    let mut paying = Vec::new();
    for number in 1..=12 {
        // Different amounts, so that no two mistakes can make up for each other.
        let both = [(&world.provider, &world.customer, 1_000 * number), (&world.customer, &world.provider, number)];
        for (payee, payer, amount) in both {
            let invoice = payee.invoice(amount).await;
            let params = json!({"invoice": invoice["invoice"]});
            paying.push((payer, payer.request("pay_invoice", &params, Cipher::Nip44, vec![])));
        }
    }
    for (payer, request) in &paying {
        payer.send(request).await;
    }
    for (payer, request) in &paying {
        payer.answer(request, Cipher::Nip44).await.unwrap();
    }
    // 1 + 2 + … + 12 = 78, in whole satoshi one way and in thousandths the other.
    world.until_balances((had + 78_000 - 78, gave - 78_000 + 78)).await;
}
