//! Adds an entry to the text of a JSON file and leaves every other byte as it is: comments, order, white space, and the
//! trailing commas that some hosts allow.

use std::ops::Range;

use super::entry::{Entry, Layout};
use super::host::Host;
use crate::config::tree::Node;

/// The text with the entry in it. The caller knows that `tree` is an object and that the list, if it is there, is one, too.
pub(super) fn with_entry(text: &str, tree: &Node, host: Host, entry: &Entry) -> String {
    let unit = unit(text, tree);
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let layout = Layout { unit: unit.as_deref(), line_break };
    match tree.get(host.key()) {
        None => insert(text, tree, &entry.list(host, &layout, 1), &layout, 1),
        Some(list) => match list.members().into_iter().flatten().find(|member| member.key == entry.name) {
            None => insert(text, list, &entry.json(host, &layout, 2), &layout, 2),
            Some(member) => {
                let new = entry.json(host, &layout, 2);
                replace(text, member.key_span.start..member.node.span.end, &new)
            }
        },
    }
}

/// The white space that one level is indented by; `None` when the first member stands on the line of the bracket.
fn unit(text: &str, tree: &Node) -> Option<String> {
    let Some(first) = tree.members().and_then(<[_]>::first) else { return Some("  ".to_owned()) };
    let line = text[..first.key_span.start].rfind('\n').map(|position| position + 1)?;
    let indent = &text[line..first.key_span.start];
    if indent.chars().all(char::is_whitespace) && !indent.is_empty() { Some(indent.to_owned()) } else { None }
}

/// Puts `member` at the end of `object`, whose members are `depth` levels deep.
fn insert(text: &str, object: &Node, member: &str, layout: &Layout<'_>, depth: usize) -> String {
    let close = object.span.end - 1;
    let last = object.members().and_then(<[_]>::last).map(|member| member.node.span.end);
    let after = last.unwrap_or(object.span.start + 1);
    // Up to here reaches what is said between the last member and the bracket: a comma, comments.
    let end = after + text[after..close].trim_end().len();
    let tail = &text[after..end];
    let comma = comma(tail);
    let is_commented = tail.contains("//") || tail.contains("/*");
    let mut out = text[..after].to_owned();
    if last.is_some() && comma.is_none() {
        out.push(',');
    }
    out.push_str(tail);
    if layout.unit.is_none() && !is_commented {
        out.push_str(if last.is_some() { " " } else { "" });
        out.push_str(member);
        out.push_str(&text[end..]);
        return out;
    }
    let unit = layout.unit.unwrap_or("  ");
    let outer = format!("{}{}", layout.line_break, unit.repeat(depth - 1));
    out.push_str(&format!("{outer}{unit}{member}{}", if comma.is_some() { "," } else { "" }));
    // A bracket that stood on the same line gets its own.
    let has_line = text[end..close].contains('\n');
    out.push_str(if has_line { &text[end..close] } else { &outer });
    out.push_str(&text[close..]);
    out
}

/// Where the comma after the last member is, if it has one. Comments may hold commas, too.
fn comma(tail: &str) -> Option<usize> {
    let mut position = 0;
    while let Some(first) = tail[position..].chars().next() {
        let rest = &tail[position..];
        position += match first {
            ',' => return Some(position),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |length| length + 2),
            other => other.len_utf8(),
        };
    }
    None
}

fn replace(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

#[cfg(test)]
mod tests {
    use super::with_entry;
    use crate::commands::connect::entry::Entry;
    use crate::commands::connect::host::Host;
    use crate::config::json;

    fn edited(text: &str) -> String {
        let entry = Entry { name: "w".into(), command: "r".into(), args: vec!["use".into(), "x".into()] };
        let new = with_entry(text, &json::read(text).unwrap(), Host::Cursor, &entry);
        let tree = json::read(&new).unwrap_or_else(|error| panic!("{error:?}\n{new}"));
        assert!(entry.is_said_by(tree.get("mcpServers").unwrap().get("w").unwrap(), Host::Cursor), "{new}");
        new
    }

    #[test]
    fn only_the_entry_is_new() {
        let e = r#""w": {"command": "r", "args": ["use", "x"]}"#;
        let e2 = "\"w\": {\n      \"command\": \"r\",\n      \"args\": [\"use\", \"x\"]\n    }";
        let cases = [
            ("{}", format!("{{\n  \"mcpServers\": {{\n    {e2}\n  }}\n}}")),
            ("{\"mcpServers\":{}}", format!("{{\"mcpServers\":{{{e}}}}}")),
            ("{\"mcpServers\":{\"a\":{}}}", format!("{{\"mcpServers\":{{\"a\":{{}}, {e}}}}}")),
            ("{\"x\":1,}\n", format!("{{\"x\":1, \"mcpServers\": {{{e}}}}}\n")),
            (
                "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n",
                format!("{{\n  \"mcpServers\": {{\n    \"a\": {{}},\n    {e2}\n  }}\n}}\n"),
            ),
            (
                "{\n  // one, two\n  \"mcpServers\": {\n    \"a\": {}, // last, one\n    // end\n  }, /* x */\n}\n",
                format!(
                    "{{\n  // one, two\n  \"mcpServers\": {{\n    \"a\": {{}}, // last, one\n    // end\n    {e2},\n  }}, /* x */\n}}\n"
                ),
            ),
            (
                "{\n  \"mcpServers\": {\n    \"a\": {} // no, comma\n  }\n}",
                format!("{{\n  \"mcpServers\": {{\n    \"a\": {{}}, // no, comma\n    {e2}\n  }}\n}}"),
            ),
            (
                "{\n  \"mcpServers\": { /* none */ }\n}",
                format!("{{\n  \"mcpServers\": {{ /* none */\n    {e2}\n  }}\n}}"),
            ),
            (
                "{\n  \"mcpServers\": {\n    \"w\": {\"url\": \"y\"}, \"z\": {}\n  }\n}",
                format!("{{\n  \"mcpServers\": {{\n    {e2}, \"z\": {{}}\n  }}\n}}"),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(edited(text), expected, "{text}");
        }
    }

    #[test]
    fn tabs_and_line_ends_are_kept() {
        let new = edited("{\r\n\t\"x\": 1\r\n}\r\n");
        assert_eq!(
            new,
            "{\r\n\t\"x\": 1,\r\n\t\"mcpServers\": {\r\n\t\t\"w\": {\r\n\t\t\t\"command\": \"r\",\r\n\t\t\t\"args\": [\"use\", \"x\"]\r\n\t\t}\r\n\t}\r\n}\r\n"
        );
    }
}
