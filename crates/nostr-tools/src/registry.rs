//! The registry of tools as a document, made from the tools themselves.

use crate::tool::Entry;
use serde_json::{Value, json};

/// The version of the standard whose tools these are; in its registry both versions are always the same.
pub const VERSION: &str = "0.1.12";

/// Everything, as in `registry/tools.json`.
pub fn document() -> Value {
    let tools: Vec<Value> = crate::tools().iter().map(entry).collect();
    json!({ "spec_version": VERSION, "registry_version": VERSION, "tools": tools })
}

/// What a NIP is called: two digits, which go on in hexadecimal after 99.
pub fn nip_name(nip: u8) -> String {
    if nip > 99 { format!("{nip:X}") } else { format!("{nip:02}") }
}

/// One tool, as in `registry/tools.json`.
fn entry(tool: &Entry) -> Value {
    let nips: Vec<String> = tool.about.nips.iter().map(|nip| format!("nip-{}", nip_name(*nip))).collect();
    json!({
        "name": tool.about.name,
        "status": tool.about.status.name(),
        "summary": tool.about.summary,
        "nip": nips,
        "input_schema": tool.input,
        "output_schema": tool.output,
    })
}

/// A call of every tool, as in `examples/nostr/calls.json`.
pub fn calls() -> Value {
    let call = |tool: &Entry| {
        // A test sees to it that examples can be read.
        let arguments: Value = serde_json::from_str(tool.about.example).unwrap_or_default();
        json!({ "name": tool.about.name, "arguments": arguments })
    };
    crate::tools().iter().map(call).collect()
}
