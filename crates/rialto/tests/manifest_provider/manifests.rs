//! Kind 30200, tag by tag and member by member: how a service is described, kept up to date and withdrawn.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use torture::nostr_side::PATIENCE;
use torture::nostr_side::client::Client;
use torture::nostr_side::desk::{Desk, MANIFEST, UNLIMITED, content_schema, tool_of};
use torture::nostr_side::event::Event;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::{Log, until};
use torture::nostr_side::messenger::{Messenger, Way};
use torture::nostr_side::weather;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_manifest_has_every_tag_and_member_of_the_contract),
    case!(tools_stand_in_the_manifest_as_the_server_gave_them),
    case!(a_service_without_words_still_has_a_description),
    case!(a_manifest_follows_the_tools_at_run_time),
    case!(a_relay_that_lost_the_manifest_gets_it_again),
    case!(a_manifest_is_published_once_at_the_start),
    case!(the_name_stays_over_a_restart_and_the_time_never_goes_back),
    case!(a_clean_stop_withdraws_every_addressable_event),
    case!(a_service_that_comes_back_is_described_after_its_withdrawal),
    case!(a_service_that_stays_is_not_withdrawn),
    case!(a_private_service_has_no_manifest),
    case!(hidden_tools_are_not_in_the_manifest),
    case!(definitions_that_do_not_fit_continue_in_further_manifests),
    case!(every_part_of_a_long_manifest_is_withdrawn),
    case!(parts_that_are_no_longer_needed_are_withdrawn),
    case!(parts_that_a_killed_provider_left_are_withdrawn),
    case!(manifests_of_tools_with_long_names_fit_into_events),
    case!(a_manifest_that_is_no_longer_spoken_is_withdrawn),
    case!(a_tool_that_is_too_long_is_left_out_but_can_be_called),
    case!(the_relays_for_sealed_messages_are_told),
    case!(our_own_relay_keeps_the_newest_manifest_until_it_is_withdrawn),
];

/// The newest manifest for each `d`.
fn newest(relay: &FakeRelay, author: &str) -> BTreeMap<String, Event> {
    let mut found: BTreeMap<String, Event> = BTreeMap::new();
    for event in relay.published().into_iter().filter(|event| event.kind == MANIFEST && event.pubkey == author) {
        let name = event.tag("d").to_owned();
        if found.get(&name).is_none_or(|old| old.created_at < event.created_at) {
            found.insert(name, event);
        }
    }
    found
}

fn names(manifest: &Event) -> Vec<String> {
    let name = |tool: &Value| tool["tool_name"].as_str().unwrap_or_else(|| panic!("no name: {tool}")).to_owned();
    manifest.body()["tools"].as_array().unwrap().iter().map(name).collect()
}

/// 48 KiB of definitions, and with tags and signature an event that every relay takes.
#[track_caller]
fn is_short(manifest: &Event) {
    let (content, event) = (json!(manifest.content).to_string().len(), manifest.json().len());
    assert!(content <= 48 * 1024 && event <= 64 * 1024, "{content} bytes of content, {event} in all");
}

/// Everything that the contract says of each manifest.
#[track_caller]
fn check(manifest: &Event, d: &str, name: &str, about: &str, relay: &str) {
    assert_eq!(manifest.problem(), None);
    is_short(manifest);
    let body = manifest.body();
    let members: Vec<&String> = body.as_object().unwrap().keys().collect();
    let members: BTreeSet<&str> = members.iter().map(|name| name.as_str()).collect();
    assert_eq!(members, BTreeSet::from(["description", "mcp_version", "name", "tools"]), "{d}");
    assert_eq!(body["mcp_version"], "0.1");
    assert_eq!((&body["name"], &body["description"]), (&json!(name), &json!(about)), "{d}");
    assert_eq!(manifest.tags("d"), [[d]]);
    let topics: Vec<&str> = manifest.tags("t").iter().map(|tag| tag[0].as_str()).collect();
    assert_eq!(topics.first(), Some(&"mcp"), "{d}");
    assert_eq!(topics[1..], names(manifest), "{d}: a topic for each tool");
    assert_eq!(manifest.tags("encryption"), [["nip04 nip59"]]);
    assert_eq!(manifest.tags("relays"), [[relay]]);
    let known = ["d", "t", "encryption", "relays"];
    let unknown: Vec<_> = manifest.tags.iter().filter(|tag| !known.contains(&tag[0].as_str())).collect();
    assert!(unknown.is_empty(), "{d}: {unknown:?}");
    for tool in body["tools"].as_array().unwrap() {
        for member in ["tool_name", "description"] {
            assert!(tool[member].is_string(), "{d}: {member} in {tool}");
        }
        for member in ["input_schema", "output_schema"] {
            assert!(tool[member].is_object(), "{d}: {member} in {tool}");
        }
        for member in ["name", "inputSchema", "outputSchema"] {
            assert!(tool.get(member).is_none(), "{d}: {member} in {tool}");
        }
    }
}

