//! What a server says of its tools.

use super::{Level, Report, Rule};
use crate::tool::Entry;
use rialto_hub::schema::Schema;
use serde_json::{Map, Value};

/// Words that some clients refuse, or that mean different things to different ones.
const TROUBLE: [&str; 10] =
    ["$schema", "$ref", "$defs", "definitions", "nullable", "anyOf", "oneOf", "allOf", "not", "if"];

const NO_DESCRIPTION: &str = ": has no description";

pub(super) fn check(offered: &Value, tool: &Entry, report: &mut Report) {
    let name = tool.about.name;
    if offered["description"].as_str().is_none_or(|text| text.trim().is_empty()) {
        report.add(Level::Warning, Rule::Schemas, Some(name), "has no description");
    }
    let parts = [("inputSchema", &tool.input), ("outputSchema", &tool.output)];
    for (part, canonical) in parts {
        let Some(schema) = offered.get(part).filter(|schema| !schema.is_null()) else {
            let level = if part == "inputSchema" { Level::Error } else { Level::Warning };
            report.add(level, Rule::Schemas, Some(name), format!("has no {part}"));
            continue;
        };
        if schema["type"] != "object" {
            report.add(Level::Error, Rule::Schemas, Some(name), format!("{part} is not of type object"));
        }
        if let Err(refused) = Schema::compile(schema.to_string().as_bytes()) {
            report.add(Level::Error, Rule::Schemas, Some(name), format!("{part} is no usable schema: {refused}"));
            continue;
        }
        // Results are read by programs, which need no words.
        let mut complaints = portable(schema);
        if part == "outputSchema" {
            complaints.retain(|complaint| !complaint.ends_with(NO_DESCRIPTION));
        }
        for complaint in complaints {
            report.add(Level::Warning, Rule::Schemas, Some(name), format!("{part}{complaint}"));
        }
        compare(part, schema, canonical, name, report);
    }
}

/// The fields that the registry names are there, of the same type, and no others are asked for.
fn compare(part: &str, schema: &Value, canonical: &Value, name: &str, report: &mut Report) {
    let empty = Map::new();
    let offered = schema["properties"].as_object().unwrap_or(&empty);
    let known = canonical["properties"].as_object().unwrap_or(&empty);
    for (field, canonical) in known {
        let Some(offered) = offered.get(field) else {
            report.add(Level::Warning, Rule::Schemas, Some(name), format!("{part} does not have `{field}`"));
            continue;
        };
        let (given, expected) = (&offered["type"], &canonical["type"]);
        if given.is_string() && expected.is_string() && given != expected {
            let words = format!("{part}: `{field}` is of type {given}, not {expected}");
            report.add(Level::Error, Rule::Schemas, Some(name), words);
        }
    }
    let is_required =
        |schema: &Value, field: &Value| schema["required"].as_array().is_some_and(|all| all.contains(field));
    for field in schema["required"].as_array().into_iter().flatten() {
        if part == "inputSchema" && !is_required(canonical, field) {
            let words = format!("{part} requires {field}, which the registry does not");
            report.add(Level::Warning, Rule::Schemas, Some(name), words);
        }
    }
}

/// Everything in a schema that some client does not understand, each with its place.
pub fn portable(schema: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    walk(schema, "", &mut complaints);
    complaints
}

fn walk(schema: &Value, place: &str, complaints: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        complaints.push(format!("{place}: is no object"));
        return;
    };
    for word in TROUBLE.iter().filter(|word| members.contains_key(**word)) {
        complaints.push(format!("{place}: has `{word}`, which not every client understands"));
    }
    if members.get("type").is_some_and(|kind| !kind.is_string()) {
        complaints.push(format!("{place}: has several types, which not every client understands"));
    }
    let properties = members.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let place = format!("{place}/{name}");
        if property["description"].as_str().is_none_or(|text| text.trim().is_empty()) {
            complaints.push(format!("{place}{NO_DESCRIPTION}"));
        }
        walk(property, &place, complaints);
    }
    for name in members.get("required").and_then(Value::as_array).into_iter().flatten() {
        let is_described = name.as_str().is_some_and(|name| properties.is_some_and(|all| all.contains_key(name)));
        if !is_described {
            complaints.push(format!("{place}: requires {name}, which it does not describe"));
        }
    }
    if let Some(items) = members.get("items") {
        walk(items, &format!("{place}/items"), complaints);
    }
    if let Some(rest) = members.get("additionalProperties").filter(|rest| !rest.is_boolean()) {
        walk(rest, &format!("{place}/*"), complaints);
    }
}
