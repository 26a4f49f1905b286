//! Providers that are not ours: those that keep to the letter of the specification, and those that send nonsense.

use std::time::{Duration, Instant};

use nostr::key::Keys;
use serde_json::{Value, json};

use torture::nostr_side::event::Draft;
use torture::nostr_side::fake_provider::{FakeProvider, text_result};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::host::Host;
use torture::nostr_side::process::Process;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(answers_with_no_more_tags_than_the_specification_wants_are_understood),
    case!(an_error_that_comes_as_feedback_alone_ends_a_call),
    case!(a_demand_for_payment_ends_a_call),
    case!(results_that_are_nonsense_end_a_call_with_words),
    case!(a_schema_that_is_a_bomb_does_not_go_off_at_the_customer),
    case!(announcements_that_are_nonsense_are_passed_over),
    case!(names_of_services_and_tools_fit_into_what_hosts_allow),
];

fn call(world: &World, provider: &FakeProvider, relay: &FakeRelay, flags: &[&str]) -> Process {
    let (npub, url) = (provider.npub(), relay.url());
    let fixed = ["call", &npub, "say", "text=hello", "--relay", &url, "--plain"];
    world.rialto("customer", &[&fixed[..], flags].concat())
}

fn answers_with_no_more_tags_than_the_specification_wants_are_understood() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = FakeProvider::new(&relay);
    provider.bare = true;
    // An announcement without anything that the specification does not ask for.
    relay.forget();
    let bare = provider.announcement().without("encryption").without("relays").sign(&provider.keys);
    relay.publish(&bare);
    let mut running = call(&world, &provider, &relay, &[]);
    let asked = provider.execute_request();
    let response = Draft::new(6910, text_result("well").to_string())
        .tag(&["c", "execute-tool-response"])
        .tag(&["e", &asked.event.id])
        .tag(&["status", "success"]);
    provider.send(&asked, &response);
    assert!(running.end().success(), "{}", running.told());
    assert!(running.output().contains("well"));
}

fn an_error_that_comes_as_feedback_alone_ends_a_call() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = FakeProvider::new(&relay);
    let begun = Instant::now();
    let mut running = call(&world, &provider, &relay, &[]);
    let asked = provider.execute_request();
    provider.send(&asked, &provider.feedback(&asked, &["error", "it is raining"]));
    assert!(!running.end().success(), "{}", running.told());
    assert!(running.told().contains("it is raining"), "{}", running.told());
    assert!(begun.elapsed() < Duration::from_secs(25), "it took {:?}", begun.elapsed());
}

fn a_demand_for_payment_ends_a_call() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = FakeProvider::new(&relay);
    let begun = Instant::now();
    let mut running = call(&world, &provider, &relay, &[]);
    let asked = provider.execute_request();
    let demand = provider.feedback(&asked, &["payment-required", "21 sat"]).tag(&["amount", "21", "lnbc210n1invalid"]);
    provider.send(&asked, &demand);
    assert_eq!(running.end().code(), Some(6), "{}", running.told());
    assert!(begun.elapsed() < Duration::from_secs(25), "it took {:?}", begun.elapsed());
}

fn results_that_are_nonsense_end_a_call_with_words() {
    let nonsense = ["", "no JSON", "[]", "7", "null", "\"text\"", "{", "{\"content\":7,\"content\":8}"];
    for body in nonsense {
        let (relay, world) = (FakeRelay::start(), World::new());
        let mut provider = FakeProvider::new(&relay);
        let mut running = call(&world, &provider, &relay, &["--timeout-secs", "20"]);
        let asked = provider.execute_request();
        provider.send(&asked, &provider.response(&asked, &Value::Null).with_content(body));
        let begun = Instant::now();
        let status = running.end();
        assert!(!status.success() && status.code().is_some(), "{body:?}: {status}\n{}", running.told());
        assert!(begun.elapsed() < Duration::from_secs(15), "{body:?}: it took {:?}", begun.elapsed());
        let told = running.told();
        assert!(told.contains("error") && !told.contains("panicked"), "{body:?}: {told}");
    }
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

fn a_schema_that_is_a_bomb_does_not_go_off_at_the_customer() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = FakeProvider::new(&relay);
    provider.tools[0]["inputSchema"] = bomb(40);
    relay.forget();
    relay.publish(&provider.announcement().sign(&provider.keys));
    let begun = Instant::now();
    let mut running = call(&world, &provider, &relay, &["--timeout-secs", "15"]);
    // It may be asked in spite of it, or refused; but soon.
    std::thread::spawn(move || {
        if let Some(asked) = provider.attend(|_| ()) {
            provider.say(&asked, "well");
        }
    });
    running.end();
    assert!(begun.elapsed() < Duration::from_secs(14), "it took {:?}", begun.elapsed());
    assert!(!running.told().contains("panicked"), "{}", running.told());
}

fn announcements_that_are_nonsense_are_passed_over() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let provider = FakeProvider::new(&relay);
    let contents = [
        "",
        "no JSON",
        "[]",
        "{}",
        r#"{"name":7,"tools":"none"}"#,
        r#"{"name":"x","tools":[7,null,{"name":7},{}]}"#,
        r#"{"name":"x","tools":[{"name":"a","name":"b"}]}"#,
    ];
    for content in contents {
        for tags in [&[][..], &["d"], &["d", "x", "y"]] {
            let mut draft = Draft::new(31990, content).tag(&["t", "mcp"]).tag(&["k", "5910"]).tag(&["capabilities"]);
            if !tags.is_empty() {
                draft = draft.tag(tags);
            }
            relay.publish(&draft.sign(&Keys::generate()));
        }
    }
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    relay.publish(&Draft::new(31990, deep).tag(&["t", "mcp"]).tag(&["d", "deep"]).sign(&Keys::generate()));
    let mut forged = provider.announcement().sign(&provider.keys);
    forged.content = forged.content.replace("sayer", "liar");
    relay.publish(&forged);
    let url = relay.url();
    let mut find = world.rialto("customer", &["find", "--no-check", "--limit", "100", "--relay", &url, "--json"]);
    assert!(find.end().success(), "{}", find.told());
    let found = find.output();
    assert!(found.contains("sayer") && !found.contains("liar"), "{found}");
}

fn names_of_services_and_tools_fit_into_what_hosts_allow() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = FakeProvider::new(&relay);
    for name in ["say it", "größe", "a/b", "say.it", &"long".repeat(40)] {
        let tool = json!({ "name": name, "description": "Odd", "inputSchema": { "type": "object" } });
        provider.tools.as_array_mut().unwrap().push(tool);
    }
    relay.forget();
    let content = json!({ "name": "Wetter Zürich!", "about": "", "tools": provider.tools });
    relay.publish(&provider.announcement().with_content(&content.to_string()).sign(&provider.keys));
    let (npub, url) = (provider.npub(), relay.url());
    let mut host = Host::start_silent(&world, &[&npub, "--relay", &url, "--prefix", "always"]);
    std::thread::spawn(move || provider.attend(|_| ()));
    host.begin();
    let tools = host.ask("tools/list", &json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(!names.is_empty(), "{tools:#}");
    for name in &names {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        assert!(name.len() <= 128 && name.chars().all(fits), "{name:?} of {names:?}");
    }
}
