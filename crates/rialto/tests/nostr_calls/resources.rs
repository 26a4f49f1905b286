//! Profiles and events as resources of a protocol without sessions: a request listens for as long as it is open.

use nostr::nips::nip19::ToBech32 as _;
use nostr::prelude::EventId;
use serde_json::{Value, json};

use super::stage::{Stage, User};
use crate::{STATELESS, stateless};
use torture::nostr_side::PATIENCE;
use torture::nostr_side::client::Client;
use torture::nostr_side::event::{Draft, now};
use torture::nostr_side::host::Host;
use torture::nostr_side::log::until;
use torture::nostr_side::world::World;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Listens to these resources; gives the id of the request, once the server has agreed to all of them.
fn listen(host: &mut Host, uris: &[&str]) -> u64 {
    let wanted = json!({ "resourceSubscriptions": uris });
    let id = host.request("subscriptions/listen", &stateless(json!({ "notifications": wanted })));
    let agreed = host.wait("agreement", |message| {
        message["method"] == "notifications/subscriptions/acknowledged" && belongs(message, id)
    });
    assert_eq!(agreed["params"]["notifications"], wanted);
    id
}

fn belongs(message: &Value, id: u64) -> bool {
    message["params"]["_meta"][SUBSCRIPTION] == id
}

fn is_news(message: &Value, uri: &str, id: u64) -> bool {
    message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri && belongs(message, id)
}

/// How much news one listener has been told.
fn told(host: &Host, id: u64) -> usize {
    let lines = host.process.stdout.look(<[String]>::to_vec);
    let messages = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.filter(|message| message["method"] == "notifications/resources/updated" && belongs(message, id)).count()
}

#[test]
fn whoever_listens_is_told_until_they_stop() {
    let world = World::new();
    let (_relay, url) = world.relay();
    let stage = Stage::new(&url, User::Nobody);
    stage.publish();
    let relay = Client::connect(&url, |_, _| {});
    let note = stage.event("note").id.clone();
    let profile = format!("nostr:{}", stage.friend_npub());
    let event = format!("nostr:{}", EventId::from_hex(&note).unwrap().to_bech32().unwrap());
    let mut host = stage.serve(STATELESS);
    let both = listen(&mut host, &[&profile, &event]);
    let one = listen(&mut host, &[&profile]);

    let change = |name: &str, offset: i64| {
        let draft = Draft::new(0, json!({ "name": name }).to_string()).at(now() + offset);
        assert_eq!(relay.publish(&stage.sign(&draft)), (true, String::new()));
    };
    change("second", 2);
    for id in [both, one] {
        host.wait("news of the profile", |message| is_news(message, &profile, id));
    }
    let read = host.ask("resources/read", &stateless(json!({ "uri": profile })));
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("second"), "{read}");

    let withdrawn = stage.sign(&Draft::new(5, "").tag(&["e", &note]).tag(&["k", "1"]));
    assert_eq!(relay.publish(&withdrawn), (true, String::new()));
    host.wait("news of the note", |message| is_news(message, &event, both));
    assert_eq!((told(&host, both), told(&host, one)), (2, 1), "who did not ask is not told");

    host.notify("notifications/cancelled", &json!({ "requestId": both }));
    // A round trip, so that the cancellation has been taken.
    host.ask("resources/list", &stateless(json!({})));
    change("third", 4);
    until("the other listener is told", PATIENCE, || told(&host, one) == 2);
    assert_eq!(told(&host, both), 2, "who has stopped is told nothing more");
}
