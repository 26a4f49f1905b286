//! `rialto show`: everything about one service, and how to use it.

use clap::Args;
use nostr::prelude::{PublicKey, Timestamp};
use rialto_consumer::bridge::seen;
use rialto_consumer::catalogue::{Catalogue, Item};
use rialto_consumer::payment::{announced, price_of};
use rialto_consumer::pins::Service as Pinned;
use rialto_consumer::remote::Remote;
use rialto_consumer::text;
use rialto_wire::service::Wire;
use serde_json::{Value, json};

use crate::arguments::placeholder;
use crate::buyer::{Buyer, Wanted, failure, store_failure};
use crate::commands::find::ago;
use crate::commands::wait_for;
use crate::environment::Environment;
use crate::failure::Outcome;
use crate::output;
use crate::relays::RelayFlags;
use crate::talk::{Format, Talk};
use crate::wires::WayFlags;

const EXAMPLES: &str = "\
Examples:
  rialto show weather
  rialto show nprofile1… --json
  rialto show me@example.com";

/// Show what a service offers, and how to call it
///
/// Asks the service itself. Nothing is called, and nothing is remembered as trusted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The service: npub1…, nprofile1…, naddr1…, name@domain, or its name in `rialto find`
    #[arg(value_name = "SERVICE")]
    service: String,

    #[command(flatten)]
    way: WayFlags,

    #[command(flatten)]
    relays: RelayFlags,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let wanted = Wanted::read(&arguments.service)?;
    wait_for(async {
        let buyer = Buyer::start(&arguments.relays, std::slice::from_ref(&wanted), environment, talk)?;
        let shown = show(&buyer, &wanted, arguments, talk).await;
        buyer.customer.stop().await;
        shown
    })
}

async fn show(buyer: &Buyer, wanted: &Wanted, arguments: &Arguments, talk: &Talk) -> Outcome {
    let remote = buyer.open(wanted, arguments.way.terms()).await?;
    let catalogue = Catalogue::fetch(&remote).await.map_err(|error| failure(&error))?;
    let mut book = buyer.pins.read().map_err(|error| store_failure(&error))?;
    let pinned = book.services.remove(&remote.provider.to_hex()).unwrap_or_default();
    let flaws = remote.flaws().await;
    match talk.format {
        Format::Json => output::json(&described(&remote, &catalogue, &flaws, &pinned)),
        Format::Text => output::text(&page(&remote, &catalogue, &flaws, &pinned)),
    }
}

/// Whether a tool is the one that was used before.
fn pin_state(provider: &PublicKey, tool: &Item, pinned: &Pinned) -> &'static str {
    match pinned.tools.get(&tool.name) {
        None => "not used yet",
        Some(pin) if pin.is_of(provider, tool) => "as first used",
        Some(_) => "changed",
    }
}

fn page(remote: &Remote, catalogue: &Catalogue, flaws: &[String], pinned: &Pinned) -> String {
    let service = remote.service();
    let about = service.as_ref().map(|service| text::limited(&text::visible(&service.about), 2000)).unwrap_or_default();
    let announced =
        service.as_ref().map_or_else(|| "not announced".to_owned(), |service| ago(Timestamp::now(), service.announced));
    let relays: Vec<String> = remote.customer().relays().iter().map(|status| status.url.to_string()).collect();
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut out = format!("{}\n", remote.name().unwrap_or_else(|| "(not announced)".to_owned()));
    for line in about.lines().filter(|line| !line.trim().is_empty()) {
        out.push_str(&format!("  {line}\n"));
    }
    out.push('\n');
    out.push_str(&output::table(&[
        row("key", remote.npub()),
        row("link", remote.link()),
        row("announced", announced),
        row("wires", wires(remote).join(" ")),
        row("calls", seen(remote.way()).to_owned()),
        row("relays", relays.join(" ")),
        row("price", price(catalogue)),
    ]));
    out.push_str(&format!("\nTools ({})\n", catalogue.tools.len()));
    for tool in &catalogue.tools {
        out.push_str(&tool_lines(&remote.provider, tool, pinned));
    }
    for (title, items) in [
        ("Resources", &catalogue.resources),
        ("Resource templates", &catalogue.templates),
        ("Prompts", &catalogue.prompts),
    ] {
        if !items.is_empty() {
            out.push_str(&format!("\n{title} ({})\n", items.len()));
            out.extend(items.iter().map(|item| format!("  {}  {}\n", text::name(&item.name), first_line(item))));
        }
    }
    if !flaws.is_empty() {
        out.push_str(&format!("\nFlaws of its manifest ({})\n", flaws.len()));
        out.extend(flaws.iter().map(|flaw| format!("  {flaw}\n")));
    }
    out.push_str(&usage(remote, catalogue));
    out
}

