//! Takes typed values out of the tree of a file. What does not fit is reported with its place, and reading goes on.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use crate::config::choice::Choice;
use crate::config::problem::Report;
use crate::config::settings::{Origin, Traced};
use crate::config::source::Source;
use crate::config::tree::{Member, Node, Value};
use crate::suggest::nearest;

/// Text and where it stands. It is as written: variables are expanded later, and only for servers that run.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

/// Reads the fields of one file.
pub(crate) struct Fields<'a> {
    pub(crate) source: &'a Arc<Source>,
    pub(crate) report: &'a mut Report,
}

impl Fields<'_> {
    fn wrong(&mut self, member: &Member, expected: &str) {
        let message = format!("`{}` must be {expected}, not {}", member.key, member.node.kind());
        self.report.error(self.source, &member.node.span, message);
    }

    pub(crate) fn traced<T>(&self, member: &Member, value: T) -> Traced<T> {
        Traced::new(value, Origin::File(Arc::clone(self.source), member.key_span.start))
    }

    pub(crate) fn text(&mut self, member: &Member) -> Option<Text> {
        match &member.node.value {
            Value::Text(text) => Some(Text { text: text.clone(), span: member.node.span.clone() }),
            _ => {
                self.wrong(member, "text");
                None
            }
        }
    }

    /// A list of text. Numbers in it are taken as they are written.
    pub(crate) fn texts(&mut self, member: &Member) -> Vec<Text> {
        let Value::List(items) = &member.node.value else {
            self.wrong(member, "a list of text");
            return Vec::new();
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match scalar(item) {
                Some(text) => texts.push(Text { text, span: item.span.clone() }),
                None => {
                    let message = format!("`{}` must hold text only, not {}", member.key, item.kind());
                    self.report.error(self.source, &item.span, message);
                }
            }
        }
        texts
    }

    /// Names with text. A `null` is left out, as hosts do.
    pub(crate) fn pairs(&mut self, member: &Member) -> Vec<(String, Text)> {
        let Value::Object(entries) = &member.node.value else {
            self.wrong(member, "an object of names and text");
            return Vec::new();
        };
        let mut pairs = Vec::with_capacity(entries.len());
        for entry in entries {
            let invalid_name = entry.key.is_empty() || entry.key.contains(['=', '\0']);
            if invalid_name {
                self.report.error(self.source, &entry.key_span, "not a name for an environment variable");
                continue;
            }
            match (&entry.node.value, scalar(&entry.node)) {
                (Value::Null, _) => {}
                (_, Some(text)) => pairs.push((entry.key.clone(), Text { text, span: entry.node.span.clone() })),
                (_, None) => self.wrong(entry, "text"),
            }
        }
        pairs
    }

    pub(crate) fn switch(&mut self, member: &Member) -> Option<bool> {
        match member.node.value {
            Value::Bool(value) => Some(value),
            _ => {
                self.wrong(member, "true or false");
                None
            }
        }
    }

    pub(crate) fn choice<T: Choice>(&mut self, member: &Member) -> Option<Traced<T>> {
        let text = self.text(member)?;
        match T::parse(&text.text) {
            Some(value) => Some(self.traced(member, value)),
            None => {
                let message = format!("`{}` must be {}, not `{}`", member.key, T::listed(), text.text);
                let names = T::NAMES.iter().map(|(name, _)| *name);
                match nearest(&text.text, names) {
                    Some(meant) => {
                        let hint = format!("did you mean `{meant}`?");
                        self.report.error_with_hint(self.source, &text.span, message, hint);
                    }
                    None => self.report.error(self.source, &text.span, message),
                }
                None
            }
        }
    }

    pub(crate) fn number(&mut self, member: &Member, range: &RangeInclusive<u64>) -> Option<Traced<u64>> {
        let value = match &member.node.value {
            Value::Number(text) => text.parse().ok().filter(|value| range.contains(value)),
            _ => None,
        };
        if value.is_none() {
            let message = format!("`{}` must be a whole number from {} to {}", member.key, range.start(), range.end());
            self.report.error(self.source, &member.node.span, message);
        }
        Some(self.traced(member, value?))
    }

    /// The members of a table.
    pub(crate) fn table<'m>(&mut self, member: &'m Member) -> &'m [Member] {
        match member.node.members() {
            Some(members) => members,
            None => {
                self.wrong(member, "an object");
                &[]
            }
        }
    }
}

/// `did you mean …?` for a key that is not known.
pub(crate) fn key_hint(typed: &str, known: &[&str]) -> Option<String> {
    nearest(typed, known.iter().copied()).map(|meant| format!("did you mean `{meant}`?"))
}

fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) | Value::Number(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}
