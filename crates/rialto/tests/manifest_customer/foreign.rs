//! Manifests of others: found, shown and used as far as they go.

use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use serde_json::{Value, json};

use crate::market::{Market, SEALED, ends_with, fails, names, output, remarks};
use torture::nostr_side::event::{Draft, hex_key, now};
use torture::nostr_side::host::Host;
use torture::nostr_side::shop::Route;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_service_is_found_shown_and_called),
    case!(a_manifest_without_any_tag_is_enough),
    case!(a_manifest_is_called_by_its_name_and_its_address),
    case!(members_and_versions_that_nobody_knows_do_no_harm),
    case!(missing_descriptions_and_schemas_are_tolerated),
    case!(a_service_seen_in_both_ways_is_found_once),
    case!(what_is_no_manifest_is_passed_over),
    case!(a_withdrawn_manifest_is_not_found),
    case!(of_two_manifests_the_later_one_counts),
    case!(further_manifests_of_a_service_are_read_too),
    case!(two_services_of_one_key_stay_apart),
    case!(words_of_a_stranger_cannot_command_the_terminal),
];

fn found(market: &Market, words: &[&str]) -> Vec<Value> {
    let text = output(market.run(&[&["find", "--json"], words].concat()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
}

fn a_service_is_found_shown_and_called() {
    let mut market = Market::new(SEALED);
    for flags in [&[][..], &["--no-check"], &["forecast"], &["weather", "--no-check"]] {
        let all = found(&market, flags);
        assert_eq!(all.len(), 1, "{flags:?}: {all:#?}");
        assert_eq!((&all[0]["name"], &all[0]["about"]), (&json!("weather"), &json!("Forecasts")));
        assert_eq!(all[0]["npub"], market.shop.npub());
        let tool = json!({ "name": "forecast", "description": "The weather in a city.", "price": null });
        assert_eq!(all[0]["tools"][0], tool, "what it costs is not said");
        assert_eq!(all[0]["sealed"], true);
    }
    assert!(found(&market, &["zebra"]).is_empty());
    let shown = market.shown();
    assert_eq!((&shown["name"], &shown["about"]), (&json!("weather"), &json!("Forecasts")));
    assert_eq!(names(&shown), ["forecast", "say"]);
    let definition = &shown["tools"][0]["definition"];
    assert_eq!(definition["inputSchema"], market.shop.tools[0]["input_schema"]);
    assert_eq!(definition["outputSchema"], market.shop.tools[0]["output_schema"]);
    let npub = market.shop.npub();
    let text = output(market.run(&["show", &npub]));
    for part in ["weather", "Forecasts", "forecast", "The weather in a city.", "city=TEXT", "say", "sealed"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (call, order) = market.ask(&[]);
    market.shop.say(&order, &json!({ "forecast": "Sunny" }));
    ends_with(call, "Sunny");
}

fn a_manifest_without_any_tag_is_enough() {
    let mut market = Market::closed();
    let manifest = market.shop.manifest("").without("d").without("t").without("relays");
    market.shop.publish(&manifest);
    let all = found(&market, &["--no-check"]);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!((&all[0]["name"], &all[0]["sealed"]), (&json!("weather"), &json!(false)));
    assert_eq!(names(&market.shown()), ["forecast", "say"]);
    let (call, order) = market.ask(&[]);
    assert_eq!(order.route, Route::Message);
    market.shop.say(&order, &json!({ "forecast": "Sunny" }));
    ends_with(call, "Sunny");
    // Without `d` it is the only one of its author: a later one takes its place.
    let content = json!({ "mcp_version": "0.1", "name": "later", "description": "", "tools": market.shop.tools });
    market.shop.publish(&Draft::new(30200, content.to_string()).at(now() + 2));
    let all = found(&market, &["--no-check"]);
    assert_eq!(all.iter().map(|one| &one["name"]).collect::<Vec<_>>(), [&json!("later")]);
}

fn a_manifest_is_called_by_its_name_and_its_address() {
    let mut market = Market::new(SEALED);
    let coordinate = format!("30200:{}:weather", market.shop.pubkey());
    let address = nostr::nips::nip01::Coordinate::parse(&coordinate).unwrap().to_bech32().unwrap();
    for service in ["weather", &address, &market.shop.pubkey()] {
        let call = market.run(&["call", service, "forecast", "city=Venice"]);
        let order = market.shop.order();
        assert_eq!(order.route, Route::SealedMessage, "{service}");
        market.shop.say(&order, &json!({ "forecast": "Sunny" }));
        ends_with(call, "Sunny");
    }
}

fn members_and_versions_that_nobody_knows_do_no_harm() {
    let mut market = Market::closed();
    for (number, version) in ["0.2", "1.0", "", "2027-01-01"].iter().enumerate() {
        let mut tools = market.shop.tools.clone();
        tools[0]["price"] = json!({ "sat": 21 });
        tools[0]["examples"] = json!([1, null, {}]);
        let content = json!({
            "mcp_version": version, "name": "weather", "description": "Forecasts", "tools": tools,
            "website": "https://example.com", "resources": [7], "icons": null, "error": {}, "id": "x"
        });
        let manifest = market.shop.manifest("").with_content(&content.to_string());
        market
            .shop
            .publish(&manifest.tag(&["alt", "a service"]).tag(&["x"]).at(now() + i64::try_from(number).unwrap()));
        assert_eq!(names(&market.shown()), ["forecast", "say"], "{version}");
        assert_eq!(found(&market, &["--no-check"]).len(), 1, "{version}");
    }
    let (call, order) = market.ask(&[]);
    market.shop.say(&order, &json!({ "forecast": "Sunny", "unknown": [null] }));
    ends_with(call, "Sunny");
}

fn missing_descriptions_and_schemas_are_tolerated() {
    let mut market = Market::closed();
    market.shop.tools = json!([
        { "tool_name": "bare" },
        { "tool_name": "nulls", "description": null, "input_schema": null, "output_schema": null },
        { "tool_name": "empty", "description": "", "input_schema": {}, "output_schema": {} }
    ]);
    let content = json!({ "mcp_version": "0.1", "name": "weather", "tools": market.shop.tools });
    market.shop.publish(&market.shop.manifest("").with_content(&content.to_string()));
    assert_eq!(names(&market.shown()), ["bare", "nulls", "empty"]);
    assert_eq!(found(&market, &["--no-check"])[0]["tools"].as_array().map(Vec::len), Some(3));
    for tool in ["bare", "nulls", "empty"] {
        let call = market.call(tool, &["city=Venice", "days:=3"]);
        let order = market.shop.order();
        assert_eq!(order.body(), json!({ "tool_name": tool, "arguments": { "city": "Venice", "days": 3 } }));
        // No schema: anything goes.
        market.shop.say(&order, &json!({ "anything": { "at": "all" } }));
        ends_with(call, "all");
    }
    let mut host = market.host(&[]);
    host.begin();
    let tools = host.ask("tools/list", &json!({}));
    for tool in tools["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "MCP wants one: {tool}");
    }
}

fn a_service_seen_in_both_ways_is_found_once() {
    let market = Market::new(SEALED);
    market.shop.publish(&market.shop.announcement(true));
    let all = found(&market, &["--no-check"]);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(all[0]["tools"].as_array().map(Vec::len), Some(2));
    let npub = market.shop.npub();
    let mut shop = market.shop;
    let (relay, world) = (market.relay, market.world);
    let url = relay.url();
    let serving = std::thread::spawn(move || shop.order_within(std::time::Duration::from_secs(5)));
    let shown = output(world.rialto("customer", &["show", &npub, "--json", "--relay", &url]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(names(&shown), ["forecast", "say"], "each tool once");
    drop(serving);
}

fn what_is_no_manifest_is_passed_over() {
    let market = Market::new("");
    let contents = [
        "",
        "hello",
        "[]",
        "{}",
        "null",
        r#"{"name":"x","tools":[]}"#,
        r#"{"mcp_version":"0.1","name":"x"}"#,
        r#"{"mcp_version":"0.1","tools":[{"tool_name":"a"}]}"#,
        r#"{"mcp_version":"0.1","name":7,"tools":[{"tool_name":"a"}]}"#,
        r#"{"mcp_version":"0.1","name":"x","tools":{}}"#,
        r#"{"title":"A recipe","ingredients":["salt"]}"#,
        r#"{"mcp_version":"0.1","name":"x","tools":["#,
    ];
    for content in contents {
        for d in ["", "x"] {
            let draft = Draft::new(30200, content);
            let draft = if d.is_empty() { draft } else { draft.tag(&["d", d]).tag(&["t", "recipe"]) };
            market.relay.publish(&draft.sign(&Keys::generate()));
        }
    }
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    market.relay.publish(&Draft::new(30200, deep).tag(&["d", "deep"]).sign(&Keys::generate()));
    let mut forged = market.shop.manifest("").sign(&market.shop.keys);
    forged.content = forged.content.replace("Forecasts", "Lies");
    market.relay.publish(&forged);
    let all = found(&market, &["--no-check", "--limit", "100"]);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(all[0]["about"], "Forecasts");
    // Nobody can be called by what is no manifest.
    let stranger = Keys::generate();
    market.relay.publish(&Draft::new(30200, "{}").tag(&["d", "x"]).sign(&stranger));
    let npub = stranger.public_key().to_bech32().unwrap();
    fails(market.run(&["call", &npub, "forecast", "city=Venice", "--wire", "manifest", "--timeout-secs", "3"]));
    assert!(!market.relay.published().iter().any(|event| [4, 1059].contains(&event.kind)));
}

fn a_withdrawn_manifest_is_not_found() {
    let market = Market::new("");
    assert_eq!(found(&market, &["--no-check"]).len(), 1);
    // A relay that knows no deletions still serves it, beside its withdrawal.
    let manifest = market.relay.stored().remove(0);
    let address = format!("30200:{}:weather", market.shop.pubkey());
    let withdrawal =
        Draft::new(5, "").tag(&["e", &manifest.id]).tag(&["a", &address]).tag(&["k", "30200"]).at(now() + 1);
    market.relay.forget();
    market.shop.publish(&withdrawal);
    assert!(found(&market, &["--no-check"]).is_empty());
}

fn of_two_manifests_the_later_one_counts() {
    let mut market = Market::new("");
    market.shop.tools.as_array_mut().unwrap().pop();
    for offset in [-600, 5] {
        let content = json!({
            "mcp_version": "0.1", "name": "weather", "description": format!("at {offset}"), "tools": market.shop.tools
        });
        market.shop.publish(&market.shop.manifest("").with_content(&content.to_string()).at(now() + offset));
    }
    let all = found(&market, &["--no-check"]);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(all[0]["about"], "at 5");
    assert_eq!(names(&market.shown()), ["forecast"]);
}

fn further_manifests_of_a_service_are_read_too() {
    let mut market = Market::new(SEALED);
    let more = |number: usize| {
        let tool = json!({ "tool_name": format!("more_{number}"), "description": "More", "input_schema": { "type": "object" } });
        json!({ "mcp_version": "0.1", "name": "weather", "description": "Forecasts", "tools": [tool] }).to_string()
    };
    for number in 2..=4 {
        let draft = market.shop.manifest(SEALED).without("d").tag(&["d", &format!("weather#{number}")]);
        market.shop.publish(&draft.with_content(&more(number)));
    }
    let all = found(&market, &["--no-check"]);
    assert_eq!(all.len(), 1, "one service: {all:#?}");
    assert_eq!(names(&market.shown()), ["forecast", "say", "more_2", "more_3", "more_4"]);
    let call = market.call("more_4", &[]);
    let order = market.shop.order();
    assert_eq!(order.body()["tool_name"], "more_4");
    market.shop.say(&order, &json!({ "anything": "goes" }));
    ends_with(call, "goes");
}

fn two_services_of_one_key_stay_apart() {
    let market = Market::new("");
    let tool = json!({ "tool_name": "tide", "description": "High or low" });
    let content = json!({ "mcp_version": "0.1", "name": "sea", "description": "Tides", "tools": [tool] });
    let draft = market.shop.manifest("").without("d").tag(&["d", "sea"]);
    market.shop.publish(&draft.with_content(&content.to_string()));
    let all = found(&market, &["--no-check"]);
    for word in ["sea", "weather", "tide", "forecast"] {
        assert!(Value::from(all.clone()).to_string().contains(word), "{word}: {all:#?}");
    }
    let mut shop = market.shop;
    let url = market.relay.url();
    for (service, tool, argument, body) in [
        ("sea", "tide", "a=b", json!({ "forecast": "high" })),
        ("weather", "forecast", "city=Venice", json!({ "forecast": "high" })),
    ] {
        let call = market.world.rialto("customer", &["call", service, tool, argument, "--relay", &url]);
        let order = shop.order();
        assert_eq!(order.body()["tool_name"], tool);
        shop.say(&order, &body);
        ends_with(call, "high");
    }
}

fn words_of_a_stranger_cannot_command_the_terminal() {
    let mut market = Market::closed();
    let nasty = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}gnihton\u{200b}\u{9b}31m\r\n    fake line";
    market.shop.tools[0]["description"] = json!(nasty);
    market.shop.tools[1]["tool_name"] = json!(format!("say{nasty}"));
    let content = json!({
        "mcp_version": nasty, "name": format!("weather{nasty}"), "description": nasty, "tools": market.shop.tools
    });
    market.shop.publish(&market.shop.manifest("").with_content(&content.to_string()));
    let npub = market.shop.npub();
    for arguments in [&["find", "--no-check"][..], &["show", &npub]] {
        let mut process = market.run(arguments);
        process.end();
        let told = process.told();
        assert!(told.contains("forecast"), "{told}");
        let bad = ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\u{200b}', '\r'];
        let bad: Vec<char> = bad.into_iter().filter(|&bad| told.contains(bad)).collect();
        assert!(bad.is_empty(), "{bad:?} in {told:?}");
    }
    let (call, order) = market.ask(&[]);
    let words = format!("the tool says {nasty}");
    market.shop.say(&order, &json!({ "error": { "code": nasty, "message": words } }));
    let (_, told) = fails(call);
    assert!(told.contains("the tool says") && !told.contains('\u{1b}') && !told.contains('\u{202e}'), "{told:?}");
    // A host gets names that it can take.
    let mut host: Host = market.host(&[]);
    host.begin();
    for tool in host.ask("tools/list", &json!({}))["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 128 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)), "{name:?}");
    }
    assert!(!remarks(&market.shown()).contains(&hex_key(&Keys::generate())));
}