fn wires(remote: &Remote) -> Vec<&'static str> {
    remote.wires().into_iter().map(Wire::name).collect()
}

fn price(catalogue: &Catalogue) -> String {
    announced(catalogue.tools.iter().map(|tool| price_of(&tool.original)))
}

fn first_line(item: &Item) -> String {
    text::limited(&text::one_line(item.description()), 200)
}

fn tool_lines(provider: &PublicKey, tool: &Item, pinned: &Pinned) -> String {
    let price = price_of(&tool.original).filter(|price| !price.is_free()).map(|price| format!("{price}; "));
    let state = pin_state(provider, tool, pinned);
    let mut out = format!("  {}  ({}{state})\n", tool.name, price.unwrap_or_default());
    let description = text::limited(&text::visible(tool.description()), 1000);
    for line in description.lines().filter(|line| !line.trim().is_empty()) {
        out.push_str(&format!("      {line}\n"));
    }
    let schema = tool.original.get("inputSchema").unwrap_or(&Value::Null);
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut rows = Vec::new();
    for (key, property) in properties.into_iter().flatten() {
        let words = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let optional = if required.contains(&key.as_str()) { "" } else { " (optional)" };
        let usage = format!("      {}={}{optional}", text::name(key), text::name(&placeholder(schema, key)));
        rows.push(vec![usage, text::limited(&text::one_line(words), 200)]);
    }
    out.push_str(&output::table(&rows));
    out
}

fn usage(remote: &Remote, catalogue: &Catalogue) -> String {
    let link = remote.link();
    let call = catalogue.tools.first().map(|tool| {
        let schema = tool.original.get("inputSchema").unwrap_or(&Value::Null);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let words: Vec<String> =
            required.map(|key| format!(" {}={}", text::name(key), text::name(&placeholder(schema, key)))).collect();
        format!("  rialto call {link} {}{}\n", tool.name, words.concat())
    });
    format!("\nCall it\n{}\nUse it in an MCP host\n  rialto connect HOST {link}\n", call.unwrap_or_default())
}

fn described(remote: &Remote, catalogue: &Catalogue, flaws: &[String], pinned: &Pinned) -> Value {
    let service = remote.service();
    let definitions = |items: &[Item]| -> Vec<Value> { items.iter().map(|item| item.original.clone()).collect() };
    let tools: Vec<Value> = catalogue
        .tools
        .iter()
        .map(|tool| {
            let pin = pin_state(&remote.provider, tool, pinned);
            json!({ "definition": tool.original, "pin": pin, "price": price_of(&tool.original) })
        })
        .collect();
    let relays: Vec<String> = remote.customer().relays().iter().map(|status| status.url.to_string()).collect();
    json!({
        "name": remote.name(),
        "about": service.as_ref().map(|service| service.about.as_str()),
        "npub": remote.npub(),
        "nprofile": remote.link(),
        "announced": service.as_ref().map(|service| service.announced.as_secs()),
        "wires": wires(remote),
        "way": remote.way().name(),
        "sealed": remote.way().sealed,
        "flaws": flaws,
        "price": price(catalogue),
        "relays": relays,
        "tools": tools,
        "resources": definitions(&catalogue.resources),
        "resource_templates": definitions(&catalogue.templates),
        "prompts": definitions(&catalogue.prompts),
    })
}
