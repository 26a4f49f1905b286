//! What is sent: exactly a request, and nothing that it need not say.

use serde_json::{Value, json};

use crate::market::{Market, SEALED, ends_with, fails};
use torture::nostr_side::event::now;
use torture::nostr_side::message::{CHAT, MESSAGE};
use torture::nostr_side::shop::{Order, Route};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_request_is_exactly_a_tool_and_its_arguments),
    case!(arguments_have_the_types_of_the_schema),
    case!(arguments_that_do_not_fit_are_not_sent),
    case!(a_tool_that_is_not_there_is_not_asked_for),
    case!(nothing_is_asked_before_a_call),
    case!(equal_calls_are_different_requests),
    case!(arguments_that_are_too_long_end_the_call_with_a_reason),
];

/// Everything that the contract says of a request.
#[track_caller]
fn check(market: &Market, order: &Order, body: &Value) {
    let event = &order.event;
    assert_eq!(order.body(), *body);
    assert_eq!(event.kind, if order.route == Route::Message { MESSAGE } else { CHAT }, "{event:?}");
    assert_eq!(event.tags("p"), [[market.shop.pubkey()]], "{event:?}");
    assert!((now() - event.created_at).abs() < 30, "{event:?}");
    for tag in &event.tags {
        assert!(["p", "expiration", "salt"].contains(&tag[0].as_str()), "{event:?}");
    }
    for expiration in event.tags("expiration") {
        let time: i64 = expiration[0].parse().unwrap();
        assert!(time > now(), "{event:?}");
    }
}

fn a_request_is_exactly_a_tool_and_its_arguments() {
    for (encryption, route) in [("", Route::Message), (SEALED, Route::SealedMessage)] {
        let mut market = Market::new(encryption);
        let (call, order) = market.ask(&["days=3"]);
        assert_eq!(order.route, route);
        check(&market, &order, &json!({ "tool_name": "forecast", "arguments": { "city": "Venice", "days": 3 } }));
        market.shop.say(&order, &json!({ "forecast": "Sunny" }));
        ends_with(call, "Sunny");
        let call = market.call("say", &[]);
        let order = market.shop.order();
        check(&market, &order, &json!({ "tool_name": "say", "arguments": {} }));
        market.shop.say(&order, &json!({ "content": [{ "type": "text", "text": "well" }] }));
        ends_with(call, "well");
    }
}

fn arguments_have_the_types_of_the_schema() {
    let mut market = Market::closed();
    market.shop.tools[1]["input_schema"]["properties"] = json!({
        "text": { "type": "string" }, "count": { "type": "integer" }, "loud": { "type": "boolean" },
        "list": { "type": "array", "items": { "type": "string" } }
    });
    market.shop.publish(&market.shop.manifest(""));
    let call = market.call("say", &["text=7", "count=7", "loud=true", "list=a,b"]);
    let order = market.shop.order();
    let expected = json!({ "text": "7", "count": 7, "loud": true, "list": ["a", "b"] });
    assert_eq!(order.body()["arguments"], expected);
    market.shop.say(&order, &json!({ "content": [{ "type": "text", "text": "well" }] }));
    ends_with(call, "well");
}

fn arguments_that_do_not_fit_are_not_sent() {
    let market = Market::new("");
    for (arguments, word) in [
        (&["--args", "{}"][..], "city"),
        (&[], "city"),
        (&["--args", r#"{"city":7}"#], "city"),
        (&["--args", r#"{"city":"Venice","days":"five"}"#], "days"),
        (&["--args", r#"["Venice"]"#], ""),
    ] {
        let (code, told) = fails(market.call("forecast", arguments));
        assert_eq!(code, 2, "{arguments:?}: {told}");
        assert!(told.contains(word), "{arguments:?}: {told}");
    }
    assert!(!market.relay.published().iter().any(|event| [4, 1059, 5910].contains(&event.kind)));
}

fn a_tool_that_is_not_there_is_not_asked_for() {
    let market = Market::new("");
    let (code, told) = fails(market.call("forecsat", &["city=Venice"]));
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("forecast"), "it helps: {told}");
    assert!(!market.relay.published().iter().any(|event| [4, 1059, 5910].contains(&event.kind)));
}

fn nothing_is_asked_before_a_call() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let (call, order) = market.ask(&[]);
        market.shop.say(&order, &json!({ "forecast": "Sunny" }));
        ends_with(call, "Sunny");
        let to_shop = market.shop.pubkey();
        let asked: Vec<_> = market.relay.published().into_iter().filter(|event| event.has_tag("p", &to_shop)).collect();
        assert_eq!(asked.len(), 1, "the manifest has everything: {asked:#?}");
    }
}

fn equal_calls_are_different_requests() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let mut ids = Vec::new();
        for _ in 0..3 {
            let (call, order) = market.ask(&[]);
            ids.push(order.event.id.clone());
            market.shop.say(&order, &json!({ "forecast": "Sunny" }));
            ends_with(call, "Sunny");
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3, "or they would run once");
    }
}

fn arguments_that_are_too_long_end_the_call_with_a_reason() {
    for (encryption, size) in [("", 60_000), (SEALED, 100_000)] {
        let mut market = Market::new(encryption);
        let arguments = json!({ "text": "x".repeat(size) }).to_string();
        let mut call = market.call("say", &["--args", &arguments, "--timeout-secs", "8"]);
        // Sent or refused with words; but not left to time out.
        match market.shop.order_within(std::time::Duration::from_secs(4)) {
            Some(order) => {
                assert_eq!(order.body()["arguments"]["text"].as_str().map(str::len), Some(size));
                market.shop.say(&order, &json!({ "content": [{ "type": "text", "text": "well" }] }));
                ends_with(call, "well");
            }
            None => assert_eq!(call.end().code(), Some(2), "{}", call.told()),
        }
    }
}
