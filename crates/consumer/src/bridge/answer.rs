//! What services answer, as a host expects it.

use crate::error::Error as RequestError;
use crate::payment::Unpaid;
use crate::reply::Reply;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_wire::dvmcp::answer;
use serde_json::{Value, json};

/// Where an answer came from, in its `_meta`.
const PROVIDER: &str = "rialto/provider";

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked<'a> {
    Tool(&'a str),
    Resource(&'a str),
    Prompt(&'a str),
    Completion,
}

/// A result or a definition with its provider in it. Whatever the provider itself wrote there is replaced.
pub(super) fn stamped(object: &[u8], npub: &str) -> Vec<u8> {
    let mut member = Vec::new();
    json::push_member(&mut member, PROVIDER.as_bytes(), &json::quoted(npub));
    let forged = json::find(object, ["_meta"]).ok().and_then(|[meta]| meta);
    match forged.filter(|meta| object[meta.start] == b'{') {
        Some(meta) if json::find(&object[meta.clone()], [PROVIDER]) != Ok([None]) => {
            let clean = json::without_members(&object[meta.clone()], &[PROVIDER]);
            let mut out = Vec::with_capacity(object.len());
            json::splice(&mut out, object, &[(meta, &clean)]);
            json::with_meta(&out, &member)
        }
        Some(_) => json::with_meta(object, &member),
        // A `_meta` that is no object would stand beside ours.
        None => json::with_meta(&json::without_members(object, &["_meta"]), &member),
    }
}

/// The result for the host.
pub(super) fn result(reply: Reply, asked: Asked<'_>, npub: &str) -> Result<Vec<u8>, Error> {
    if let Some(failure) = reply.failure {
        return Err(error(&RequestError::Failed(failure), asked, npub));
    }
    let content = reply.content.into_bytes();
    let value: Value = serde_json::from_slice(&content).unwrap_or_default();
    let repaired = answer::repaired(value.clone());
    // What needs no repair stays as it was written, to the last digit.
    let content = if repaired == value { content } else { repaired.to_string().into_bytes() };
    Ok(stamped(&content, npub))
}

/// The error for the host.
pub(super) fn error(error: &RequestError, asked: Asked<'_>, npub: &str) -> Error {
    let kind = match error {
        RequestError::Failed(failure) => kind_of(&failure.code, asked),
        RequestError::Misfit { .. } => Kind::InvalidArguments,
        RequestError::ToolsOnly => Kind::CapabilityUnsupported,
        _ if matches!(asked, Asked::Tool(_)) => Kind::ToolFailed,
        error if error.is_timeout() => Kind::Timeout,
        _ => Kind::Unavailable,
    };
    let message = match error {
        RequestError::Failed(failure) => failure.message.clone(),
        RequestError::Misfit { message, .. } => message.clone(),
        other => other.to_string(),
    };
    let mut out = Error::new(kind, message).with("reason", error.code()).with("provider", npub);
    let pointer = match error {
        RequestError::Failed(failure) => failure.pointer.as_deref(),
        RequestError::Misfit { pointer, .. } => pointer.as_deref(),
        _ => None,
    };
    if let Some(pointer) = pointer {
        out = out.with("pointer", pointer);
    }
    match asked {
        Asked::Tool(name) | Asked::Prompt(name) => out.with("name", name),
        Asked::Resource(uri) => out.with("uri", uri),
        Asked::Completion => out,
    }
}

/// The result of a tool that was not paid for: an error that a model can read, with everything that a person needs.
pub(super) fn unpaid(error: &RequestError, unpaid: &Unpaid, npub: &str) -> Vec<u8> {
    let (message, hint) = (error.to_string(), unpaid.why.hint());
    let amount = unpaid.amount.map(|amount| amount.sat_rounded_up());
    let invoice = &unpaid.demand.invoice;
    let lines = [Some(message.clone()), invoice.as_ref().map(|text| format!("invoice: {text}")), hint.clone()];
    let text = lines.into_iter().flatten().collect::<Vec<_>>().join("\n");
    let error = json!({
        "code": error.code(),
        "message": message,
        "amount_sat": amount,
        "invoice": invoice,
        "hint": hint,
        "provider": npub,
    });
    let content = [json!({ "type": "text", "text": text })];
    let result = json!({ "content": content, "structuredContent": { "error": error }, "isError": true });
    stamped(result.to_string().as_bytes(), npub)
}

/// What a provider's word means here.
fn kind_of(code: &str, asked: Asked<'_>) -> Kind {
    let is_tool = matches!(asked, Asked::Tool(_));
    match code {
        "unknown_tool" => Kind::ToolNotFound,
        "unknown_prompt" => Kind::PromptNotFound,
        "unknown_resource" => Kind::ResourceNotFound,
        "unauthorized" => Kind::AccessDenied,
        "invalid_input" | "invalid_request" if is_tool => Kind::InvalidArguments,
        "invalid_input" | "invalid_request" => Kind::InvalidParams,
        "unknown_command" => Kind::CapabilityUnsupported,
        "unsupported" if !is_tool => Kind::CapabilityUnsupported,
        _ if is_tool => Kind::ToolFailed,
        "timeout" => Kind::Timeout,
        "upstream_unavailable" | "outcome_unknown" => Kind::Unavailable,
        "busy" | "rate_limited" => Kind::Busy,
        _ => Kind::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, kind_of, result, stamped};
    use crate::reply::Reply;
    use rialto_mcp::error::Kind;

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_provider_cannot_forge_where_a_result_comes_from() {
        let cases = [
            (r#"{"a":0.10}"#, r#"{"_meta":{"rialto/provider":"npub1x"},"a":0.10}"#),
            (r#"{"_meta":{"k":1}}"#, r#"{"_meta":{"rialto/provider":"npub1x","k":1}}"#),
            (r#"{"_meta":{"rialto/provider":"npub1evil"}}"#, r#"{"_meta":{"rialto/provider":"npub1x"}}"#),
            (
                r#"{"_meta":{"rialto/provider":"a","rialto\/provider":"b","k":1}}"#,
                r#"{"_meta":{"rialto/provider":"npub1x","k":1}}"#,
            ),
            (r#"{"_meta":7,"a":1}"#, r#"{"_meta":{"rialto/provider":"npub1x"},"a":1}"#),
        ];
        for (given, expected) in cases {
            assert_eq!(text(&stamped(given.as_bytes(), "npub1x")), expected);
        }
    }

    #[test]
    fn results_keep_every_field_and_are_repaired_only_where_needed() {
        let read = |content: &str| {
            let reply = Reply { content: content.into(), failure: None };
            text(&result(reply, Asked::Tool("t"), "n").unwrap()).to_owned()
        };
        let kept = read(r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":0.30},"future":[1]}"#);
        assert!(kept.ends_with(r#""structuredContent":{"n":0.30},"future":[1]}"#), "{kept}");
        let repaired = read(r#"{"content":[{"type":"image/svg+xml","text":"<svg/>"}]}"#);
        assert!(repaired.contains(r#""mimeType":"image/svg+xml""#), "{repaired}");
    }

    #[test]
    fn every_word_of_a_provider_has_its_kind() {
        let (tool, resource) = (Asked::Tool("t"), Asked::Resource("u"));
        for (code, as_tool, as_resource) in [
            ("unknown_tool", Kind::ToolNotFound, Kind::ToolNotFound),
            ("unknown_resource", Kind::ResourceNotFound, Kind::ResourceNotFound),
            ("invalid_input", Kind::InvalidArguments, Kind::InvalidParams),
            ("timeout", Kind::ToolFailed, Kind::Timeout),
            ("upstream_unavailable", Kind::ToolFailed, Kind::Unavailable),
            ("busy", Kind::ToolFailed, Kind::Busy),
            ("unauthorized", Kind::AccessDenied, Kind::AccessDenied),
            ("unsupported", Kind::ToolFailed, Kind::CapabilityUnsupported),
            ("unknown_command", Kind::CapabilityUnsupported, Kind::CapabilityUnsupported),
            ("anything", Kind::ToolFailed, Kind::Internal),
        ] {
            assert_eq!((kind_of(code, tool), kind_of(code, resource)), (as_tool, as_resource), "{code}");
        }
    }
}
