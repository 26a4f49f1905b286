//! The commands that the specification leaves to the future: resources, prompts, completion.

use serde_json::json;

use torture::nostr_side::scene::Scene;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_resource_is_read),
    case!(a_resource_of_a_template_is_read),
    case!(a_prompt_is_filled_in),
    case!(a_prompt_takes_arguments_under_either_name),
    case!(an_argument_is_completed),
    case!(extensions_are_answered_without_feedback),
];

fn a_resource_is_read() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("read-resource", &json!({ "uri": "note://one" }));
    assert_eq!(answers.response().tag("c"), "read-resource-response");
    let contents = json!([{ "uri": "note://one", "mimeType": "text/plain", "text": "this is note://one" }]);
    assert_eq!(answers.body()["contents"], contents);
}

fn a_resource_of_a_template_is_read() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("read-resource", &json!({ "uri": "note://two" }));
    assert_eq!(answers.body()["contents"][0]["text"], "this is note://two");
}

fn a_prompt_is_filled_in() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("execute-prompt", &json!({ "name": "greet", "parameters": { "who": "Ada" } }));
    assert_eq!(answers.response().tag("c"), "execute-prompt-response");
    let body = answers.body();
    assert_eq!(body["messages"][0]["content"]["text"], "Hello \"Ada\"");
    assert_eq!(body["description"], "A greeting", "every field of the server's answer");
}

fn a_prompt_takes_arguments_under_either_name() {
    let scene = Scene::new(&[]);
    let answers = scene.customer.ask("execute-prompt", &json!({ "name": "greet", "arguments": { "who": "Ada" } }));
    assert_eq!(answers.body()["messages"][0]["content"]["text"], "Hello \"Ada\"");
}

fn an_argument_is_completed() {
    let scene = Scene::new(&[]);
    let request = json!({
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "who", "value": "A" }
    });
    let answers = scene.customer.ask("complete", &request);
    assert_eq!(answers.response().tag("c"), "complete-response");
    assert_eq!(answers.body()["completion"], json!({ "values": ["Ada"], "total": 1, "hasMore": false }));
}

fn extensions_are_answered_without_feedback() {
    let scene = Scene::new(&[]);
    let customer = &scene.customer;
    let asked = [
        customer.post(&customer.draft("read-resource", &json!({ "uri": "note://one" }))),
        customer.post(&customer.draft("list-resources", &json!(""))),
        customer.post(&customer.draft("execute-prompt", &json!({ "name": "greet", "parameters": { "who": "Ada" } }))),
    ];
    for id in &asked {
        customer.answers(id);
    }
    customer.barrier();
    for id in &asked {
        let answers = customer.so_far(id);
        assert_eq!(answers.0.len(), 1, "{answers:#?}");
        assert_eq!(answers.response().tag("p"), customer.pubkey());
    }
}
