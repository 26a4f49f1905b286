//! A customer that knows a relay and nothing else: it reads the manifest, calls what it finds there, and makes every
//! mistake that can be made.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use torture::nostr_side::PATIENCE;
use torture::nostr_side::client::Client;
use torture::nostr_side::desk::{MANIFEST, tool_of};
use torture::nostr_side::event::Event;
use torture::nostr_side::log::{Log, until};
use torture::nostr_side::messenger::{BOTH, Messenger, Way};
use torture::nostr_side::process::Process;
use torture::nostr_side::weather;
use torture::nostr_side::world::{Provider, World};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_stranger_finds_understands_and_calls_a_tool),
    case!(structured_output_is_given_exactly),
    case!(missing_and_mistyped_arguments_are_named),
    case!(arguments_that_do_not_fit_a_strict_schema_are_pointed_at),
    case!(a_request_that_lacks_something_is_invalid_input),
    case!(tools_that_are_not_there_are_unknown),
    case!(a_tool_that_crashes_is_unavailable_and_comes_back),
    case!(a_tool_that_fails_says_so_with_its_content),
    case!(a_result_that_does_not_fit_the_output_schema_is_not_given_out),
    case!(a_tool_without_an_output_schema_answers_with_content),
    case!(a_slow_tool_is_waited_for_and_a_hanging_one_times_out),
    case!(other_members_of_a_request_are_ignored),
];

/// A market with the weather in it, on the relay that comes with the product.
struct Market {
    customer: Messenger,
    manifest: Event,
    _provider: Provider,
    _relay: Process,
    world: World,
}

impl Market {
    fn new(flags: &[&str]) -> Self {
        let world = World::new();
        let (relay, url) = world.relay();
        let flags = [&["--name", "weather_service", "--about", "Provides forecasts.", "--rate-per-key", "0"], flags];
        let provider = world.serve_actor(&[&url], &flags.concat(), &[weather::WEATHER]);
        // All that a stranger has is the relay.
        let found: Log<Event> = Log::default();
        let kept = found.clone();
        let client = Client::connect(&url, move |_, event| kept.push(event));
        until("a manifest is found", PATIENCE, || {
            client.subscribe("manifests", &[json!({ "kinds": [MANIFEST] })]);
            found.look(|all| !all.is_empty())
        });
        let manifest = found.look(|all| all[all.len() - 1].clone());
        let customer = Messenger::new(&url, &manifest.pubkey);
        Self { customer, manifest, _provider: provider, _relay: relay, world }
    }

    fn forecast(&self, way: Way, arguments: &Value) -> torture::nostr_side::messenger::Answer {
        self.customer.call(way, "get_forecast", arguments)
    }
}

fn a_stranger_finds_understands_and_calls_a_tool() {
    let market = Market::new(&[]);
    assert_eq!(market.manifest.problem(), None);
    let body = market.manifest.body();
    assert_eq!(body["mcp_version"], "0.1");
    assert_eq!((&body["name"], &body["description"]), (&json!("weather_service"), &json!("Provides forecasts.")));
    let tool = tool_of(&market.manifest, "get_forecast");
    assert_eq!(tool["description"], "Get the weather forecast for a specific city.");
    assert_eq!(tool["input_schema"], weather::input_schema());
    assert_eq!(tool["output_schema"], weather::output_schema());
    for way in BOTH {
        let answer = market.forecast(way, &json!({ "city": "San Francisco", "days": 5 }));
        assert_eq!(answer.body(), json!({ "forecast": "Sunny in San Francisco for 5 days" }));
        let answer = market.forecast(way, &json!({ "city": "Venice" }));
        assert_eq!(answer.body(), json!({ "forecast": "Sunny in Venice for 1 days" }), "{way:?}");
    }
    assert_eq!(market.world.times("get_forecast"), 4);
}

fn structured_output_is_given_exactly() {
    let market = Market::new(&[]);
    for way in BOTH {
        let expected = json!({
            "forecast": "Zürich “18 °C” \u{1f324}\n\\", "exact": 9_007_199_254_740_993_u64, "half": 18.5,
            "nothing": null, "deep": [[{ "a": {} }]], "more": true
        });
        assert_eq!(market.forecast(way, &json!({ "city": "Exactness" })).body(), expected);
    }
}

