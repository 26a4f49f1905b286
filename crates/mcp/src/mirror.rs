//! What of a stateless request is repeated in HTTP headers, for both sides: which arguments of a tool, and in which spelling.

use crate::json;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use memchr::memmem;
use serde_json::Value;
use std::borrow::Cow;

/// Around a value that a header cannot hold as it is.
const OPENING: &str = "=?base64?";
const CLOSING: &str = "?=";

/// The keyword in a tool's schema.
const KEYWORD: &str = "x-mcp-header";

/// The largest whole number that every JSON reader takes exactly.
const MAX_SAFE: i64 = (1 << 53) - 1;

/// An argument of a tool that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    /// The way to the argument: its name, or names from the outside in.
    pub argument: Vec<String>,
    /// What follows `Mcp-Param-` in the name of the header.
    pub header: String,
}

/// Why a header value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no Base64 of UTF-8")]
pub struct Garbled;

/// The arguments that a tool's definition wants in headers; or why nobody may use that definition over HTTP.
pub fn of_tool(definition: &[u8]) -> Result<Vec<Mirrored>, String> {
    // Few tools have any. An escape may hide a spelling of the keyword.
    if memmem::find(definition, KEYWORD.as_bytes()).is_none() && memchr::memchr(b'\\', definition).is_none() {
        return Ok(Vec::new());
    }
    let schema = json::get(definition, "inputSchema").unwrap_or(b"{}");
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    walk(&schema, Some(&mut Vec::new()), &mut found)?;
    let mut names: Vec<_> = found.iter().map(|mirrored| mirrored.header.to_ascii_lowercase()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two arguments want the header `Mcp-Param-{}`", pair[0])),
        None => Ok(found),
    }
}

/// Looks through one schema. `way` is how its value is reached; `None` where no single value is.
fn walk(schema: &Value, mut way: Option<&mut Vec<String>>, found: &mut Vec<Mirrored>) -> Result<(), String> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter().try_for_each(|item| walk(item, None, found)),
        _ => return Ok(()),
    };
    if let Some(header) = members.get(KEYWORD) {
        let header = header.as_str().filter(|name| is_token(name));
        let header = header.ok_or_else(|| format!("a value of `{KEYWORD}` is no name of a header"))?;
        let argument = way.as_deref().filter(|way| !way.is_empty());
        let argument =
            argument.ok_or_else(|| format!("`{header}` is wanted of something that is no single argument"))?;
        let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["string", "integer", "boolean"].contains(&kind) {
            return Err(format!("`{header}` is wanted of an argument that is no string, integer or boolean"));
        }
        found.push(Mirrored { argument: argument.clone(), header: header.to_owned() });
    }
    for (key, value) in members {
        match (key.as_str(), value, way.as_deref_mut()) {
            ("properties", Value::Object(properties), Some(way)) => {
                for (name, property) in properties {
                    way.push(name.clone());
                    walk(property, Some(way), found)?;
                    way.pop();
                }
            }
            // Plain data may look like anything.
            ("const" | "default" | "enum" | "examples", ..) => {}
            _ => walk(value, None, found)?,
        }
    }
    Ok(())
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The name or URI that a request of this method repeats in `Mcp-Name`.
pub fn name<'a>(method: &str, params: &'a [u8]) -> Option<Cow<'a, str>> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    json::get_string(params, key)
}

impl Mirrored {
    /// The argument as a header says it; `None` if the call does not have it.
    pub fn value(&self, params: &[u8]) -> Option<String> {
        let mut place = json::get(params, "arguments")?;
        for name in &self.argument {
            place = json::get(place, name)?;
        }
        match place.first()? {
            b'"' => json::string(place).map(Cow::into_owned),
            b'n' => None,
            _ => {
                let text = std::str::from_utf8(place).ok()?;
                // 42.0 and 4.2e1 are the same whole number.
                Some(whole(text).map_or_else(|| text.to_owned(), |number| number.to_string()))
            }
        }
    }

    /// Whether a header says what the call has; both may be absent.
    pub fn agrees(&self, header: Option<&str>, params: &[u8]) -> Result<bool, Garbled> {
        let header = header.map(decode).transpose()?;
        let value = self.value(params);
        Ok(match (header.as_deref(), value.as_deref()) {
            (Some(header), Some(value)) => header == value || whole(header).is_some_and(|n| n.to_string() == value),
            (header, value) => header.is_none() && value.is_none(),
        })
    }
}

/// The whole number that a text in JSON's spelling stands for, if it is one that nobody reads differently.
fn whole(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(number);
    }
    let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0)?;
    // Beyond this, one double stands for several whole numbers.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "both are exact in this range")]
    (number.abs() <= MAX_SAFE as f64).then_some(number as i64)
}

