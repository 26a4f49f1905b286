//! Requests that nobody should send, and services that few should see.

use nostr::prelude::{Keys, Tag, Timestamp};
use rialto_provider::plan::{Access, Plan};
use rialto_relay::seal;
use rialto_relay::sign::sign;
use rialto_wire::dvmcp::answer::Answer;
use rialto_wire::dvmcp::request;
use rialto_wire::request::Command;
use serde_json::{Value, json};

use crate::stage::{Counter, Customer, Provider, dated, different, plan, relays};

#[tokio::test]
async fn times_at_the_end_of_all_numbers_are_survived() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    let mut customer = Customer::new(&relays).await;
    let echo = r#"{"name":"echo","parameters":{},"timeout":18446744073709551615}"#;
    let now = Timestamp::now().as_secs();
    // Sealed, since relays themselves refuse such dates.
    for at in [0, 1, now + 1000, u64::MAX / 2, u64::MAX] {
        let request = dated(customer.request(&keys, Command::ExecuteTool, echo), at);
        let wrap = seal::close(&customer.keys, &keys.public_key(), request, Timestamp::now()).unwrap();
        customer.publish(&wrap).await;
    }
    for end in ["0", "1", "-1", "x", "99999999999999999999999999"] {
        let mut request = different(customer.request(&keys, Command::ExecuteTool, echo));
        request.tags.push(Tag::parse(["expiration", end]).unwrap());
        let wrap = seal::close(&customer.keys, &keys.public_key(), request, Timestamp::now()).unwrap();
        customer.publish(&wrap).await;
    }
    // A timeout of any length is no reason to fall over either.
    let request = different(customer.request(&keys, Command::ExecuteTool, echo));
    let id = customer.publish(&sign(&customer.keys, request)).await;
    assert_eq!(customer.response(id).await["isError"], false);
    provider.stop().await;
}

#[tokio::test]
async fn old_wraps_that_a_relay_still_has_are_not_answered_after_a_restart() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let mut customer = Customer::new(&relays).await;
    let request = customer.request(&keys, Command::ExecuteTool, r#"{"name":"echo","parameters":{}}"#);
    let old = dated(request, Timestamp::now().as_secs() - 7200);
    let wrap = seal::close(&customer.keys, &keys.public_key(), old, Timestamp::now()).unwrap();
    let id = seal::open(&keys, &wrap).unwrap().id.unwrap();
    customer.publish(&wrap).await;
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    customer.settle(&keys).await;
    assert!(customer.said(id).is_empty(), "{:?}", customer.said(id));
    assert_eq!(provider.service.count("echo"), 1);
    provider.stop().await;
}

#[tokio::test]
async fn a_private_service_does_not_show_itself_to_those_who_ask_around() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let (mut friend, mut stranger) = (Customer::new(&relays).await, Customer::new(&relays).await);
    let access = Access { allow: [friend.keys.public_key()].into(), ..Access::default() };
    let plan = Plan { access, ..plan(&keys, folder.path()) };
    let provider = Provider::start(plan, Counter::default(), &relays).await;
    let ask = |to, from: &Customer| {
        let request = request::write(Command::ListTools, to, String::new(), from.keys.public_key(), Timestamp::now());
        sign(&from.keys, different(request))
    };
    let around = stranger.publish(&ask(None, &stranger)).await;
    let known = friend.publish(&ask(None, &friend)).await;
    assert!(friend.response(known).await["tools"].is_array());
    let direct = stranger.publish(&ask(Some(keys.public_key()), &stranger)).await;
    assert_eq!(stranger.error(direct).await, "unauthorized");
    assert!(stranger.said(around).is_empty());
    provider.stop().await;
}

#[tokio::test]
async fn a_definition_that_fits_into_no_event_comes_in_parts_or_is_refused() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let service = Counter { padding: 200_000, ..Counter::default() };
    let provider = Provider::start(plan(&keys, folder.path()), service, &relays).await;
    let mut customer = Customer::new(&relays).await;
    let list = |customer: &Customer, content: Value| {
        let request = customer.request(&keys, Command::ListTools, &content.to_string());
        sign(&customer.keys, different(request))
    };
    let first = customer.publish(&list(&customer, json!({}))).await;
    let cursor = customer.response(first).await["nextCursor"].clone();
    let second = customer.publish(&list(&customer, json!({ "cursor": cursor }))).await;
    assert_eq!(customer.error(second).await, "result_too_large");
    let parts = json!({ "cursor": cursor, "metadata": { "parts": true } });
    let third = customer.publish(&list(&customer, parts)).await;
    let mut pieces = std::collections::BTreeMap::new();
    loop {
        let (id, answer) = customer.next().await;
        if let (true, Answer::Part { number, of, content, .. }) = (id == third, answer) {
            pieces.insert(number, content);
            if pieces.len() == of {
                break;
            }
        }
    }
    let whole: Value = serde_json::from_str(&pieces.into_values().collect::<String>()).unwrap();
    assert_eq!(whole["tools"][0]["name"], "large");
    provider.stop().await;
}

#[tokio::test]
async fn progress_of_any_length_is_no_event_of_any_length() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    let mut customer = Customer::new(&relays).await;
    let content = r#"{"name":"chatter","parameters":{},"metadata":{"progress":true}}"#;
    let request = different(customer.request(&keys, Command::ExecuteTool, content));
    let id = customer.publish(&sign(&customer.keys, request)).await;
    assert_eq!(customer.response(id).await["isError"], false);
    let longest = |answer: &&Answer| matches!(answer, Answer::Feedback(feedback) if feedback.content.len() > 1000);
    assert!(!customer.said(id).iter().any(longest));
    provider.stop().await;
}
