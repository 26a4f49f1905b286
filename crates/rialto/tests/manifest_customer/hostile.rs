//! Manifests that want to do harm: what cannot be used is left out and said to be, and the rest works.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::market::{Market, ends_with, fails, names, output, remarks};
use torture::nostr_side::shop::forecast_tool;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(tools_with_hostile_schemas_are_left_out_and_named),
    case!(a_schema_that_is_too_deep_is_told),
    case!(tools_without_a_usable_name_are_left_out),
    case!(of_tools_with_the_same_name_the_first_counts),
    case!(a_bomb_does_not_go_off),
    case!(five_hundred_tools_are_all_there),
    case!(tools_beyond_the_limit_are_not_read),
    case!(a_manifest_that_is_too_long_is_not_read),
    case!(a_long_description_does_not_fill_the_screen),
    case!(hostile_answers_end_the_call),
    case!(a_key_with_a_thousand_manifests_hides_nobody),
];

fn publish(market: &mut Market, tools: &[Value]) {
    market.shop.tools = Value::from(tools);
    market.shop.publish(&market.shop.manifest(""));
}

/// Small to write, and twice as long to check with every level.
fn bomb(levels: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/level{}", level + 1) });
        definitions.insert(format!("level{level}"), json!({ "anyOf": [next, next] }));
    }
    definitions.insert(format!("level{levels}"), json!({ "type": "integer" }));
    json!({ "type": "object", "properties": { "text": { "$ref": "#/$defs/level0" } }, "$defs": definitions })
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!({ "type": "string" }), |inner, _| json!({ "properties": { "a": inner } }))
}

fn with(property: &Value) -> Value {
    json!({ "type": "object", "properties": { "text": property } })
}

fn tools_with_hostile_schemas_are_left_out_and_named() {
    let mut market = Market::closed();
    let wide = json!({ "anyOf": vec![json!({}); 10_100] });
    let hostile: Vec<(&str, Value)> = vec![
        ("remote", with(&json!({ "$ref": "https://example.com/schema.json" }))),
        ("file", with(&json!({ "$ref": "file:///etc/passwd" }))),
        ("wide", with(&wide)),
        ("lookaround", with(&json!({ "type": "string", "pattern": "^(?=(a+))\\1+b$" }))),
        ("nonsense", with(&json!({ "type": "string", "pattern": "(" }))),
        ("text", json!("object")),
        ("list", json!([])),
    ];
    let mut tools = vec![forecast_tool()];
    for (name, schema) in &hostile {
        tools.push(json!({ "tool_name": format!("in_{name}"), "description": "x", "input_schema": schema }));
        let output = format!("out_{name}");
        if *name != "wide" {
            let input = json!({ "type": "object" });
            tools.push(
                json!({ "tool_name": output, "description": "x", "input_schema": input, "output_schema": schema }),
            );
        }
    }
    publish(&mut market, &tools);
    let begun = Instant::now();
    let shown = market.shown();
    assert_eq!(names(&shown), ["forecast"]);
    let npub = market.shop.npub();
    let (text, said) = (output(market.run(&["show", &npub])), remarks(&shown));
    for tool in &tools[1..] {
        let name = tool["tool_name"].as_str().unwrap();
        assert!(said.contains(name), "{name} is not reported as JSON: {said}");
        assert!(text.contains(name), "{name} is not reported: {text}");
        let (code, told) = fails(market.call(name, &["text=x"]));
        assert_eq!(code, 2, "{name}: {told}");
    }
    assert!(begun.elapsed() < Duration::from_secs(35), "it took {:?}", begun.elapsed());
    assert!(!market.relay.published().iter().any(|event| [4, 1059].contains(&event.kind)), "none was called");
    let (call, order) = market.ask(&[]);
    market.shop.say(&order, &json!({ "forecast": "Sunny" }));
    ends_with(call, "Sunny");
    let mut host = market.host(&[]);
    host.begin();
    let tools = host.ask("tools/list", &json!({}));
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(1), "{tools}");
}