fn a_manifest_has_every_tag_and_member_of_the_contract() {
    let desk = Desk::new(&["--name", "weather", "--about", "Forecasts for everyone"]);
    let manifest = desk.manifest("a manifest", |_| true);
    check(&manifest, "weather", "weather", "Forecasts for everyone", &desk.relay.url());
    let ready: Vec<String> =
        desk.provider.ready["tools"].as_array().unwrap().iter().map(|t| t.as_str().unwrap().to_owned()).collect();
    assert_eq!(names(&manifest), ready, "every tool, in the same order");
}

fn tools_stand_in_the_manifest_as_the_server_gave_them() {
    let desk = Desk::new(&["--name", "weather"]);
    let manifest = desk.manifest("a manifest", |_| true);
    let expected = json!({
        "tool_name": "get_forecast",
        "title": "Forecast",
        "description": "Get the weather forecast for a specific city.",
        "input_schema": weather::input_schema(),
        "output_schema": weather::output_schema(),
        "annotations": { "readOnlyHint": true }
    });
    assert_eq!(tool_of(&manifest, "get_forecast"), expected);
    let strict = tool_of(&manifest, "strict");
    assert_eq!(strict["input_schema"]["properties"]["city"], json!({ "type": "string", "minLength": 2 }));
    assert_eq!(strict["input_schema"]["additionalProperties"], false);
    // One without an output schema answers with `content`, and its manifest says so.
    assert_eq!(tool_of(&manifest, "note")["output_schema"], content_schema());
}

fn a_service_without_words_still_has_a_description() {
    let desk = Desk::new(&["--name", "weather"]);
    let body = desk.manifest("a manifest", |_| true).body();
    assert!(body["description"].is_string(), "readers require one: {body}");
}

fn a_manifest_follows_the_tools_at_run_time() {
    let desk = Desk::new(&["--name", "weather"]);
    let first = desk.manifest("a manifest", |_| true);
    assert!(!first.has_tag("t", "sprout"));
    assert_eq!(desk.customer.call(Way::Message, "grow", &json!({ "name": "sprout" })).said(), "grown");
    let second = desk.manifest("the new tool", |event| event.has_tag("t", "sprout"));
    assert_eq!(second.tag("d"), first.tag("d"));
    assert!(second.created_at > first.created_at, "or relays may keep the old one");
    assert_eq!(tool_of(&second, "sprout")["description"], "Grown at run time");
    assert_eq!(desk.customer.call(Way::Sealed, "sprout", &json!({})).said(), "this is sprout");
}

fn a_relay_that_lost_the_manifest_gets_it_again() {
    let desk = Desk::new(&["--name", "weather"]);
    desk.manifest("a manifest", |_| true);
    desk.relay.forget();
    desk.relay.hang_up();
    let author = &desk.provider.pubkey;
    until("it is there again", PATIENCE, || {
        let stored = desk.relay.stored();
        let has = |kind: u32| stored.iter().any(|event| event.kind == kind && event.pubkey == *author);
        has(MANIFEST) && has(31990)
    });
}

fn a_manifest_is_published_once_at_the_start() {
    let desk = Desk::new(&["--name", "once"]);
    desk.customer.call(Way::Message, "nap", &json!({ "ms": 3000 }));
    for kind in [MANIFEST, 31990, 10002, 10050] {
        let count = desk.relay.published().iter().filter(|event| event.kind == kind).count();
        assert_eq!(count, 1, "of kind {kind}");
    }
}

