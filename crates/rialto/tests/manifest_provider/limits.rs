//! Texts whose form is wrong, texts that are too long, and customers who ask too much.

use std::time::Duration;

use serde_json::json;

use torture::nostr_side::desk::Desk;
use torture::nostr_side::messenger::{Answer, BOTH, Messenger, Way, request};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(what_looks_like_json_and_is_none_is_an_invalid_request),
    case!(a_key_that_stands_twice_is_an_invalid_request),
    case!(deep_nesting_is_an_invalid_request),
    case!(a_text_beyond_the_limit_is_too_large),
    case!(white_space_around_a_request_does_no_harm),
    case!(too_many_requests_are_told_so_once),
    case!(one_limit_counts_both_wires),
    case!(a_request_refused_by_the_rate_limit_does_not_run_later),
    case!(a_denied_key_is_unauthorized),
    case!(more_than_can_run_waits),
];

#[track_caller]
fn is_invalid(desk: &Desk, text: &str) {
    for way in BOTH {
        assert_eq!(desk.customer.ask(way, text).error(), "invalid_request", "{way:?} {text:.200}");
    }
    assert!(desk.world.effects().is_empty(), "it was run: {text:.200}");
}

fn what_looks_like_json_and_is_none_is_an_invalid_request() {
    let desk = Desk::unlimited();
    for text in [
        "{",
        "[",
        "{]",
        "[]",
        "[7]",
        r#"[{"tool_name":"note","arguments":{}}]"#,
        r#"{"tool_name":"note","arguments":{}"#,
        r#"{"tool_name":"note","arguments":{}} and more"#,
        r#"{"tool_name":"note","arguments":{}}{"tool_name":"note","arguments":{}}"#,
        "{'tool_name':'note','arguments':{}}",
        r#"{"tool_name":"note","arguments":{},}"#,
        "{\"tool_name\":\"note\",\"arguments\":{\"text\":\"\u{1}\"}}",
        r#"{"tool_name":"note","arguments":{"text":"\ud800"}}"#,
        r#"{"tool_name":"note","arguments":{"text":NaN}}"#,
        "{\"tool_name\":\"note\",\"arguments\":{}}\0",
        "{tool_name: note}",
    ] {
        is_invalid(&desk, text);
    }
}

fn a_key_that_stands_twice_is_an_invalid_request() {
    let desk = Desk::unlimited();
    for text in [
        r#"{"tool_name":"note","tool_name":"nap","arguments":{}}"#,
        r#"{"tool_name":"note","arguments":{},"arguments":{}}"#,
        r#"{"tool_name":"note","arguments":{"text":"a","text":"b"}}"#,
        r#"{"tool_name":"note","arguments":{"text":"a","te\u0078t":"b"}}"#,
        r#"{"tool_name":"note","tool\u005fname":"nap","arguments":{}}"#,
        r#"{"tool_name":"note","arguments":{},"more":{"a":1,"a":1}}"#,
    ] {
        is_invalid(&desk, text);
    }
}

