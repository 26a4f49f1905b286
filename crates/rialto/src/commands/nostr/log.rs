//! `rialto nostr log`: what was done with the keys.

use clap::Args;
use nostr::prelude::Timestamp;
use rialto_consumer::text;
use rialto_nostr_tools::log::{Line, Log, Outcome as Ending};
use serde_json::Value;

use super::settings::Folder;
use crate::commands::find::ago;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto nostr log
  rialto nostr log --writes --last 100
  rialto nostr log --json | jq 'select(.event)'";

/// No line shows more of what was done.
const MAX_SHOWN: usize = 200;

/// Show what the Nostr tools did with the keys
///
/// Everything but pure calculation is written down: whatever changes, signs or publishes something before it happens, and
/// again with its outcome. The file is `log.jsonl` in the folder of the tools; it is only ever appended to. At 4 MiB another
/// one is begun, and four older ones (`log.1.jsonl` and so on) are kept and shown.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    folder: Folder,

    /// How many calls to show; with --json how many lines
    #[arg(long, value_name = "N", default_value_t = 30)]
    last: usize,

    /// Only what changed, signed or published something, or tried to
    #[arg(long)]
    writes: bool,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let log = Log::new(&arguments.folder.path(environment)?);
    let mut lines = log
        .read()
        .map_err(|error| Failure::unexpected(format!("cannot read `{}`", log.path().display())).because(&error))?;
    if arguments.writes {
        let tools = rialto_nostr_tools::tools();
        let is_reading =
            |name: &str| tools.iter().any(|tool| tool.about.name == name && tool.about.effect.is_reading());
        lines.retain(|line| !is_reading(&line.tool));
    }
    if talk.format == Format::Json {
        let first = lines.len().saturating_sub(arguments.last);
        return lines[first..].iter().try_for_each(output::json);
    }
    let calls = join(lines);
    if calls.is_empty() {
        talk.info("nothing was done yet");
        return Ok(());
    }
    let now = Timestamp::now();
    let mut rows: Vec<Vec<String>> =
        vec![["WHEN", "KEY", "TOOL", "OUTCOME", "WHAT"].iter().map(ToString::to_string).collect()];
    let first = calls.len().saturating_sub(arguments.last);
    rows.extend(calls[first..].iter().map(|line| row(line, now)));
    output::text(&output::table(&rows))
}

/// One line for each call: what it was to do, and how it ended.
fn join(lines: Vec<Line>) -> Vec<Line> {
    let mut calls: Vec<Line> = Vec::new();
    for line in lines {
        match calls.iter_mut().rev().find(|call| call.call == line.call && call.outcome == Ending::Begun) {
            Some(begun) => *begun = Line { arguments: std::mem::take(&mut begun.arguments), ..line },
            None => calls.push(line),
        }
    }
    calls
}

fn row(line: &Line, now: Timestamp) -> Vec<String> {
    let argument = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        format!("{name}={}", value.chars().take(40).collect::<String>())
    };
    let what = match (&line.message, &line.event) {
        (Some(message), _) => message.clone(),
        (None, Some(event)) => format!("event {event}"),
        (None, None) => line.arguments.iter().map(argument).collect::<Vec<_>>().join(" "),
    };
    vec![
        ago(now, Timestamp::from(line.at)),
        text::name(line.key.as_deref().unwrap_or("-")),
        line.tool.clone(),
        line.outcome.name().to_owned(),
        text::limited(&text::one_line(&what), MAX_SHOWN),
    ]
}