fn the_name_stays_over_a_restart_and_the_time_never_goes_back() {
    let mut desk = Desk::new(&["--name", "weather", "--stay"]);
    let first = desk.manifest("a manifest", |_| true);
    desk.provider.process.stop();
    desk.relay.forget();
    let before = desk.relay.published().len();
    desk.kill_and_restart(&["--name", "weather", "--stay"]);
    until("it is announced again", PATIENCE, || {
        desk.relay.published().iter().skip(before).any(|event| event.kind == MANIFEST)
    });
    let second = desk.relay.published().into_iter().skip(before).find(|event| event.kind == MANIFEST).unwrap();
    assert_eq!((second.tag("d"), &second.pubkey), (first.tag("d"), &first.pubkey));
    assert!(second.created_at >= first.created_at);
}

/// All values of the withdrawals' tags with this name.
fn withdrawn(events: &[Event], name: &str) -> BTreeSet<String> {
    events.iter().flat_map(|event| event.tags(name).into_iter().map(|tag| tag[0].clone())).collect()
}

fn a_clean_stop_withdraws_every_addressable_event() {
    let mut desk = Desk::new(&["--name", "weather"]);
    let manifest = desk.manifest("a manifest", |_| true);
    let announcement = desk.relay.wait_for_event("an announcement", |event| event.kind == 31990);
    let status = desk.provider.process.stop();
    assert!(status.success(), "{status}");
    let me = &desk.provider.pubkey;
    let events: Vec<Event> = desk.relay.published().into_iter().filter(|event| event.kind == 5).collect();
    for event in &events {
        assert_eq!((event.problem(), &event.pubkey), (None, me));
        assert!(event.created_at >= manifest.created_at.max(announcement.created_at), "or it would not count");
    }
    assert_eq!(withdrawn(&events, "e"), BTreeSet::from([manifest.id, announcement.id]));
    let addresses = [format!("30200:{me}:weather"), format!("31990:{me}:weather")];
    assert_eq!(withdrawn(&events, "a"), BTreeSet::from(addresses));
    assert_eq!(withdrawn(&events, "k"), BTreeSet::from(["30200".to_owned(), "31990".to_owned()]));
}

fn a_service_that_comes_back_is_described_after_its_withdrawal() {
    let mut desk = Desk::new(&["--name", "weather"]);
    let first = desk.manifest("a manifest", |_| true);
    desk.provider.process.stop();
    let withdrawal =
        desk.relay.wait_for_event("a withdrawal", |event| event.kind == 5 && event.has_tag("e", &first.id));
    desk.kill_and_restart(&["--name", "weather"]);
    let second = desk.manifest("a new manifest", |event| event.id != first.id);
    // Or relays that keep withdrawals would refuse it.
    assert!(second.created_at > withdrawal.created_at, "{} and {}", second.created_at, withdrawal.created_at);
}

fn a_service_that_stays_is_not_withdrawn() {
    let mut desk = Desk::new(&["--name", "weather", "--stay"]);
    desk.manifest("a manifest", |_| true);
    assert!(desk.provider.process.stop().success());
    assert!(!desk.relay.published().iter().any(|event| event.kind == 5));
}

fn a_private_service_has_no_manifest() {
    let (relay, world, friend) = (FakeRelay::start(), World::new(), nostr::key::Keys::generate());
    let key = friend.public_key().to_hex();
    let mut provider = world.serve(&[&relay.url()], &["--name", "secret", "--private", &key]);
    let friend = Messenger::with_keys(&relay.url(), &provider.pubkey, friend);
    // Its friends can use it over this wire as well.
    for way in torture::nostr_side::messenger::BOTH {
        assert_eq!(friend.call(way, "note", &json!({ "text": "hello" })).said(), "hello");
        let stranger = Messenger::new(&relay.url(), &provider.pubkey);
        assert_eq!(stranger.call(way, "note", &json!({})).error(), "unauthorized");
    }
    assert_eq!(world.times("note"), 2);
    provider.process.stop();
    let public: Vec<Event> =
        relay.published().into_iter().filter(|event| [MANIFEST, 31990, 5].contains(&event.kind)).collect();
    assert_eq!(public, []);
    assert!(!relay.heard().iter().any(|heard| heard.frame.to_string().contains("secret")));
}

