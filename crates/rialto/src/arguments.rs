//! Arguments of a tool as people type them: `city=Paris days=3`. What each word means follows from the tool's schema.

use std::fs;

use rialto_mcp::json;
use serde_json::Value;

use crate::failure::Failure;
use crate::suggest::nearest;

/// The longest file that one argument may hold.
const MAX_FILE: u64 = 1024 * 1024;

/// Puts together the arguments object; says what is wrong before anything is sent.
pub(crate) fn read(words: &[String], object: Option<&str>, schema: &Value, tool: &str) -> Result<String, Failure> {
    let mut given = match object {
        Some(text) => members(text)?,
        None => Vec::new(),
    };
    for word in words {
        let (key, text) = one(word, schema)?;
        add(&mut given, key, text, schema)?;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let takes_more = match schema.get("additionalProperties") {
        None | Some(Value::Bool(false)) => schema.get("patternProperties").is_some(),
        Some(_) => true,
    };
    if let Some(properties) = properties.filter(|_| !takes_more) {
        let stranger = given.iter().find(|(key, _)| !properties.contains_key(key));
        if let Some((key, _)) = stranger {
            return Err(unknown(key, properties.keys().map(String::as_str), tool));
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<&str> = required.filter(|key| !given.iter().any(|(known, _)| known == key)).collect();
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|key| format!("`{key}`")).collect();
        let usage: Vec<String> = missing.iter().map(|key| format!("{key}={}", placeholder(schema, key))).collect();
        return Err(Failure::usage(format!("`{tool}` also needs {}", names.join(", ")))
            .code("argument_missing")
            .hint(format!("add {}", usage.join(" "))));
    }
    let mut out = Vec::new();
    for (key, text) in &given {
        let quoted = json::quoted(key);
        json::push_member(&mut out, &quoted[1..quoted.len() - 1], text.as_bytes());
    }
    Ok(format!("{{{}}}", String::from_utf8_lossy(&out)))
}

/// The members of `--args`, each as it was written.
fn members(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let no_object = |why: String| {
        Failure::usage("--args is no JSON object")
            .cause(why)
            .code("arguments_invalid")
            .hint("--args '{\"key\": \"value\"}'")
    };
    json::check(text.as_bytes()).map_err(|flaw| no_object(flaw.to_string()))?;
    let mut found: Vec<(String, String)> = Vec::new();
    for member in json::Members::of(text.as_bytes()) {
        let member = member.map_err(|flaw| no_object(flaw.to_string()))?;
        let key = member.name().into_owned();
        if found.iter().any(|(known, _)| *known == key) {
            return Err(no_object(format!("`{key}` stands twice")));
        }
        found.push((key, text[member.value].to_owned()));
    }
    Ok(found)
}

fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str> + Clone, tool: &str) -> Failure {
    let failure = Failure::usage(format!("`{tool}` has no argument `{key}`")).code("argument_unknown");
    match nearest(key, known.clone()) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => {
            let names: Vec<&str> = known.collect();
            failure.hint(if names.is_empty() {
                "it takes none".to_owned()
            } else {
                format!("it takes {}", names.join(", "))
            })
        }
    }
}

/// What to write in place of a value.
pub(crate) fn placeholder(schema: &Value, key: &str) -> String {
    let property = &schema["properties"][key];
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let words: Vec<String> = values.iter().take(6).map(plain).collect();
        return words.join("|");
    }
    match types(property).first() {
        Some(&"integer" | &"number") => "NUMBER".to_owned(),
        Some(&"boolean") => "true|false".to_owned(),
        Some(&"array") => "A,B".to_owned(),
        Some(&"object") => "'{…}'".to_owned(),
        _ => "TEXT".to_owned(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// One word: its key, and its value as JSON text.
fn one(word: &str, schema: &Value) -> Result<(String, String), Failure> {
    let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty() && *key != ":") else {
        return Err(Failure::usage(format!("`{word}` is no argument"))
            .code("argument_malformed")
            .hint("write key=value, or key:=JSON, or key=@file"));
    };
    if let Some(key) = key.strip_suffix(':') {
        json::check(value.as_bytes()).map_err(|flaw| {
            Failure::usage(format!("`{key}` is no JSON value")).cause(flaw.to_string()).code("argument_malformed")
        })?;
        return Ok((key.to_owned(), value.to_owned()));
    }
    let value = match value.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => rest.to_owned(),
        Some(path) => file(key, path)?,
        None => value.to_owned(),
    };
    Ok((key.to_owned(), typed(key, &value, &schema["properties"][key])?))
}

