//! The example server: small, but every part of the protocol has a use in it.
//!
//! It is what `rialto demo` shows, what a new user points a host at first, and the subject of our benchmarks.

use std::sync::Arc;
use std::time::Duration;

use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use serde_json::{Value, json};

const INFO: &[u8] = concat!(
    "{\"name\":\"rialto-example\",\"title\":\"Rialto example server\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"}"
)
.as_bytes();

const CAPABILITIES: &str = r#"{"tools":{},"resources":{},"prompts":{},"completions":{}}"#;

const TOOLS: &str = include_str!("example/tools.json");

const RESOURCES: &str =
    r#"{"resources":[{"uri":"example://about","name":"about","title":"About this server","mimeType":"text/plain"}]}"#;

const TEMPLATES: &str = r#"{"resourceTemplates":[{"uriTemplate":"example://square/{number}","name":"square","title":"A number squared","mimeType":"text/plain"}]}"#;

const PROMPTS: &str = r#"{"prompts":[{"name":"greet","title":"Greet someone","description":"Asks the model for a greeting.","arguments":[{"name":"name","description":"Whom to greet","required":true}]}]}"#;

const NAMES: [&str; 4] = ["Ada", "Alan", "Barbara", "Grace"];

const MAX_STEPS: u64 = 1000;
const MAX_PAUSE_MS: u64 = 10_000;

/// The example server. It keeps nothing.
#[derive(Debug)]
pub(crate) struct Example;

impl Service for Example {
    fn info(&self) -> bytes::Bytes {
        bytes::Bytes::from_static(INFO)
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description {
            capabilities: CAPABILITIES.into(),
            info: self.info(),
            instructions: Some("Try `echo` first.".into()),
            more: Vec::new(),
        }
    }

    async fn request(&self, call: &Call) -> Answer {
        match call.method() {
            "tools/list" => whole(call, TOOLS),
            "resources/list" => whole(call, RESOURCES),
            "resources/templates/list" => whole(call, TEMPLATES),
            "prompts/list" => whole(call, PROMPTS),
            "tools/call" => call_tool(call).await,
            "resources/read" => read(call).into(),
            "prompts/get" => prompt(call).into(),
            "completion/complete" => complete(call).into(),
            method => Answer::Error(Error::not_offered(method)),
        }
    }
}

/// A list that fits one page.
fn whole(call: &Call, list: &str) -> Answer {
    match json::get(call.params(), "cursor") {
        None | Some(b"null") => Answer::Result(list.as_bytes().to_vec()),
        Some(_) => Answer::Error(Error::invalid_params("Invalid cursor")),
    }
}

async fn call_tool(call: &Call) -> Answer {
    let places = json::find(call.params(), ["name", "arguments"]);
    let Ok([Some(name), arguments]) = places else {
        return Answer::Error(Error::invalid_params("`name` must be given once"));
    };
    let Some(name) = json::string(&call.params()[name]) else {
        return Answer::Error(Error::invalid_params("`name` must be a string"));
    };
    let arguments = arguments.map_or(b"{}".as_slice(), |place| &call.params()[place]);
    match &*name {
        "echo" => echo(arguments).into(),
        "add" => add(arguments).into(),
        "count" => count(call, arguments).await.into(),
        "ask" => ask(call).await,
        "crash" => crash(),
        "fail" => Answer::Result(text_result("This tool always says no.", Verdict::No)),
        _ => Answer::Error(Error::new(Kind::ToolNotFound, format!("Unknown tool: {name}")).with("name", &*name)),
    }
}

fn invalid(field: &str, expected: &str) -> Error {
    Error::new(Kind::InvalidArguments, format!("`{field}` must be {expected}")).with("field", field)
}

fn echo(arguments: &[u8]) -> Result<Vec<u8>, Error> {
    let text = json::get(arguments, "text").filter(|text| text.first() == Some(&b'"'));
    let text = text.ok_or_else(|| invalid("text", "a string"))?;
    let mut out = Vec::with_capacity(text.len() + 64);
    out.extend_from_slice(b"{\"content\":[{\"type\":\"text\",\"text\":");
    out.extend_from_slice(text);
    out.extend_from_slice(b"}]}");
    Ok(out)
}

fn add(arguments: &[u8]) -> Result<Vec<u8>, Error> {
    let number = |field| {
        let value = json::get(arguments, field).and_then(|value| serde_json::from_slice::<f64>(value).ok());
        value.ok_or_else(|| invalid(field, "a number"))
    };
    let sum = json!({ "sum": number("a")? + number("b")? });
    let content = json!([{ "type": "text", "text": sum.to_string() }]);
    Ok(json!({ "content": content, "structuredContent": sum }).to_string().into_bytes())
}

