//! The other side of the wire: what `rialto call` and `rialto use` send, seen by a provider that the test plays.

use nostr::nips::nip19::ToBech32 as _;
use serde_json::{Value, json};

use torture::nostr_side::event::{Draft, hash, hex_key, now};
use torture::nostr_side::fake_provider::{Asked, FakeProvider, text_result};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::host::Host;
use torture::nostr_side::process::Process;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_sends_the_request_of_the_specification),
    case!(complete_definitions_are_fetched_before_the_first_call),
    case!(arguments_of_a_call_have_the_types_of_the_schema),
    case!(a_call_that_fails_says_why_and_ends_with_an_error),
    case!(a_call_that_is_never_answered_ends),
    case!(a_result_in_parts_is_put_together),
    case!(a_service_is_found_and_called_by_its_name),
    case!(a_service_without_an_announcement_is_found_by_asking_everybody),
    case!(a_service_is_found_through_its_answer_to_somebody_else),
    case!(a_host_sees_the_tools_and_calls_them),
    case!(a_host_that_cancels_cancels_at_the_provider),
    case!(a_host_gets_the_progress_of_the_provider),
    case!(a_host_is_told_when_the_tools_of_the_provider_change),
    case!(a_host_with_two_services_calls_the_right_one),
];

struct Stage {
    provider: FakeProvider,
    relay: FakeRelay,
    world: World,
}

impl Stage {
    fn new() -> Self {
        let relay = FakeRelay::start();
        Self { provider: FakeProvider::new(&relay), relay, world: World::new() }
    }

    fn call(&self, rest: &[&str]) -> Process {
        let (npub, url) = (self.provider.npub(), self.relay.url());
        self.world.rialto("customer", &[&["call", &npub, "say"], rest, &["--relay", &url, "--json"]].concat())
    }

    fn host(&self, flags: &[&str]) -> Host {
        let (npub, url) = (self.provider.npub(), self.relay.url());
        Host::start_silent(&self.world, &[&[npub.as_str(), "--relay", &url][..], flags].concat())
    }
}

#[track_caller]
fn output(mut process: Process) -> String {
    let status = process.end();
    assert!(status.success(), "{status}\n{}", process.told());
    process.output()
}

fn a_call_sends_the_request_of_the_specification() {
    let mut stage = Stage::new();
    let call = stage.call(&["text=hello", "--plain", "--timeout-secs", "20"]);
    let Asked { event, sealed } = stage.provider.execute_request();
    assert!(!sealed);
    assert_eq!((event.kind, event.problem()), (5910, None));
    assert_eq!(event.tag("c"), "execute-tool");
    assert_eq!(event.tags("p"), [[hex_key(&stage.provider.keys)]]);
    assert_eq!(event.tag("output"), "application/json");
    assert!((now() - event.created_at).abs() < 30);
    let body = event.body();
    assert_eq!((&body["name"], &body["parameters"]), (&json!("say"), &json!({ "text": "hello" })));
    assert!(
        body.get("timeout").is_none_or(|timeout| timeout.as_u64().is_some_and(|ms| ms > 0 && ms <= 20_000)),
        "{body}"
    );
    stage.provider.say(&Asked { event, sealed }, "well");
    assert!(output(call).contains("well"));
}

fn complete_definitions_are_fetched_before_the_first_call() {
    let mut stage = Stage::new();
    let call = stage.call(&["text=hello", "--plain"]);
    let asked = stage.provider.execute_request();
    let me = hex_key(&stage.provider.keys);
    let commands: Vec<String> = stage
        .relay
        .published()
        .into_iter()
        .filter(|event| event.kind == 5910 && event.has_tag("p", &me))
        .map(|event| event.tag("c").to_owned())
        .collect();
    assert_eq!(commands.first().map(String::as_str), Some("list-tools"), "{commands:?}");
    stage.provider.say(&asked, "well");
    output(call);
}