fn file(key: &str, path: &str) -> Result<String, Failure> {
    let failed = |why: &dyn std::error::Error| {
        Failure::usage(format!("cannot read `{path}` for `{key}`"))
            .because(why)
            .code("argument_file")
            .hint(format!("for a value that begins with @ write {key}=@@…"))
    };
    let length = fs::metadata(path).map_err(|error| failed(&error))?.len();
    if length > MAX_FILE {
        return Err(failed(&std::io::Error::other(format!("it has more than {MAX_FILE} bytes"))));
    }
    fs::read_to_string(path).map_err(|error| failed(&error))
}

/// The types that a schema allows, if it says so simply.
fn types(schema: &Value) -> Vec<&str> {
    let own = match schema.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let choices = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    own.into_iter().chain(choices.flat_map(types)).collect()
}

/// A value as JSON text of a type that the schema allows.
fn typed(key: &str, value: &str, schema: &Value) -> Result<String, Failure> {
    let types = types(schema);
    let found = types.iter().filter(|name| **name != "string").find_map(|name| as_type(name, key, value, schema));
    let text = match found {
        Some(text) => text?,
        None if types.is_empty() && schema.get("enum").is_none() && json::check(value.as_bytes()).is_ok() => {
            // Nothing is known about it: what looks like JSON is JSON.
            value.trim().to_owned()
        }
        None if types.is_empty() || types.contains(&"string") => text_of(value),
        None => {
            return Err(
                Failure::usage(format!("`{key}` must be {}, not `{value}`", types.join(" or "))).code("argument_type")
            );
        }
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let written: Value = serde_json::from_str(&text).unwrap_or_default();
        if !values.contains(&written) {
            let words: Vec<String> = values.iter().map(plain).collect();
            let meant =
                nearest(value, words.iter().map(String::as_str)).map(|meant| format!("did you mean `{meant}`?"));
            return Err(Failure::usage(format!("`{key}` cannot be `{value}`"))
                .code("argument_value")
                .hint(meant.unwrap_or_else(|| format!("it is one of {}", words.join(", ")))));
        }
    }
    Ok(text)
}

fn text_of(value: &str) -> String {
    String::from_utf8_lossy(&json::quoted(value)).into_owned()
}

/// The value as this type, if it can be that.
fn as_type(name: &str, key: &str, value: &str, schema: &Value) -> Option<Result<String, Failure>> {
    let read = || serde_json::from_str::<Value>(value.trim()).ok();
    let is_it = match name {
        "integer" => read()?.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => read()?.is_number(),
        "boolean" => read()?.is_boolean(),
        "null" => read()?.is_null(),
        "object" => read()?.is_object(),
        "array" if value.trim_start().starts_with('[') => read()?.is_array(),
        "array" => {
            let items: Result<Vec<String>, Failure> =
                value.split(',').map(|item| typed(key, item.trim(), &schema["items"])).collect();
            return Some(items.map(|items| format!("[{}]", items.join(","))));
        }
        _ => false,
    };
    is_it.then(|| Ok(value.trim().to_owned()))
}

