//! `rialto call`: one call of one tool of a service on Nostr.

mod person;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rialto_consumer::bridge::seen;
use rialto_consumer::catalogue::{Catalogue, Item};
use rialto_consumer::error::Error;
use rialto_consumer::ongoing::{Ongoing, PATIENCE, Progress, Step};
use rialto_consumer::payment::{Met, Payer, Purchase, price_of};
use rialto_consumer::pins::Verdict;
use rialto_consumer::remote::Remote;
use rialto_consumer::reply::Reply;
use rialto_consumer::text;
use rialto_mcp::pending::Patience;
use rialto_payment::amount::Msat;
use rialto_wire::dvmcp::answer;
use rialto_wire::dvmcp::content::Execute;
use rialto_wire::service::Wire;
use serde_json::Value;

use self::person::Person;
use crate::arguments;
use crate::buyer::{Buyer, Wanted, call_failure, failure, remote_failure, store_failure};
use crate::commands::wait_for;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::money::{self, ledger_failure};
use crate::output;
use crate::relays::RelayFlags;
use crate::suggest::nearest;
use crate::talk::{Format, Talk};
use crate::wires::WayFlags;

const EXAMPLES: &str = "\
Examples:
  rialto call nprofile1… forecast city=Paris days=3
  rialto call weather forecast --args '{\"city\": \"Paris\"}'
  rialto call me@example.com summarise text=@notes.txt
  rialto call weather forecast city=Paris --json | head -c 300
  rialto call weather forecast city=Paris --max-sat 20

Arguments get their types from the tool:
  key=value    text, number, true or false, or a list as a,b,c
  key:=JSON    any JSON value
  key=@file    what is in a file";

/// Call one tool of a service
///
/// The call goes the most private way that the service offers, and you are told which: sealed, by direct message, or in
/// public.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The service: npub1…, nprofile1…, naddr1…, name@domain, or its name in `rialto find`
    #[arg(value_name = "SERVICE")]
    service: String,

    /// The tool; `rialto show SERVICE` lists them
    #[arg(value_name = "TOOL")]
    tool: String,

    /// Arguments of the tool
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,

    /// Arguments as one JSON object
    #[arg(long, value_name = "JSON")]
    args: Option<String>,

    #[command(flatten)]
    way: WayFlags,

    /// How long the call may take in all [default: 60 without a sign of life, 600 in all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout_secs: Option<u64>,

    /// Pay up to this for the call without asking, fees included, and not more whatever the budget says
    #[arg(long, value_name = "SAT")]
    max_sat: Option<u64>,

    #[command(flatten)]
    relays: RelayFlags,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let wanted = Wanted::read(&arguments.service)?;
    let allowed = arguments.max_sat.map(|typed| money::sat(typed, "--max-sat")).transpose()?;
    wait_for(async {
        let buyer = Buyer::start(&arguments.relays, std::slice::from_ref(&wanted), environment, talk)?;
        let payer = money::payer(environment).await?;
        let called = call(&buyer, &wanted, arguments, Purse { payer, allowed }, talk).await;
        buyer.customer.stop().await;
        called
    })
}

/// What pays, and how much may be paid whatever the budget.
struct Purse {
    payer: Arc<Payer>,
    allowed: Option<Msat>,
}