/// A value in a form that every header can hold.
pub fn encode(value: &str) -> Cow<'_, str> {
    let is_plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && value.trim() == value;
    let is_marked = value.starts_with(OPENING) && value.ends_with(CLOSING);
    if is_plain && !is_marked {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{OPENING}{}{CLOSING}", BASE64_STANDARD.encode(value)))
}

/// What a header's value stands for.
pub fn decode(value: &str) -> Result<Cow<'_, str>, Garbled> {
    let value = value.trim_matches([' ', '\t']);
    let Some(inner) = value.strip_prefix(OPENING).and_then(|rest| rest.strip_suffix(CLOSING)) else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = BASE64_STANDARD.decode(inner).map_err(|_| Garbled)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Garbled)
}

#[cfg(test)]
mod tests {
    use super::{Garbled, Mirrored, decode, encode, of_tool};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn tool(schema: &Value) -> Result<Vec<Mirrored>, String> {
        of_tool(json!({ "name": "t", "inputSchema": schema }).to_string().as_bytes())
    }

    fn property(schema: &Value) -> Result<Vec<Mirrored>, String> {
        tool(&json!({ "type": "object", "properties": { "a": schema } }))
    }

    #[test]
    fn arguments_are_found_where_the_schema_leads_to_one_value() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "in": {"properties": {"deep": {"type": "integer", "x-mcp-header": "Deep"}}},
            "plain": {"type": "string", "default": {"x-mcp-header": "Data"}},
        }});
        let mut found = tool(&schema).unwrap();
        found.sort_by(|a, b| a.header.cmp(&b.header));
        let expected = |argument: &[&str], header: &str| Mirrored {
            argument: argument.iter().map(|name| (*name).to_owned()).collect(),
            header: header.to_owned(),
        };
        assert_eq!(found, [expected(&["in", "deep"], "Deep"), expected(&["region"], "Region")]);
    }

    #[test]
    fn definitions_that_nobody_may_use() {
        let header = |name: &str| json!({"type": "string", "x-mcp-header": name});
        for name in ["", "a b", "a:b", "\u{e4}", "a\rb", "a\u{7f}b"] {
            assert!(property(&header(name)).is_err(), "{name:?}");
        }
        for kind in
            [json!("object"), json!("array"), json!("null"), json!("number"), json!(["string", "null"]), Value::Null]
        {
            assert!(property(&json!({"type": kind, "x-mcp-header": "A"})).is_err(), "{kind}");
        }
        assert!(property(&json!({"type": "string", "x-mcp-header": 7})).is_err());
        for place in ["items", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$defs", "prefixItems"] {
            let inner =
                if place.ends_with("Of") || place == "prefixItems" { json!([header("A")]) } else { header("A") };
            assert!(property(&json!({ "type": "string", place: inner })).is_err(), "{place}");
        }
        assert!(tool(&json!({"properties": {"a": header("Same"), "b": header("sAME")}})).is_err());
        assert!(tool(&header("Root")).is_err());
    }

    #[test]
    fn values_are_compared_as_what_they_stand_for() {
        let mirrored = Mirrored { argument: vec!["a".into()], header: "A".into() };
        for (header, arguments, agrees) in [
            (Some("x"), r#"{"a":"x"}"#, true),
            (Some("X"), r#"{"a":"x"}"#, false),
            (Some("=?base64?SGVsbG8=?="), r#"{"a":"Hello"}"#, true),
            (Some("=?base64?SGVsbG8="), r#"{"a":"=?base64?SGVsbG8="}"#, true),
            (Some("42"), r#"{"a":42}"#, true),
            (Some("42.0"), r#"{"a":42}"#, true),
            (Some("42"), r#"{"a":4.2e1}"#, true),
            (Some("43"), r#"{"a":42}"#, false),
            (Some("true"), r#"{"a":true}"#, true),
            (Some("True"), r#"{"a":true}"#, false),
            (Some("9007199254740993"), r#"{"a":9007199254740992}"#, false),
            (None, r#"{"a":null}"#, true),
            (None, "{}", true),
            (None, r#"{"a":"x"}"#, false),
            (Some("x"), "{}", false),
            (Some(""), r#"{"a":""}"#, true),
        ] {
            let params = format!(r#"{{"arguments":{arguments}}}"#);
            assert_eq!(mirrored.agrees(header, params.as_bytes()), Ok(agrees), "{header:?} {arguments}");
        }
        for garbled in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?="] {
            assert_eq!(mirrored.agrees(Some(garbled), b"{}"), Err(Garbled), "{garbled}");
        }
    }

    #[test]
    fn values_that_headers_cannot_hold() {
        for (value, encoded) in [
            ("us-west1", "us-west1"),
            ("Hello, \u{4e16}\u{754c}", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(value), encoded);
        }
    }

    proptest! {
        #[test]
        fn every_value_survives(value in any::<String>()) {
            let encoded = encode(&value).into_owned();
            prop_assert!(encoded.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
            prop_assert_eq!(decode(&encoded).unwrap(), value);
        }
    }
}
