//! Calls by direct message, over a real relay: which way they go, and which answers are theirs if none says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::{Event, Filter, Keys, Kind, RelayUrl, Tag, Timestamp, UnsignedEvent};
use rialto_consumer::announcements::Announcements;
use rialto_consumer::customer::Customer;
use rialto_consumer::error::Error;
use rialto_consumer::ongoing::{Ongoing, PATIENCE};
use rialto_consumer::reference::Target;
use rialto_consumer::remote::{Remote, Terms};
use rialto_relay::embedded::Relay;
use rialto_relay::pool::{self, Arrival, Pool, Watch};
use rialto_relay::seal::Sealer;
use rialto_relay::sign::sign;
use rialto_relay::status::State;
use rialto_wire::dvmcp::content::Execute;
use rialto_wire::manifest::description::{MAX_WRITTEN, Offer};
use rialto_wire::service::Way;
use std::path::Path;
use std::time::Duration;
use support::{Provider, SOON, open, relay, soon, tool, url};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const TOOL: &[u8] = br#"{"name":"echo","inputSchema":{"type":"object"}}"#;

/// A provider that reads messages of kind 4.
struct Shop {
    keys: Keys,
    pool: Pool,
    arrivals: mpsc::Receiver<Arrival>,
}

impl Shop {
    async fn open(relay: &Relay) -> Self {
        let keys = Keys::generate();
        let filter = Filter::new().kind(Kind::EncryptedDirectMessage).pubkey(keys.public_key());
        let watch = Watch { filter, spread: Duration::from_secs(120) };
        let (pool, arrivals) = Pool::start(&[url(relay)], vec![watch], pool::Options::default());
        assert!(pool.wait(SOON, |all| all.iter().all(|one| one.state == State::Subscribed)).await);
        let shop = Self { keys, pool, arrivals };
        let offer = Offer { id: "shop", name: "shop", about: "", tools: &[TOOL.to_vec()], relays: &[] };
        let (manifests, _) = offer.write(MAX_WRITTEN, shop.keys.public_key(), Timestamp::now());
        for mut manifest in manifests {
            manifest.tags.retain(|tag| tag.kind() != "encryption");
            shop.publish(manifest).await;
        }
        shop
    }

    async fn publish(&self, event: UnsignedEvent) {
        assert_eq!(soon(self.pool.publish(&sign(&self.keys, event)).finished()).await.accepted, 1);
    }

    async fn asked(&mut self) -> Event {
        loop {
            if let Arrival::Event { event, .. } = soon(self.arrivals.recv()).await.unwrap() {
                return *event;
            }
        }
    }

    /// Says something to who has asked, without saying what it answers.
    async fn say(&self, asked: &Event, text: &str, at: Timestamp) {
        let content = Sealer::new(self.keys.clone()).hide(&asked.pubkey, text).unwrap();
        let tags = [Tag::public_key(asked.pubkey)];
        self.publish(UnsignedEvent::new(self.keys.public_key(), at, Kind::EncryptedDirectMessage, tags, content)).await;
    }
}

/// A process of a customer that keeps its things here.
async fn process(keys: &Keys, directory: &Path, relay: &Relay, shop: &Shop) -> Remote {
    let customer = Customer::start(keys.clone(), &[url(relay)], Announcements::in_directory(directory).unwrap());
    let target = Target { provider: shop.keys.public_key(), id: None, relays: Vec::new() };
    let remote = Remote::open(&customer, &target, Terms::PRIVATE).await.unwrap();
    assert_eq!(remote.way(), Way::MESSAGE);
    remote
}

async fn echo(remote: &Remote) -> Result<Ongoing, Error> {
    let call = Execute { name: "echo", arguments: b"{}", timeout: None, progress: false, meta: None };
    remote.execute(&call, PATIENCE).await
}

fn said(text: &str) -> String {
    format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}")
}

#[tokio::test]
async fn the_answer_to_the_call_before_is_not_taken_for_the_answer() {
    let relay = relay().await;
    let mut shop = Shop::open(&relay).await;
    let (keys, directory) = (Keys::generate(), tempfile::tempdir().unwrap());
    // One call follows another at once, as in a script, and the provider's clock is a little ahead.
    for text in ["first", "second"] {
        let remote = process(&keys, directory.path(), &relay, &shop).await;
        let call = echo(&remote).await.unwrap();
        let asked = shop.asked().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let at = Timestamp::from(Timestamp::now().as_secs() + 5);
        shop.say(&asked, &said(text), at).await;
        assert_eq!(soon(call.finish()).await.unwrap().content, said(text));
    }
}

#[tokio::test]
async fn what_comes_after_a_demand_for_payment_is_not_taken_for_the_next_answer() {
    let relay = relay().await;
    let mut shop = Shop::open(&relay).await;
    let (keys, directory) = (Keys::generate(), tempfile::tempdir().unwrap());
    let remote = process(&keys, directory.path(), &relay, &shop).await;
    let call = echo(&remote).await.unwrap();
    let asked = shop.asked().await;
    let demand = r#"{"error":{"code":"payment_required","message":"pay","amount_sat":5,"invoice":"lnbc1"}}"#;
    shop.say(&asked, demand, Timestamp::now()).await;
    assert!(matches!(soon(call.finish()).await, Err(Error::PaymentRequired(_))));
    // It is paid by other means, and the result comes while the next call would be open.
    let again = process(&keys, directory.path(), &relay, &shop).await;
    for remote in [&remote, &again] {
        let next = echo(remote).await;
        assert!(matches!(next, Err(Error::Unclear(_))), "{next:?}");
    }
}

/// A relay that says everything late.
async fn slow(relay: &Relay) -> RelayUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let to = relay.url().trim_start_matches("ws://").to_owned();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&to).await.unwrap();
            let ((mut hears, mut says), (mut answers, mut asks)) = (client.into_split(), server.into_split());
            tokio::spawn(async move { tokio::io::copy(&mut hears, &mut asks).await });
            tokio::spawn(async move {
                let mut text = vec![0; 100_000];
                while let Ok(length @ 1..) = answers.read(&mut text).await {
                    tokio::time::sleep(Duration::from_millis(600)).await;
                    says.write_all(&text[..length]).await.unwrap();
                }
            });
        }
    });
    RelayUrl::parse(&url).unwrap()
}

#[tokio::test]
async fn a_relay_that_is_slow_does_not_make_a_call_less_private() {
    let (fast, late) = (relay().await, relay().await);
    let provider = Provider::start(&fast, vec![tool("echo", "says it again")]).await;
    provider.announce("test", false, Timestamp::now().as_secs()).await;
    let (manifests, _) = Offer { id: "test", name: "test", about: "", tools: &[TOOL.to_vec()], relays: &[] }.write(
        MAX_WRITTEN,
        provider.key(),
        Timestamp::now(),
    );
    let (pool, _arrivals) = Pool::start(&[url(&late)], Vec::new(), pool::Options::default());
    let manifest = sign(&provider.keys, manifests[0].clone());
    assert_eq!(soon(pool.publish(&manifest).finished()).await.accepted, 1);
    let relays = [url(&fast), slow(&late).await];
    let customer = Customer::start(Keys::generate(), &relays, Announcements::in_memory());
    let remote = open(&customer, &provider, Terms::PRIVATE).await;
    assert_eq!(remote.way(), Way::SEALED_MESSAGE, "what is in public otherwise");
}
