//! `rialto` alone: what it is, and the commands to type first.
//!
//! It ends with 0, not with a usage error: who types only the name asks a question, and this is the answer.

use serde_json::json;

use crate::failure::Outcome;
use crate::output;
use crate::talk::{Format, Talk};

const SUMMARY: &str = "The bridge between the Model Context Protocol and Nostr.";

const FIRST: [(&str, &str); 4] = [
    ("rialto demo", "see what it does, without a network"),
    ("rialto serve -- CMD", "offer an MCP server on Nostr"),
    ("rialto find", "find what others offer"),
    ("rialto gateway --stdio", "run several servers as one for an MCP host"),
];

pub(crate) fn run(talk: &Talk) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    match talk.format {
        Format::Json => {
            let first: Vec<_> =
                FIRST.iter().map(|(command, what)| json!({ "command": command, "what": what })).collect();
            output::json(&json!({ "name": "rialto", "version": version, "first": first }))
        }
        Format::Text => {
            let rows: Vec<Vec<String>> =
                FIRST.iter().map(|(command, what)| vec![format!("  {command}"), (*what).to_owned()]).collect();
            let table = output::table(&rows);
            output::text(&format!(
                "rialto {version}\n{SUMMARY}\n\nFirst commands:\n{table}\nAll commands: rialto --help\n"
            ))
        }
    }
}
