//! The tests' own instruments, checked against each other before they measure anything.

use nostr::key::Keys;
use serde_json::json;

use torture::nostr_side::client::Client;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::{Draft, Event, hex_key};
use torture::nostr_side::fake_provider::{FakeProvider, text_result};
use torture::nostr_side::fake_relay::{FakeRelay, Verdict};
use torture::nostr_side::log::Log;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(our_customer_and_our_fake_provider_understand_each_other),
    case!(the_fake_relay_does_what_it_is_told),
    case!(our_client_speaks_to_the_real_relay),
    case!(forgeries_are_told_from_genuine_events),
];

fn our_customer_and_our_fake_provider_understand_each_other() {
    let relay = FakeRelay::start();
    let mut provider = FakeProvider::new(&relay);
    let customer = Customer::new(&relay.url(), &hex_key(&provider.keys));
    let call = json!({ "name": "say", "parameters": {} });
    let ids = [
        customer.post(&customer.draft("execute-tool", &call)),
        customer.post_sealed(&customer.draft("execute-tool", &call)),
    ];
    for (id, sealed) in ids.iter().zip([false, true]) {
        let asked = provider.execute_request();
        assert_eq!((&asked.event.id, asked.sealed), (id, sealed));
        provider.send(&asked, &provider.feedback(&asked, &["processing"]));
        provider.send(&asked, &provider.response(&asked, &text_result("well")));
        let answers = customer.answers(id);
        assert_eq!((answers.text().as_str(), answers.0[0].sealed), ("well", sealed));
        assert_eq!(answers.statuses(), ["processing"]);
    }
}

fn the_fake_relay_does_what_it_is_told() {
    let relay = FakeRelay::start();
    let keys = Keys::generate();
    let connect = |log: &Log<Event>| {
        let kept = log.clone();
        Client::connect(&relay.url(), move |_, event| kept.push(event))
    };
    let log: Log<Event> = Log::default();
    let client = connect(&log);
    relay.judge(|event, before| match (event.kind, before) {
        (1, 0) => Verdict::Refuse("rate-limited: later"),
        _ => Verdict::Accept,
    });
    let event = Draft::new(1, "hello").sign(&keys);
    assert_eq!(client.publish(&event), (false, "rate-limited: later".to_owned()));
    relay.stop();
    relay.come_back();
    relay.rules(|rules| rules.copies = 3);
    relay.publish(&event);
    let client = connect(&log);
    client.subscribe("all", &[json!({ "authors": [hex_key(&keys)] })]);
    assert_eq!(log.look(<[Event]>::to_vec), vec![event; 3]);
    assert_eq!(relay.connected(), 2);
}

fn our_client_speaks_to_the_real_relay() {
    let world = World::new();
    let (mut process, url) = world.relay();
    let log: Log<Event> = Log::default();
    let kept = log.clone();
    let client = Client::connect(&url, move |_, event| kept.push(event));
    let event = Draft::new(1, "hello “quoted” \u{1f324}\n\t\u{2028}").tag(&["t", "x"]).sign(&Keys::generate());
    assert_eq!(client.publish(&event), (true, String::new()));
    let mut forged = event.clone();
    forged.content.push('!');
    forged.id = forged.computed_id();
    assert!(!client.publish(&forged).0);
    client.subscribe("all", &[json!({ "#t": ["x"] })]);
    assert_eq!(log.look(<[Event]>::to_vec), [event]);
    assert!(process.stop().success());
}

fn forgeries_are_told_from_genuine_events() {
    let event = Draft::new(5910, "hello").sign(&Keys::generate());
    assert_eq!(event.problem(), None);
    let mut changed = event.clone();
    changed.content = "hallo".to_owned();
    assert_eq!(changed.problem(), Some("the id is wrong"));
    changed.id = changed.computed_id();
    assert_eq!(changed.problem(), Some("the signature is wrong"));
}
