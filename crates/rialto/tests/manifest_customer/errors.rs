//! Errors that come back: each has its exit code and its words, for people and for hosts.

use serde_json::{Value, json};

use crate::market::{Market, SEALED, fails};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(each_error_has_its_exit_code_and_says_why),
    case!(errors_of_others_are_understood),
    case!(a_demand_for_payment_is_one),
    case!(a_host_is_told_what_went_wrong),
    case!(a_host_gets_the_words_of_a_tool_that_failed),
    case!(a_result_with_a_member_called_error_is_no_error_if_it_fits),
    case!(a_call_that_is_never_answered_ends),
];

fn error(code: &str) -> Value {
    json!({ "error": { "code": code, "message": "it is raining" } })
}

fn each_error_has_its_exit_code_and_says_why() {
    for (code, exit) in [
        ("invalid_input", 2),
        ("invalid_request", 2),
        ("too_large", 2),
        ("unknown_tool", 2),
        ("unauthorized", 3),
        ("upstream_unavailable", 4),
        ("outcome_unknown", 4),
        ("busy", 4),
        ("rate_limited", 4),
        ("tool_error", 5),
        ("internal_error", 5),
        ("result_too_large", 5),
        ("timeout", 7),
    ] {
        let mut market = Market::new(if exit % 2 == 0 { "" } else { SEALED });
        let (call, order) = market.ask(&[]);
        market.shop.say(&order, &error(code));
        let (found, told) = fails(call);
        assert_eq!(found, exit, "{code}: {told}");
        assert!(told.contains("it is raining"), "{code}: {told}");
        // That a tool failed is said in other words.
        assert!(exit == 5 || told.contains(code), "{code}: {told}");
    }
}

fn errors_of_others_are_understood() {
    for (body, words) in [
        (json!({ "error": { "code": "NO_SUCH_CITY", "message": "it is raining" } }), "it is raining"),
        (json!({ "error": { "message": "it is raining" } }), "it is raining"),
        (json!({ "error": { "code": "it_is_raining" } }), "it_is_raining"),
        (json!({ "error": "it is raining" }), "it is raining"),
        (json!({ "error": { "code": -32602, "message": "it is raining", "data": {} } }), "it is raining"),
        (json!({ "error": { "code": "x", "message": "it is raining", "content": 7, "pointer": [] } }), "it is raining"),
    ] {
        let mut market = Market::new("");
        let (call, order) = market.ask(&[]);
        market.shop.say(&order, &body);
        let (_, told) = fails(call);
        assert!(told.contains(words), "{body}: {told}");
    }
}

fn a_demand_for_payment_is_one() {
    // The example of BOLT 11 with an amount.
    let invoice = "lnbc2500u1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu\
                   aztrnwngzn3kdzw5hydlzf03qdgm2hdq27cqv3agm2awhz5se903vruatfhq77w3ls4evs3ch9zw97j25emudupq63nyw24cg\
                   27h2rspfj9srp";
    for (encryption, tagged) in [("", true), (SEALED, true), ("", false)] {
        let mut market = Market::new(encryption);
        let (call, order) = market.ask(&[]);
        if tagged {
            market.shop.say_text(&order, invoice);
        } else {
            let tags: [&[&str]; 1] = [&["p", &order.event.pubkey]];
            let letter =
                market.shop.letter(&market.shop.keys, &order, invoice, &tags, torture::nostr_side::event::now());
            market.relay.publish(&letter);
        }
        let (code, told) = fails(call);
        assert_eq!(code, 6, "{told}");
        assert!(told.contains(invoice), "it can be paid by hand: {told}");
    }
}

/// What a host is told when the shop answers like this.
fn told(body: &Value) -> Value {
    let market = Market::new(SEALED);
    let mut host = market.host(&[]);
    let mut shop = market.shop;
    host.begin();
    host.ask("tools/list", &json!({}));
    let id = host.call("forecast", &json!({ "city": "Venice" }));
    let order = shop.order();
    shop.say(&order, body);
    host.answer(id)
}

fn a_host_is_told_what_went_wrong() {
    for code in ["invalid_input", "unauthorized", "timeout", "internal_error", "NO_SUCH_CITY"] {
        let answer = told(&error(code));
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
        assert!(failed && answer.to_string().contains("it is raining"), "{code}: {answer}");
        assert!(answer["result"].get("structuredContent").is_none(), "{code}: {answer}");
    }
    // What does not fit is not passed on.
    let answer = told(&json!({ "forecast": 7, "lie": "a lie" }));
    let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
    assert!(failed && answer.to_string().contains("forecast"), "{answer}");
    assert!(!answer.to_string().contains("a lie"), "{answer}");
}

fn a_host_gets_the_words_of_a_tool_that_failed() {
    let content = json!([{ "type": "text", "text": "no station there" }, { "type": "text", "text": "sorry" }]);
    let answer = told(&json!({ "error": { "code": "tool_error", "message": "no station", "content": content } }));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["content"], content, "{answer}");
    // And so does a person.
    let mut market = Market::new("");
    let (call, order) = market.ask(&[]);
    market.shop.say(&order, &json!({ "error": { "code": "tool_error", "message": "no", "content": content } }));
    let (code, told) = fails(call);
    assert_eq!(code, 5, "{told}");
    assert!(told.contains("no station there"), "{told}");
}

fn a_result_with_a_member_called_error_is_no_error_if_it_fits() {
    // An answer with `error` is an error, unless the tool itself says that its results have such a member.
    let mut market = Market::closed();
    market.shop.tools[0]["output_schema"] = json!({
        "type": "object", "properties": { "error": { "type": "number" }, "value": { "type": "number" } },
        "required": ["error", "value"]
    });
    market.shop.publish(&market.shop.manifest(""));
    let (mut call, order) = market.ask(&["--timeout-secs", "10"]);
    market.shop.say(&order, &json!({ "error": 0.25, "value": 18.5 }));
    // The contract does not say which; it must end at once, and not by falling over.
    let begun = std::time::Instant::now();
    call.end();
    assert!(begun.elapsed().as_secs() < 8 && !call.told().contains("panicked"), "{}", call.told());
}

fn a_call_that_is_never_answered_ends() {
    for encryption in ["", SEALED] {
        let mut market = Market::new(encryption);
        let begun = std::time::Instant::now();
        let (call, _) = market.ask(&["--timeout-secs", "1"]);
        let (code, told) = fails(call);
        assert_eq!(code, 7, "{told}");
        assert!(begun.elapsed().as_secs() < 15, "it took {:?}", begun.elapsed());
        let me = market.shop.pubkey();
        let sent = market.relay.published().into_iter().filter(|event| event.has_tag("p", &me)).count();
        assert_eq!(sent, 1, "nothing is sent behind it: this wire knows no way to cancel");
    }
}
