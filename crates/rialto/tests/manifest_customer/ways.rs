//! Which way a call travels: sealed DVMCP, sealed messages, kind 4, plain DVMCP, in this order, and never a weaker one
//! because something went wrong.

use std::time::Duration;

use serde_json::json;

use crate::market::{Market, SEALED, ends_with, fails, output};
use torture::nostr_side::event::now;
use torture::nostr_side::fake_relay::{FakeRelay, Verdict};
use torture::nostr_side::sealed::WRAP;
use torture::nostr_side::shop::Route::{Message, PlainDvmcp, SealedDvmcp, SealedMessage};
use torture::nostr_side::shop::{Order, Route};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_takes_the_most_private_way),
    case!(a_plain_call_is_plain_dvmcp_or_kind_4),
    case!(a_call_keeps_to_the_wire_it_is_told),
    case!(a_wire_that_is_not_there_is_not_replaced_by_another),
    case!(a_sealed_message_that_no_relay_takes_is_not_sent_as_kind_4),
    case!(a_sealed_message_that_is_not_answered_is_not_sent_as_kind_4),
    case!(an_older_manifest_does_not_weaken_a_call),
    case!(an_older_manifest_on_another_relay_does_not_weaken_a_call),
    case!(a_host_takes_the_most_private_way_too),
];

/// What the shop has announced for DVMCP.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Announced {
    Nothing,
    Plain,
    Sealed,
}

use Announced::{Nothing, Plain, Sealed};

/// What the manifest says, if there is one.
type Manifest = Option<&'static str>;

const WITHOUT: Manifest = None;
const UNTAGGED: Manifest = Some("");
const NIP04: Manifest = Some("nip04");
const NIP59: Manifest = Some(SEALED);

fn market(announced: Announced, manifest: Manifest) -> Market {
    let market = Market::closed();
    if announced != Nothing {
        market.shop.publish(&market.shop.announcement(announced == Sealed));
    }
    if let Some(encryption) = manifest {
        market.shop.publish(&market.shop.manifest(encryption));
    }
    market
}

fn answer(market: &Market, order: &Order) {
    match order.route {
        Message | SealedMessage => market.shop.say(order, &json!({ "forecast": "Sunny" })),
        SealedDvmcp | PlainDvmcp => market.shop.say(
            order,
            &json!({ "content": [{ "type": "text", "text": "Sunny" }], "structuredContent": { "forecast": "Sunny" } }),
        ),
    }
}

/// A call with these flags goes this way, says so, and leaves nothing of another way on the relay.
#[track_caller]
fn goes(announced: Announced, manifest: Manifest, flags: &[&str], expected: Route) {
    let mut market = market(announced, manifest);
    let (call, order) = market.ask(flags);
    let what = format!("{announced:?} {manifest:?} {flags:?}");
    assert_eq!(order.route, expected, "{what}");
    answer(&market, &order);
    let mut call = call;
    let status = call.end();
    let told = call.told();
    assert!(status.success() && call.output().contains("Sunny"), "{what}: {status}\n{told}");
    let words: &[&str] = match expected {
        SealedDvmcp | SealedMessage => &["sealed"],
        Message => &["direct message", "kind 4"],
        PlainDvmcp => &["public"],
    };
    let said = call.stderr.look(|lines| lines.join("\n")).to_lowercase();
    assert!(words.iter().any(|word| said.contains(word)), "{what}: it does not say which way: {told}");
    for event in market.relay.published() {
        let fits = match event.kind {
            5910 => expected == PlainDvmcp,
            4 => expected == Message,
            WRAP => [SealedDvmcp, SealedMessage].contains(&expected),
            _ => true,
        };
        assert!(fits, "{what}: {event:?}");
        assert!(event.kind == 5910 || !event.json().contains("Venice"), "{what}: {event:?}");
    }
}

fn a_call_takes_the_most_private_way() {
    for (announced, manifest, expected) in [
        (Sealed, WITHOUT, SealedDvmcp),
        (Sealed, UNTAGGED, SealedDvmcp),
        (Sealed, NIP04, SealedDvmcp),
        (Sealed, NIP59, SealedDvmcp),
        (Plain, NIP59, SealedMessage),
        (Nothing, NIP59, SealedMessage),
        (Plain, UNTAGGED, Message),
        (Plain, NIP04, Message),
        (Nothing, UNTAGGED, Message),
        (Nothing, NIP04, Message),
        (Plain, WITHOUT, PlainDvmcp),
    ] {
        goes(announced, manifest, &[], expected);
    }
}

fn a_plain_call_is_plain_dvmcp_or_kind_4() {
    for (announced, manifest, expected) in [
        (Sealed, WITHOUT, PlainDvmcp),
        (Plain, WITHOUT, PlainDvmcp),
        (Sealed, NIP59, PlainDvmcp),
        (Sealed, UNTAGGED, PlainDvmcp),
        (Plain, NIP04, PlainDvmcp),
        (Nothing, NIP59, Message),
        (Nothing, NIP04, Message),
        (Nothing, UNTAGGED, Message),
    ] {
        goes(announced, manifest, &["--plain"], expected);
    }
}