fn hidden_tools_are_not_in_the_manifest() {
    let desk = Desk::new(&["--tool", "note", "--tool", "nap", "--hide-tool", "nap"]);
    let manifest = desk.manifest("a manifest", |_| true);
    assert_eq!(names(&manifest), ["note"]);
    assert!(!manifest.has_tag("t", "nap") && !manifest.content.contains("\"nap\""));
}

/// Waits until all of this many tools are in manifests; gives the manifests.
#[track_caller]
fn all_parts(desk: &Desk, count: usize) -> BTreeMap<String, Event> {
    let parts = || newest(&desk.relay, &desk.provider.pubkey);
    until("all tools are in manifests", PATIENCE, || {
        parts().values().map(|part| names(part).len()).sum::<usize>() >= count
    });
    parts()
}

fn definitions_that_do_not_fit_continue_in_further_manifests() {
    let flags = [&["--name", "large", "--about", "Much"], &UNLIMITED[..]].concat();
    let desk = Desk::with_actor(&flags, &["many=300", "words=90"]);
    let count = desk.provider.ready["tools"].as_array().unwrap().len();
    assert!(count > 300);
    let parts = all_parts(&desk, count);
    assert!(parts.len() > 1, "all of it in one");
    let mut all = Vec::new();
    for number in 1..=parts.len() {
        let d = if number == 1 { "large".to_owned() } else { format!("large#{number}") };
        let part = parts.get(&d).unwrap_or_else(|| panic!("no {d} in {:?}", parts.keys()));
        check(part, &d, "large", "Much", &desk.relay.url());
        assert!(!names(part).is_empty(), "{d} is empty");
        all.extend(names(part));
    }
    let ready: Vec<&str> =
        desk.provider.ready["tools"].as_array().unwrap().iter().map(|tool| tool.as_str().unwrap()).collect();
    assert_eq!(all, ready, "every tool once, in the order of the server");
    let last = parts[&format!("large#{}", parts.len())].clone();
    assert_eq!(tool_of(&last, "many_299")["input_schema"]["properties"]["value"], json!({ "type": "string" }));
    for tool in ["many_000", "many_299"] {
        assert_eq!(desk.customer.call(Way::Message, tool, &json!({})).said(), format!("this is {tool}"));
    }
}

fn every_part_of_a_long_manifest_is_withdrawn() {
    let mut desk = Desk::with_actor(&["--name", "large"], &["many=300", "words=90"]);
    let parts = all_parts(&desk, desk.provider.ready["tools"].as_array().unwrap().len());
    desk.provider.process.stop();
    let events: Vec<Event> = desk.relay.published().into_iter().filter(|event| event.kind == 5).collect();
    let (ids, addresses) = (withdrawn(&events, "e"), withdrawn(&events, "a"));
    for (d, part) in &parts {
        assert!(ids.contains(&part.id), "{d} is not withdrawn");
        assert!(addresses.contains(&format!("30200:{}:{d}", desk.provider.pubkey)), "{d} is not withdrawn");
    }
}

/// Waits until nobody who asks this relay can believe the second part any more.
#[track_caller]
fn second_part_goes(desk: &Desk, second: &Event, before: usize) {
    let address = format!("30200:{}:large#2", desk.provider.pubkey);
    let gone = |event: &Event| {
        (event.kind == 5 && (event.has_tag("a", &address) || event.has_tag("e", &second.id)))
            || (event.kind == MANIFEST && event.has_tag("d", "large#2") && names(event).is_empty())
    };
    let soon = std::time::Duration::from_secs(10);
    until("the second part is withdrawn", soon, || desk.relay.published().iter().skip(before).any(gone));
}

fn parts_that_are_no_longer_needed_are_withdrawn() {
    let desk = Desk::with_actor(&["--name", "large"], &["many=300", "words=90"]);
    let parts = all_parts(&desk, desk.provider.ready["tools"].as_array().unwrap().len());
    let second = parts.get("large#2").unwrap().clone();
    let before = desk.relay.published().len();
    assert_eq!(desk.customer.call(Way::Message, "shrink", &json!({})).said(), "shrunk");
    second_part_goes(&desk, &second, before);
    let first = newest(&desk.relay, &desk.provider.pubkey)["large"].clone();
    assert!(names(&first).contains(&"note".to_owned()) && !first.content.contains("many_"));
}

