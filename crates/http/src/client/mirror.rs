//! What a stateless request repeats in its headers, so that whoever stands in between can route it unread: the method, the
//! name, and the arguments that a tool's schema marks with `x-mcp-header`.
//!
//! A tool whose marks break the rules must not be called over HTTP: it is taken out of the list.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use rialto_mcp::json;
use rialto_mcp::message::Request;
use serde_json::Value;
use std::collections::HashMap;

const MARK: &str = "x-mcp-header";

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// How deep the arguments of a tool may be nested where marks are looked for.
const MAX_DEPTH: usize = 64;

/// An argument that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    header: HeaderName,
    /// The keys that lead to it, from the arguments on.
    path: Vec<String>,
}

/// The marks of a server's tools.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    tools: HashMap<String, Vec<Mark>>,
}

/// A tool that was taken out of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excluded {
    pub(super) tool: String,
    pub(super) why: String,
}

impl Mirror {
    /// Learns the marks in an answer to `tools/list`; gives it back without the tools whose marks are wrong.
    pub(super) fn learn(&mut self, answer: Bytes) -> (Bytes, Vec<Excluded>) {
        let mut excluded = Vec::new();
        // Nearly no tool has marks: one search is all that a list without them costs.
        if memchr::memmem::find(&answer, MARK.as_bytes()).is_none() {
            return (answer, excluded);
        }
        let Some((place, tools)) = tools_of(&answer) else { return (answer, excluded) };
        let mut kept = Vec::new();
        for tool in tools {
            let text = &answer[place.start + tool.start..place.start + tool.end];
            let name = json::get_string(text, "name").unwrap_or_default().into_owned();
            let schema = json::get(text, "inputSchema").and_then(|schema| serde_json::from_slice(schema).ok());
            match marks(&schema.unwrap_or(Value::Null)) {
                Ok(marks) => {
                    self.tools.insert(name, marks);
                    kept.push(text);
                }
                Err(why) => excluded.push(Excluded { tool: name, why }),
            }
        }
        if excluded.is_empty() {
            return (answer, excluded);
        }
        let list = [b"[".as_slice(), &kept.join(b",".as_slice()), b"]"].concat();
        let mut out = Vec::with_capacity(answer.len());
        json::splice(&mut out, &answer, &[(place, &list)]);
        (out.into(), excluded)
    }

    /// Adds the headers that repeat what a request says.
    pub(super) fn write(&self, headers: &mut HeaderMap, request: &Request) {
        let mut add = |name: HeaderName, text: &str| {
            if let Ok(value) = HeaderValue::from_str(&encoded(text)) {
                headers.insert(name, value);
            }
        };
        add(METHOD, request.method());
        let key = match request.method() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return,
        };
        let Some(name) = json::get_string(request.params(), key) else { return };
        add(NAME, &name);
        let marks = self.tools.get(&*name).filter(|_| request.method() == "tools/call");
        for mark in marks.into_iter().flatten() {
            let arguments = json::get(request.params(), "arguments");
            let value = mark.path.iter().try_fold(arguments.unwrap_or(b"{}"), |object, key| json::get(object, key));
            match value {
                None | Some(b"null") => {}
                Some(value) => match json::string(value) {
                    Some(text) => add(mark.header.clone(), &text),
                    None => add(mark.header.clone(), &String::from_utf8_lossy(value)),
                },
            }
        }
    }
}

/// Where the list of tools stands in an answer, and where in it each tool does.
fn tools_of(answer: &[u8]) -> Option<(std::ops::Range<usize>, Vec<std::ops::Range<usize>>)> {
    let [result] = json::find(answer, ["result"]).ok()?;
    let result = result?;
    let [tools] = json::find(&answer[result.clone()], ["tools"]).ok()?;
    let tools = tools?;
    let place = result.start + tools.start..result.start + tools.end;
    let elements = json::elements(&answer[place.clone()]).ok()?;
    Some((place, elements))
}

/// The marks of one tool's schema, or what is wrong with them.
fn marks(schema: &Value) -> Result<Vec<Mark>, String> {
    let mut found = Vec::new();
    gather(schema, &mut Vec::new(), &mut found)?;
    for (place, mark) in found.iter().enumerate() {
        if found[..place].iter().any(|other| other.header == mark.header) {
            return Err(format!("two arguments are marked with the same header `{}`", mark.header));
        }
    }
    Ok(found)
}

fn gather(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mark>) -> Result<(), String> {
    let Value::Object(schema) = schema else { return Ok(()) };
    for (key, value) in schema {
        match key.as_str() {
            MARK => found.push(mark(schema, value, path)?),
            "properties" => {
                let Value::Object(properties) = value else { continue };
                if path.len() >= MAX_DEPTH {
                    return Err("its arguments are nested too deep".to_owned());
                }
                for (name, property) in properties {
                    path.push(name.clone());
                    gather(property, path, found)?;
                    path.pop();
                }
            }
            // Plain data, in which the word is no mark.
            "const" | "enum" | "default" | "example" | "examples" => {}
            // An argument below here may be there many times, or not at all.
            _ if holds_mark(value) => return Err(format!("`{MARK}` must not stand below `{key}`")),
            _ => {}
        }
    }
    Ok(())
}

fn holds_mark(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key(MARK) || members.values().any(holds_mark),
        Value::Array(items) => items.iter().any(holds_mark),
        _ => false,
    }
}

