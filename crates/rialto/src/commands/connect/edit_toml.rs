//! Adds an entry to the text of a TOML file: at its end, where a new table disturbs nothing, or in place of the values
//! of an entry that is there.

use super::entry::Entry;
use crate::config::tree::Node;

/// The text with the entry in it; `existing` is the entry of the same name. The caller reads the result again, because a
/// file can be written in ways that this does not suit.
pub(super) fn with_entry(text: &str, existing: Option<&Node>, entry: &Entry) -> String {
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    match existing {
        None => {
            let mut new = text.to_owned();
            if !new.is_empty() && !new.ends_with('\n') {
                new.push_str(line_break);
            }
            if !new.is_empty() {
                new.push_str(line_break);
            }
            new.push_str(&entry.toml().replace('\n', line_break));
            new
        }
        Some(existing) => replaced(text, existing, entry, line_break).unwrap_or_else(|| text.to_owned()),
    }
}

/// Puts new values where the old ones are, so that comments and other keys stay.
fn replaced(text: &str, existing: &Node, entry: &Entry, line_break: &str) -> Option<String> {
    let (command, args) = entry.toml_values();
    let old = existing.get("command")?.span.clone();
    let mut edits = match existing.get("args") {
        Some(args_node) => vec![(old, command), (args_node.span.clone(), args)],
        None => {
            let is_inline = text[existing.span.clone()].starts_with('{');
            let between = if is_inline { ", " } else { line_break };
            vec![(old, format!("{command}{between}args = {args}"))]
        }
    };
    // From the end, so that places before it stay right.
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut new = text.to_owned();
    for (range, value) in edits {
        new.replace_range(range, &value);
    }
    Some(new)
}
