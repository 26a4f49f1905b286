//! Reads our own `rialto.toml`. A key that is not known is an error: in a file written for us it is a mistake.

use std::sync::Arc;
use std::time::Duration;

use crate::config::fields::{Fields, Text, key_hint};
use crate::config::problem::Report;
use crate::config::server::{Login, Reach, ServerEntry};
use crate::config::settings::{GRACE_MILLISECONDS, Layer, PORTS, SECONDS};
use crate::config::source::Source;
use crate::config::tree::{Member, Node};

/// The keys at the top of the file.
pub(super) const KEYS: [&str; 7] =
    ["prefix", "era", "startup_grace_ms", "timeout_secs", "max_timeout_secs", "import", "servers"];

/// The keys of a `[servers.NAME]` table.
pub(super) const SERVER_KEYS: [&str; 17] = [
    "command",
    "args",
    "env",
    "cwd",
    "sandbox",
    "sandbox_read",
    "sandbox_network",
    "url",
    "transport",
    "headers",
    "oauth",
    "enabled",
    "era",
    "allow",
    "deny",
    "timeout_secs",
    "max_timeout_secs",
];

/// The keys of a server's `oauth` table.
pub(super) const OAUTH_KEYS: [&str; 5] =
    ["client_id", "client_secret", "client_metadata_url", "scopes", "callback_port"];

/// What one `rialto.toml` says.
#[derive(Default)]
pub(crate) struct RialtoFile {
    pub(crate) layer: Layer,
    pub(crate) imports: Vec<Text>,
    pub(crate) servers: Vec<ServerEntry>,
}

pub(crate) fn read(source: &Arc<Source>, tree: &Node, report: &mut Report) -> RialtoFile {
    let mut fields = Fields { source, report };
    let mut file = RialtoFile::default();
    for member in tree.members().unwrap_or_default() {
        match member.key.as_str() {
            "prefix" => file.layer.prefix = fields.choice(member),
            "era" => file.layer.era = fields.choice(member),
            "startup_grace_ms" => file.layer.startup_grace_ms = fields.number(member, &GRACE_MILLISECONDS),
            "timeout_secs" => file.layer.timeout_secs = fields.number(member, &SECONDS),
            "max_timeout_secs" => file.layer.max_timeout_secs = fields.number(member, &SECONDS),
            "import" => file.imports = fields.texts(member),
            "servers" => {
                let entries = fields.table(member);
                file.servers = entries.iter().filter_map(|entry| server(&mut fields, entry)).collect();
            }
            _ => unknown(&mut fields, member, &KEYS),
        }
    }
    file
}

fn server(fields: &mut Fields<'_>, entry: &Member) -> Option<ServerEntry> {
    let members = fields.table(entry);
    let find = |key: &str| members.iter().find(|member| member.key == key);
    let reach = match (find("command"), find("url")) {
        (Some(command), None) => Reach::Command(fields.text(command)?),
        (None, Some(url)) => Reach::Address(fields.text(url)?),
        (Some(_), Some(url)) => {
            let message = format!("server `{}` has both `command` and `url`", entry.key);
            fields.report.error_with_hint(fields.source, &url.key_span, message, "leave one of them out");
            return None;
        }
        (None, None) => {
            let mistyped = members.iter().find(|member| key_hint(&member.key, &["command"]).is_some());
            if let Some(mistyped) = mistyped {
                unknown(fields, mistyped, &SERVER_KEYS);
            } else if entry.node.members().is_some() {
                let message = format!("server `{}` has neither `command` nor `url`", entry.key);
                let hint = "add: command = \"program\"    or: url = \"https://…\"";
                fields.report.error_with_hint(fields.source, &entry.key_span, message, hint);
            }
            return None;
        }
    };
    let is_local = matches!(reach, Reach::Command(_));
    let mut server = ServerEntry::new(&entry.key, fields.source, entry.key_span.clone(), reach);
    for member in members {
        match member.key.as_str() {
            "command" | "url" => {}
            "args" | "env" | "cwd" | "sandbox" if !is_local => misplaced(fields, member, "command"),
            "sandbox_read" | "sandbox_network" if find("sandbox").is_none() => misplaced(fields, member, "sandbox"),
            "transport" | "headers" | "oauth" if is_local => misplaced(fields, member, "url"),
            "transport" => server.way = fields.choice(member).map(|way| way.value).unwrap_or_default(),
            "headers" => server.headers = fields.pairs(member),
            "oauth" => login(fields, member, &mut server.login),
            "args" => server.args = fields.texts(member),
            "env" => server.env = fields.pairs(member),
            "cwd" => server.cwd = fields.text(member),
            "sandbox" => server.sandbox = fields.choice(member),
            "sandbox_read" => server.sandbox_read = fields.texts(member),
            "sandbox_network" => {
                server.sandbox_network = fields.switch(member).map(|value| fields.traced(member, value));
            }
            "enabled" => server.enabled = fields.switch(member).map(|value| fields.traced(member, value)),
            "era" => server.era = fields.choice(member),
            "allow" => server.allow = fields.texts(member),
            "deny" => server.deny = fields.texts(member),
            "timeout_secs" => server.timeout = seconds(fields, member),
            "max_timeout_secs" => server.max_timeout = seconds(fields, member),
            _ => unknown(fields, member, &SERVER_KEYS),
        }
    }
    Some(server)
}

fn login(fields: &mut Fields<'_>, member: &Member, login: &mut Login) {
    for member in fields.table(member) {
        match member.key.as_str() {
            "client_id" => login.client_id = fields.text(member),
            "client_secret" => login.client_secret = fields.text(member),
            "client_metadata_url" => login.client_metadata = fields.text(member),
            "scopes" => login.scopes = Some(fields.texts(member)),
            "callback_port" => login.port = fields.number(member, &PORTS),
            _ => unknown(fields, member, &OAUTH_KEYS),
        }
    }
}

fn misplaced(fields: &mut Fields<'_>, member: &Member, needed: &str) {
    let message = format!("`{}` says nothing without `{needed}`", member.key);
    fields.report.error(fields.source, &member.key_span, message);
}

fn seconds(fields: &mut Fields<'_>, member: &Member) -> Option<crate::config::settings::Traced<Duration>> {
    let number = fields.number(member, &SECONDS)?;
    Some(fields.traced(member, Duration::from_secs(number.value)))
}

fn unknown(fields: &mut Fields<'_>, member: &Member, known: &[&str]) {
    let hint = key_hint(&member.key, known).unwrap_or_else(|| format!("known here: {}", known.join(", ")));
    fields.report.error_with_hint(fields.source, &member.key_span, format!("unknown key `{}`", member.key), hint);
}
