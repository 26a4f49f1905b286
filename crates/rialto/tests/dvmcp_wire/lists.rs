//! `list-tools` and its relatives.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use torture::nostr_side::client::Client;
use torture::nostr_side::customer::{Answers, Customer};
use torture::nostr_side::event::Event;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::log::Log;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_list_has_the_tags_of_the_specification_and_complete_definitions),
    case!(a_list_is_answered_without_feedback),
    case!(a_list_without_an_addressee_is_answered),
    case!(open_lists_are_found_by_their_command),
    case!(nothing_but_lists_of_tools_is_answered_without_an_addressee),
    case!(open_jobs_are_run_only_where_they_are_wanted),
    case!(a_list_request_may_have_an_object_as_content),
    case!(a_long_list_comes_in_pages),
    case!(a_long_list_comes_sealed_in_smaller_pages),
    case!(an_unknown_cursor_is_an_error),
    case!(resources_templates_and_prompts_are_listed),
];

fn list(scene: &Scene, command: &str, content: &Value) -> Answers {
    scene.customer.ask(command, content)
}

fn a_list_has_the_tags_of_the_specification_and_complete_definitions() {
    let scene = Scene::new(&[]);
    let answers = list(&scene, "list-tools", &json!(""));
    let event = answers.response();
    assert_eq!(event.kind, 6910);
    assert_eq!(event.pubkey, scene.provider.pubkey);
    assert_eq!(event.tag("c"), "list-tools-response");
    assert_eq!(event.tag("p"), scene.customer.pubkey());
    assert_eq!(event.tags("e")[0].len(), 2, "with a relay hint: {event:?}");
    assert_eq!(event.tags("e")[0][1].trim_end_matches('/'), scene.url.trim_end_matches('/'));
    let tools = &event.body()["tools"];
    let strict = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "strict").unwrap();
    assert_eq!(strict["description"], "Has a strict schema");
    assert_eq!(
        strict["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "minLength": 2 },
                "unit": { "type": "string", "enum": ["C", "F"] },
                "days": { "type": "integer", "minimum": 1, "maximum": 9 },
                "code": { "type": "string", "pattern": "^[A-Z]{2}$" },
                "at": { "type": "object", "properties": { "lat": { "type": "number" } } }
            },
            "required": ["city"],
            "additionalProperties": false
        })
    );
}

fn a_list_is_answered_without_feedback() {
    let scene = Scene::new(&[]);
    let answers = list(&scene, "list-tools", &json!(""));
    scene.customer.barrier();
    let id = answers.response().tag("e").to_owned();
    assert_eq!(scene.customer.so_far(&id).0.len(), 1, "{:#?}", scene.customer.so_far(&id));
}

fn a_list_without_an_addressee_is_answered() {
    let scene = Scene::new(&[]);
    let id = scene.customer.post(&scene.customer.draft("list-tools", &json!("")).without("p"));
    let answers = scene.customer.answers(&id);
    assert_eq!(answers.response().tag("c"), "list-tools-response");
    assert_eq!(answers.response().tag("p"), scene.customer.pubkey());
    assert!(answers.body()["tools"][0]["inputSchema"].is_object());
}

fn open_lists_are_found_by_their_command() {
    let scene = Scene::new(&[]);
    let id = scene.customer.post(&scene.customer.draft("list-tools", &json!("")).without("p").without("output"));
    scene.customer.answers(&id);
    let log: Log<Event> = Log::default();
    let kept = log.clone();
    let client = Client::connect(&scene.url, move |_, event| kept.push(event));
    client.subscribe("found", &[json!({ "kinds": [6910], "#c": ["list-tools-response"] })]);
    assert!(log.look(|all| all.iter().any(|event| event.has_tag("e", &id))));
}

