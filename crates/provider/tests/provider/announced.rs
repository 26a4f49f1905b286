//! What describes the service is true, also after a process that could not take back what it had said.

use std::time::Duration;

use nostr::prelude::{Event, Filter, Keys, Kind};
use rialto_provider::plan::{Access, Plan};
use rialto_relay::pool::{Arrival, Options, Pool, Watch};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::stage::{Counter, Customer, Provider, plan, relays, urls, within};

/// Hears all descriptions by one key.
struct Listener {
    filter: Filter,
    pool: Pool,
    arrivals: mpsc::Receiver<Arrival>,
}

impl Listener {
    fn new(keys: &Keys, relays: &[rialto_relay::embedded::Relay]) -> Self {
        let filter = Filter::new().kinds([Kind::Custom(31990), Kind::Custom(30200)]).author(keys.public_key());
        let watch = Watch { filter: filter.clone(), spread: Duration::from_secs(60) };
        let (pool, arrivals) = Pool::start(&urls(relays), vec![watch], Options::default());
        Self { filter, pool, arrivals }
    }

    /// Waits for a description: its content.
    async fn hears(&mut self, id: &str, is_meant: impl Fn(&Value) -> bool) {
        loop {
            let Some(Arrival::Event { event, .. }) = within(self.arrivals.recv()).await else { continue };
            let content = serde_json::from_str(&event.content).unwrap();
            if name(&event) == id && is_meant(&content) {
                return;
            }
        }
    }

    /// Waits until the relays have just these.
    async fn has(&self, expected: &[&str]) {
        within(async {
            loop {
                let found = self.pool.query(std::slice::from_ref(&self.filter), Duration::from_secs(5)).all().await;
                let mut names: Vec<String> = found.iter().map(name).collect();
                names.sort();
                if names == expected {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

fn name(event: &Event) -> String {
    format!("{}:{}", event.kind, event.tags.identifier().unwrap_or_default())
}

#[tokio::test]
async fn what_a_process_that_crashed_has_said_is_taken_back_by_the_next() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let mut listener = Listener::new(&keys, &relays);
    let large = Counter { padding: 48_000, ..Counter::default() };
    let provider = Provider::start(plan(&keys, folder.path()), large, &relays).await;
    listener.has(&["30200:counter", "30200:counter#2", "31990:counter"]).await;
    provider.crash().await;
    let provider = Provider::start(plan(&keys, folder.path()), Counter::default(), &relays).await;
    listener.hears("30200:counter#2", |content| content["tools"] == json!([])).await;
    listener.has(&["30200:counter", "31990:counter"]).await;
    provider.crash().await;
    let access = Access { allow: [Keys::generate().public_key()].into(), ..Access::default() };
    let private = Plan { access, ..plan(&keys, folder.path()) };
    let provider = Provider::start(private, Counter::default(), &relays).await;
    listener.has(&[]).await;
    provider.stop().await;
}

#[tokio::test]
async fn a_tool_whose_results_cannot_be_checked_is_offered_where_nobody_checks_them() {
    let (folder, keys, relays) = (tempfile::tempdir().unwrap(), Keys::generate(), relays(1).await);
    let mut listener = Listener::new(&keys, &relays);
    let odd = Counter { is_odd: true, ..Counter::default() };
    let provider = Provider::start(plan(&keys, folder.path()), odd, &relays).await;
    let tools = |content: &Value| content["tools"].as_array().unwrap().clone();
    listener.hears("31990:counter", |content| tools(content).iter().any(|tool| tool["name"] == "odd")).await;
    listener.hears("30200:counter", |content| !tools(content).iter().any(|tool| tool["tool_name"] == "odd")).await;
    let mut customer = Customer::new(&relays).await;
    let id = customer.ask(&keys, "odd").await;
    assert_eq!(customer.response(id).await["isError"], false);
    provider.stop().await;
}