fn a_schema_that_is_too_deep_is_told() {
    // Beyond what can be read at all, nothing is.
    for levels in [70, 500] {
        let mut market = Market::closed();
        let input = json!({ "tool_name": "deep", "description": "x", "input_schema": deep(levels) });
        publish(&mut market, &[forecast_tool(), input]);
        let shown = market.shown();
        assert!(names(&shown).is_empty() && remarks(&shown).contains("nested too deeply"), "{}", remarks(&shown));
    }
    for levels in [33, 50] {
        let mut market = Market::closed();
        let input = json!({ "tool_name": "deep", "description": "x", "input_schema": deep(levels) });
        publish(&mut market, &[forecast_tool(), input]);
        let shown = market.shown();
        assert_eq!(names(&shown), ["forecast"], "{levels}: {}", remarks(&shown));
        assert!(remarks(&shown).contains("deep"), "{levels}: {}", remarks(&shown));
        let (call, order) = market.ask(&[]);
        market.shop.say(&order, &json!({ "forecast": "Sunny" }));
        ends_with(call, "Sunny");
    }
}

fn tools_without_a_usable_name_are_left_out() {
    let mut market = Market::closed();
    let tools = [
        json!({ "description": "no name" }),
        json!({ "tool_name": "" }),
        json!({ "tool_name": 7 }),
        json!({ "tool_name": null }),
        json!({ "name": "wrong word" }),
        json!(7),
        json!("forecast"),
        json!([]),
        Value::Null,
        forecast_tool(),
    ];
    publish(&mut market, &tools);
    let shown = market.shown();
    assert_eq!(names(&shown), ["forecast"]);
    let (call, order) = market.ask(&[]);
    market.shop.say(&order, &json!({ "forecast": "Sunny" }));
    ends_with(call, "Sunny");
}

fn of_tools_with_the_same_name_the_first_counts() {
    let mut market = Market::closed();
    let mut second = forecast_tool();
    second["description"] = json!("An impostor");
    second["output_schema"] = json!({ "type": "object", "required": ["tax"] });
    publish(&mut market, &[forecast_tool(), second]);
    let shown = market.shown();
    assert_eq!(names(&shown), ["forecast"]);
    assert_eq!(shown["tools"][0]["definition"]["description"], "The weather in a city.");
    assert!(remarks(&shown).contains("forecast"), "it is reported: {shown:#}");
    let (call, order) = market.ask(&[]);
    market.shop.say(&order, &json!({ "forecast": "Sunny" }));
    ends_with(call, "Sunny");
}

fn a_bomb_does_not_go_off() {
    let mut market = Market::closed();
    let input = json!({ "tool_name": "input", "description": "x", "input_schema": bomb(40) });
    let output_tool = json!({
        "tool_name": "output", "description": "x", "input_schema": { "type": "object" }, "output_schema": bomb(40)
    });
    let slow = json!({ "tool_name": "slow", "input_schema": with(&json!({ "type": "string", "pattern": "^(a+)+$" })) });
    publish(&mut market, &[input, output_tool, slow, forecast_tool()]);
    let begun = Instant::now();
    market.shown();
    let attack = format!("text={}b", "a".repeat(50_000));
    for (tool, argument) in [("input", "text=x"), ("output", "text=x"), ("slow", &attack)] {
        let mut call = market.call(tool, &[argument, "--timeout-secs", "5"]);
        // It may be asked in spite of it, or refused; but soon.
        if let Some(order) = market.shop.order_within(Duration::from_millis(1500)) {
            market.shop.say(&order, &json!({ "text": "well" }));
        }
        call.end();
        assert!(!call.told().contains("panicked"), "{}", call.told());
    }
    assert!(begun.elapsed() < Duration::from_secs(25), "it took {:?}", begun.elapsed());
}

fn five_hundred_tools_are_all_there() {
    let mut market = Market::closed();
    let tools: Vec<Value> = (0..500)
        .map(|number| json!({ "tool_name": format!("t{number}"), "description": "x", "input_schema": { "type": "object" } }))
        .collect();
    publish(&mut market, &tools);
    assert_eq!(names(&market.shown()).len(), 500);
    let call = market.call("t499", &[]);
    let order = market.shop.order();
    market.shop.say(&order, &json!({ "a": "last" }));
    ends_with(call, "last");
    let mut host = market.host(&[]);
    host.begin();
    let mut count = 0;
    let mut cursor = json!({});
    loop {
        let page = host.ask("tools/list", &cursor);
        count += page["tools"].as_array().unwrap().len();
        match page.get("nextCursor") {
            Some(next) => cursor = json!({ "cursor": next }),
            None => break,
        }
    }
    assert_eq!(count, 500);
}

