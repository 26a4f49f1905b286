//! What a server session says, in the words of each version.

use crate::error::{Error, Form};
use crate::id::Id;
use crate::json;
use crate::message::{self, Response};
use crate::peer::{Filter, subscription_member};
use crate::server::Description;
use crate::version::{Version, meta};
use bytes::Bytes;

/// How a request is answered.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A result object made here.
    Result(Vec<u8>),
    /// A response that came from elsewhere and is passed on as it is.
    Response(Response),
    Error(Error),
}

impl Answer {
    /// `{}`
    pub fn empty() -> Self {
        Answer::Result(b"{}".to_vec())
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Answer::Response(response)
    }
}

impl From<Result<Vec<u8>, Error>> for Answer {
    fn from(result: Result<Vec<u8>, Error>) -> Self {
        result.map_or_else(Answer::Error, Answer::Result)
    }
}

/// A whole error response, for transports that refuse a message before a session sees it.
pub fn error_response(id: Option<&Id>, error: &Error, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    write_error(&mut out, id, error, "", version);
    out
}

/// Results of these carry hints for caches in the stateless era.
const CACHEABLE: [&str; 6] =
    ["tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list", "server/discover"];

/// The methods that the form of an answer depends on; all others are `""`.
pub(crate) fn known_method(method: &str) -> &'static str {
    let mut known = CACHEABLE.into_iter().chain(["tools/call", "initialize"]);
    known.find(|name| *name == method).unwrap_or("")
}

/// Writes a server's answer in the form of `version`.
pub(crate) fn write(
    out: &mut Vec<u8>,
    id: &Id,
    answer: Answer,
    method: &str,
    version: Version,
    info: impl FnOnce() -> Bytes,
) {
    if !version.is_modern() {
        return write_plain(out, id, answer, method, version);
    }
    let made = match &answer {
        Answer::Result(result) => complete(result, method, &info()).map(Answer::Result),
        Answer::Response(response) => response
            .result()
            .and_then(|result| complete(result, method, &info()))
            .map(|result| Answer::Response(response.with_result(&result))),
        Answer::Error(error) if method == "tools/call" && error.kind.form(version) == Form::ToolResult => {
            let result = error.tool_result();
            Some(Answer::Result(complete(&result, method, &info()).unwrap_or(result)))
        }
        Answer::Error(_) => None,
    };
    write_plain(out, id, made.unwrap_or(answer), method, version);
}

/// Writes an answer without the additions that only servers owe.
pub(crate) fn write_plain(out: &mut Vec<u8>, id: &Id, answer: Answer, method: &str, version: Version) {
    match answer {
        Answer::Result(result) => message::write_result(out, id, &result),
        Answer::Response(response) => response.write(out, id),
        Answer::Error(error) => write_error(out, Some(id), &error, method, version),
    }
}

/// Writes an error in the form of `version`: a number, or a result that the model reads.
pub(crate) fn write_error(out: &mut Vec<u8>, id: Option<&Id>, error: &Error, method: &str, version: Version) {
    const INTERNAL: i32 = -32603;
    match (error.kind.form(version), id) {
        (Form::ToolResult, Some(id)) if method == "tools/call" => message::write_result(out, id, &error.tool_result()),
        // Only tool calls have such results.
        (Form::ToolResult, _) => message::write_error(out, id, &error.object(INTERNAL), version),
        (Form::Error(code), _) => message::write_error(out, id, &error.object(code), version),
    }
}

