//! Asking the user before something is changed, signed or published: with a request of our own, or in the stateless era
//! with a result that asks back.

use crate::failure::Failure;
use crate::session::Session;
use crate::tool::About;
use rialto_mcp::call::Call;
use rialto_mcp::json;
use serde_json::{Value, json};

/// Under which name the stateless era keeps our question.
const QUESTION: &str = "confirm";

/// No question shows more of a value.
const MAX_SHOWN: usize = 500;

/// What the user says.
pub(crate) enum Consent {
    Given,
    /// The question has to go out first, as this result.
    Asked(Vec<u8>),
}

pub(crate) async fn consent(
    call: &Call,
    about: &About,
    arguments: &Value,
    session: &Session,
) -> Result<Consent, Failure> {
    let ability = json::get(&call.profile.capabilities, "elicitation");
    // An empty object stands for forms, the only way there was at first.
    let has_form = |ability: &[u8]| json::get(ability, "form").is_some() || json::get(ability, "url").is_none();
    if !ability.is_some_and(has_form) {
        return Err(Failure::denied(
            "the operator wants the user to confirm this, and this client cannot ask its user (elicitation)",
        ));
    }
    let question = json!({
        "mode": "form",
        "message": message(about, arguments, session),
        "requestedSchema": { "type": "object", "properties": {} },
    });
    if !call.version().is_modern() {
        let asked = call.ask("elicitation/create", question.to_string().as_bytes()).await;
        return match asked.as_ref().map(|response| response.result()) {
            Ok(Some(answer)) => judge(answer),
            Ok(None) => Err(Failure::denied("the client refused to ask its user")),
            Err(fault) => Err(Failure::timeout(format!("the user was asked and did not answer: {fault}"))),
        };
    }
    // The answer counts only for what was asked about.
    let state = json!([about.name, arguments]).to_string();
    let is_same = json::get_string(call.params(), "requestState").is_some_and(|given| *given == *state);
    let answer = json::get(call.params(), "inputResponses").and_then(|answers| json::get(answers, QUESTION));
    match answer {
        Some(answer) if is_same => judge(answer),
        _ => {
            let question = json!({ "method": "elicitation/create", "params": question });
            let result = json!({
                "resultType": "input_required",
                "inputRequests": { QUESTION: question },
                "requestState": state,
            });
            Ok(Consent::Asked(result.to_string().into_bytes()))
        }
    }
}

fn judge(answer: &[u8]) -> Result<Consent, Failure> {
    match json::get_string(answer, "action").as_deref() {
        Some("accept") => Ok(Consent::Given),
        _ => Err(Failure::denied("the user said no")),
    }
}

/// What is about to happen, in words. What a model wrote is shown as it is, but never as part of our own words.
fn message(about: &About, arguments: &Value, session: &Session) -> String {
    let who = session.keyring.active().ok().flatten().map(|identity| format!(" as `{}`", identity.label));
    let mut text = format!("{}{}? ({})", about.title, who.unwrap_or_default(), about.name);
    for (name, value) in shown(arguments, session, MAX_SHOWN) {
        text.push_str(&format!("\n  {name}: {value}"));
    }
    text
}

/// The arguments without secrets, each cut to a length that people read.
pub(crate) fn shown(arguments: &Value, session: &Session, longest: usize) -> Vec<(String, Value)> {
    let shorten = |text: String| match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    let show = |name: &str, value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        if matches!(name, "private_key" | "key_material") && !text.starts_with("npub1") && !text.starts_with("label:") {
            return Value::from("…");
        }
        // Nobody reads a file in base64, and nobody sees what is in it.
        if name == "data" {
            return Value::from(format!("({} characters)", text.chars().count()));
        }
        let masked = session.masked(&text).unwrap_or_else(|_| "…".to_owned());
        match value {
            Value::Bool(_) | Value::Number(_) => value.clone(),
            _ => Value::from(shorten(masked)),
        }
    };
    arguments.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), show(name, value))).collect()
}
