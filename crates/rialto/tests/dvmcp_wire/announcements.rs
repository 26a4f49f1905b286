//! Kind 31990, and what goes with it: how a service is found, kept up to date and withdrawn.

use nostr::nips::nip19::FromBech32 as _;
use serde_json::json;

use torture::nostr_side::PATIENCE;
use torture::nostr_side::client::Client;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::{Event, now};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::{Log, until};
use torture::nostr_side::scene::Scene;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(an_announcement_has_every_tag_of_the_specification),
    case!(an_announcement_is_found_by_its_topics),
    case!(the_ready_line_says_who_serves_what_where),
    case!(a_relay_list_goes_with_the_announcement),
    case!(the_name_and_the_key_stay_over_a_restart),
    case!(a_clean_stop_withdraws_the_announcement),
    case!(a_service_that_stays_is_not_withdrawn),
    case!(an_announcement_follows_the_tools_at_run_time),
    case!(of_many_changes_in_one_second_the_last_stays_announced),
    case!(three_hundred_tools_fit_into_one_announcement),
    case!(a_service_is_announced_once_at_the_start),
    case!(a_private_service_is_not_announced),
    case!(a_private_service_does_not_answer_open_questions_of_strangers),
    case!(hidden_tools_are_neither_announced_nor_listed),
    case!(only_named_tools_are_offered),
];

/// Everything that a relay has of this author and these kinds, now.
fn events_of(url: &str, author: &str, kinds: &[u32]) -> Vec<Event> {
    let log: Log<Event> = Log::default();
    let kept = log.clone();
    let client = Client::connect(url, move |_, event| kept.push(event));
    client.subscribe("all", &[json!({ "kinds": kinds, "authors": [author], "until": now() + 3600 })]);
    log.look(<[Event]>::to_vec)
}

/// The only event of this kind; a service may be ready before it is announced.
fn only(scene: &Scene, kind: u32) -> Event {
    let mut found = Vec::new();
    until("it is announced", PATIENCE, || {
        found = events_of(&scene.url, &scene.provider.pubkey, &[kind]);
        !found.is_empty()
    });
    // One that was replaced just now may have come as well.
    found.pop().unwrap()
}

fn announcement(scene: &Scene) -> Event {
    only(scene, 31990)
}