/// Adds a value. A key that is given again makes a list longer.
fn add(given: &mut Vec<(String, String)>, key: String, text: String, schema: &Value) -> Result<(), Failure> {
    let Some((_, known)) = given.iter_mut().find(|(known, _)| *known == key) else {
        given.push((key, text));
        return Ok(());
    };
    let items = |text: &str| serde_json::from_str::<Vec<Box<serde_json::value::RawValue>>>(text).ok();
    let is_list = types(&schema["properties"][&key]).contains(&"array");
    match (items(known), items(&text)) {
        (Some(mut all), Some(more)) if is_list => {
            all.extend(more);
            let texts: Vec<&str> = all.iter().map(|item| item.get()).collect();
            *known = format!("[{}]", texts.join(","));
            Ok(())
        }
        _ => Err(Failure::usage(format!("`{key}` is given twice")).code("argument_twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::talk::Paint;
    use serde_json::{Value, json};

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string" }, "days": { "type": "integer" }, "share": { "type": "number" },
                "deep": { "type": "boolean" }, "tags": { "type": "array", "items": { "type": "string" } },
                "sizes": { "type": "array", "items": { "type": "number" } }, "more": { "type": "object" },
                "unit": { "enum": ["C", "F"] }, "either": { "type": ["integer", "string"] }, "any": {},
                "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            },
            "required": ["city"],
        })
    }

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn words_get_the_types_of_the_schema() {
        let cases = [
            ("city=7", r#"{"city":"7"}"#),
            ("city=a=b days=3 share=0.30 deep=true", r#"{"city":"a=b","days":3,"share":0.30,"deep":true}"#),
            ("city=x tags=a,b tags=c", r#"{"city":"x","tags":["a","b","c"]}"#),
            ("city=x sizes=1,2.50", r#"{"city":"x","sizes":[1,2.50]}"#),
            ("city=x sizes=[1,2]", r#"{"city":"x","sizes":[1,2]}"#),
            ("city=x more={\"a\":1}", r#"{"city":"x","more":{"a":1}}"#),
            ("city=x unit=C either=5", r#"{"city":"x","unit":"C","either":5}"#),
            ("city=x either=five any=1 maybe=null", r#"{"city":"x","either":"five","any":1,"maybe":null}"#),
            ("city=x any=word", r#"{"city":"x","any":"word"}"#),
            ("city:=\"y\" city2:=1", ""),
            ("city=@@home", r#"{"city":"@home"}"#),
        ];
        for (line, expected) in cases {
            match read(&words(line), None, &schema(), "t") {
                Ok(text) => assert_eq!(text, expected, "{line}"),
                Err(failure) => assert!(expected.is_empty(), "{line}: {}", failure.to_text(Paint::Never)),
            }
        }
        let both = read(&words("days=2"), Some(r#"{"city":"x","n":0.10}"#), &json!({}), "t").unwrap();
        assert_eq!(both, r#"{"city":"x","n":0.10,"days":2}"#);
    }

    #[test]
    fn mistakes_are_found_before_anything_is_sent() {
        let cases = [
            ("", "argument_missing"),
            ("city=x dayz=3", "argument_unknown"),
            ("city=x days=three", "argument_type"),
            ("city=x days=1.5", "argument_type"),
            ("city=x deep=yes", "argument_type"),
            ("city=x sizes=1,b", "argument_type"),
            ("city=x unit=K", "argument_value"),
            ("city=x city=y", "argument_twice"),
            ("city", "argument_malformed"),
            ("=x", "argument_malformed"),
            ("days:=[", "argument_malformed"),
            ("city=@no-such-file", "argument_file"),
        ];
        for (line, code) in cases {
            let failure = read(&words(line), None, &schema(), "t").unwrap_err();
            assert_eq!(failure.code_word(), code, "{line}");
        }
        let text = read(&words("city=x dayz=3"), None, &schema(), "t").unwrap_err().to_text(Paint::Never);
        assert!(text.contains("did you mean `days`?"), "{text}");
        for bad in ["[1]", "{", "{\"a\":1,\"a\":2}"] {
            assert_eq!(read(&[], Some(bad), &schema(), "t").unwrap_err().code_word(), "arguments_invalid", "{bad}");
        }
    }
}
