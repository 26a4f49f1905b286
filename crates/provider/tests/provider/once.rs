//! However a request comes, it runs once and is answered.

use nostr::prelude::{Filter, Keys, Timestamp};
use rialto_provider::limits::Limits;
use rialto_relay::seal;
use rialto_relay::sign::sign;
use rialto_wire::dvmcp::answer::Status;
use rialto_wire::dvmcp::request;
use rialto_wire::request::Command;
use serde_json::json;
use std::time::Duration;

use crate::stage::{ANNOUNCEMENT, Counter, Customer, Provider, different, is_status, plan, relays, within};

const ECHO: &str = r#"{"name":"echo","parameters":{}}"#;

#[tokio::test]
async fn three_relays_repeats_and_new_wraps_make_one_run() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(3).await);
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    let mut customer = Customer::new(&relays).await;
    let id = customer.ask(&keys, "echo").await;
    assert_eq!(customer.response(id).await["content"][0]["text"], "echo");
    assert!(is_status(customer.said(id)[0], Status::Processing), "{:?}", customer.said(id));
    assert!(is_status(customer.said(id)[1], Status::Success), "{:?}", customer.said(id));
    assert_eq!(provider.service.count("echo"), 1);
    // The same request inside, a new wrap outside, many times and all at once.
    let inner = different(customer.request(&keys, Command::ExecuteTool, ECHO));
    let mut id = None;
    for _ in 0..5 {
        let wrap = seal::close(&customer.keys, &keys.public_key(), inner.clone(), Timestamp::now()).unwrap();
        customer.publish(&wrap).await;
        id = seal::open(&keys, &wrap).unwrap().id;
    }
    assert_eq!(customer.response(id.unwrap()).await["content"][0]["text"], "echo");
    customer.settle(&keys).await;
    assert_eq!(provider.service.count("echo"), 3);
    provider.stop().await;
}

#[tokio::test]
async fn after_a_crash_nothing_runs_again_and_the_customer_is_told() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    let mut customer = Customer::new(&relays).await;
    let answered = customer.ask(&keys, "echo").await;
    customer.response(answered).await;
    let running = customer.ask(&keys, "wait").await;
    provider.service.reached("wait", 1).await;
    provider.crash().await;
    // What comes while nobody serves is served by whoever comes next.
    let missed = customer.ask(&keys, "echo").await;
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    assert_eq!(customer.error(running).await, "outcome_unknown");
    assert_eq!(customer.response(missed).await["isError"], false);
    customer.settle(&keys).await;
    assert_eq!((provider.service.count("wait"), provider.service.count("echo")), (0, 2));
    provider.stop().await;
}

#[tokio::test]
async fn a_tool_that_panics_is_answered_for_and_gives_back_its_place() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let limits = Limits { rate_per_key: 0, running: 1, ..Limits::default() };
    let plan = rialto_provider::plan::Plan { limits, ..plan(&keys, folder.path()) };
    let provider = Provider::start(plan, Counter::default(), &relays).await;
    let mut customer = Customer::new(&relays).await;
    let id = customer.ask(&keys, "panic").await;
    assert_eq!(customer.error(id).await, "internal_error");
    customer.settle(&keys).await;
    provider.stop().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_once_and_gives_back_its_place() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let limits = Limits { rate_per_key: 0, running: 1, ..Limits::default() };
    let plan = rialto_provider::plan::Plan { limits, ..plan(&keys, folder.path()) };
    let provider = Provider::start(plan, Counter::default(), &relays).await;
    let (mut customer, mut other) = (Customer::new(&relays).await, Customer::new(&relays).await);
    let running = customer.ask(&keys, "wait").await;
    provider.service.reached("wait", 1).await;
    let waiting = customer.ask(&keys, "wait").await;
    let me = keys.public_key();
    let foreign = request::write_cancel(running, me, other.keys.public_key(), Timestamp::now());
    let foreign = other.publish(&sign(&other.keys, foreign)).await;
    assert_eq!(other.response(foreign).await, json!({ "cancelled": false }), "not theirs");
    for target in [waiting, running] {
        let cancel = request::write_cancel(target, me, customer.keys.public_key(), Timestamp::now());
        let cancel = customer.publish(&sign(&customer.keys, cancel)).await;
        assert_eq!(customer.response(cancel).await, json!({ "cancelled": true }));
        assert_eq!(customer.error(target).await, "cancelled");
    }
    customer.settle(&keys).await;
    assert_eq!(provider.service.count("wait"), 1);
    provider.stop().await;
}

#[tokio::test]
async fn who_was_told_busy_is_not_served_later() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let limits = Limits { rate_per_key: 0, running: 1, waiting: 1, ..Limits::default() };
    let plan = || rialto_provider::plan::Plan { limits: limits.clone(), ..plan(&keys, folder.path()) };
    let provider = Provider::start(plan(), Counter::default(), &relays).await;
    let mut customer = Customer::new(&relays).await;
    customer.ask(&keys, "wait").await;
    provider.service.reached("wait", 1).await;
    let waiting = customer.ask(&keys, "echo").await;
    let refused = customer.ask(&keys, "echo").await;
    assert_eq!(customer.error(refused).await, "busy");
    provider.crash().await;
    let provider = Provider::start(plan(), Counter::default(), &relays).await;
    assert_eq!(customer.response(waiting).await["isError"], false, "nobody was told no");
    customer.settle(&keys).await;
    assert_eq!(provider.service.count("echo"), 2, "the one that waited, and the one just now");
    provider.stop().await;
}

#[tokio::test]
async fn a_server_that_says_all_the_time_that_it_changed_is_not_announced_all_the_time() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    let customer = Customer::new(&relays).await;
    let filter = [Filter::new().kind(ANNOUNCEMENT).author(keys.public_key())];
    let announced = || async {
        loop {
            let found = within(customer.pool.query(&filter, Duration::from_secs(5)).all()).await;
            if let [only] = found.as_slice() {
                return only.clone();
            }
        }
    };
    let before = announced().await;
    let id = customer.ask(&keys, "changes").await;
    let mut customer = customer;
    customer.response(id).await;
    customer.settle(&keys).await;
    let after = within(customer.pool.query(&filter, Duration::from_secs(5)).all()).await;
    assert_eq!(after, [before], "nothing changed, so nothing is said again");
    provider.stop().await;
    let gone = within(customer.pool.query(&filter, Duration::from_secs(5)).all()).await;
    assert!(gone.is_empty(), "withdrawn");
}

#[tokio::test]
async fn a_provider_whose_servers_never_come_can_be_stopped() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let service = Counter { is_stuck: true.into(), ..Counter::default() };
    let provider = Provider::begin(plan(&keys, folder.path()), service, &relays);
    tokio::task::yield_now().await;
    provider.stop().await;
}
