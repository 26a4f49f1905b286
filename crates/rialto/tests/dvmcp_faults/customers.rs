//! The customer's side when relays and providers fail: a call ends, and ends well where it can.

use std::time::{Duration, Instant};

use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use serde_json::json;

use torture::nostr_side::event::hex_key;
use torture::nostr_side::fake_provider::FakeProvider;
use torture::nostr_side::fake_relay::{FakeRelay, Verdict};
use torture::nostr_side::host::Host;
use torture::nostr_side::process::Process;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_call_outlives_its_connection),
    case!(a_call_goes_through_the_relay_that_works),
    case!(a_call_that_no_relay_takes_ends_with_the_reason),
    case!(a_call_without_any_relay_ends),
    case!(a_call_learns_that_its_provider_was_killed),
    case!(a_host_goes_on_when_its_relay_and_its_provider_were_away),
    case!(an_exit_code_tells_what_went_wrong),
    case!(several_commands_at_once_in_a_new_home_make_one_key),
    case!(a_host_of_a_service_that_is_away_is_answered),
    case!(arguments_that_are_too_long_to_be_sealed_end_the_call_with_a_reason),
    case!(several_calls_at_once_of_one_customer_all_end_well),
    case!(a_call_goes_over_our_relay_with_authentication),
    case!(a_service_with_its_own_relay_is_called_by_its_profile_alone),
    case!(a_relay_that_delivers_everything_four_times_answers_once),
];

fn call(world: &World, npub: &str, relays: &[&FakeRelay], more: &[&str]) -> Process {
    let urls: Vec<String> = relays.iter().map(|relay| relay.url()).collect();
    let mut arguments = vec!["call", npub];
    arguments.extend_from_slice(more);
    urls.iter().for_each(|url| arguments.extend(["--relay", url.as_str()]));
    world.rialto("customer", &arguments)
}

#[track_caller]
fn ends_with(mut process: Process, text: &str) {
    let status = process.end();
    assert!(status.success(), "{status}\n{}", process.told());
    assert!(process.output().contains(text), "{}", process.told());
}

fn a_call_outlives_its_connection() {
    for plain in [&["say", "text=hello", "--plain"][..], &["say", "text=hello"]] {
        let (relay, world) = (FakeRelay::start(), World::new());
        let mut provider = FakeProvider::new(&relay);
        let running = call(&world, &provider.npub(), &[&relay], plain);
        let asked = provider.execute_request();
        // The answer is stored while the customer is not connected.
        relay.stop();
        provider.say(&asked, "well");
        relay.come_back();
        ends_with(running, "well");
    }
}

fn a_call_goes_through_the_relay_that_works() {
    let (good, dead, deaf) = (FakeRelay::start(), FakeRelay::start(), FakeRelay::start());
    dead.stop();
    deaf.rules(|rules| rules.deaf = true);
    let world = World::new();
    let mut provider = FakeProvider::new(&good);
    let begun = Instant::now();
    let running = call(&world, &provider.npub(), &[&dead, &deaf, &good], &["say", "text=hello"]);
    let asked = provider.execute_request();
    provider.say(&asked, "well");
    ends_with(running, "well");
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
}

fn a_call_that_no_relay_takes_ends_with_the_reason() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let provider = FakeProvider::new(&relay);
    relay.judge(|event, _| match event.kind {
        5910 | 1059 => Verdict::Refuse("blocked: not on this relay"),
        _ => Verdict::Accept,
    });
    let mut running = call(&world, &provider.npub(), &[&relay], &["say", "text=hello", "--timeout-secs", "20"]);
    assert!(!running.end().success(), "{}", running.told());
    assert!(running.told().contains("not on this relay"), "{}", running.told());
}

fn a_call_without_any_relay_ends() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let npub = Keys::generate().public_key().to_bech32().unwrap();
    relay.stop();
    let mut running = call(&world, &npub, &[&relay], &["say", "--timeout-secs", "5"]);
    let status = running.end_within(Duration::from_secs(30));
    assert_eq!(status.code(), Some(4), "{}", running.told());
}

fn a_call_learns_that_its_provider_was_killed() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = world.serve(&[&relay.url()], &[]);
    let npub = provider.ready["npub"].as_str().unwrap().to_owned();
    let mut running = call(&world, &npub, &[&relay], &["gate", "name=never", "tag=killed"]);
    world.wait_for_effect("gate killed");
    provider.process.kill();
    let _again = world.serve(&[&relay.url()], &[]);
    assert!(!running.end().success(), "{}", running.told());
    assert!(running.told().contains("outcome_unknown"), "{}", running.told());
    assert_eq!(world.times("gate killed"), 1);
}

fn a_host_goes_on_when_its_relay_and_its_provider_were_away() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = world.serve(&[&relay.url()], &[]);
    let (npub, url) = (provider.ready["npub"].as_str().unwrap().to_owned(), relay.url());
    let mut host = Host::start(&world, &[&npub, "--relay", &url, "--prefix", "never"]);
    host.ask("tools/list", &json!({}));
    let mut note = |text: &str| {
        let answer = host.ask("tools/call", &json!({ "name": "note", "arguments": { "text": text, "tag": text } }));
        assert_eq!(answer["content"][0]["text"], text, "{answer:#}");
    };
    note("first");
    relay.stop();
    relay.come_back();
    note("second");
    provider.process.stop();
    provider = world.serve(&[&relay.url()], &[]);
    note("third");
    for tag in ["first", "second", "third"] {
        assert_eq!(world.times(&format!("note {tag}")), 1);
    }
    assert_eq!(provider.ready["npub"], npub);
}

