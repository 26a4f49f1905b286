//! What a stateless request repeats in its headers, so that whoever stands in between can route it unread.
//!
//! A tool whose definition breaks the rules for that must not be called over HTTP: it is taken out of the list.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use rialto_mcp::json;
use rialto_mcp::message::Request;
use rialto_mcp::mirror::{self, Mirrored};
use std::collections::HashMap;
use std::ops::Range;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The arguments of a server's tools that are repeated.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    tools: HashMap<String, Vec<Mirrored>>,
}

/// A tool that was taken out of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excluded {
    pub(super) tool: String,
    pub(super) why: String,
}

impl Mirror {
    /// Learns from an answer to `tools/list`; gives it back without the tools that must not be called.
    pub(super) fn learn(&mut self, answer: Bytes) -> (Bytes, Vec<Excluded>) {
        let mut excluded = Vec::new();
        let Some((place, tools)) = tools_of(&answer) else { return (answer, excluded) };
        let mut kept = Vec::new();
        for tool in tools {
            let text = &answer[place.start + tool.start..place.start + tool.end];
            let name = || json::get_string(text, "name").unwrap_or_default().into_owned();
            match mirror::of_tool(text) {
                Ok(mirrored) if mirrored.is_empty() && self.tools.is_empty() => kept.push(text),
                Ok(mirrored) => {
                    self.tools.insert(name(), mirrored);
                    kept.push(text);
                }
                Err(why) => excluded.push(Excluded { tool: name(), why }),
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
            if let Ok(value) = HeaderValue::from_str(&mirror::encode(text)) {
                headers.insert(name, value);
            }
        };
        add(METHOD, request.method());
        let Some(name) = mirror::name(request.method(), request.params()) else { return };
        add(NAME, &name);
        let mirrored = self.tools.get(&*name).filter(|_| request.method() == "tools/call");
        for mirrored in mirrored.into_iter().flatten() {
            let header = HeaderName::from_bytes(format!("mcp-param-{}", mirrored.header).as_bytes());
            if let (Ok(header), Some(value)) = (header, mirrored.value(request.params())) {
                add(header, &value);
            }
        }
    }
}

/// Where the list of tools stands in an answer, and where in it each tool does.
fn tools_of(answer: &[u8]) -> Option<(Range<usize>, Vec<Range<usize>>)> {
    let [result] = json::find(answer, ["result"]).ok()?;
    let result = result?;
    let [tools] = json::find(&answer[result.clone()], ["tools"]).ok()?;
    let tools = tools?;
    let place = result.start + tools.start..result.start + tools.end;
    let elements = json::elements(&answer[place.clone()]).ok()?;
    Some((place, elements))
}

#[cfg(test)]
mod tests {
    use super::{Excluded, Mirror};
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
}