async fn call(buyer: &Buyer, wanted: &Wanted, arguments: &Arguments, purse: Purse, talk: &Talk) -> Outcome {
    let remote = buyer.open(wanted, arguments.way.terms()).await?;
    let tools = Catalogue::tools(&remote).await.map_err(|error| failure(&error))?;
    let tool = choose(&tools, &arguments.tool, &arguments.service)?;
    let schema = tool.original.get("inputSchema").unwrap_or(&Value::Null);
    let object = arguments::read(&arguments.arguments, arguments.args.as_deref(), schema, &tool.name)?;
    check_pin(buyer, &remote, tool)?;
    talk.info(&format!("calls are {}", seen(remote.way())));
    let timeout = arguments.timeout_secs.map(Duration::from_secs);
    let patience = timeout.map_or(PATIENCE, |total| Patience { silence: total, total });
    let execute = Execute { name: &tool.name, arguments: object.as_bytes(), timeout, progress: true, meta: None };
    let purchase = purchase(&remote, tool, object.len(), purse, talk)?;
    let ongoing =
        remote.buy(&execute, patience, Some(Arc::new(purchase))).await.map_err(|error| call_failure(&error))?;
    let reply = tokio::select! {
        reply = follow(ongoing, talk) => reply.map_err(|error| call_failure(&error))?,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(|error| Failure::unexpected("cannot listen for signals").because(&error))?;
            let words = match remote.way().wire {
                Wire::Dvmcp => "interrupted; the service was told to stop",
                // There is no word for it.
                Wire::Manifest => "interrupted; the service may still carry out the call",
            };
            return Err(Failure::unexpected(words).code("interrupted"));
        }
    };
    print(&reply, &tool.name, talk)
}

/// What the call may cost, which is said before it is made.
fn purchase(remote: &Remote, tool: &Item, input: usize, purse: Purse, talk: &Talk) -> Result<Purchase, Failure> {
    let service = remote.name().unwrap_or_else(|| remote.npub());
    let Purse { payer, allowed } = purse;
    let price = price_of(&tool.original);
    if let Some(price) = price.filter(|price| !price.is_free()) {
        let now = nostr::prelude::Timestamp::now().as_secs();
        let left = payer.spending().left(remote.provider.as_bytes(), now).map_err(|error| ledger_failure(&error))?;
        let left = match (payer.has_wallet(), left.today.is_zero()) {
            (false, _) => "no wallet is connected".to_owned(),
            (true, true) => "no budget is left; you are asked".to_owned(),
            (true, false) => format!("{} left today", left.today),
        };
        talk.info(&format!("price: {price}; {left}"));
    }
    let approver = Arc::new(Person { talk: *talk });
    Ok(Purchase { payer, service, tool: tool.name.clone(), price, input, allowed, approver })
}

fn choose<'a>(tools: &'a [Item], name: &str, service: &str) -> Result<&'a Item, Failure> {
    tools.iter().find(|tool| tool.name == name).ok_or_else(|| {
        let failure = Failure::usage(format!("the service has no tool `{}`", text::name(name))).code("unknown_tool");
        match nearest(name, tools.iter().map(|tool| tool.name.as_str())) {
            Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
            None => failure.hint(format!("rialto show {service}    lists its tools")),
        }
    })
}

fn check_pin(buyer: &Buyer, remote: &Remote, tool: &Item) -> Outcome {
    let now = nostr::prelude::Timestamp::now().as_secs();
    let name = remote.name().unwrap_or_default();
    let verdicts = buyer.pins.check(&remote.provider, &name, std::slice::from_ref(tool), now);
    match verdicts.map_err(|error| store_failure(&error))?.first() {
        Some(Verdict::Changed) => Err(Failure::new(
            Exit::NotAllowed,
            format!("`{}` is not the tool that it was when you first used it", tool.name),
        )
        .code("definition_changed")
        .hint(format!(
            "rialto pins review {npub}    shows the change\nrialto pins accept {npub} {}",
            tool.name,
            npub = remote.npub()
        ))),
        Some(Verdict::Full) => Err(Failure::new(Exit::NotAllowed, "too many tools are remembered")
            .code("pins_full")
            .hint("rialto pins forget SERVICE    forgets those of one service")),
        _ => Ok(()),
    }
}

/// Waits for the result, and says how far it has come.
async fn follow(mut ongoing: Ongoing, talk: &Talk) -> Result<Reply, Error> {
    loop {
        match ongoing.next().await? {
            Step::Progress(progress) => talk.info(&progress_line(&progress)),
            Step::Paid(Met::Paid { amount, fee, .. }) if fee.is_zero() => talk.info(&format!("paid {amount}")),
            Step::Paid(Met::Paid { amount, fee, .. }) => talk.info(&format!("paid {amount}, and {fee} of fees")),
            Step::Paid(Met::Elsewhere { .. }) => {}
            Step::Done(reply) => return Ok(reply),
        }
    }
}

