//! What a server does when its tools are called.

use super::{Level, Report, Rule, ask};
use crate::tool::Entry;
use rialto_hub::schema::Schema;
use rialto_mcp::client::Client;
use rialto_mcp::version::Version;
use serde_json::{Value, json};

/// The number of an invalid argument.
const INVALID: i64 = -32602;

pub(super) async fn check(client: &Client, offered: &Value, tool: &Entry, report: &mut Report) -> Result<(), String> {
    let example: Value = serde_json::from_str(tool.about.example).unwrap_or_default();
    for (arguments, what) in wrong(tool, &example) {
        report.calls += 1;
        let answer = call(client, tool, &arguments).await?;
        if let Err((level, words)) = judge_refusal(&answer, client.version()) {
            report.add(level, Rule::Input, Some(tool.about.name), format!("{what} {words}"));
        }
    }
    if tool.about.effect.is_local_reading() {
        report.calls += 1;
        let answer = call(client, tool, &example).await?;
        check_output(&answer, offered, tool, report);
    }
    Ok(())
}

async fn call(client: &Client, tool: &Entry, arguments: &Value) -> Result<Result<Value, Value>, String> {
    ask(client, "tools/call", &json!({ "name": tool.about.name, "arguments": arguments })).await
}

/// Arguments that are wrong, and in what. A tool that changes something is called only without what it needs: a server
/// that overlooks a wrong extra would do it.
fn wrong(tool: &Entry, example: &Value) -> Vec<(Value, String)> {
    let mut cases = Vec::new();
    let required: Vec<&str> =
        tool.input["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for name in &required {
        let mut arguments = example.clone();
        if let Some(members) = arguments.as_object_mut() {
            members.remove(*name);
        }
        cases.push((arguments, format!("without `{name}`")));
    }
    for (name, schema) in tool.input["properties"].as_object().into_iter().flatten() {
        if !required.contains(&name.as_str()) && !tool.about.effect.is_reading() {
            continue;
        }
        let value = match schema["type"].as_str() {
            Some("string") => json!(7),
            Some(_) => json!("x"),
            None => continue,
        };
        let mut arguments = example.clone();
        arguments[name] = value;
        cases.push((arguments, format!("with `{name}` of the wrong type")));
    }
    cases
}

/// Whether a call was refused in the way of the version that is spoken.
fn judge_refusal(answer: &Result<Value, Value>, version: Version) -> Result<(), (Level, String)> {
    match answer {
        Err(error) if error["code"] == INVALID => Ok(()),
        Err(error) => Err((Level::Error, format!("it fails with {} instead of {INVALID}", error["code"]))),
        Ok(result) if result["isError"] == true && version <= Version::V2025_06_18 => {
            Err((Level::Warning, format!("it answers with isError instead of the error {INVALID}")))
        }
        Ok(result) if result["isError"] == true => Ok(()),
        Ok(_) => Err((Level::Error, "it is accepted".to_owned())),
    }
}

fn check_output(answer: &Result<Value, Value>, offered: &Value, tool: &Entry, report: &mut Report) {
    let name = Some(tool.about.name);
    let result = match answer {
        Ok(result) if result["isError"] != true => result,
        // Many need a key first, which is not made for this.
        _ => return,
    };
    let has_schema = offered.get("outputSchema").is_some_and(Value::is_object);
    let structured = result.get("structuredContent");
    if has_schema && structured.is_none() {
        report.add(Level::Error, Rule::Output, name, "has an outputSchema, and its result no structuredContent");
    }
    let text = result["content"][0]["text"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(output) = structured.cloned().or(text) else {
        report.add(Level::Error, Rule::Output, name, "its result is no JSON");
        return;
    };
    let schemas = [("the registry", Some(&tool.output)), ("its own outputSchema", offered.get("outputSchema"))];
    for (whose, schema) in schemas {
        let Some(Ok(schema)) = schema.map(|schema| Schema::compile(schema.to_string().as_bytes())) else { continue };
        if let Err(misfit) = schema.check(&output) {
            report.add(Level::Error, Rule::Output, name, format!("its result does not fit {whose}: {misfit}"));
        }
    }
}