fn missing_and_mistyped_arguments_are_named() {
    let market = Market::new(&[]);
    for way in BOTH {
        let error = market.forecast(way, &json!({})).failure();
        assert_eq!(error["code"], "invalid_input");
        assert!(error["message"].as_str().unwrap().contains("city"), "{error}");
        assert!([json!("/city"), json!("")].contains(&error["pointer"]), "{error}");
        for (arguments, pointer) in [
            (json!({ "city": 7 }), "/city"),
            (json!({ "city": null }), "/city"),
            (json!({ "city": ["Venice"] }), "/city"),
            (json!({ "city": "Venice", "days": "five" }), "/days"),
        ] {
            let error = market.forecast(way, &arguments).failure();
            assert_eq!(error["code"], "invalid_input", "{arguments}");
            assert_eq!(error["pointer"], pointer, "{arguments}: {error}");
        }
    }
    assert!(market.world.effects().is_empty(), "{:?}", market.world.effects());
}

fn arguments_that_do_not_fit_a_strict_schema_are_pointed_at() {
    let market = Market::new(&[]);
    for (arguments, pointers) in [
        (json!({ "city": "Z" }), &["/city"][..]),
        (json!({ "city": "Zürich", "unit": "K" }), &["/unit"]),
        (json!({ "city": "Zürich", "days": 10 }), &["/days"]),
        (json!({ "city": "Zürich", "days": 1.5 }), &["/days"]),
        (json!({ "city": "Zürich", "code": "zh" }), &["/code"]),
        (json!({ "city": "Zürich", "at": { "lat": "north" } }), &["/at/lat"]),
        (json!({ "city": "Zürich", "extra": true }), &["", "/extra"]),
    ] {
        let error = market.customer.call(Way::Message, "strict", &arguments).failure();
        assert_eq!(error["code"], "invalid_input", "{arguments}");
        assert!(pointers.iter().any(|pointer| error["pointer"] == *pointer), "{arguments}: {error}");
    }
    assert!(market.world.effects().is_empty(), "{:?}", market.world.effects());
    let right = json!({ "city": "Zürich", "unit": "C", "days": 3, "code": "ZH", "at": { "lat": 47.4 } });
    assert_eq!(market.customer.call(Way::Message, "strict", &right).said(), "this is strict");
}

fn a_request_that_lacks_something_is_invalid_input() {
    let market = Market::new(&[]);
    let city = json!({ "city": "Venice" });
    for (body, word) in [
        (json!({ "arguments": city }), "tool_name"),
        (json!({ "tool_name": null, "arguments": city }), "tool_name"),
        (json!({ "tool_name": 7, "arguments": city }), "tool_name"),
        (json!({ "tool_name": ["get_forecast"], "arguments": city }), "tool_name"),
        // The words of others for the same.
        (json!({ "name": "get_forecast", "arguments": city }), "tool_name"),
        (json!({}), "tool_name"),
        (json!({ "tool_name": "get_forecast" }), "arguments"),
        (json!({ "tool_name": "get_forecast", "parameters": city }), "arguments"),
        (json!({ "tool_name": "get_forecast", "arguments": null }), "arguments"),
        (json!({ "tool_name": "get_forecast", "arguments": [city] }), "arguments"),
        (json!({ "tool_name": "get_forecast", "arguments": "Venice" }), "arguments"),
        (json!({ "tool_name": "get_forecast", "arguments": city.to_string() }), "arguments"),
        (json!({ "tool_name": "get_forecast", "arguments": 7 }), "arguments"),
        (json!({ "tool_name": "get_forecast", "arguments": true }), "arguments"),
    ] {
        for way in BOTH {
            let error = market.customer.ask(way, &body.to_string()).failure();
            assert_eq!(error["code"], "invalid_input", "{body}");
            assert!(error["message"].as_str().unwrap().contains(word), "{body}: {error}");
        }
    }
    assert!(market.world.effects().is_empty(), "{:?}", market.world.effects());
}

fn tools_that_are_not_there_are_unknown() {
    let market = Market::new(&["--hide-tool", "note"]);
    let names = ["no_such_tool", "", "Get_forecast", "get_forecast ", "get_forecast\n", "../get_forecast", "note"];
    for name in names {
        for way in BOTH {
            let answer = market.customer.call(way, name, &json!({ "city": "Venice" }));
            assert_eq!(answer.error(), "unknown_tool", "{name:?}");
        }
    }
    assert!(market.world.effects().is_empty(), "{:?}", market.world.effects());
}

