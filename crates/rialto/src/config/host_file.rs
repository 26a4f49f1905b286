//! Reads the configuration of MCP hosts as it is: `mcpServers` (Claude, Cursor, Windsurf and most others) and the
//! `servers` of VS Code.
//!
//! These files are not ours, so a key we do not know is a warning, and what hosts keep for themselves is passed over in
//! silence. Hosts disagree about the unit of `timeout`: some count milliseconds, some seconds. A value of 1000 or more
//! is taken as milliseconds, a smaller one as seconds, which is right for every value that makes sense in either.

use std::sync::Arc;
use std::time::Duration;

use rialto_http::client::Way;

use crate::config::fields::{Fields, key_hint};
use crate::config::problem::Report;
use crate::config::server::{Login, Reach, ServerEntry};
use crate::config::settings::{PORTS, Traced};
use crate::config::source::Source;
use crate::config::tree::{Member, Node, Value};

/// From this value on, `timeout` counts milliseconds.
const FIRST_MILLISECONDS: f64 = 1000.0;

/// A week, as for our own files.
const LONGEST_SECONDS: f64 = 7.0 * 24.0 * 3600.0;

/// Keys under which hosts keep the address of a remote server.
const ADDRESSES: [&str; 3] = ["url", "httpUrl", "serverUrl"];

/// Keys that say something to us.
const KEYS: [&str; 23] = [
    "command",
    "args",
    "env",
    "envFile",
    "cwd",
    "disabled",
    "enabled",
    "timeout",
    "type",
    "transport",
    "transportType",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "oauth",
    "auth",
    "allow",
    "deny",
    "includeTools",
    "excludeTools",
    "disabledTools",
    "tools",
];

/// Keys that hosts use for themselves: approval lists, looks, sign-in, reloading.
const KEYS_OF_HOSTS: [&str; 29] = [
    "alwaysAllow",
    "authProviderType",
    "authorization_token",
    "autoApprove",
    "autoStart",
    "comment",
    "description",
    "dev",
    "disabledReason",
    "displayName",
    "gallery",
    "headersHelper",
    "icon",
    "icons",
    "id",
    "initTimeout",
    "isActive",
    "metadata",
    "name",
    "networkTimeout",
    "note",
    "notes",
    "sandbox",
    "sandboxEnabled",
    "startupTimeout",
    "title",
    "trust",
    "version",
    "watchPaths",
];

/// What one such file offers.
#[derive(Default)]
pub(crate) struct HostFile {
    pub(crate) servers: Vec<ServerEntry>,
    /// Servers that were left out because nothing here speaks as they do.
    pub(crate) skipped: usize,
}

pub(crate) fn read(source: &Arc<Source>, tree: &Node, report: &mut Report) -> HostFile {
    let mut fields = Fields { source, report };
    let mut file = HostFile::default();
    let Some(members) = tree.members() else {
        fields.report.error(source, &tree.span, format!("expected an object with `mcpServers`, not {}", tree.kind()));
        return file;
    };
    // `settings.json` of VS Code has its servers one level deeper.
    let inner = tree.get("mcp").and_then(Node::members).unwrap_or_default();
    let is_section = |member: &&Member| member.key == "mcpServers" || member.key == "servers";
    let sections: Vec<&Member> =
        members.iter().filter(is_section).chain(inner.iter().filter(|member| member.key == "servers")).collect();
    if sections.is_empty() {
        let meant = members.iter().find(|member| key_hint(&member.key, &["mcpServers"]).is_some());
        let (span, hint) = match meant {
            Some(member) => (&member.key_span, format!("rename `{}` to `mcpServers`", member.key)),
            None => (&(tree.span.start..tree.span.start + 1), "write {\"mcpServers\": {…}}".to_owned()),
        };
        fields.report.error_with_hint(source, span, "found neither `mcpServers` nor `servers`", hint);
    }
    for section in sections {
        for entry in fields.table(section) {
            match server(&mut fields, entry) {
                Entry::Server(server) => file.servers.push(*server),
                Entry::Unknown => file.skipped += 1,
                Entry::Faulty => {}
            }
        }
    }
    file
}

enum Entry {
    Server(Box<ServerEntry>),
    /// It speaks in a way that we do not.
    Unknown,
    /// Reported already.
    Faulty,
}

