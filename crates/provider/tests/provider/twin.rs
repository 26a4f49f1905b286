//! Two providers with one key: who has another ledger is heard, and who is only ourselves is not.

use nostr::prelude::{Event, Keys, Timestamp, UnsignedEvent};
use rialto_provider::provider::KeyInUse;
use rialto_relay::sign::sign;
use rialto_wire::dvmcp::answer::{Outcome, Progress, Writer};
use rialto_wire::request::{Address, Command};
use std::time::Duration;

use crate::stage::{Counter, Customer, Provider, plan, relays, within};

/// Events have whole seconds: what is said in the one in which a provider begins is not held against anybody.
async fn a_second_later() {
    tokio::time::sleep(Duration::from_millis(1100)).await;
}

#[tokio::test]
async fn a_twin_with_another_ledger_stops_both() {
    let (one, other, keys, relays) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Keys::generate(), relays(2).await);
    let one = Provider::start(plan(&keys, one.path()), Counter::default(), &relays).await;
    let other = Provider::start(plan(&keys, other.path()), Counter::default(), &relays).await;
    a_second_later().await;
    let customer = Customer::new(&relays).await;
    customer.ask(&keys, "echo").await;
    for provider in [one, other] {
        let error = provider.end().await.unwrap_err();
        assert!(error.get_ref().is_some_and(|inner| inner.is::<KeyInUse>()), "{error}");
    }
}

/// An answer with the provider's key that it has not written.
fn foreign(keys: &Keys, customer: &Customer, request: nostr::prelude::EventId, at: u64) -> [Event; 2] {
    let writer = Writer { provider: keys.public_key(), relay: None, now: Timestamp::from(at) };
    let address = Address { request, customer: customer.keys.public_key(), command: Some(Command::ExecuteTool) };
    let said: [UnsignedEvent; 2] =
        [writer.response(&address, Outcome::Success, "{}".to_owned()), writer.feedback(&address, &Progress::Begun)];
    said.map(|event| sign(keys, event))
}

#[tokio::test]
async fn what_proves_nothing_stops_nobody() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(2).await);
    let mut customer = Customer::new(&relays).await;
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    let ours = customer.ask(&keys, "echo").await;
    customer.response(ours).await;
    provider.crash().await;
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    a_second_later().await;
    let now = Timestamp::now().as_secs();
    // An earlier life may have said this.
    for event in foreign(&keys, &customer, ours, now - 100) {
        customer.publish(&event).await;
    }
    // A service of another kind may have said that, with the same key.
    let [_, feedback] = foreign(&keys, &customer, nostr::prelude::EventId::from_byte_array([9; 32]), now);
    customer.publish(&feedback).await;
    customer.settle(&keys).await;
    a_second_later().await;
    customer.settle(&keys).await;
    // And this is proof.
    let [answer, _] = foreign(&keys, &customer, ours, Timestamp::now().as_secs());
    customer.publish(&answer).await;
    within(provider.end()).await.unwrap_err();
}

#[tokio::test]
async fn feedback_to_a_request_of_ours_is_proof() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let mut customer = Customer::new(&relays).await;
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    a_second_later().await;
    let ours = customer.ask(&keys, "echo").await;
    customer.response(ours).await;
    let [_, feedback] = foreign(&keys, &customer, ours, Timestamp::now().as_secs());
    // Ours says the same in the same second: another word makes it another event.
    let mut other = UnsignedEvent {
        id: None,
        pubkey: feedback.pubkey,
        created_at: feedback.created_at,
        kind: feedback.kind,
        tags: feedback.tags,
        content: "foreign".to_owned(),
    };
    other.id = None;
    customer.publish(&sign(&keys, other)).await;
    within(provider.end()).await.unwrap_err();
}