fn parts_that_a_killed_provider_left_are_withdrawn() {
    let mut desk = Desk::with_actor(&["--name", "large"], &["many=300", "words=90"]);
    let parts = all_parts(&desk, desk.provider.ready["tools"].as_array().unwrap().len());
    let second = parts.get("large#2").unwrap().clone();
    desk.provider.process.kill();
    let before = desk.relay.published().len();
    // The server has fewer tools now; nobody may believe the old second part for ever.
    desk.provider = desk.world.serve_actor(&[&desk.relay.url()], &["--name", "large"], &[]);
    second_part_goes(&desk, &second, before);
}

fn a_manifest_that_is_no_longer_spoken_is_withdrawn() {
    let mut desk = Desk::new(&["--name", "weather"]);
    let manifest = desk.manifest("a manifest", |_| true);
    desk.provider.process.kill();
    let address = format!("30200:{}:weather", desk.provider.pubkey);
    desk.kill_and_restart(&["--name", "weather", "--wire", "dvmcp"]);
    // Nobody answers messages now, and nobody should be sent there.
    let gone = |event: &Event| event.kind == 5 && (event.has_tag("a", &address) || event.has_tag("e", &manifest.id));
    let soon = std::time::Duration::from_secs(10);
    until("the manifest is withdrawn", soon, || desk.relay.published().iter().any(gone));
}

fn manifests_of_tools_with_long_names_fit_into_events() {
    let desk = Desk::with_actor(&["--name", "large"], &["many=400", "words=0", "names=128"]);
    let parts = all_parts(&desk, desk.provider.ready["tools"].as_array().unwrap().len());
    assert!(parts.len() > 1);
    parts.values().for_each(is_short);
}

fn a_tool_that_is_too_long_is_left_out_but_can_be_called() {
    let desk = Desk::with_actor(&["--name", "large"], &["giant=60000"]);
    let manifest = desk.manifest("a manifest", |_| true);
    for part in newest(&desk.relay, &desk.provider.pubkey).values() {
        assert!(!names(part).contains(&"giant".to_owned()));
        is_short(part);
    }
    assert!(names(&manifest).contains(&"note".to_owned()));
    desk.provider.process.says("giant");
    assert_eq!(desk.customer.call(Way::Message, "giant", &json!({})).said(), "this is giant");
}

fn the_relays_for_sealed_messages_are_told() {
    let desk = Desk::new(&["--name", "weather"]);
    let list = desk.relay.wait_for_event("a list of relays", |event| event.kind == 10050);
    assert_eq!((list.problem(), &list.pubkey), (None, &desk.provider.pubkey));
    assert_eq!(list.content, "");
    let relays: Vec<&str> = list.tags("relay").iter().map(|tag| tag[0].trim_end_matches('/')).collect();
    assert_eq!(relays, [desk.relay.url()]);
}

/// The manifests that a relay gives to somebody who asks now.
fn given(url: &str, author: &str) -> Vec<Event> {
    let log: Log<Event> = Log::default();
    let kept = log.clone();
    let client = Client::connect(url, move |_, event| kept.push(event));
    client.subscribe("all", &[json!({ "kinds": [MANIFEST], "authors": [author] })]);
    log.look(<[Event]>::to_vec)
}

fn our_own_relay_keeps_the_newest_manifest_until_it_is_withdrawn() {
    let world = World::new();
    let (_relay, url) = world.relay();
    let mut provider = world.serve(&[&url], &["--name", "weather"]);
    let customer = Messenger::new(&url, &provider.pubkey);
    until("it is there", PATIENCE, || given(&url, &provider.pubkey).len() == 1);
    customer.call(Way::Sealed, "grow", &json!({ "name": "sprout" }));
    until("the new one has taken its place", PATIENCE, || {
        let all = given(&url, &provider.pubkey);
        assert_eq!(all.len(), 1, "{all:#?}");
        all[0].has_tag("t", "sprout")
    });
    provider.process.stop();
    assert_eq!(given(&url, &provider.pubkey), []);
    provider = world.serve(&[&url], &["--name", "weather"]);
    until("it is back", PATIENCE, || given(&url, &provider.pubkey).len() == 1);
    assert_eq!(customer.call(Way::Message, "note", &json!({ "text": "x" })).said(), "x");
}
