//! One entry in a host's list of servers, in the form of each host.

use serde_json::{Value, json};

use super::host::Host;
use crate::config::document::Language;
use crate::config::tree::{self, Node};
use crate::failure::Failure;

/// Hosts put this name in front of every tool, and models see it.
const LONGEST_NAME: usize = 32;

/// How Nostr writes keys and addresses. They are no names.
const CODES: [&str; 6] = ["npub1", "nprofile1", "naddr1", "nevent1", "note1", "nsec1"];

pub(super) struct Entry {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

/// How the members of a JSON file are laid out.
pub(super) struct Layout<'a> {
    /// White space before each level; `None` when everything stands on one line.
    pub(super) unit: Option<&'a str>,
    pub(super) line_break: &'a str,
}

impl Entry {
    pub(super) fn new(name: Option<&str>, command: String, services: &[String]) -> Result<Self, Failure> {
        if services.iter().any(|service| service.trim().is_empty()) {
            return Err(Failure::usage("a service has no name").hint("rialto connect cursor weather"));
        }
        let name = match name {
            Some(name) if is_name(name) => name.to_owned(),
            Some(_) => {
                let rule = format!("--name takes 1 to {LONGEST_NAME} letters, digits, `-` and `_`");
                return Err(Failure::usage(rule).hint("rialto connect cursor weather --name weather"));
            }
            None => default_name(services),
        };
        let args = std::iter::once("use".to_owned()).chain(services.iter().cloned()).collect();
        Ok(Self { name, command, args })
    }

    /// The members of the entry, in the order in which people expect them.
    pub(super) fn members(&self, host: Host) -> Vec<(&'static str, Value)> {
        let kind = (host == Host::Vscode).then(|| ("type", json!("stdio")));
        kind.into_iter().chain([("command", json!(self.command)), ("args", json!(self.args))]).collect()
    }

    /// Whether an entry in a file says what this one says. It may say more, such as environment variables.
    pub(super) fn is_said_by(&self, node: &Node, host: Host) -> bool {
        self.members(host).iter().all(|(key, value)| node.get(key).is_some_and(|node| is_equal(node, value)))
    }

    /// The whole configuration of a host that has no other server, as data.
    pub(super) fn config(&self, host: Host) -> Value {
        match host.language() {
            Language::Toml => json!(self.toml()),
            Language::Json => {
                let entry: serde_json::Map<String, Value> =
                    self.members(host).into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                json!({ host.key(): { self.name.as_str(): entry } })
            }
        }
    }

    /// What a person needs: a command where the host has one for it, otherwise text for its file.
    pub(super) fn shown(&self, host: Host) -> String {
        if host != Host::ClaudeCode {
            return self.document(host);
        }
        let words: Vec<String> = std::iter::once(&self.command).chain(&self.args).map(|word| quoted(word)).collect();
        format!("claude mcp add {} -- {}\n", quoted(&self.name), words.join(" "))
    }

    /// A file with this entry alone.
    pub(super) fn document(&self, host: Host) -> String {
        match host.language() {
            Language::Toml => self.toml(),
            Language::Json => {
                let layout = Layout { unit: Some("  "), line_break: "\n" };
                format!("{{\n  {}\n}}\n", self.list(host, &layout, 1))
            }
        }
    }

    /// The list of servers as a member, `depth` levels deep.
    pub(super) fn list(&self, host: Host, layout: &Layout<'_>, depth: usize) -> String {
        block(host.key(), &[self.json(host, layout, depth + 1)], layout, depth)
    }

    /// The entry as a member, `depth` levels deep.
    pub(super) fn json(&self, host: Host, layout: &Layout<'_>, depth: usize) -> String {
        let members: Vec<String> =
            self.members(host).iter().map(|(key, value)| format!("{}: {}", json!(key), spaced(value))).collect();
        block(&self.name, &members, layout, depth)
    }

    pub(super) fn toml(&self) -> String {
        let (command, args) = self.toml_values();
        // The alphabet of names is that of bare keys.
        format!("[{}.{}]\ncommand = {command}\nargs = {args}\n", Host::Codex.key(), self.name)
    }

    pub(super) fn toml_values(&self) -> (String, String) {
        let args = self.args.iter().cloned().map(toml::Value::String).collect();
        (toml::Value::String(self.command.clone()).to_string(), toml::Value::Array(args).to_string())
    }
}

/// `"key": { members }`.
fn block(key: &str, members: &[String], layout: &Layout<'_>, depth: usize) -> String {
    match layout.unit {
        None => format!("{}: {{{}}}", json!(key), members.join(", ")),
        Some(unit) => {
            let (outer, inner) = (unit.repeat(depth), unit.repeat(depth + 1));
            let line_break = layout.line_break;
            let members = members.join(&format!(",{line_break}{inner}"));
            format!("{}: {{{line_break}{inner}{members}{line_break}{outer}}}", json!(key))
        }
    }
}

/// A list with a space after each comma, as people write it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn is_equal(node: &Node, value: &Value) -> bool {
    match (&node.value, value) {
        (tree::Value::Text(text), Value::String(wanted)) => text == wanted,
        (tree::Value::List(items), Value::Array(wanted)) => {
            items.len() == wanted.len() && items.iter().zip(wanted).all(|(item, wanted)| is_equal(item, wanted))
        }
        _ => false,
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    is_plain && (1..=LONGEST_NAME).contains(&name.len())
}

/// The service's own name where it has a short one. A key, an address or several services have none.
fn default_name(services: &[String]) -> String {
    match services {
        [service] if is_name(service) && !CODES.iter().any(|code| service.starts_with(code)) => {
            service.to_ascii_lowercase()
        }
        _ => "rialto".to_owned(),
    }
}

/// A word for a shell, in quotes only when it needs them.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{default_name, quoted};

    #[test]
    fn names_are_derived_from_plain_services_only() {
        let cases = [
            (&["weather"][..], "weather"),
            (&["Weather_2"], "weather_2"),
            (&["weather", "maps"], "rialto"),
            (&["npub1xyz"], "rialto"),
            (&["weather@example.com"], "rialto"),
            (&["wetter in köln"], "rialto"),
            (&["a-name-that-is-longer-than-any-name-should-be"], "rialto"),
        ];
        for (services, expected) in cases {
            let services: Vec<String> = services.iter().map(|&service| service.to_owned()).collect();
            assert_eq!(default_name(&services), expected, "{services:?}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell_when_they_need_it() {
        for (word, expected) in
            [("a/b-c", "a/b-c"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
