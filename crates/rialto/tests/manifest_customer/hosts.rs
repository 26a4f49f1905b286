//! An MCP host that uses a service with a manifest, through `rialto use`.

use serde_json::{Value, json};

use crate::market::{Market, SEALED};
use torture::nostr_side::event::now;
use torture::nostr_side::host::Host;
use torture::nostr_side::shop::{Order, Route, Shop};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_host_sees_the_tools_as_mcp_has_them),
    case!(structured_output_fits_the_schema_that_was_listed),
    case!(content_stays_content),
    case!(fifty_calls_at_once_get_their_own_answers),
    case!(a_host_is_told_when_the_manifest_changes),
    case!(arguments_that_do_not_fit_are_refused_before_they_are_sent),
    case!(a_call_that_is_cancelled_holds_up_nobody),
    case!(a_host_with_two_services_calls_each_in_its_way),
    case!(our_own_provider_and_our_own_customer_understand_each_other),
];

fn begin(encryption: &str) -> (Host, Shop, Market) {
    let market = Market::new(encryption);
    let mut host = market.host(&[]);
    host.begin();
    let other = Market::closed();
    let Market { shop, relay, world } = market;
    (host, shop, Market { shop: other.shop, relay, world })
}

fn a_host_sees_the_tools_as_mcp_has_them() {
    let (mut host, _shop, _market) = begin(SEALED);
    let list = host.ask("tools/list", &json!({}));
    let tools = list["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 2, "{list}");
    assert_eq!((&tools[0]["name"], &tools[1]["name"]), (&json!("forecast"), &json!("say")));
    assert_eq!(tools[0]["description"], "The weather in a city.");
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["city"]));
    assert_eq!(tools[0]["outputSchema"]["properties"]["forecast"], json!({ "type": "string" }));
    for tool in tools {
        for member in ["tool_name", "input_schema", "output_schema"] {
            assert!(tool.get(member).is_none(), "{tool}");
        }
    }
    host.process.close_input();
    assert!(host.process.end().success(), "{}", host.process.told());
}

fn structured_output_fits_the_schema_that_was_listed() {
    for encryption in ["", SEALED] {
        let (mut host, mut shop, _market) = begin(encryption);
        host.ask("tools/list", &json!({}));
        let id = host.call("forecast", &json!({ "city": "Venice" }));
        let order = shop.order();
        let body = json!({ "forecast": "Zürich \u{1f324}", "exact": 9_007_199_254_740_993_u64, "more": [null] });
        shop.say(&order, &body);
        let result = host.answer(id)["result"].clone();
        assert_eq!(result["structuredContent"], body);
        assert!(result["isError"] != true, "{result}");
        // For hosts that know only content, the same as text.
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"));
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), body, "{result}");
    }
}

fn content_stays_content() {
    let (mut host, mut shop, _market) = begin("");
    let list = host.ask("tools/list", &json!({}));
    let say = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "say").unwrap().clone();
    let content = json!([
        { "type": "text", "text": "well" },
        { "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" }
    ]);
    let id = host.call("say", &json!({ "text": "hello" }));
    let order = shop.order();
    shop.say(&order, &json!({ "content": content }));
    let result = host.answer(id)["result"].clone();
    assert_eq!(result["content"], content);
    // Who lists an output schema has to give structured output.
    let structured = result.get("structuredContent").is_some();
    assert_eq!(say.get("outputSchema").is_some(), structured, "{say} {result}");
}

fn fifty_calls_at_once_get_their_own_answers() {
    for encryption in ["", SEALED] {
        let (mut host, mut shop, _market) = begin(encryption);
        host.ask("tools/list", &json!({}));
        let ids: Vec<(u64, String)> = (0..50)
            .map(|number| {
                let city = format!("city {number}");
                (host.call("forecast", &json!({ "city": city })), city)
            })
            .collect();
        // The first answer shows that this provider says what it answers; the others need not wait for each other.
        let reply = |shop: &Shop, order: &Order| {
            let city = order.body()["arguments"]["city"].as_str().unwrap().to_owned();
            shop.say(order, &json!({ "forecast": format!("Sunny in {city}") }));
        };
        let first = shop.order();
        reply(&shop, &first);
        let mut orders: Vec<Order> = (0..49).map(|_| shop.order()).collect();
        orders.reverse();
        orders.iter().for_each(|order| reply(&shop, order));
        for (id, city) in ids {
            let answer = host.answer(id);
            assert_eq!(answer["result"]["structuredContent"]["forecast"], format!("Sunny in {city}"), "{answer}");
        }
    }
}

fn a_host_is_told_when_the_manifest_changes() {
    let (mut host, mut shop, _market) = begin(SEALED);
    assert_eq!(host.ask("tools/list", &json!({}))["tools"].as_array().map(Vec::len), Some(2));
    let tool = json!({ "tool_name": "shout", "description": "Loud", "input_schema": { "type": "object" } });
    shop.tools.as_array_mut().unwrap().push(tool);
    shop.publish(&shop.manifest(SEALED).at(now() + 2));
    host.wait("news", |message| message["method"] == "notifications/tools/list_changed");
    let tools = host.ask("tools/list", &json!({}));
    assert!(tools.to_string().contains("shout"), "{tools:#}");
    let id = host.call("shout", &json!({}));
    let order = shop.order();
    assert_eq!((order.route, &order.body()["tool_name"]), (Route::SealedMessage, &json!("shout")));
    shop.say(&order, &json!({ "a": "WELL" }));
    assert!(host.answer(id)["result"].to_string().contains("WELL"));
}