fn names(list: &serde_json::Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn an_announcement_has_every_tag_of_the_specification() {
    let scene = Scene::new(&["--name", "weather", "--about", "Forecasts for everyone"]);
    let event = announcement(&scene);
    assert_eq!(event.problem(), None);
    assert_eq!(event.tag("d"), "weather");
    assert_eq!(event.tags("k"), [["5910"]]);
    assert_eq!(event.tag("capabilities"), "mcp-1.0");
    assert_eq!(event.tags("encryption"), [["nip59"]]);
    assert_eq!(event.tags("relays"), [[scene.url.as_str()]]);
    let topics: Vec<&str> = event.tags("t").iter().map(|tag| tag[0].as_str()).collect();
    assert_eq!(topics[0], "mcp");
    let body = event.body();
    assert_eq!(body["name"], "weather");
    assert_eq!(body["about"], "Forecasts for everyone");
    let tools = names(&body["tools"]);
    assert_eq!(topics[1..], tools, "a topic for each tool");
    let strict = body["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "strict").unwrap();
    assert_eq!(strict["description"], "Has a strict schema");
    assert_eq!(strict["inputSchema"]["properties"]["city"], json!({ "type": "string", "minLength": 2 }));
    assert_eq!(body["resources"][0]["uri"], "note://one");
    assert_eq!(body["resourceTemplates"][0]["uriTemplate"], "note://{number}");
    assert_eq!(body["prompts"][0]["name"], "greet");
}

fn an_announcement_is_found_by_its_topics() {
    let scene = Scene::new(&["--name", "weather"]);
    for topic in ["mcp", "strict"] {
        let log: Log<Event> = Log::default();
        let kept = log.clone();
        let client = Client::connect(&scene.url, move |_, event| kept.push(event));
        client.subscribe("found", &[json!({ "kinds": [31990], "#t": [topic] })]);
        assert!(log.look(|all| all.iter().any(|event| event.pubkey == scene.provider.pubkey)), "{topic}");
    }
}

fn the_ready_line_says_who_serves_what_where() {
    let scene = Scene::new(&["--name", "weather"]);
    let ready = &scene.provider.ready;
    let npub = nostr::key::PublicKey::from_bech32(ready["npub"].as_str().unwrap()).unwrap();
    assert_eq!(npub.to_hex(), scene.provider.pubkey);
    let profile = nostr::nips::nip19::Nip19Profile::from_bech32(ready["nprofile"].as_str().unwrap()).unwrap();
    assert_eq!(profile.public_key.to_hex(), scene.provider.pubkey);
    let relays: Vec<String> =
        profile.relays.iter().map(|url| url.to_string().trim_end_matches('/').to_owned()).collect();
    assert_eq!(relays, [scene.url.trim_end_matches('/')]);
    assert_eq!(ready["name"], "weather");
    assert_eq!(ready["relays"], json!([scene.url]));
    assert!(ready["tools"].as_array().unwrap().contains(&json!("strict")), "{ready}");
}

fn a_relay_list_goes_with_the_announcement() {
    let scene = Scene::new(&[]);
    let list = only(&scene, 10002);
    assert_eq!(list.problem(), None);
    let relays = list.tags("r");
    assert_eq!(relays.len(), 1, "{list:?}");
    assert_eq!(relays[0][0].trim_end_matches('/'), scene.url.trim_end_matches('/'));
    assert_eq!(relays[0].len(), 1, "for reading and writing: {list:?}");
}

fn the_name_and_the_key_stay_over_a_restart() {
    let relay = FakeRelay::start();
    let world = World::new();
    let announced =
        |count: usize| relay.wait_for_events("announcements", count, |event| event.kind == 31990).pop().unwrap();
    let mut provider = world.serve(&[&relay.url()], &["--name", "weather", "--stay"]);
    let (first, pubkey) = (announced(1), provider.pubkey.clone());
    assert!(provider.process.stop().success());
    // A relay that lost everything in between shows that it is sent anew.
    relay.forget();
    let before = relay.published().iter().filter(|event| event.kind == 31990).count();
    let provider = world.serve(&[&relay.url()], &["--name", "weather", "--stay"]);
    let second = announced(before + 1);
    assert_eq!(provider.pubkey, pubkey);
    assert_eq!((second.tag("d"), &second.pubkey), (first.tag("d"), &first.pubkey));
    assert!(second.created_at >= first.created_at);
}

fn a_clean_stop_withdraws_the_announcement() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &["--name", "weather"]);
    let announced = relay.wait_for_event("an announcement", |event| event.kind == 31990);
    let status = provider.process.stop();
    assert!(status.success(), "{status}");
    let withdrawn = relay.wait_for_event("a withdrawal", |event| event.kind == 5);
    assert_eq!(withdrawn.problem(), None);
    assert_eq!(withdrawn.pubkey, provider.pubkey);
    assert!(withdrawn.has_tag("e", &announced.id), "{withdrawn:?}");
    assert!(withdrawn.has_tag("a", &format!("31990:{}:weather", provider.pubkey)), "{withdrawn:?}");
    assert_eq!(withdrawn.tag("k"), "31990");
    assert!(withdrawn.created_at >= announced.created_at, "or it would not count");
}

fn a_service_that_stays_is_not_withdrawn() {
    let mut scene = Scene::new(&["--name", "weather", "--stay"]);
    assert!(scene.provider.process.stop().success());
    assert_eq!(events_of(&scene.url, &scene.provider.pubkey, &[5]), []);
    announcement(&scene);
}

fn an_announcement_follows_the_tools_at_run_time() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &["--name", "weather"]);
    let first = relay.wait_for_event("an announcement", |event| event.kind == 31990);
    assert!(!first.has_tag("t", "sprout"));
    assert_eq!(scene.customer.call("grow", &json!({ "name": "sprout" })).text(), "grown");
    let second = relay.wait_for_event("the new tool", |event| event.kind == 31990 && event.has_tag("t", "sprout"));
    assert_eq!(second.tag("d"), first.tag("d"));
    assert!(second.created_at > first.created_at, "or relays may keep the old one");
    assert!(names(&second.body()["tools"]).contains(&"sprout".to_owned()));
    assert!(names(&scene.customer.ask("list-tools", &json!("")).body()["tools"]).contains(&"sprout".to_owned()));
    assert_eq!(scene.customer.call("sprout", &json!({})).text(), "this is sprout");
}