fn tools_beyond_the_limit_are_not_read() {
    let mut market = Market::closed();
    let tools: Vec<Value> = (0..2100).map(|number| json!({ "tool_name": format!("t{number}") })).collect();
    publish(&mut market, &tools);
    let shown = market.shown();
    let listed = names(&shown);
    assert_eq!((listed.len(), listed.last()), (2000, Some(&"t1999")));
    assert!(remarks(&shown).contains("2100") || remarks(&shown).contains("2000"), "it is reported");
}

fn a_manifest_that_is_too_long_is_not_read() {
    let market = Market::closed();
    let content = json!({
        "mcp_version": "0.1", "name": "huge", "description": "x".repeat(400_000), "tools": market.shop.tools
    });
    let draft = market.shop.manifest("").with_content(&content.to_string());
    market.shop.publish(&draft);
    let found = output(market.run(&["find", "--no-check", "--json"]));
    assert!(!found.contains(&"x".repeat(1000)), "{} bytes", found.len());
    let (_, told) = fails(market.call("forecast", &["city=Venice", "--timeout-secs", "3"]));
    assert!(!told.contains(&"x".repeat(1000)));
    assert!(!market.relay.published().iter().any(|event| event.kind == 4));
    // One of a whole megabyte is not even taken from the relay; what stands beside it is.
    let other = torture::nostr_side::shop::Shop::new(&market.relay, "");
    let content = json!({
        "mcp_version": "0.1", "name": "larger", "description": "x".repeat(1_000_000), "tools": []
    });
    market.shop.publish(&draft.with_content(&content.to_string()).at(torture::nostr_side::event::now() + 5));
    let found = output(market.run(&["find", "--no-check", "--json"]));
    assert!(found.contains(&other.npub()), "{found:.300}");
}

fn a_long_description_does_not_fill_the_screen() {
    let mut market = Market::closed();
    let mut tool = forecast_tool();
    tool["description"] = json!("long ".repeat(10_000));
    market.shop.tools = json!([tool]);
    let content = json!({
        "mcp_version": "0.1", "name": "n".repeat(5_000), "description": "words ".repeat(20_000), "tools": market.shop.tools
    });
    market.shop.publish(&market.shop.manifest("").with_content(&content.to_string()));
    let npub = market.shop.npub();
    for arguments in [&["find", "--no-check"][..], &["show", &npub]] {
        let text = output(market.run(arguments));
        assert!(text.contains("forecast"), "{text:.500}");
        assert!(text.len() < 12_000, "{arguments:?}: {} bytes", text.len());
    }
    let (call, order) = market.ask(&[]);
    market.shop.say(&order, &json!({ "forecast": "Sunny" }));
    ends_with(call, "Sunny");
}

fn hostile_answers_end_the_call() {
    let deep = format!("{{\"forecast\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000));
    let long = json!({ "forecast": "x".repeat(300_000) }).to_string();
    for text in [deep, long] {
        let mut market = Market::closed();
        publish(&mut market, &[forecast_tool()]);
        let (mut call, order) = market.ask(&["--timeout-secs", "15"]);
        let begun = Instant::now();
        market.shop.say_text(&order, &text);
        call.end();
        assert!(!call.told().contains("panicked") && !call.told().contains("overflow"), "{}", call.told());
        assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    }
}

fn a_key_with_a_thousand_manifests_hides_nobody() {
    let mut market = Market::closed();
    let flooder = nostr::key::Keys::generate();
    for number in 0..1000 {
        let tool = json!({ "tool_name": "forecast", "description": "mine" });
        let content = json!({ "mcp_version": "0.1", "name": "weather", "description": "flood", "tools": [tool] });
        let draft = market.shop.manifest("").with_content(&content.to_string()).without("d");
        market.relay.publish(&draft.tag(&["d", &format!("weather{number}")]).sign(&flooder));
    }
    market.shop.publish(&market.shop.manifest(""));
    let begun = Instant::now();
    let found = output(market.run(&["find", "--no-check", "--json"]));
    assert!(found.contains(&market.shop.npub()), "{found:.2000}");
    let (call, order) = market.ask(&[]);
    market.shop.say(&order, &json!({ "forecast": "Sunny" }));
    ends_with(call, "Sunny");
    assert!(begun.elapsed() < Duration::from_secs(25), "it took {:?}", begun.elapsed());
}