fn server(fields: &mut Fields<'_>, entry: &Member) -> Entry {
    let find = |key: &str| entry.node.get(key);
    let transport = ["type", "transport", "transportType"].iter().find_map(|key| match find(key).map(|n| &n.value) {
        Some(Value::Text(text)) => Some(text.to_ascii_lowercase()),
        _ => None,
    });
    let is_local = match transport.as_deref() {
        Some("stdio" | "local") => true,
        Some("ws" | "websocket") => {
            let message = format!("server `{}`: MCP over WebSocket is not supported: skipped", entry.key);
            fields.report.warning(fields.source, &entry.key_span, message, None);
            return Entry::Unknown;
        }
        Some(other) if other.contains("http") || other == "sse" => false,
        _ => find("command").is_some() || !ADDRESSES.iter().any(|key| find(key).is_some()),
    };
    if !is_local {
        let way = if transport.as_deref() == Some("sse") { Way::Sse } else { Way::Streamable };
        return remote(fields, entry, way);
    }
    let members = fields.table(entry);
    let Some(command) = members.iter().find(|member| member.key == "command") else {
        if entry.node.members().is_some() {
            let message = format!("server `{}` has neither `command` nor `url`", entry.key);
            let near = members.iter().find(|member| key_hint(&member.key, &["command"]).is_some());
            let hint = match near {
                Some(member) => format!("rename `{}` to `command`", member.key),
                None => "add \"command\": \"program\"".to_owned(),
            };
            fields.report.error_with_hint(fields.source, &entry.key_span, message, hint);
        }
        return Entry::Faulty;
    };
    let Some(command) = fields.text(command) else { return Entry::Faulty };
    let mut server = ServerEntry::new(&entry.key, fields.source, entry.key_span.clone(), Reach::Command(command));
    for member in members {
        take(fields, member, &mut server);
    }
    Entry::Server(Box::new(server))
}

fn remote(fields: &mut Fields<'_>, entry: &Member, way: Way) -> Entry {
    let members = fields.table(entry);
    let Some(address) = members.iter().find(|member| ADDRESSES.contains(&member.key.as_str())) else {
        let message = format!("server `{}` has no `url`", entry.key);
        fields.report.error_with_hint(fields.source, &entry.key_span, message, "add \"url\": \"https://…\"");
        return Entry::Faulty;
    };
    let Some(address) = fields.text(address) else { return Entry::Faulty };
    let mut server = ServerEntry::new(&entry.key, fields.source, entry.key_span.clone(), Reach::Address(address));
    server.way = way;
    for member in members {
        take(fields, member, &mut server);
    }
    Entry::Server(Box::new(server))
}

/// What hosts that let their users choose say about logins.
fn login(fields: &mut Fields<'_>, member: &Member, login: &mut Login) {
    for member in member.node.members().unwrap_or_default() {
        match member.key.as_str() {
            "clientId" | "client_id" | "CLIENT_ID" => login.client_id = fields.text(member),
            "clientSecret" | "client_secret" | "CLIENT_SECRET" => login.client_secret = fields.text(member),
            "clientMetadataUrl" | "client_metadata_url" => login.client_metadata = fields.text(member),
            "scopes" if matches!(member.node.value, Value::List(_)) => login.scopes = Some(fields.texts(member)),
            "callbackPort" | "callback_port" => login.port = fields.number(member, &PORTS),
            // The rest is the host's own.
            _ => {}
        }
    }
}

fn take(fields: &mut Fields<'_>, member: &Member, server: &mut ServerEntry) {
    let is_null = member.node.value == Value::Null;
    match member.key.as_str() {
        _ if is_null => {}
        "args" => server.args = fields.texts(member),
        "env" => server.env = fields.pairs(member),
        "envFile" => server.env_file = fields.text(member),
        "cwd" => server.cwd = fields.text(member),
        "headers" => server.headers = fields.pairs(member),
        "oauth" | "auth" => login(fields, member, &mut server.login),
        // `disabled` and `enabled` say the same; a server runs only when neither of them objects.
        "disabled" | "enabled" => {
            if let Some(value) = fields.switch(member) {
                let enabled = value == (member.key == "enabled") && server.is_enabled();
                server.enabled = Some(fields.traced(member, enabled));
            }
        }
        "timeout" => server.timeout = timeout(fields, member),
        "allow" | "includeTools" | "tools" if matches!(member.node.value, Value::List(_)) => {
            server.allow.extend(fields.texts(member));
        }
        "deny" | "excludeTools" | "disabledTools" => server.deny.extend(fields.texts(member)),
        key if KEYS.contains(&key) || KEYS_OF_HOSTS.contains(&key) || key.starts_with(['_', '$', '/', '#']) => {}
        key => {
            let message = format!("unknown key `{key}`");
            let hint = key_hint(key, &KEYS);
            fields.report.warning(fields.source, &member.key_span, message, hint);
        }
    }
}

fn timeout(fields: &mut Fields<'_>, member: &Member) -> Option<Traced<Duration>> {
    let number = match &member.node.value {
        Value::Number(text) => text.parse::<f64>().ok(),
        _ => None,
    };
    let seconds = number.map(|number| if number >= FIRST_MILLISECONDS { number / 1000.0 } else { number });
    match seconds.filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST_SECONDS) {
        Some(seconds) => Some(fields.traced(member, Duration::from_secs_f64(seconds))),
        None => {
            let message = "`timeout` must be a number above 0: seconds below 1000, milliseconds from 1000 on";
            fields.report.error(fields.source, &member.node.span, message);
            None
        }
    }
}