fn arguments_of_a_call_have_the_types_of_the_schema() {
    let mut stage = Stage::new();
    stage.provider.tools[0]["inputSchema"]["properties"] = json!({
        "text": { "type": "string" }, "count": { "type": "integer" }, "loud": { "type": "boolean" },
        "list": { "type": "array", "items": { "type": "string" } }
    });
    stage.relay.forget();
    stage.relay.publish(&stage.provider.announcement().sign(&stage.provider.keys));
    let call = stage.call(&["text=7", "count=7", "loud=true", r#"list=["a"]"#, "--plain"]);
    let asked = stage.provider.execute_request();
    let expected = json!({ "text": "7", "count": 7, "loud": true, "list": ["a"] });
    assert_eq!(asked.event.body()["parameters"], expected);
    stage.provider.say(&asked, "well");
    output(call);
}

fn a_call_that_fails_says_why_and_ends_with_an_error() {
    let mut stage = Stage::new();
    let mut call = stage.call(&["text=hello"]);
    let asked = stage.provider.execute_request();
    let body = json!({
        "content": [{ "type": "text", "text": "it is raining" }], "isError": true,
        "metadata": { "error": { "code": "tool_error", "message": "it is raining" } }
    });
    stage.provider.send(&asked, &stage.provider.feedback(&asked, &["error", "tool_error: it is raining"]));
    stage.provider.send(&asked, &stage.provider.response(&asked, &body));
    assert!(!call.end().success(), "{}", call.told());
    call.output();
    assert!(call.told().contains("it is raining"), "{}", call.told());
}

fn a_call_that_is_never_answered_ends() {
    let mut stage = Stage::new();
    let begun = std::time::Instant::now();
    let mut call = stage.call(&["text=hello", "--timeout-secs", "1"]);
    let asked = stage.provider.execute_request();
    // That it is being worked on does not make it last for ever.
    stage.provider.send(&asked, &stage.provider.feedback(&asked, &["processing"]));
    assert!(!call.end().success(), "{}", call.told());
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "it took {:?}", begun.elapsed());
}

fn a_result_in_parts_is_put_together() {
    for plain in [true, false] {
        let mut stage = Stage::new();
        let call = stage.call(if plain { &["text=hello", "--plain"] } else { &["text=hello"] });
        let asked = stage.provider.execute_request();
        assert_eq!(asked.event.body()["metadata"]["parts"], true, "{:?}", asked.event);
        let text = text_result("first and last").to_string();
        let digest = hash(&text);
        let pieces = [&text[..10], &text[10..30], &text[30..]];
        // Out of order, and one of them twice.
        for number in [2, 0, 2, 1] {
            let place = (number + 1).to_string();
            let template = stage.provider.response(&asked, &Value::Null).tag(&["part", &place, "3", &digest]);
            let draft = template.with_content(pieces[number]);
            stage.provider.send(&asked, &draft);
        }
        assert!(output(call).contains("first and last"));
    }
}

fn a_service_is_found_and_called_by_its_name() {
    let mut stage = Stage::new();
    let url = stage.relay.url();
    let found = output(stage.world.rialto("customer", &["find", "--relay", &url, "--json"]));
    assert!(found.contains("sayer") && found.contains("say"), "{found}");
    let none = output(stage.world.rialto("customer", &["find", "zebra", "--relay", &url, "--json"]));
    assert!(!none.contains("sayer"), "{none}");
    let call = stage.world.rialto("customer", &["call", "sayer", "say", "text=hello", "--relay", &url]);
    let asked = stage.provider.execute_request();
    stage.provider.say(&asked, "well");
    assert!(output(call).contains("well"));
    let coordinate = format!("31990:{}:sayer", hex_key(&stage.provider.keys));
    let address = nostr::nips::nip01::Coordinate::parse(&coordinate).unwrap().to_bech32().unwrap();
    let call = stage.world.rialto("customer", &["call", &address, "say", "text=hello", "--relay", &url]);
    let asked = stage.provider.execute_request();
    stage.provider.say(&asked, "again");
    assert!(output(call).contains("again"));
}

fn a_service_without_an_announcement_is_found_by_asking_everybody() {
    let stage = Stage::new();
    stage.relay.forget();
    let (npub, hex) = (stage.provider.npub(), hex_key(&stage.provider.keys));
    let url = stage.relay.url();
    let finding = stage.world.rialto("customer", &["find", "--relay", &url, "--json"]);
    let mut provider = stage.provider;
    std::thread::spawn(move || provider.attend(|_| ()));
    let found = output(finding);
    assert!(found.contains(&npub) || found.contains(&hex), "{found}");
}

fn a_service_is_found_through_its_answer_to_somebody_else() {
    let stage = Stage::new();
    // It has no announcement, but somebody asked openly before.
    stage.relay.forget();
    let request = Draft::new(5910, "").tag(&["c", "list-tools"]).sign(&nostr::key::Keys::generate());
    let body = json!({ "tools": stage.provider.tools });
    let response = Draft::new(6910, body.to_string())
        .tag(&["c", "list-tools-response"])
        .tag(&["e", &request.id])
        .tag(&["p", &request.pubkey])
        .sign(&stage.provider.keys);
    stage.relay.publish(&request);
    stage.relay.publish(&response);
    let url = stage.relay.url();
    let found = output(stage.world.rialto("customer", &["find", "--no-check", "--relay", &url, "--json"]));
    let (npub, hex) = (stage.provider.npub(), hex_key(&stage.provider.keys));
    assert!(found.contains(&npub) || found.contains(&hex), "{found}");
}

/// Answers lists for a host until it asks for something else.
fn in_background(mut provider: FakeProvider) -> std::thread::JoinHandle<(FakeProvider, Asked)> {
    std::thread::spawn(move || {
        let asked = provider.execute_request();
        (provider, asked)
    })
}

fn a_host_sees_the_tools_and_calls_them() {
    let stage = Stage::new();
    let mut host = stage.host(&["--prefix", "never"]);
    let waiting = in_background(stage.provider);
    host.begin();
    let tools = host.ask("tools/list", &json!({}));
    assert_eq!(tools["tools"][0]["name"], "say");
    assert_eq!(tools["tools"][0]["inputSchema"]["properties"]["text"]["type"], "string");
    let id = host.call("say", &json!({ "text": "hello" }));
    let (provider, asked) = waiting.join().unwrap();
    assert!(asked.sealed, "sealed unless told otherwise");
    assert_eq!(asked.event.body()["parameters"], json!({ "text": "hello" }));
    provider.say(&asked, "well");
    assert_eq!(host.answer(id)["result"]["content"][0]["text"], "well");
    host.process.close_input();
    assert!(host.process.end().success(), "{}", host.process.told());
}

fn a_host_that_cancels_cancels_at_the_provider() {
    let stage = Stage::new();
    let mut host = stage.host(&["--prefix", "never", "--plain"]);
    let waiting = in_background(stage.provider);
    host.begin();
    host.ask("tools/list", &json!({}));
    let id = host.call("say", &json!({}));
    let (mut provider, asked) = waiting.join().unwrap();
    host.notify("notifications/cancelled", &json!({ "requestId": id, "reason": "enough" }));
    let cancel = provider.execute_request();
    assert_eq!(cancel.event.tag("c"), "cancel-execution");
    assert_eq!(cancel.event.tag("e"), asked.event.id);
    assert_eq!(cancel.event.pubkey, asked.event.pubkey, "or the provider would not believe it");
}

fn a_host_gets_the_progress_of_the_provider() {
    let stage = Stage::new();
    let mut host = stage.host(&["--prefix", "never"]);
    let waiting = in_background(stage.provider);
    host.begin();
    host.ask("tools/list", &json!({}));
    let params = json!({ "name": "say", "arguments": {}, "_meta": { "progressToken": "mine" } });
    let id = host.request("tools/call", &params);
    let (provider, asked) = waiting.join().unwrap();
    assert_eq!(asked.event.body()["metadata"]["progress"], true, "{:?}", asked.event);
    let report = json!({ "progress": 2, "total": 5, "message": "half way" }).to_string();
    provider.send(&asked, &provider.feedback(&asked, &["processing", "half way"]).with_content(&report));
    let progress = host.wait("progress", |message| message["method"] == "notifications/progress");
    let expected = json!({ "progressToken": "mine", "progress": 2, "total": 5, "message": "half way" });
    assert_eq!(progress["params"], expected);
    provider.say(&asked, "well");
    assert_eq!(host.answer(id)["result"]["content"][0]["text"], "well");
}

fn a_host_is_told_when_the_tools_of_the_provider_change() {
    let stage = Stage::new();
    let relay = stage.relay.clone();
    let mut host = stage.host(&["--prefix", "never"]);
    let mut provider = stage.provider;
    let (keys, before) = (provider.keys.clone(), provider.announcement());
    let more = json!({ "name": "shout", "description": "Says it loudly", "inputSchema": { "type": "object" } });
    provider.tools.as_array_mut().unwrap().push(more);
    let after = provider.announcement().tag(&["t", "shout"]).at(now() + 2).sign(&keys);
    provider.tools.as_array_mut().unwrap().pop();
    assert_ne!(before.sign(&keys).content, after.content);
    // Lists are answered from a list that grows with the announcement.
    let grown = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = grown.clone();
    let answering = std::thread::spawn(move || {
        provider.attend(|tools| {
            if flag.load(std::sync::atomic::Ordering::Acquire) && tools.as_array().map(Vec::len) == Some(1) {
                let more =
                    json!({ "name": "shout", "description": "Says it loudly", "inputSchema": { "type": "object" } });
                tools.as_array_mut().unwrap().push(more);
            }
        });
    });
    host.begin();
    assert_eq!(host.ask("tools/list", &json!({}))["tools"].as_array().map(Vec::len), Some(1));
    grown.store(true, std::sync::atomic::Ordering::Release);
    relay.publish(&after);
    host.wait("news", |message| message["method"] == "notifications/tools/list_changed");
    let tools = host.ask("tools/list", &json!({}));
    assert!(tools.to_string().contains("shout"), "{tools:#}");
    host.call("shout", &json!({}));
    answering.join().unwrap();
}

fn a_host_with_two_services_calls_the_right_one() {
    let stage = Stage::new();
    let other = FakeProvider::new(&stage.relay);
    let (one, two, url) = (stage.provider.npub(), other.npub(), stage.relay.url());
    let pubkeys = [hex_key(&stage.provider.keys), hex_key(&other.keys)];
    let mut host = Host::start_silent(&stage.world, &[&one, &two, "--relay", &url, "--plain"]);
    let waiting = [in_background(stage.provider), in_background(other)];
    host.begin();
    let tools = host.ask("tools/list", &json!({}));
    let names: Vec<String> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_ne!(names[0], names[1], "two tools of the same name must be told apart");
    let ids: Vec<u64> = names.iter().map(|name| host.call(name, &json!({ "text": name }))).collect();
    let mut called = Vec::new();
    for (waiting, pubkey) in waiting.into_iter().zip(&pubkeys) {
        let (provider, asked) = waiting.join().unwrap();
        assert_eq!(asked.event.tag("p"), *pubkey);
        let text = asked.event.body()["parameters"]["text"].as_str().unwrap().to_owned();
        provider.say(&asked, &format!("to {text}"));
        called.push(text);
    }
    for (id, name) in ids.iter().zip(&names) {
        assert_eq!(host.answer(*id)["result"]["content"][0]["text"], format!("to {name}"));
    }
    called.sort();
    called.dedup();
    assert_eq!(called.len(), 2);
}
