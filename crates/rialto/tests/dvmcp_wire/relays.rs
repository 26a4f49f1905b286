//! What the wire needs of a relay, on the one that comes with the product.

use nostr::key::Keys;
use serde_json::{Value, json};

use torture::nostr_side::client::Client;
use torture::nostr_side::event::{Draft, Event, hex_key, now};
use torture::nostr_side::log::Log;
use torture::nostr_side::process::Process;
use torture::nostr_side::sealed;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(only_the_newest_announcement_is_kept),
    case!(a_withdrawn_announcement_is_gone_and_stays_gone),
    case!(nobody_withdraws_the_announcement_of_another),
    case!(every_tag_that_the_wire_filters_on_is_found),
    case!(what_has_expired_is_not_given),
    case!(live_events_come_once_to_each_subscription),
    case!(an_event_of_sixty_four_kibibytes_is_taken),
    case!(one_bad_frame_does_not_end_a_connection),
];

struct Relay {
    client: Client,
    events: Log<(String, Event)>,
    _process: Process,
    _world: World,
}

impl Relay {
    fn new() -> Self {
        let world = World::new();
        let (process, url) = world.relay();
        let events: Log<(String, Event)> = Log::default();
        let kept = events.clone();
        let client = Client::connect(&url, move |name, event| kept.push((name.to_owned(), event)));
        Self { client, events, _process: process, _world: world }
    }

    #[track_caller]
    fn take(&self, event: &Event) {
        assert_eq!(self.client.publish(event), (true, String::new()), "{event:?}");
    }

    /// The ids of everything stored that fits.
    fn ask(&self, name: &str, filter: Value) -> Vec<String> {
        self.client.subscribe(name, &[filter]);
        self.client.send(&json!(["CLOSE", name]));
        self.got(name)
    }

    fn got(&self, name: &str) -> Vec<String> {
        self.events.look(|all| all.iter().filter(|(own, _)| own == name).map(|(_, event)| event.id.clone()).collect())
    }
}

fn announcement(content: &str) -> Draft {
    Draft::new(31990, content).tag(&["d", "weather"]).tag(&["t", "mcp"])
}

fn only_the_newest_announcement_is_kept() {
    let (relay, keys) = (Relay::new(), Keys::generate());
    let old = announcement("old").at(now() - 10).sign(&keys);
    let new = announcement("new").at(now() - 5).sign(&keys);
    relay.take(&new);
    relay.client.publish(&old);
    assert_eq!(relay.ask("all", json!({ "kinds": [31990] })), std::slice::from_ref(&new.id));
    let newest = announcement("newest").sign(&keys);
    relay.take(&newest);
    assert_eq!(relay.ask("again", json!({ "#t": ["mcp"] })), [newest.id]);
}

fn a_withdrawn_announcement_is_gone_and_stays_gone() {
    let (relay, keys) = (Relay::new(), Keys::generate());
    let event = announcement("here").at(now() - 5).sign(&keys);
    relay.take(&event);
    let address = format!("31990:{}:weather", hex_key(&keys));
    let withdrawal = Draft::new(5, "").tag(&["e", &event.id]).tag(&["a", &address]).tag(&["k", "31990"]).sign(&keys);
    relay.take(&withdrawal);
    assert!(relay.ask("gone", json!({ "kinds": [31990] })).is_empty());
    relay.client.publish(&event);
    assert!(relay.ask("stays", json!({ "kinds": [31990] })).is_empty());
    // A service that comes back is announced anew.
    let later = announcement("again").at(now() + 1).sign(&keys);
    relay.take(&later);
    assert_eq!(relay.ask("back", json!({ "kinds": [31990] })), [later.id]);
}

