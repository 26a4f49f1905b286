//! `rialto pins`: what tools looked like when they were first used, and what has changed since.

use clap::{Args, Subcommand};
use nostr::prelude::{PublicKey, Timestamp};
use rialto_consumer::pins::{Book, Line, Pin, Service, difference};
use rialto_consumer::reference::Reference;
use rialto_consumer::remote::npub;
use rialto_consumer::text;
use serde_json::{Value, json};

use crate::buyer::{self, store_failure, unknown_service};
use crate::commands::find::ago;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::suggest::nearest;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto pins                              Which services and tools are remembered
  rialto pins review                       What has changed
  rialto pins accept weather forecast      Use the new definition from now on
  rialto pins forget weather";

const LIST_EXAMPLES: &str = "\
Examples:
  rialto pins list
  rialto pins list --json";

const REVIEW_EXAMPLES: &str = "\
Examples:
  rialto pins review
  rialto pins review weather";

const ACCEPT_EXAMPLES: &str = "\
Examples:
  rialto pins accept weather               Everything that has changed
  rialto pins accept weather forecast rain";

const FORGET_EXAMPLES: &str = "\
Examples:
  rialto pins forget weather
  rialto pins forget npub1…";

/// Review tools that have changed since you first used them
///
/// A tool's definition is remembered when it is first used. If it changes, it is neither shown to a model nor called
/// until you have accepted the change. All of this happens on this machine; no relay is asked.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what is remembered
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Show what has changed
    #[command(after_help = REVIEW_EXAMPLES)]
    Review {
        /// Only this service, by key or by the name in `rialto pins`
        #[arg(value_name = "SERVICE")]
        service: Option<String>,
    },
    /// Accept changed definitions
    #[command(after_help = ACCEPT_EXAMPLES)]
    Accept {
        /// The service, by key or by the name in `rialto pins`
        #[arg(value_name = "SERVICE")]
        service: String,
        /// Only these tools
        #[arg(value_name = "TOOL")]
        tools: Vec<String>,
    },
    /// Forget a service; its tools are remembered anew at their next use
    #[command(after_help = FORGET_EXAMPLES)]
    Forget {
        /// The service, by key or by the name in `rialto pins`
        #[arg(value_name = "SERVICE")]
        service: String,
    },
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let pins = buyer::pins(environment)?;
    let book = pins.read().map_err(|error| store_failure(&error))?;
    match &arguments.action {
        None | Some(Action::List) => list(&book, talk),
        Some(Action::Review { service }) => review(&book, service.as_deref(), talk),
        Some(Action::Accept { service, tools }) => {
            let (key, known) = choose(&book, service)?;
            if let Some(unknown) = tools.iter().find(|tool| !known.tools.contains_key(*tool)) {
                return Err(no_tool(unknown, known));
            }
            let accepted =
                pins.accept(&key, tools, Timestamp::now().as_secs()).map_err(|error| store_failure(&error))?;
            match talk.format {
                Format::Json => output::json(&json!({ "accepted": accepted })),
                Format::Text if accepted.is_empty() => {
                    talk.info("nothing has changed");
                    Ok(())
                }
                Format::Text => {
                    talk.info(&format!("accepted: {}", accepted.join(", ")));
                    Ok(())
                }
            }
        }
        Some(Action::Forget { service }) => {
            let (key, _) = choose(&book, service)?;
            let forgotten = pins.forget(&key).map_err(|error| store_failure(&error))?.unwrap_or_default();
            match talk.format {
                Format::Json => output::json(&json!({ "forgotten": forgotten })),
                Format::Text => {
                    talk.info(&format!("forgot {forgotten} tools"));
                    Ok(())
                }
            }
        }
    }
}