/// Adds what the stateless era requires of every result and this one lacks; `None` if it lacks nothing.
fn complete(result: &[u8], method: &str, info: &[u8]) -> Option<Vec<u8>> {
    let [kind, ttl, scope, meta_place] = json::find(result, ["resultType", "ttlMs", "cacheScope", "_meta"]).ok()?;
    let is_complete =
        kind.as_ref().is_none_or(|place| json::string(&result[place.clone()]).as_deref() == Some("complete"));
    let mut members = Vec::new();
    if kind.is_none() {
        json::push_member(&mut members, b"resultType", b"\"complete\"");
    }
    if is_complete && CACHEABLE.contains(&method) {
        // What a policy filtered must not be shared, and what may change any moment must not be kept.
        if ttl.is_none() {
            json::push_member(&mut members, b"ttlMs", b"0");
        }
        if scope.is_none() {
            json::push_member(&mut members, b"cacheScope", b"\"private\"");
        }
    }
    let told = meta_place.is_some_and(|place| json::get(&result[place], meta::SERVER_INFO).is_some());
    if told && members.is_empty() {
        return None;
    }
    let result = json::with_members(result, &members);
    if told {
        return Some(result);
    }
    let mut member = Vec::new();
    json::push_member(&mut member, meta::SERVER_INFO.as_bytes(), info);
    Some(json::with_meta(&result, &member))
}

fn describe(out: &mut Vec<u8>, description: &Description) {
    out.extend_from_slice(b"\"capabilities\":");
    out.extend_from_slice(&description.capabilities);
    if let Some(instructions) = &description.instructions {
        out.extend_from_slice(b",\"instructions\":");
        json::write_string(out, instructions);
    }
    if !description.more.is_empty() {
        out.push(b',');
        out.extend_from_slice(&description.more);
    }
}

pub(crate) fn initialize_result(description: &Description, version: Version) -> Vec<u8> {
    let mut out = format!("{{\"protocolVersion\":\"{version}\",\"serverInfo\":").into_bytes();
    out.extend_from_slice(&description.info);
    out.push(b',');
    describe(&mut out, description);
    out.push(b'}');
    out
}

pub(crate) fn discover_result(description: &Description) -> Vec<u8> {
    let mut out = format!("{{\"supportedVersions\":[\"{}\"],", Version::LATEST).into_bytes();
    describe(&mut out, description);
    out.push(b'}');
    out
}

/// What of the wanted notifications this server can send.
pub(crate) fn listen_filter(params: &[u8], capabilities: &[u8]) -> Result<Filter, Error> {
    let Some(wanted) = json::get(params, "notifications").filter(|value| value.first() == Some(&b'{')) else {
        return Err(Error::invalid_params("`notifications` must be an object"));
    };
    let has = |capability: &str, flag: &str| {
        json::get(capabilities, capability).and_then(|value| json::get(value, flag)) == Some(b"true")
    };
    let wants = |key: &str| json::get(wanted, key) == Some(b"true");
    let mut filter = Filter {
        tools: wants("toolsListChanged") && has("tools", "listChanged"),
        prompts: wants("promptsListChanged") && has("prompts", "listChanged"),
        resources: wants("resourcesListChanged") && has("resources", "listChanged"),
        uris: Vec::new(),
    };
    if let Some(uris) = json::get(wanted, "resourceSubscriptions") {
        let bad = || Error::invalid_params("`resourceSubscriptions` must be a list of strings");
        let uris: Vec<String> = serde_json::from_slice(uris).map_err(|_| bad())?;
        if has("resources", "subscribe") {
            filter.uris = uris;
        }
    }
    Ok(filter)
}

pub(crate) fn acknowledgement(id: &[u8], filter: &Filter) -> Vec<u8> {
    let mut agreed = Vec::new();
    for (key, on) in [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ] {
        if on {
            agreed.push(format!("\"{key}\":true"));
        }
    }
    if !filter.uris.is_empty() {
        agreed.push(format!("\"resourceSubscriptions\":{}", serde_json::json!(filter.uris)));
    }
    let object = format!("{{\"notifications\":{{{}}}}}", agreed.join(","));
    json::with_meta(object.as_bytes(), &subscription_member(id))
}

pub(crate) fn listen_result(id: &[u8]) -> Vec<u8> {
    json::with_meta(b"{}", &subscription_member(id))
}