fn nobody_withdraws_the_announcement_of_another() {
    let (relay, keys) = (Relay::new(), Keys::generate());
    let event = announcement("here").at(now() - 5).sign(&keys);
    relay.take(&event);
    let address = format!("31990:{}:weather", hex_key(&keys));
    let withdrawal = Draft::new(5, "").tag(&["e", &event.id]).tag(&["a", &address]).sign(&Keys::generate());
    relay.client.publish(&withdrawal);
    assert_eq!(relay.ask("all", json!({ "kinds": [31990] })), [event.id]);
}

fn every_tag_that_the_wire_filters_on_is_found() {
    let (relay, keys) = (Relay::new(), Keys::generate());
    let (me, other) = (hex_key(&keys), hex_key(&Keys::generate()));
    let request = Draft::new(5910, "").tag(&["c", "list-tools"]).tag(&["p", &other]).sign(&keys);
    let response = Draft::new(6910, "{}")
        .tag(&["c", "list-tools-response"])
        .tag(&["e", &request.id])
        .tag(&["p", &other])
        .sign(&keys);
    let (_, wrap) = sealed::send(&keys, &other, &Draft::new(5910, ""));
    for event in [&request, &response, &wrap] {
        relay.take(event);
    }
    let expectations = [
        (json!({ "kinds": [5910], "#c": ["list-tools"] }), &request),
        (json!({ "kinds": [6910], "#c": ["list-tools-response"] }), &response),
        (json!({ "kinds": [5910], "#p": [other] }), &request),
        (json!({ "#e": [request.id] }), &response),
        (json!({ "kinds": [1059], "#p": [other] }), &wrap),
        (json!({ "kinds": [6910, 7000], "authors": [me], "since": now() - 60 }), &response),
        (json!({ "ids": [wrap.id] }), &wrap),
    ];
    for (number, (filter, event)) in expectations.into_iter().enumerate() {
        assert_eq!(relay.ask(&format!("s{number}"), filter.clone()), std::slice::from_ref(&event.id), "{filter}");
    }
    assert!(relay.ask("none", json!({ "kinds": [5910], "since": now() + 60 })).is_empty());
    assert!(relay.ask("empty", json!({ "kinds": [] })).is_empty());
}

fn what_has_expired_is_not_given() {
    let relay = Relay::new();
    let event = Draft::new(5910, "").tag(&["expiration", &(now() - 10).to_string()]).sign(&Keys::generate());
    relay.client.publish(&event);
    assert!(relay.ask("all", json!({ "kinds": [5910] })).is_empty());
}

fn live_events_come_once_to_each_subscription() {
    let (relay, keys) = (Relay::new(), Keys::generate());
    relay.client.subscribe("one", &[json!({ "kinds": [5910] }), json!({ "authors": [hex_key(&keys)] })]);
    relay.client.subscribe("two", &[json!({ "kinds": [5910] })]);
    // The same name again takes the place of the first.
    relay.client.subscribe("two", &[json!({ "kinds": [6910] })]);
    let event = Draft::new(5910, "live").sign(&keys);
    relay.take(&event);
    assert!(relay.client.publish(&event).0, "a repeat is no failure");
    relay.ask("later", json!({ "kinds": [5910] }));
    assert_eq!(relay.got("one"), [event.id]);
    assert!(relay.got("two").is_empty());
}

fn an_event_of_sixty_four_kibibytes_is_taken() {
    let relay = Relay::new();
    let event = Draft::new(6910, "x".repeat(64 * 1024)).sign(&Keys::generate());
    relay.take(&event);
}

fn one_bad_frame_does_not_end_a_connection() {
    let relay = Relay::new();
    for text in [
        "",
        "no JSON",
        "[]",
        "{}",
        "[\"EVENT\"]",
        "[\"REQ\"]",
        "[\"REQ\",7]",
        "[\"FROB\"]",
        "[\"EVENT\",{}]",
        "[\"CLOSE\",\"?\"]",
    ] {
        relay.client.send_text(text.to_owned());
    }
    relay.take(&Draft::new(1, "still here").sign(&Keys::generate()));
}