/// The service that is meant: by its key, or by the name it had when it was first used.
pub(crate) fn choose<'a>(book: &'a Book, typed: &str) -> Result<(PublicKey, &'a Service), Failure> {
    let reference = Reference::parse(typed).map_err(|unknown| unknown_service(typed, &unknown))?;
    let by_key = |key: &PublicKey| book.services.get(&key.to_hex()).map(|service| (*key, service));
    if let Reference::Key(target) = &reference
        && let Some(found) = by_key(&target.provider)
    {
        return Ok(found);
    }
    let is_meant = |service: &Service| service.name.to_lowercase() == typed.to_lowercase();
    let named: Vec<_> = book
        .services
        .iter()
        .filter(|(_, service)| is_meant(service))
        .filter_map(|(key, service)| Some((PublicKey::from_hex(key).ok()?, service)))
        .collect();
    match named.as_slice() {
        [found] => Ok(*found),
        [] => {
            let failure = Failure::usage(format!("no tool of `{}` was used here", text::name(typed)));
            let known = book.services.values().map(|service| service.name.as_str());
            Err(failure.code("pin_unknown").hint(match nearest(typed, known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "rialto pins    lists what is remembered".to_owned(),
            }))
        }
        several => {
            let keys: Vec<String> = several.iter().map(|(key, _)| npub(key)).collect();
            Err(Failure::usage(format!("several services are called `{}`", text::name(typed)))
                .code("service_ambiguous")
                .hint(format!("name one of them by its key:\n{}", keys.join("\n"))))
        }
    }
}

fn no_tool(typed: &str, service: &Service) -> Failure {
    let failure = Failure::usage(format!("no tool `{}` of this service was used here", text::name(typed)));
    let failure = failure.code("pin_unknown");
    match nearest(typed, service.tools.keys().map(String::as_str)) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("rialto pins list"),
    }
}

fn key_name(hex: &str) -> String {
    PublicKey::from_hex(hex).map_or_else(|_| text::name(hex), |key| npub(&key))
}

fn list(book: &Book, talk: &Talk) -> Outcome {
    if talk.format == Format::Json {
        let all: Vec<Value> = book
            .services
            .iter()
            .map(|(key, service)| {
                let tool = |(name, pin): (&String, &Pin)| {
                    json!({ "name": name, "hash": pin.hash, "pinned_at": pin.pinned_at, "changed": pin.offered.is_some() })
                };
                let tools: Vec<Value> = service.tools.iter().map(tool).collect();
                json!({ "npub": key_name(key), "name": service.name, "tools": tools })
            })
            .collect();
        return output::json(&all);
    }
    if book.services.is_empty() {
        talk.info("no tool was used yet");
        return Ok(());
    }
    let now = Timestamp::now();
    let mut rows: Vec<Vec<String>> =
        vec![["SERVICE", "TOOL", "FIRST USED", "STATE", "KEY"].iter().map(ToString::to_string).collect()];
    for (key, service) in &book.services {
        for (name, pin) in &service.tools {
            let state = if pin.offered.is_some() { "changed" } else { "same" };
            let used = ago(now, Timestamp::from(pin.pinned_at));
            rows.push(vec![text::name(&service.name), name.clone(), used, state.to_owned(), key_name(key)]);
        }
    }
    output::text(&output::table(&rows))?;
    if book.services.values().any(|service| service.changed() > 0) {
        talk.info("\nsee what has changed: rialto pins review");
    }
    Ok(())
}

fn review(book: &Book, typed: Option<&str>, talk: &Talk) -> Outcome {
    let chosen = typed.map(|typed| choose(book, typed)).transpose()?.map(|(key, _)| key.to_hex());
    let services = book.services.iter().filter(|(key, _)| chosen.as_ref().is_none_or(|chosen| chosen == *key));
    let changed: Vec<_> = services
        .flat_map(|(key, service)| service.tools.iter().map(move |(name, pin)| (key, service, name, pin)))
        .filter_map(|(key, service, name, pin)| Some((key, service, name, pin, pin.offered.as_ref()?)))
        .collect();
    if talk.format == Format::Json {
        let all: Vec<Value> = changed
            .iter()
            .map(|(key, service, name, pin, offered)| {
                json!({
                    "npub": key_name(key), "service": service.name, "tool": name,
                    "old": pin.definition, "new": offered.definition, "seen_at": offered.seen_at,
                })
            })
            .collect();
        return output::json(&all);
    }
    if changed.is_empty() {
        talk.info("nothing has changed");
        return Ok(());
    }
    for (key, service, name, pin, offered) in changed {
        let title = if service.name.is_empty() { key_name(key) } else { text::name(&service.name) };
        let mut out = format!("{title}: {name}\n");
        for line in difference(&pin.definition, &offered.definition) {
            out.push_str(&match line {
                Line::Same(text) => format!("    {text}\n"),
                Line::Old(text) => format!("  - {text}\n"),
                Line::New(text) => format!("  + {text}\n"),
            });
        }
        output::text(&out)?;
        talk.info(&format!("accept it: rialto pins accept {} {name}\n", key_name(key)));
    }
    Ok(())
}