fn progress_line(progress: &Progress) -> String {
    let share = match (progress.progress, progress.total) {
        (Some(done), Some(total)) => format!("{done} of {total}"),
        (Some(done), None) => done.to_string(),
        _ => String::new(),
    };
    // Many tools say the same in words.
    let words = progress.message.clone().filter(|words| *words != share).unwrap_or_default();
    [share, words].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
}

fn print(reply: &Reply, tool: &str, talk: &Talk) -> Outcome {
    if let Some(failed) = &reply.failure {
        return Err(remote_failure(failed));
    }
    let result: Value = serde_json::from_str(&reply.content)
        .map(answer::repaired)
        .map_err(|error| Failure::unexpected("the result cannot be read").because(&error))?;
    let said_no = result.get("isError") == Some(&Value::Bool(true));
    let words = describe(&result);
    match talk.format {
        Format::Json => output::json_text(reply.content.trim_end())?,
        Format::Text if !said_no => output::text(&for_reader(&words))?,
        Format::Text => {}
    }
    if said_no {
        let words = text::limited(&text::visible(words.trim_end()), 4000);
        return Err(Failure::new(Exit::ToolSaidNo, format!("`{tool}` answered with an error")).cause(words));
    }
    Ok(())
}

/// A terminal must not be steered by what a stranger wrote; a file or pipe gets it as it is.
fn for_reader(words: &str) -> String {
    if std::io::stdout().is_terminal() { text::visible(words) } else { words.to_owned() }
}

/// A result as text, each item ending with a line break.
fn describe(result: &Value) -> String {
    let items = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut out = String::new();
    for item in items {
        out.push_str(describe_item(item).trim_end_matches('\n'));
        out.push('\n');
    }
    if items.is_empty()
        && let Some(structured) = result.get("structuredContent")
    {
        out.push_str(&serde_json::to_string_pretty(structured).unwrap_or_default());
        out.push('\n');
    }
    out
}

fn describe_item(item: &Value) -> String {
    let word = |value: &Value, key: &str| text::name(value.get(key).and_then(Value::as_str).unwrap_or_default());
    let data = |value: &Value, key: &str| {
        // Four characters of base64 are three bytes.
        value.get(key).and_then(Value::as_str).map_or(0, |data| data.trim_end_matches('=').len() * 3 / 4)
    };
    match item.get("type").and_then(Value::as_str) {
        Some("text") => item.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            format!("[{kind} {}, {} bytes]", word(item, "mimeType"), data(item, "data"))
        }
        Some("resource") => {
            let resource = &item["resource"];
            match resource.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => format!(
                    "[resource {} {}, {} bytes]",
                    word(resource, "uri"),
                    word(resource, "mimeType"),
                    data(resource, "blob")
                ),
            }
        }
        Some("resource_link") => format!("[link {} {}]", word(item, "uri"), word(item, "name")),
        _ => item.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::describe;
    use serde_json::json;

    #[test]
    fn results_are_described_for_people() {
        let result = json!({ "content": [
            { "type": "text", "text": "18 °C\n" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "resource", "resource": { "uri": "a:b", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "a:b", "mimeType": "x/y", "blob": "AAA=" } },
            { "type": "resource_link", "uri": "a:b", "name": "n" },
        ] });
        let expected = "18 °C\n[image image/png, 3 bytes]\ninside\n[resource a:b x/y, 2 bytes]\n[link a:b n]\n";
        assert_eq!(describe(&result), expected);
        assert_eq!(describe(&json!({ "structuredContent": { "a": 1 } })), "{\n  \"a\": 1\n}\n");
    }
}