fn nothing_but_lists_of_tools_is_answered_without_an_addressee() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let call = json!({ "name": "note", "parameters": { "tag": "open" } });
    let commands = [
        ("execute-tool", call),
        ("list-resources", json!("")),
        ("list-prompts", json!("")),
        ("read-resource", json!({ "uri": "note://one" })),
        ("no-such-command", json!("")),
    ];
    let ids = commands.map(|(command, content)| customer.post(&customer.draft(command, &content).without("p")));
    customer.barrier();
    for id in ids {
        assert_eq!(customer.so_far(&id).0.len(), 0, "{:#?}", customer.so_far(&id));
    }
    assert_eq!(scene.world.times("note open"), 0);
}

fn open_jobs_are_run_only_where_they_are_wanted() {
    let scene = Scene::new(&["--open-jobs"]);
    let call = json!({ "name": "note", "parameters": { "text": "for anyone" } });
    let id = scene.customer.post(&scene.customer.draft("execute-tool", &call).without("p"));
    assert_eq!(scene.customer.answers(&id).text(), "for anyone");
    let other = scene.customer.draft("execute-tool", &call).without("p").tag(&["p", &"ab".repeat(32)]);
    let other = scene.customer.post(&other);
    scene.customer.barrier();
    assert_eq!(scene.customer.so_far(&other).0.len(), 0, "what names another is still not ours");
    assert_eq!(scene.world.times("note"), 1);
}

fn a_list_request_may_have_an_object_as_content() {
    let scene = Scene::new(&[]);
    for content in [json!({}), json!("{}")] {
        assert!(list(&scene, "list-tools", &content).body()["tools"].is_array());
    }
}

/// Reads all pages and checks that nothing is missing.
fn read_pages(ask: impl Fn(&Value) -> Answers) {
    let (mut names, mut pages, mut cursor) = (Vec::new(), 0, json!(""));
    loop {
        let answers = ask(&cursor);
        assert!(answers.response().json().len() <= 64 * 1024, "{} bytes", answers.response().json().len());
        let body = answers.body();
        for tool in body["tools"].as_array().unwrap() {
            assert!(tool["inputSchema"].is_object(), "complete: {tool}");
            names.push(tool["name"].as_str().unwrap().to_owned());
        }
        pages += 1;
        assert!(pages < 100, "the pages never end");
        match body.get("nextCursor") {
            Some(next) => cursor = json!({ "cursor": next }),
            None => break,
        }
    }
    assert!(pages > 1, "all of it in one page");
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "no tool twice");
    assert_eq!(names.iter().filter(|name| name.starts_with("many_")).count(), 300);
    assert!(names.contains(&"strict".to_owned()));
}

fn a_long_list_comes_in_pages() {
    let scene = Scene::with_actor(&[], &["many=300", "words=90"]);
    read_pages(|cursor| list(&scene, "list-tools", cursor));
}

fn a_long_list_comes_sealed_in_smaller_pages() {
    let relay = FakeRelay::start();
    let world = World::new();
    let provider = world.serve_actor(&[&relay.url()], &["--rate-per-key", "0"], &["many=300", "words=90"]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    read_pages(|cursor| customer.ask_sealed("list-tools", cursor));
    let longest = relay.published().iter().map(|event| event.json().len()).max().unwrap();
    assert!(longest <= 64 * 1024, "{longest} bytes in one event");
}

fn an_unknown_cursor_is_an_error() {
    let scene = Scene::new(&[]);
    assert_eq!(list(&scene, "list-tools", &json!({ "cursor": "no such page" })).error(), "invalid_input");
}

fn resources_templates_and_prompts_are_listed() {
    let scene = Scene::new(&[]);
    let expectations = [
        ("list-resources", "resources", "uri", "note://one"),
        ("list-resource-templates", "resourceTemplates", "uriTemplate", "note://{number}"),
        ("list-prompts", "prompts", "name", "greet"),
    ];
    for (command, member, key, value) in expectations {
        let answers = list(&scene, command, &json!(""));
        assert_eq!(answers.response().tag("c"), format!("{command}-response"));
        let items = answers.body()[member].clone();
        assert_eq!(items.as_array().map(Vec::len), Some(1), "{command}: {items}");
        assert_eq!(items[0][key], value, "{command}");
        assert!(items[0]["description"].is_string(), "{command}: {items}");
    }
}