fn an_exit_code_tells_what_went_wrong() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let provider = world.serve(&[&relay.url()], &[]);
    let npub = provider.ready["npub"].as_str().unwrap();
    let private = world.serve_command(
        "private-provider",
        &[&relay.url()],
        &["--private", &hex_key(&Keys::generate())],
        &[torture::rialto(), "mcp", "example"],
    );
    let secret = private.ready["npub"].as_str().unwrap();
    let expectations: [(&str, &[&str], i32); 5] = [
        (npub, &["note", "text=hello"], 0),
        (npub, &["sulk"], 5),
        (npub, &["hang", "--timeout-secs", "1"], 7),
        (npub, &["crash"], 4),
        (secret, &["echo", "text=hello"], 3),
    ];
    for (service, arguments, code) in expectations {
        let mut running = call(&world, service, &[&relay], arguments);
        assert_eq!(running.end().code(), Some(code), "{arguments:?}: {}", running.told());
    }
}

fn several_commands_at_once_in_a_new_home_make_one_key() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let url = relay.url();
    // As an MCP host does that is started for the first time with several services in its configuration.
    let started: Vec<Process> =
        (0..6).map(|_| world.rialto("customer", &["find", "--no-check", "--relay", &url, "--json"])).collect();
    for mut process in started {
        assert!(process.end().success(), "{}", process.told());
    }
}

fn several_calls_at_once_of_one_customer_all_end_well() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let provider = world.serve(&[&relay.url()], &[]);
    let npub = provider.ready["npub"].as_str().unwrap();
    ends_with(call(&world, npub, &[&relay], &["note", "text=first"]), "first");
    let running: Vec<(String, Process)> = (0..8)
        .map(|number| {
            let text = format!("text=number {number}");
            (format!("number {number}"), call(&world, npub, &[&relay], &["note", &text]))
        })
        .collect();
    for (text, process) in running {
        ends_with(process, &text);
    }
    // What they all wrote down can still be read.
    ends_with(world.rialto("customer", &["pins", "--json"]), "note");
    ends_with(call(&world, npub, &[&relay], &["note", "text=last"]), "last");
}

fn a_host_of_a_service_that_is_away_is_answered() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let (npub, url) = (Keys::generate().public_key().to_bech32().unwrap(), relay.url());
    let begun = Instant::now();
    let mut host = Host::start(&world, &[&npub, "--relay", &url]);
    let list = host.request("tools/list", &json!({}));
    let answer = host.answer(list);
    assert!(answer["error"].is_object() || answer["result"]["tools"].as_array().is_some_and(Vec::is_empty), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
    host.process.close_input();
    host.process.end();
}

fn arguments_that_are_too_long_to_be_sealed_end_the_call_with_a_reason() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let provider = world.serve(&[&relay.url()], &[]);
    let npub = provider.ready["npub"].as_str().unwrap();
    for size in [20_000, 40_000, 100_000] {
        let arguments = json!({ "text": "x".repeat(size), "tag": "long" }).to_string();
        let mut running = call(&world, npub, &[&relay], &["sulk", "--args", &arguments, "--timeout-secs", "20"]);
        let status = running.end();
        // Served, or refused with words; but not left to time out.
        assert!([Some(5), Some(2)].contains(&status.code()), "{size}: {status}\n{}", running.told());
    }
}

fn a_call_goes_over_our_relay_with_authentication() {
    let world = World::new();
    let relay = world.rialto("relay", &["relay", "--listen", "127.0.0.1:0", "--require-auth", "--json"]);
    let url = relay.json_line("url")["url"].as_str().unwrap().to_owned();
    let provider = world.serve(&[&url], &[]);
    let npub = provider.ready["npub"].as_str().unwrap();
    for plain in [&["--plain"][..], &[]] {
        let fixed = ["call", npub, "note", "text=inside", "--relay", &url];
        ends_with(world.rialto("customer", &[&fixed[..], plain].concat()), "inside");
    }
}

fn a_service_with_its_own_relay_is_called_by_its_profile_alone() {
    let world = World::new();
    let provider = world.serve(&[], &["--listen", "127.0.0.1:0", "--name", "home"]);
    let profile = provider.ready["nprofile"].as_str().unwrap();
    // Where it is stands in the profile.
    ends_with(world.rialto("customer", &["call", profile, "note", "text=at home"]), "at home");
    assert_eq!(world.effects(), ["note"]);
}

fn a_relay_that_delivers_everything_four_times_answers_once() {
    let (relay, world) = (FakeRelay::start(), World::new());
    relay.rules(|rules| rules.copies = 4);
    let mut provider = FakeProvider::new(&relay);
    let running = call(&world, &provider.npub(), &[&relay], &["say", "text=hello", "--json"]);
    let asked = provider.execute_request();
    provider.send(&asked, &provider.feedback(&asked, &["processing"]));
    provider.say(&asked, "well");
    let mut running = running;
    assert!(running.end().success(), "{}", running.told());
    assert_eq!(running.output().matches("well").count(), 1, "{}", running.told());
}