fn arguments_that_do_not_fit_are_refused_before_they_are_sent() {
    let (mut host, _shop, market) = begin("");
    host.ask("tools/list", &json!({}));
    for arguments in [json!({}), json!({ "city": 7 }), json!({ "city": "Venice", "days": "five" })] {
        let id = host.call("forecast", &arguments);
        let answer = host.answer(id);
        assert!(answer.get("error").is_some() || answer["result"]["isError"] == true, "{arguments}: {answer}");
    }
    assert!(!market.relay.published().iter().any(|event| [4, 1059].contains(&event.kind)));
}

fn a_call_that_is_cancelled_holds_up_nobody() {
    for encryption in ["", SEALED] {
        let (mut host, mut shop, _market) = begin(encryption);
        host.ask("tools/list", &json!({}));
        let first = host.call("forecast", &json!({ "city": "Rome" }));
        let order = shop.order();
        shop.say(&order, &json!({ "forecast": "of Rome" }));
        assert_eq!(host.answer(first)["result"]["structuredContent"]["forecast"], "of Rome");
        let given_up = host.call("forecast", &json!({ "city": "Venice" }));
        let late = shop.order();
        host.notify("notifications/cancelled", &json!({ "requestId": given_up, "reason": "enough" }));
        // This provider says what it answers, so nothing can be confused.
        let next = host.call("forecast", &json!({ "city": "Paris" }));
        let order = shop.order();
        assert_eq!(order.body()["arguments"]["city"], "Paris");
        shop.say(&late, &json!({ "forecast": "of Venice" }));
        shop.say(&order, &json!({ "forecast": "of Paris" }));
        assert_eq!(host.answer(next)["result"]["structuredContent"]["forecast"], "of Paris");
    }
}

fn a_host_with_two_services_calls_each_in_its_way() {
    let market = Market::new("");
    let mut other = Shop::closed(&market.relay);
    other.publish(&other.announcement(true));
    let (one, two, url) = (market.shop.npub(), other.npub(), market.relay.url());
    let mut host = Host::start_silent(&market.world, &[&one, &two, "--relay", &url]);
    let serving = std::thread::spawn(move || {
        let order = other.order();
        (other, order)
    });
    host.begin();
    let tools = host.ask("tools/list", &json!({}));
    let names: Vec<String> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .filter(|name| name.contains("say"))
        .collect();
    assert_eq!(names.len(), 2, "{tools}");
    assert_ne!(names[0], names[1], "two tools of the same name must be told apart");
    let ids: Vec<u64> = names.iter().map(|name| host.call(name, &json!({ "text": name }))).collect();
    let mut shop = market.shop;
    let message = shop.order();
    let (other, sealed) = serving.join().unwrap();
    assert_eq!((message.route, sealed.route), (Route::Message, Route::SealedDvmcp));
    for (shop, order) in [(&shop, &message), (&other, &sealed)] {
        let body = order.body();
        let arguments = body.get("arguments").or(body.get("parameters")).unwrap();
        shop.say(order, &json!({ "content": [{ "type": "text", "text": arguments["text"] }], "isError": false }));
    }
    for (id, name) in ids.iter().zip(&names) {
        assert_eq!(host.answer(*id)["result"]["content"][0]["text"], *name);
    }
}

fn our_own_provider_and_our_own_customer_understand_each_other() {
    let market = Market::closed();
    let provider = market.world.serve_actor(&[&market.relay.url()], &["--name", "home"], &["weather"]);
    let (npub, url) = (provider.ready["npub"].as_str().unwrap(), market.relay.url());
    market.relay.wait_for_event("a manifest", |event| event.kind == 30200);
    for flags in [&["--wire", "manifest"][..], &["--wire", "manifest", "--plain"], &[]] {
        let fixed = [npub, "--relay", &url, "--prefix", "never"];
        let mut host = Host::start(&market.world, &[&fixed[..], flags].concat());
        let tools = host.ask("tools/list", &json!({}));
        assert!(tools.to_string().contains("get_forecast"), "{tools}");
        let result = host.ask("tools/call", &json!({ "name": "get_forecast", "arguments": { "city": "Venice" } }));
        assert_eq!(result["structuredContent"], json!({ "forecast": "Sunny in Venice for 1 days" }), "{flags:?}");
        let result = host.ask("tools/call", &json!({ "name": "note", "arguments": { "text": "hello" } }));
        assert_eq!(result["content"][0]["text"], "hello", "{flags:?}");
        let id = host.call("sulk", &json!({}));
        assert_eq!(host.answer(id)["result"]["isError"], true, "{flags:?}");
    }
}