fn a_tool_that_crashes_is_unavailable_and_comes_back() {
    let market = Market::new(&[]);
    for way in BOTH {
        let answer = market.forecast(way, &json!({ "city": "Crashville" }));
        assert_eq!(answer.error(), "upstream_unavailable");
        let answer = market.forecast(way, &json!({ "city": "Venice" }));
        assert_eq!(answer.body()["forecast"], "Sunny in Venice for 1 days");
    }
    assert_eq!(market.world.times("get_forecast"), 4, "a call that may have had its effect is not repeated");
}

fn a_tool_that_fails_says_so_with_its_content() {
    let market = Market::new(&[]);
    for way in BOTH {
        let error = market.forecast(way, &json!({ "city": "Errorton" })).failure();
        assert_eq!(error["code"], "tool_error");
        let content = json!([{ "type": "text", "text": "no station there" }, { "type": "text", "text": "sorry" }]);
        assert_eq!(error["content"], content, "{error}");
        assert!(error["message"].as_str().unwrap().contains("no station there"), "{error}");
        // What it has beside its error is no result.
        let error = market.forecast(way, &json!({ "city": "Errorton-on-Structure" })).failure();
        assert_eq!(error["code"], "tool_error");
        let error = market.customer.call(way, "sulk", &json!({})).failure();
        assert_eq!(error["code"], "tool_error");
        assert_eq!(error["content"][0]["text"], "I do not want to");
        let error = market.customer.call(way, "broken", &json!({})).failure();
        assert_eq!(error["code"], "tool_error");
        assert!(error["message"].as_str().unwrap().contains("something broke"), "{error}");
    }
}

fn a_result_that_does_not_fit_the_output_schema_is_not_given_out() {
    let market = Market::new(&[]);
    for way in BOTH {
        for (city, word) in [("Wrongham", "forecast"), ("Missingham", "forecast"), ("Bareford", ""), ("Listowel", "")] {
            let answer = market.forecast(way, &json!({ "city": city }));
            let error = answer.failure();
            assert_eq!(error["code"], "internal_error", "{city}: {error}");
            assert!(error["message"].as_str().unwrap().contains(word), "{city}: {error}");
        }
    }
    assert_eq!(market.world.times("get_forecast"), 8, "each was run once");
}

fn a_tool_without_an_output_schema_answers_with_content() {
    let market = Market::new(&[]);
    for way in BOTH {
        let answer = market.customer.call(way, "note", &json!({ "text": "hello" }));
        assert_eq!(answer.body()["content"], json!([{ "type": "text", "text": "hello" }]));
        let body = market.customer.call(way, "rich", &json!({})).body();
        assert_eq!(body["content"].as_array().map(Vec::len), Some(4), "{body}");
        assert_eq!(body["content"][1], json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" }));
    }
}

fn a_slow_tool_is_waited_for_and_a_hanging_one_times_out() {
    let market = Market::new(&["--timeout-secs", "2"]);
    for way in BOTH {
        let answer = market.forecast(way, &json!({ "city": "Slowick", "days": 700 }));
        assert_eq!(answer.body(), json!({ "forecast": "Slow" }));
        let begun = Instant::now();
        assert_eq!(market.customer.call(way, "hang", &json!({})).error(), "timeout");
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(6), "{took:?}");
        assert_eq!(market.customer.call(way, "note", &json!({ "text": "on" })).said(), "on");
    }
}

fn other_members_of_a_request_are_ignored() {
    let market = Market::new(&[]);
    for way in BOTH {
        let body = json!({
            "tool_name": "get_forecast", "arguments": { "city": "Venice" }, "mcp_version": "9", "id": 7,
            "jsonrpc": "2.0", "content": "x", "error": null, "timeout": "never", "name": "note"
        });
        assert_eq!(market.customer.ask(way, &body.to_string()).body()["forecast"], "Sunny in Venice for 1 days");
        // Arguments that no schema names are for the tool to judge.
        let answer = market.forecast(way, &json!({ "city": "Venice", "mood": { "a": [1] } }));
        assert_eq!(answer.body()["forecast"], "Sunny in Venice for 1 days");
    }
}
