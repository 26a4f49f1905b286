//! `rialto config show`: every value and, with `--origin`, where it was set. Secrets stay hidden.

use clap::Args;
use serde_json::{Value, json};

use crate::commands::current_directory;
use crate::commands::gateway::SettingFlags;
use crate::config::choice::Choice;
use crate::config::mask::{self, MASK};
use crate::config::problem::Report;
use crate::config::server::{Reach, ServerEntry};
use crate::config::settings::{Origin, Settings};
use crate::config::{Config, Request, Scope, load};
use crate::environment::Environment;
use crate::failure::Outcome;
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto config show
  rialto config show --origin
  rialto config show --config claude_desktop_config.json --json

Values of environment variables, and arguments that look like secrets, are shown as •••.
Variables such as ${NAME} are shown as written.";

/// Show every value of the configuration
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Show where each value was set
    #[arg(long)]
    origin: bool,

    #[command(flatten)]
    settings: SettingFlags,
}

pub(crate) fn run(arguments: Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let directory = current_directory()?;
    let flags = arguments.settings.layer();
    let files = arguments.settings.config;
    let request = Request { environment, directory: &directory, flags, files, scope: Scope::Everything };
    let mut report = Report::default();
    let config = load(&request, &mut report);
    for warning in report.into_result()? {
        talk.warn(&warning.line());
    }
    let rows = rows(&config);
    match talk.format {
        Format::Json => {
            let values: Vec<Value> = rows.iter().map(Row::to_json).collect();
            output::json(&json!({ "files": config.files, "values": values }))
        }
        Format::Text if arguments.origin => {
            let cells = rows.iter().map(|row| vec![row.value.to_string(), row.key.clone(), row.origin.describe()]);
            output::text(&output::table(&cells.collect::<Vec<_>>()))
        }
        Format::Text => {
            let lines: Vec<String> = rows.iter().map(|row| format!("{} = {}\n", row.key, row.value)).collect();
            output::text(&lines.concat())
        }
    }
}

struct Row {
    key: String,
    value: Value,
    origin: Origin,
}

impl Row {
    fn new(key: impl Into<String>, value: impl Into<Value>, origin: &Origin) -> Self {
        Self { key: key.into(), value: value.into(), origin: origin.clone() }
    }

    fn to_json(&self) -> Value {
        json!({ "key": self.key, "value": self.value, "origin": self.origin.to_json() })
    }
}

fn rows(config: &Config) -> Vec<Row> {
    let Settings { prefix, era, startup_grace_ms, timeout_secs, max_timeout_secs } = &config.settings;
    let mut rows = vec![
        Row::new("prefix", prefix.value.name(), &prefix.origin),
        Row::new("era", era.value.name(), &era.origin),
        Row::new("startup_grace_ms", startup_grace_ms.value, &startup_grace_ms.origin),
        Row::new("timeout_secs", timeout_secs.value, &timeout_secs.origin),
        Row::new("max_timeout_secs", max_timeout_secs.value, &max_timeout_secs.origin),
    ];
    for server in &config.servers {
        add_server(server, &mut rows);
    }
    rows
}

fn add_server(server: &ServerEntry, rows: &mut Vec<Row>) {
    let prefix = format!("servers.{}", quoted(&server.name));
    let key = |field: &str| format!("{prefix}.{field}");
    let args: Vec<String> = server.args.iter().map(|text| text.text.clone()).collect();
    match &server.reach {
        Reach::Command(command) => {
            rows.push(Row::new(key("command"), command.text.clone(), &server.origin(&command.span)));
        }
        Reach::Address(address) => {
            let shown = mask::arguments(std::slice::from_ref(&address.text)).concat();
            rows.push(Row::new(key("url"), shown, &server.origin(&address.span)));
        }
    }
    if let Some(first) = server.args.first() {
        rows.push(Row::new(key("args"), mask::arguments(&args), &server.origin(&first.span)));
    }
    for (name, text) in &server.env {
        rows.push(Row::new(key(&format!("env.{}", quoted(name))), MASK, &server.origin(&text.span)));
    }
    for (name, text) in &server.headers {
        rows.push(Row::new(key(&format!("headers.{}", quoted(name))), MASK, &server.origin(&text.span)));
    }
    let login = &server.login;
    for (field, text) in [("client_id", &login.client_id), ("client_metadata_url", &login.client_metadata)] {
        if let Some(text) = text {
            rows.push(Row::new(key(&format!("oauth.{field}")), text.text.clone(), &server.origin(&text.span)));
        }
    }
    if let Some(secret) = &login.client_secret {
        rows.push(Row::new(key("oauth.client_secret"), MASK, &server.origin(&secret.span)));
    }
    if let Some([first, ..]) = login.scopes.as_deref() {
        let scopes: Vec<String> = login.scopes.iter().flatten().map(|text| text.text.clone()).collect();
        rows.push(Row::new(key("oauth.scopes"), scopes, &server.origin(&first.span)));
    }
    if let Some(port) = &login.port {
        rows.push(Row::new(key("oauth.callback_port"), port.value, &port.origin));
    }
    for (field, text) in [("env_file", &server.env_file), ("cwd", &server.cwd)] {
        if let Some(text) = text {
            rows.push(Row::new(key(field), text.text.clone(), &server.origin(&text.span)));
        }
    }
    if let Some(sandbox) = &server.sandbox {
        rows.push(Row::new(key("sandbox"), sandbox.value.name(), &sandbox.origin));
    }
    if let Some(first) = server.sandbox_read.first() {
        let listed: Vec<String> = server.sandbox_read.iter().map(|text| text.text.clone()).collect();
        rows.push(Row::new(key("sandbox_read"), listed, &server.origin(&first.span)));
    }
    if let Some(network) = &server.sandbox_network {
        rows.push(Row::new(key("sandbox_network"), network.value, &network.origin));
    }
    if let Some(enabled) = &server.enabled {
        rows.push(Row::new(key("enabled"), enabled.value, &enabled.origin));
    }
    if let Some(era) = &server.era {
        rows.push(Row::new(key("era"), era.value.name(), &era.origin));
    }
    for (field, names) in [("allow", &server.allow), ("deny", &server.deny)] {
        if let Some(first) = names.first() {
            let listed: Vec<String> = names.iter().map(|text| text.text.clone()).collect();
            rows.push(Row::new(key(field), listed, &server.origin(&first.span)));
        }
    }
    for (field, timeout) in [("timeout_secs", &server.timeout), ("max_timeout_secs", &server.max_timeout)] {
        if let Some(timeout) = timeout {
            let seconds = timeout.value.as_secs_f64();
            let shown = if seconds.fract() == 0.0 { json!(timeout.value.as_secs()) } else { json!(seconds) };
            rows.push(Row::new(key(field), shown, &timeout.origin));
        }
    }
}

/// A key as TOML writes it.
fn quoted(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { name.to_owned() } else { json!(name).to_string() }
}