fn deep_nesting_is_an_invalid_request() {
    let desk = Desk::unlimited();
    for depth in [63, 70, 5_000, 30_000] {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        is_invalid(&desk, &format!(r#"{{"tool_name":"note","arguments":{{"deep":{value}}}}}"#));
    }
    is_invalid(&desk, &"[".repeat(60_000));
    is_invalid(&desk, &"{\"a\":".repeat(10_000));
    // Two levels are outside of this one; sixty-four in all are allowed.
    let value = format!("{}{}", "[".repeat(62), "]".repeat(62));
    let text = format!(r#"{{"tool_name":"meta","arguments":{{"deep":{value}}}}}"#);
    for way in BOTH {
        desk.customer.ask(way, &text).said();
    }
}

fn a_text_beyond_the_limit_is_too_large() {
    let desk = Desk::unlimited();
    let sized = |size: usize| {
        let empty = request("sulk", &json!({ "text": "" })).len();
        request("sulk", &json!({ "text": "x".repeat(size - empty) }))
    };
    assert_eq!(desk.customer.ask(Way::Message, &sized(128 * 1024 + 1)).error(), "too_large");
    assert_eq!(desk.customer.ask(Way::Message, &sized(300_000)).error(), "too_large");
    assert!(desk.world.effects().is_empty());
    assert_eq!(desk.customer.ask(Way::Message, &sized(128 * 1024)).error(), "tool_error");
    // A seal holds less: NIP-44 ends at 64 KiB, with the event around the text.
    assert_eq!(desk.customer.ask(Way::Sealed, &sized(20_000)).error(), "tool_error");
}

fn white_space_around_a_request_does_no_harm() {
    let desk = Desk::unlimited();
    let pretty = serde_json::to_string_pretty(&json!({ "tool_name": "note", "arguments": { "text": "x" } })).unwrap();
    for text in [pretty.clone(), format!("{pretty}\n"), format!("  {pretty}"), format!("\r\n\t{pretty} ")] {
        for way in BOTH {
            assert_eq!(desk.customer.ask(way, &text).said(), "x", "{text:?}");
        }
    }
}

/// The answers that are a refusal for this reason.
fn refusals(customer: &Messenger, code: &str) -> Vec<Answer> {
    let says_so = |answer: &Answer| answer.body()["error"]["code"] == code;
    customer.everything().into_iter().filter(says_so).collect()
}

fn too_many_requests_are_told_so_once() {
    for way in BOTH {
        let desk = Desk::new(&["--rate-per-key", "3"]);
        let ids: Vec<String> = (0..20).map(|_| desk.customer.post(way, &request("note", &json!({})))).collect();
        let is_told = || !refusals(&desk.customer, "rate_limited").is_empty();
        torture::nostr_side::log::until("it is told", torture::nostr_side::PATIENCE, is_told);
        desk.another_customer().barrier();
        let told = refusals(&desk.customer, "rate_limited");
        assert_eq!(told.len(), 1, "{way:?}: at most one in ten seconds");
        assert_eq!(told[0].way, way);
        assert!(ids.iter().any(|id| told[0].event.has_tag("e", id)));
        let served = desk.world.times("note");
        assert!((3..=4).contains(&served), "{way:?}: {served} were run");
    }
}

fn one_limit_counts_both_wires() {
    let desk = Desk::new(&["--rate-per-key", "3"]);
    let dvmcp = torture::nostr_side::customer::Customer::with_keys(
        &desk.relay.url(),
        &desk.provider.pubkey,
        desk.customer.keys.clone(),
    );
    for _ in 0..3 {
        dvmcp.post(&dvmcp.draft("execute-tool", &json!({ "name": "note", "parameters": {} })));
    }
    for _ in 0..4 {
        for way in BOTH {
            desk.customer.post(way, &request("note", &json!({})));
        }
    }
    desk.another_customer().barrier();
    let served = desk.world.times("note");
    assert!(served <= 4, "{served} were run: another form is no new customer");
    let feedback = dvmcp.everything().into_iter().filter(|received| received.event.kind == 7000);
    let feedback = feedback.filter(|received| received.event.tag("status") == "error").count();
    let told = feedback + refusals(&desk.customer, "rate_limited").len();
    assert_eq!(told, 1, "one customer is told once, over whichever wire");
}

fn a_request_refused_by_the_rate_limit_does_not_run_later() {
    let flags = ["--rate-per-key", "60"];
    let mut desk = Desk::new(&flags);
    let events: Vec<(String, torture::nostr_side::event::Event)> = (0..70)
        .map(|number| {
            let text = request("note", &json!({ "tag": number.to_string() }));
            desk.customer.finish(Way::Message, &desk.customer.draft(Way::Message, &text))
        })
        .collect();
    events.iter().for_each(|(_, event)| desk.relay.publish(event));
    let is_told = || !refusals(&desk.customer, "rate_limited").is_empty();
    torture::nostr_side::log::until("it is told", torture::nostr_side::PATIENCE, is_told);
    let told = refusals(&desk.customer, "rate_limited").remove(0);
    let number = events.iter().position(|(id, _)| told.event.has_tag("e", id)).unwrap();
    // The bucket has room again, and the relay still has the request.
    std::thread::sleep(Duration::from_millis(2500));
    desk.inject(&events[number].1);
    desk.another_customer().barrier();
    desk.kill_and_restart(&flags);
    desk.another_customer().barrier();
    assert_eq!(desk.world.times(&format!("note {number}")), 0, "it failed, and then it was run");
}

fn a_denied_key_is_unauthorized() {
    let denied = nostr::key::Keys::generate();
    let desk = Desk::new(&["--deny", &torture::nostr_side::event::hex_key(&denied)]);
    let customer = Messenger::with_keys(&desk.relay.url(), &desk.provider.pubkey, denied);
    for way in BOTH {
        assert_eq!(customer.call(way, "note", &json!({})).error(), "unauthorized");
        assert_eq!(desk.customer.call(way, "note", &json!({ "text": "hello" })).said(), "hello");
    }
    assert_eq!(desk.world.times("note"), 2);
}

fn more_than_can_run_waits() {
    let desk = Desk::new(&["--rate-per-key", "0", "--max-running-per-key", "2"]);
    let text = |number: usize| request("gate", &json!({ "name": "g", "tag": number.to_string() }));
    let ids: Vec<String> = (0..4).map(|number| desk.customer.post(Way::Message, &text(number))).collect();
    let other = desk.another_customer();
    assert_eq!(other.call(Way::Sealed, "note", &json!({ "text": "mine" })).said(), "mine");
    other.barrier();
    let begun = desk.world.effects().iter().filter(|effect| effect.starts_with("gate")).count();
    assert!(begun <= 2, "{begun} at once");
    desk.world.open_gate("g");
    for id in &ids {
        assert_eq!(desk.customer.answer(Way::Message, id).said(), "through");
    }
}