fn mark(schema: &serde_json::Map<String, Value>, name: &Value, path: &[String]) -> Result<Mark, String> {
    let name = name.as_str().filter(|name| !name.is_empty()).ok_or_else(|| format!("`{MARK}` must be a name"))?;
    if path.is_empty() {
        return Err(format!("`{MARK}` must stand in an argument's schema"));
    }
    if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Err(format!("`{MARK}` is for arguments that are a string, an integer or a boolean"));
    }
    let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes())
        .map_err(|_| format!("`{}` cannot be the name of a header", name.escape_debug()))?;
    Ok(Mark { header, path: path.to_vec() })
}

/// A value as it may stand in a header: visible ASCII as it is, everything else in base64.
fn encoded(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let is_padded = text.starts_with(' ') || text.ends_with(' ');
    // What looks encoded would be decoded.
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && !is_padded && !looks_encoded {
        return text.to_owned();
    }
    format!("=?base64?{}?=", STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::{Excluded, Mirror, encoded, marks};
    use bytes::Bytes;
    use hyper::HeaderMap;
    use rialto_mcp::message::{self, Incoming, Message, Request};
    use serde_json::{Value, json};

    fn request(method: &str, params: &Value) -> Request {
        let text = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        match message::parse(text.into()) {
            Incoming::Single(Ok(Message::Request(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    fn written(mirror: &Mirror, method: &str, params: &Value) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        mirror.write(&mut headers, &request(method, params));
        let mut all: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()))
            .collect();
        all.sort();
        all
    }

    fn list(tools: &Value) -> Bytes {
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": tools, "ttlMs": 0 } }).to_string().into()
    }

    #[test]
    fn method_and_name_are_repeated() {
        let mirror = Mirror::default();
        let check = |method: &str, params: Value, expected: &[(&str, &str)]| {
            let expected: Vec<_> = expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            assert_eq!(written(&mirror, method, &params), expected);
        };
        check("tools/list", json!({}), &[("mcp-method", "tools/list")]);
        check("tools/call", json!({"name": "a b"}), &[("mcp-method", "tools/call"), ("mcp-name", "a b")]);
        check("prompts/get", json!({"name": "é"}), &[("mcp-method", "prompts/get"), ("mcp-name", "=?base64?w6k=?=")]);
        check(
            "resources/read",
            json!({"uri": "file:///a%20b"}),
            &[("mcp-method", "resources/read"), ("mcp-name", "file:///a%20b")],
        );
        check("tools/call", json!({"name": 7}), &[("mcp-method", "tools/call")]);
    }

    #[test]
    fn marked_arguments_are_repeated_at_any_depth() {
        let mut mirror = Mirror::default();
        let tools = json!([{ "name": "t", "inputSchema": { "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "plain": { "type": "string" },
            "deep": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
            "flag": { "type": "boolean", "x-mcp-header": "Flag" },
        } } }]);
        let answer = list(&tools);
        assert_eq!(mirror.learn(answer.clone()), (answer, vec![]), "a list without faults stays as it is");
        let arguments = json!({ "region": "eu\nwest", "plain": "p", "deep": { "n": -12 }, "flag": null });
        let found = written(&mirror, "tools/call", &json!({ "name": "t", "arguments": arguments }));
        assert_eq!(
            found[2..],
            [
                ("mcp-param-n".to_owned(), "-12".to_owned()),
                ("mcp-param-region".to_owned(), "=?base64?ZXUKd2VzdA==?=".to_owned()),
            ]
        );
        assert_eq!(written(&mirror, "tools/call", &json!({ "name": "other", "arguments": arguments })).len(), 2);
    }

    #[test]
    fn tools_with_wrong_marks_leave_the_list() {
        let good = json!({ "name": "good", "inputSchema": { "type": "object" } });
        let one = |name: &str, property: Value| json!({ "name": name, "inputSchema": { "type": "object", "properties": { "p": property } } });
        let bad = [
            one("empty", json!({ "type": "string", "x-mcp-header": "" })),
            one("number", json!({ "type": "number", "x-mcp-header": "A" })),
            one("untyped", json!({ "x-mcp-header": "A" })),
            one("space", json!({ "type": "string", "x-mcp-header": "A B" })),
            one("not text", json!({ "type": "string", "x-mcp-header": 7 })),
            one("items", json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "A" } })),
            json!({ "name": "root", "inputSchema": { "type": "string", "x-mcp-header": "A" } }),
            json!({ "name": "twice", "inputSchema": { "properties": {
                "a": { "type": "string", "x-mcp-header": "Same" }, "b": { "type": "string", "x-mcp-header": "sAME" } } } }),
        ];
        for tool in bad {
            let mut mirror = Mirror::default();
            let (answer, excluded) = mirror.learn(list(&json!([tool, good])));
            assert_eq!(answer, list(&json!([good])), "{tool}");
            assert_eq!(
                excluded.iter().map(|Excluded { tool, .. }| tool.as_str()).collect::<Vec<_>>(),
                [tool["name"].as_str().unwrap()]
            );
        }
    }

    #[test]
    fn the_word_as_data_is_no_mark() {
        let schema = json!({ "properties": { "p": { "type": "object", "default": { "x-mcp-header": "A" } } } });
        assert_eq!(marks(&schema), Ok(vec![]));
    }

    #[test]
    fn values_that_a_header_cannot_hold_are_encoded() {
        for (text, expected) in [
            ("", ""),
            ("a b", "a b"),
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(encoded(text), expected);
        }
    }
}