fn of_many_changes_in_one_second_the_last_stays_announced() {
    let scene = Scene::new(&["--name", "weather", "--rate-per-key", "0"]);
    for number in 0..6 {
        scene.customer.call("grow", &json!({ "name": format!("sprout_{number}") }));
    }
    // Relays keep the event with the later second; of two in the same second, any.
    until("the last tool is announced", PATIENCE, || announcement(&scene).has_tag("t", "sprout_5"));
    assert!(!announcement(&scene).has_tag("t", "sprout_4"));
}

fn three_hundred_tools_fit_into_one_announcement() {
    let scene = Scene::with_actor(&["--name", "large"], &["many=300", "words=60"]);
    let event = announcement(&scene);
    assert!(event.json().len() <= 32 * 1024, "{} bytes", event.json().len());
    let tools = event.body()["tools"].clone();
    let announced = names(&tools);
    let all: Vec<String> = (0..300).map(|number| format!("many_{number:03}")).collect();
    assert_eq!(announced[announced.len() - 300..], all, "every tool is named");
    for tool in tools.as_array().unwrap() {
        assert!(tool["description"].is_string(), "the specification wants a description: {tool}");
        assert!(tool.get("inputSchema").is_none(), "{tool}");
    }
}

fn a_private_service_is_not_announced() {
    let relay = FakeRelay::start();
    let world = World::new();
    let friend = nostr::key::Keys::generate();
    let key = friend.public_key().to_hex();
    let provider = world.serve(&[&relay.url()], &["--name", "secret", "--private", &key]);
    let customer = Customer::with_keys(&relay.url(), &provider.pubkey, friend);
    assert_eq!(customer.call("note", &json!({ "text": "hello" })).text(), "hello");
    let public: Vec<Event> = relay.published().into_iter().filter(|event| event.kind == 31990).collect();
    assert_eq!(public, []);
}

fn a_private_service_does_not_answer_open_questions_of_strangers() {
    let relay = FakeRelay::start();
    let (world, friend) = (World::new(), nostr::key::Keys::generate());
    let provider = world.serve(&[&relay.url()], &["--private", &friend.public_key().to_hex()]);
    let stranger = Customer::new(&relay.url(), &provider.pubkey);
    // Not even with a refusal, which would tell everybody that there is something.
    let open = stranger.post(&stranger.draft("list-tools", &json!("")).without("p"));
    Customer::with_keys(&relay.url(), &provider.pubkey, friend).barrier();
    assert_eq!(stranger.so_far(&open).0.len(), 0, "{:#?}", stranger.so_far(&open));
}

fn a_service_is_announced_once_at_the_start() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &["--name", "once"]);
    // Long enough for a second announcement, which needs a later second to count.
    scene.customer.call("nap", &json!({ "ms": 3000 }));
    for kind in [31990, 10002] {
        let count = relay.published().iter().filter(|event| event.kind == kind).count();
        assert_eq!(count, 1, "of kind {kind}");
    }
}

fn hidden_tools_are_neither_announced_nor_listed() {
    let scene = Scene::new(&["--hide-tool", "crash", "--hide-tool", "hang"]);
    let listed = names(&scene.customer.ask("list-tools", &json!("")).body()["tools"]);
    let event = announcement(&scene);
    for hidden in ["crash", "hang"] {
        assert!(!listed.contains(&hidden.to_owned()) && !event.content.contains(&format!("\"{hidden}\"")));
        assert!(!event.has_tag("t", hidden));
        assert_eq!(scene.customer.call(hidden, &json!({})).error(), "unknown_tool");
        assert_eq!(scene.world.times(hidden), 0);
    }
    assert!(listed.contains(&"note".to_owned()));
}

fn only_named_tools_are_offered() {
    let scene = Scene::new(&["--tool", "note"]);
    assert_eq!(names(&scene.customer.ask("list-tools", &json!("")).body()["tools"]), ["note"]);
    assert_eq!(names(&announcement(&scene).body()["tools"]), ["note"]);
    assert_eq!(scene.provider.ready["tools"], json!(["note"]));
    assert_eq!(scene.customer.call("nap", &json!({})).error(), "unknown_tool");
    assert!(scene.world.effects().is_empty());
}
