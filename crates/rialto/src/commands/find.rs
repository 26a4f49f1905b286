//! `rialto find`: services on Nostr, as they are announced and as they answer.

use std::time::Duration;

use clap::Args;
use nostr::prelude::{RelayUrl, Timestamp};
use rialto_consumer::discovery::{Finding, Search, find};
use rialto_consumer::payment::announced;
use rialto_consumer::remote::{link, npub};
use serde_json::{Value, json};

use crate::buyer::{Buyer, failure};
use crate::commands::wait_for;
use crate::environment::Environment;
use crate::failure::Outcome;
use crate::output;
use crate::relays::RelayFlags;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto find                                  Everything on the relay of this machine
  rialto find weather --relay wss://relay.example
  rialto find image resize --limit 5 --json";

/// Find services
///
/// Looks at what providers have announced, asks everybody at once, and tries those that fit. All words must be found in
/// a service's name, description or tools.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Words to look for
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    /// How many services are shown
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    /// Do not try whether the services answer
    #[arg(long)]
    no_check: bool,

    #[command(flatten)]
    relays: RelayFlags,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    wait_for(async {
        let buyer = Buyer::start(&arguments.relays, &[], environment, talk)?;
        let words = arguments.words.iter().flat_map(|words| words.split_whitespace()).map(ToOwned::to_owned).collect();
        let search = Search { words, limit: usize::from(arguments.limit), check: !arguments.no_check };
        let found = find(&buyer.customer, &search).await.map_err(|error| failure(&error));
        let relays: Vec<RelayUrl> =
            buyer.customer.relays().iter().filter_map(|status| RelayUrl::parse(&status.url).ok()).take(3).collect();
        buyer.customer.stop().await;
        show(&found?, &relays, arguments, talk)
    })
}

fn show(found: &[Finding], relays: &[RelayUrl], arguments: &Arguments, talk: &Talk) -> Outcome {
    if talk.format == Format::Json {
        let all: Vec<Value> = found.iter().map(|finding| described(finding, relays)).collect();
        return output::json(&all);
    }
    if found.is_empty() {
        let names: Vec<&str> = relays.iter().map(RelayUrl::as_str_without_trailing_slash).collect();
        let what = if arguments.words.is_empty() { "no service" } else { "no service with these words" };
        talk.info(&format!("{what} on {}", names.join(", ")));
        talk.info("other relays: rialto find --relay wss://…; your own service: rialto serve -- COMMAND");
        return Ok(());
    }
    let now = Timestamp::now();
    let mut rows: Vec<Vec<String>> =
        vec![["NAME", "TOOLS", "PRICE", "WIRES", "LAST SEEN", "MS", "KEY"].iter().map(ToString::to_string).collect()];
    rows.extend(found.iter().map(|finding| row(finding, now)));
    output::text(&output::table(&rows))?;
    if let Some(best) = found.first() {
        talk.info(&format!("\nlook at one: rialto show {}", link(best.provider, relays.iter().take(1).cloned())));
    }
    Ok(())
}

fn row(finding: &Finding, now: Timestamp) -> Vec<String> {
    let name = if finding.name.is_empty() { "(not announced)" } else { &finding.name };
    let latency = finding.latency.map_or_else(|| "–".to_owned(), |latency| latency.as_millis().to_string());
    vec![
        name.chars().take(32).collect(),
        tools(finding),
        announced(finding.tools.iter().map(|tool| tool.price)),
        wires(finding).join(" "),
        ago(now, finding.last_seen),
        latency,
        short(&npub(&finding.provider)),
    ]
}

fn tools(finding: &Finding) -> String {
    let names: Vec<&str> = finding.tools.iter().map(|tool| tool.name.as_str()).collect();
    let shown = names.iter().take(3).copied().collect::<Vec<_>>().join(" ");
    let shown: String = shown.chars().take(40).collect();
    if names.len() > 3 { format!("{} ({shown} …)", names.len()) } else { format!("{} ({shown})", names.len()) }
}

fn wires(finding: &Finding) -> Vec<&'static str> {
    finding.wires.iter().map(|wire| wire.name()).collect()
}

fn short(npub: &str) -> String {
    let (start, end) = (npub.get(..12).unwrap_or(npub), npub.get(npub.len().saturating_sub(4)..).unwrap_or_default());
    format!("{start}…{end}")
}

/// How long ago something was, roughly.
pub(crate) fn ago(now: Timestamp, then: Timestamp) -> String {
    let passed = Duration::from_secs(now.as_secs().saturating_sub(then.as_secs())).as_secs();
    match passed {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min ago", passed / 60),
        3600..86_400 => format!("{} h ago", passed / 3600),
        _ => format!("{} days ago", passed / 86_400),
    }
}

fn described(finding: &Finding, relays: &[RelayUrl]) -> Value {
    let tools: Vec<Value> = finding
        .tools
        .iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.about, "price": tool.price }))
        .collect();
    json!({
        "name": finding.name,
        "about": finding.about,
        "npub": npub(&finding.provider),
        "nprofile": link(finding.provider, relays.iter().cloned()),
        "tools": tools,
        "price": announced(finding.tools.iter().map(|tool| tool.price)),
        "wires": wires(finding),
        "sealed": finding.sealed,
        "announced": finding.announced.map(|time| time.as_secs()),
        "last_seen": finding.last_seen.as_secs(),
        "latency_ms": finding.latency.map(|latency| latency.as_secs_f64() * 1000.0),
    })
}

#[cfg(test)]
mod tests {
    use super::{ago, short};
    use nostr::prelude::Timestamp;

    #[test]
    fn times_are_told_roughly() {
        let now = Timestamp::from(1_000_000);
        for (then, expected) in [
            (1_000_005, "now"),
            (999_990, "now"),
            (999_000, "16 min ago"),
            (990_000, "2 h ago"),
            (500_000, "5 days ago"),
        ] {
            assert_eq!(ago(now, Timestamp::from(then)), expected);
        }
        assert_eq!(short("npub1abcdefghijklmnopqrstuvwxyz"), "npub1abcdefg…wxyz");
    }
}