async fn count(call: &Call, arguments: &[u8]) -> Result<Vec<u8>, Error> {
    let number = |field: &str, default: u64, most: u64| match json::get(arguments, field) {
        None => Ok(default),
        Some(value) => {
            // `2.0` is a whole number, too.
            let number = serde_json::from_slice::<f64>(value).ok();
            let number = number.filter(|number| number.fract() == 0.0 && (0.0..=most as f64).contains(number));
            number
                .map(|number| number as u64)
                .ok_or_else(|| invalid(field, &format!("a whole number from 0 to {most}")))
        }
    };
    let steps = number("to", 5, MAX_STEPS)?;
    let pause = number("pause_ms", 100, MAX_PAUSE_MS)?;
    for step in 1..=steps {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        call.progress(step as f64, Some(steps as f64), Some(&format!("{step} of {steps}"))).await;
    }
    Ok(text_result(&format!("Counted to {steps}."), Verdict::Yes))
}

fn crash() -> Answer {
    crate::talk::write_talk("the example server was asked to crash\n");
    std::process::exit(3)
}

/// Asks the user for a colour: with a request of our own, or in the stateless era with a result that asks back.
async fn ask(call: &Call) -> Answer {
    let ability = json::get(&call.profile.capabilities, "elicitation");
    // An empty object stands for forms, the only way there was at first.
    let has_form = |ability: &[u8]| json::get(ability, "form").is_some() || json::get(ability, "url").is_none();
    if !ability.is_some_and(has_form) {
        let error = Error::new(Kind::ClientCapabilityMissing, "The client cannot ask its user (elicitation)");
        return Answer::Error(error.with("requiredCapabilities", json!({ "elicitation": {} })));
    }
    let question = json!({
        "mode": "form",
        "message": "Which colour do you like?",
        "requestedSchema": {
            "type": "object",
            "properties": { "colour": { "type": "string", "description": "A colour" } },
            "required": ["colour"],
        },
    });
    if !call.version().is_modern() {
        let asked = call.ask("elicitation/create", question.to_string().as_bytes()).await;
        return match asked.as_ref().map(|response| response.result()) {
            Ok(Some(result)) => Answer::Result(liked(result)),
            Ok(None) => Answer::Error(Error::new(Kind::ToolFailed, "The client refused to ask its user")),
            Err(fault) => Answer::Error(Error::new(Kind::ToolFailed, format!("The client did not answer: {fault}"))),
        };
    }
    let answer = json::get(call.params(), "inputResponses").and_then(|answers| json::get(answers, "colour"));
    Answer::Result(answer.map_or_else(
        || {
            let question = json!({ "method": "elicitation/create", "params": question });
            json!({ "resultType": "input_required", "inputRequests": { "colour": question }, "requestState": "colour" })
                .to_string()
                .into_bytes()
        },
        liked,
    ))
}

fn liked(answer: &[u8]) -> Vec<u8> {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    match (answer["action"].as_str(), answer["content"]["colour"].as_str()) {
        (Some("accept"), Some(colour)) => text_result(&format!("You like {colour}."), Verdict::Yes),
        _ => text_result("You would rather not say.", Verdict::Yes),
    }
}

fn read(call: &Call) -> Result<Vec<u8>, Error> {
    let uri = json::get_string(call.params(), "uri").ok_or_else(|| Error::invalid_params("`uri` must be a string"))?;
    let text = match &*uri {
        "example://about" => Some("A small server that comes with Rialto.".to_owned()),
        other => other
            .strip_prefix("example://square/")
            .and_then(|number| number.parse::<i32>().ok())
            .map(|number| i64::from(number).pow(2).to_string()),
    };
    let missing = || Error::new(Kind::ResourceNotFound, format!("Resource not found: {uri}")).with("uri", &*uri);
    let text = text.ok_or_else(missing)?;
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text }] }).to_string().into_bytes())
}

fn prompt(call: &Call) -> Result<Vec<u8>, Error> {
    let params: Value = serde_json::from_slice(call.params()).unwrap_or_default();
    let name = params["name"].as_str().ok_or_else(|| Error::invalid_params("`name` must be a string"))?;
    if name != "greet" {
        return Err(Error::new(Kind::PromptNotFound, format!("Unknown prompt: {name}")).with("name", name));
    }
    let whom =
        params["arguments"]["name"].as_str().ok_or_else(|| Error::invalid_params("the argument `name` is missing"))?;
    let text = format!("Write one friendly sentence that greets {whom}.");
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": "A greeting", "messages": [message] }).to_string().into_bytes())
}

fn complete(call: &Call) -> Result<Vec<u8>, Error> {
    let params: Value = serde_json::from_slice(call.params()).unwrap_or_default();
    let begun = params["argument"]["value"].as_str().ok_or_else(|| Error::invalid_params("`argument` is missing"))?;
    let is_known = params["ref"]["name"] == "greet" && params["argument"]["name"] == "name";
    let fits = |name: &&str| is_known && name.to_lowercase().starts_with(&begun.to_lowercase());
    let values: Vec<_> = NAMES.into_iter().filter(fits).collect();
    Ok(json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }).to_string().into_bytes())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Yes,
    No,
}

fn text_result(text: &str, verdict: Verdict) -> Vec<u8> {
    let mut result = json!({ "content": [{ "type": "text", "text": text }] });
    if verdict == Verdict::No {
        result["isError"] = true.into();
    }
    result.to_string().into_bytes()
}
