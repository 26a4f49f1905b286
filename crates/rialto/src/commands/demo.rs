//! `rialto demo`: everything at work, on this machine alone: a service offered on Nostr and used by another process, then a
//! gateway over two servers.

mod gateway;
mod market;
mod paid;

use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};

use crate::commands::wait_for;
use crate::environment::Environment;
use crate::failure::Outcome;
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto demo
  rialto demo --paid
  rialto demo --json | head -n 1";

/// Show what rialto does, without a network
///
/// Starts a relay, offers the example server on it, finds it, calls it and uses it as an MCP host would, each in a process of
/// its own. Then puts a gateway over two servers, ends one of them in mid-flight, and prints what happened.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Calls that cost something, on a real Lightning network of its own
    #[arg(long)]
    paid: bool,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let teller = Teller { format: talk.format };
    wait_for(async {
        if arguments.paid {
            return Box::pin(paid::show(&teller, environment)).await;
        }
        Box::pin(market::show(&teller)).await?;
        Box::pin(gateway::show(&teller)).await?;
        teller.say("end", "now with your own server: rialto serve -- CMD ARGS…", Instant::now(), &Value::Null)
    })
}

/// Says what each step was, and how long it took.
struct Teller {
    format: Format,
}

impl Teller {
    fn say(&self, step: &str, words: &str, begun: Instant, details: &Value) -> Outcome {
        let milliseconds = begun.elapsed().as_secs_f64() * 1000.0;
        match self.format {
            Format::Text => output::text(&format!("{step:>8}  {words}  ({milliseconds:.1} ms)\n")),
            Format::Json => output::json(&json!({ "step": step, "ms": milliseconds, "details": details })),
        }
    }
}
