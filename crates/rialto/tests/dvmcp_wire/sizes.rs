//! Results that are too large for one event.

use serde_json::{Value, json};

use torture::nostr_side::customer::Answers;
use torture::nostr_side::event::hash;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_result_of_fifty_kilobytes_comes_in_one_event),
    case!(a_large_result_is_an_error_unless_parts_are_wanted),
    case!(a_large_result_comes_in_parts_that_fit_together),
    case!(a_large_sealed_result_comes_in_smaller_parts),
    case!(a_small_result_has_no_parts),
    case!(a_result_beyond_a_mebibyte_is_an_error_even_in_parts),
    case!(parts_keep_to_the_limit_of_the_relay),
];

fn large(size: usize, parts: bool) -> Value {
    let metadata = if parts { json!({ "parts": true }) } else { json!({}) };
    json!({ "name": "large", "parameters": { "size": size }, "metadata": metadata })
}

/// The whole, put together as the contract says.
fn whole(answers: &Answers) -> Value {
    let responses = answers.responses();
    let count = responses.len().to_string();
    let mut pieces = vec![None; responses.len()];
    let digest = responses[0].tags("part")[0][2].clone();
    for event in &responses {
        let part = event.tags("part")[0];
        assert_eq!((&part[1], &part[2]), (&count, &digest), "{part:?}");
        assert_eq!(event.tag("c"), "execute-tool-response");
        assert_eq!(event.tag("status"), "success");
        let place = part[0].parse::<usize>().unwrap() - 1;
        assert_eq!(pieces[place].replace(event.content.as_str()), None, "a part came twice");
    }
    let text: String = pieces.into_iter().map(Option::unwrap).collect();
    assert_eq!(hash(&text), digest);
    serde_json::from_str(&text).unwrap()
}

fn check_large(result: &Value, size: usize) {
    assert_eq!(result["content"][0]["text"].as_str().map(str::len), Some(size));
    assert_eq!(result["isError"], false);
    assert!(result["metadata"]["processing_time"].is_number());
}

fn a_result_of_fifty_kilobytes_comes_in_one_event() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("execute-tool", &large(50_000, false));
    check_large(&answers.body(), 50_000);
}

fn a_large_result_is_an_error_unless_parts_are_wanted() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("execute-tool", &large(100_000, false));
    assert_eq!(answers.error(), "result_too_large");
    assert_eq!(scene.world.times("large"), 1);
}

fn a_large_result_comes_in_parts_that_fit_together() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("execute-tool", &large(300_000, true));
    assert!(answers.responses().len() > 4, "{} parts", answers.responses().len());
    for event in answers.responses() {
        assert!(event.json().len() <= 64 * 1024, "{} bytes", event.json().len());
    }
    check_large(&whole(&answers), 300_000);
    assert_eq!(answers.statuses(), ["processing", "success"]);
}

fn a_large_sealed_result_comes_in_smaller_parts() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask_sealed("execute-tool", &large(100_000, true));
    assert!(answers.0.iter().all(|received| received.sealed));
    assert!(answers.responses().len() > 4, "{} parts", answers.responses().len());
    check_large(&whole(&answers), 100_000);
}

fn a_small_result_has_no_parts() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("execute-tool", &large(1000, true));
    assert_eq!(answers.response().tags("part").len(), 0);
    check_large(&answers.body(), 1000);
}

fn a_result_beyond_a_mebibyte_is_an_error_even_in_parts() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("execute-tool", &large(1_100_000, true));
    assert_eq!(answers.error(), "result_too_large");
}

fn parts_keep_to_the_limit_of_the_relay() {
    let relay = FakeRelay::start();
    relay.rules(|rules| rules.information = Some(json!({ "limitation": { "max_message_length": 16_384 } })));
    let scene = Scene::on(&relay, &[]);
    let answers = scene.customer.ask("execute-tool", &large(60_000, true));
    for event in answers.responses() {
        let message = json!(["EVENT", event]).to_string().len();
        assert!(message <= 16_384, "{message} bytes");
    }
    check_large(&whole(&answers), 60_000);
}
