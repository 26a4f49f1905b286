//! The words for what does not fit: short, the same every time, and without anything of the value but names of fields.

use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::Misfit;
use super::keywords::{TYPES, Types};

/// Names and patterns longer than this are cut.
const MAX_WORD: usize = 80;

/// Where in the value the walk is. Lives on the stack; only a misfit turns it into text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn pointer(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(parent, name) => {
                format!("{}/{}", parent.pointer(), name.replace('~', "~0").replace('/', "~1"))
            }
            Path::Item(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }

    /// How a sentence calls it.
    fn name(&self) -> String {
        match self {
            Path::Root => "the value".to_owned(),
            Path::Field(_, name) => format!("`{}`", shortened(name)),
            Path::Item(parent, index) => format!("item {} of {}", index + 1, parent.name()),
        }
    }

    /// A misfit here; `rest` goes on after the name.
    pub(super) fn misfit(&self, rest: &str) -> Misfit {
        Misfit { pointer: self.pointer(), message: format!("{} {rest}", self.name()) }
    }

    /// A misfit of a field of this object, which may be absent.
    pub(super) fn field(&self, name: &str, rest: &str) -> Misfit {
        let message = format!("`{}` {rest}", shortened(name));
        Misfit { pointer: self.pointer(), message }
    }
}

/// On one line, without control characters, and cut when long.
pub(super) fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_WORD).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MAX_WORD).is_some() {
        short.push('…');
    }
    short
}

pub(super) fn types(types: Types) -> String {
    let article = |name: &str| match name {
        "null" => name.to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        name => format!("a {name}"),
    };
    let wanted = TYPES.iter().filter(|name| types.has(name));
    let names: Vec<String> = wanted.map(|name| article(name)).collect();
    match names.split_last() {
        Some((last, [])) => format!("must be {last}"),
        Some((last, rest)) => format!("must be {} or {last}", rest.join(", ")),
        None => "cannot have any type".to_owned(),
    }
}

/// What a count of things is out of.
pub(super) fn count(found: u64, least: u64, most: u64, things: [&str; 2]) -> Option<String> {
    let (word, limit) = match found {
        _ if found < least => ("least", least),
        _ if found > most => ("most", most),
        _ => return None,
    };
    Some(format!("must have at {word} {limit} {}", things[usize::from(limit != 1)]))
}

/// For the keywords that the crate checks. Their limits and choices are the schema's, not the value's.
pub(super) fn leaf(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Enum { options } => match options.as_array().map(|options| choices(options)) {
            Some(Some(choices)) => format!("must be one of {choices}"),
            Some(None) => format!("is not one of the {} allowed values", options.as_array().map_or(0, Vec::len)),
            None => "is not one of the allowed values".to_owned(),
        },
        ValidationErrorKind::Constant { expected_value } => match choices(std::slice::from_ref(expected_value)) {
            Some(choice) => format!("must be {choice}"),
            None => "is not the one allowed value".to_owned(),
        },
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        ValidationErrorKind::Pattern { pattern } => format!("does not match the pattern `{}`", shortened(pattern)),
        ValidationErrorKind::Format { format } => format!("is not a valid `{}`", shortened(format)),
        other => format!("does not fit `{}`", other.keyword()),
    }
}

/// A few short values, written out.
fn choices(values: &[Value]) -> Option<String> {
    if values.len() > 8 {
        return None;
    }
    let words: Vec<String> = values.iter().map(|value| format!("`{}`", plain(value))).collect();
    let words = words.join(", ");
    (words.chars().count() <= MAX_WORD).then_some(words)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}