fn a_call_keeps_to_the_wire_it_is_told() {
    for (announced, manifest, flags, expected) in [
        (Sealed, NIP59, &["--wire", "manifest"][..], SealedMessage),
        (Sealed, UNTAGGED, &["--wire", "manifest"], Message),
        (Sealed, NIP59, &["--wire", "manifest", "--plain"], Message),
        (Sealed, NIP59, &["--wire", "dvmcp"], SealedDvmcp),
        (Plain, NIP59, &["--wire", "dvmcp"], PlainDvmcp),
        (Sealed, NIP59, &["--wire", "dvmcp", "--plain"], PlainDvmcp),
    ] {
        goes(announced, manifest, flags, expected);
    }
}

fn a_wire_that_is_not_there_is_not_replaced_by_another() {
    let market = market(Sealed, WITHOUT);
    fails(market.call("forecast", &["city=Venice", "--wire", "manifest", "--timeout-secs", "5"]));
    let asked = market.relay.published().into_iter().filter(|event| [4, WRAP, 5910].contains(&event.kind)).count();
    assert_eq!(asked, 0, "there is no manifest, so there is nobody to ask");
    let market = self::market(Nothing, NIP59);
    fails(market.call("forecast", &["city=Venice", "--wire", "dvmcp", "--timeout-secs", "5"]));
    assert!(!market.relay.published().iter().any(|event| event.kind == 4));
    for event in market.relay.published().into_iter().filter(|event| event.kind == WRAP) {
        assert_eq!(torture::nostr_side::sealed::open(&market.shop.keys, &event).rumor.kind, 5910);
    }
}

fn a_sealed_message_that_no_relay_takes_is_not_sent_as_kind_4() {
    let market = Market::new(SEALED);
    market.relay.judge(|event, _| match event.kind {
        WRAP => Verdict::Refuse("blocked: no wraps here"),
        _ => Verdict::Accept,
    });
    let (_, told) = fails(market.call("forecast", &["city=Venice", "--timeout-secs", "5"]));
    assert!(told.contains("no wraps here"), "{told}");
    let weaker = market.relay.published().into_iter().filter(|event| [4, 5910].contains(&event.kind)).count();
    assert_eq!(weaker, 0, "it was sent in a weaker form");
}

fn a_sealed_message_that_is_not_answered_is_not_sent_as_kind_4() {
    let mut market = Market::new(SEALED);
    let call = market.call("forecast", &["city=Venice", "--timeout-secs", "2"]);
    assert_eq!(market.shop.order().route, SealedMessage);
    let (code, told) = fails(call);
    assert_eq!(code, 7, "{told}");
    let weaker = market.relay.published().into_iter().filter(|event| [4, 5910].contains(&event.kind)).count();
    assert_eq!(weaker, 0, "it was sent in a weaker form");
}

fn an_older_manifest_does_not_weaken_a_call() {
    let mut market = Market::new(SEALED);
    let (call, order) = market.ask(&[]);
    assert_eq!(order.route, SealedMessage);
    answer(&market, &order);
    ends_with(call, "Sunny");
    // Now a relay serves only an older one, in which the service could not open seals.
    market.relay.forget();
    market.shop.publish(&market.shop.manifest("").at(now() - 600));
    let call = market.call("forecast", &["city=Rome", "--timeout-secs", "3"]);
    if let Some(order) = market.shop.order_within(Duration::from_secs(6)) {
        assert_ne!(order.route, Message, "the old manifest was believed");
    }
    drop(call);
    assert!(!market.relay.published().iter().any(|event| event.kind == 4));
}

fn an_older_manifest_on_another_relay_does_not_weaken_a_call() {
    let (mut market, other) = (Market::new(SEALED), FakeRelay::start());
    other.publish(&market.shop.manifest("").at(now() - 600).sign(&market.shop.keys));
    let (npub, one, two) = (market.shop.npub(), market.relay.url(), other.url());
    for relays in [[&one, &two], [&two, &one]] {
        let arguments = ["call", &npub, "forecast", "city=Venice", "--relay", relays[0], "--relay", relays[1]];
        let call = market.world.rialto("customer", &arguments);
        let order = market.shop.order();
        assert_eq!(order.route, SealedMessage);
        answer(&market, &order);
        ends_with(call, "Sunny");
    }
    for relay in [&market.relay, &other] {
        assert!(!relay.published().iter().any(|event| event.kind == 4));
    }
}

fn a_host_takes_the_most_private_way_too() {
    for (announced, manifest, flags, expected) in [
        (Sealed, NIP59, &[][..], SealedDvmcp),
        (Plain, NIP59, &[], SealedMessage),
        (Nothing, NIP59, &["--plain"], Message),
        (Sealed, NIP59, &["--wire", "manifest"], SealedMessage),
        (Nothing, UNTAGGED, &[], Message),
    ] {
        let market = market(announced, manifest);
        let mut host = market.host(flags);
        let mut shop = market.shop;
        let serving = std::thread::spawn(move || {
            let order = shop.order();
            (shop, order)
        });
        host.begin();
        host.ask("tools/list", &json!({}));
        let id = host.call("forecast", &json!({ "city": "Venice" }));
        let (shop, order) = serving.join().unwrap();
        assert_eq!(order.route, expected, "{announced:?} {manifest:?} {flags:?}");
        let market = Market { shop, relay: market.relay, world: market.world };
        answer(&market, &order);
        assert_eq!(host.answer(id)["result"]["structuredContent"], json!({ "forecast": "Sunny" }));
    }
    // How it would be called can be seen before.
    let market = market(Nothing, UNTAGGED);
    let npub = market.shop.npub();
    let text = output(market.run(&["show", &npub])).to_lowercase();
    assert!(text.contains("direct message") || text.contains("kind 4"), "{text}");
}
