//! Keywords that the crate checks, compiled so that they cannot run away.

use jsonschema::{PatternOptions, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use super::Refused;
use super::compile::{Compiler, Members};
use super::keywords::Leaf;
use super::message::shortened;

/// Different regular expressions in one schema. Each may take a millisecond to compile.
const MAX_PATTERNS: usize = 100;

/// Bytes of a compiled regular expression and the steps for each byte that it reads: what a larger one can do to a text
/// is as much more work. A limit on the expression's own length would not see `{1000}`.
const PATTERN_SIZES: [(usize, u32); 2] = [(10 * 1024, 1), (100 * 1024, 10)];

/// Keywords about a single value that the crate checks.
const LEAF_KEYWORDS: [&str; 9] =
    ["enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format"];

impl Compiler<'_> {
    pub(super) fn leaf(&mut self, members: &Members) -> Result<Option<Leaf>, Refused> {
        let mut schema = Map::new();
        for name in LEAF_KEYWORDS {
            if let Some(range) = members.get(name) {
                schema.insert(name.to_owned(), self.value(range)?);
            }
        }
        if schema.is_empty() {
            return Ok(None);
        }
        let mut per_byte = u32::from(schema.contains_key("format"));
        if let Some(Value::String(pattern)) = schema.get("pattern") {
            let (validator, cost) = self.pattern(pattern)?;
            if schema.len() == 1 {
                return Ok(Some(Leaf { validator, values: 0, per_byte: cost }));
            }
            per_byte += cost;
        }
        let values = ["enum", "const"].iter().filter_map(|name| schema.get(*name)).map(count).sum();
        let (size, _) = PATTERN_SIZES[PATTERN_SIZES.len() - 1];
        let validator = self.options(size).build(&Value::Object(schema)).map_err(|error| {
            Refused::because(format!("the schema is not valid: `{}`", error.instance_path().as_str()))
        })?;
        Ok(Some(Leaf { validator, values, per_byte }))
    }

    pub(super) fn pattern(&mut self, pattern: &str) -> Result<(Validator, u32), Refused> {
        if let Some(known) = self.patterns.get(pattern) {
            return Ok(known.clone());
        }
        if self.patterns.len() == MAX_PATTERNS {
            return Err(Refused::because(format!("the schema has more than {MAX_PATTERNS} different patterns")));
        }
        for (size, cost) in PATTERN_SIZES {
            if let Ok(validator) = self.options(size).build(&json!({ "pattern": pattern })) {
                self.patterns.insert(pattern.to_owned(), (validator.clone(), cost));
                return Ok((validator, cost));
            }
        }
        let reason = if looks_around(pattern) {
            "looks around or back, which may take for ever"
        } else {
            "is too large or not a regular expression"
        };
        Err(Refused::because(format!("the pattern `{}` {reason}", shortened(pattern))))
    }

    /// Offline, and with the engine that takes linear time.
    fn options(&self, size: usize) -> ValidationOptions<'static> {
        let patterns = PatternOptions::regex().size_limit(size).dfa_size_limit(size);
        jsonschema::options().with_draft(self.draft).offline().with_pattern_options(patterns)
    }
}

/// Whether a pattern has what only a backtracking engine can run.
fn looks_around(pattern: &str) -> bool {
    let mut is_escaped = false;
    for (position, character) in pattern.char_indices() {
        let rest = &pattern[position..];
        if is_escaped {
            is_escaped = false;
            if matches!(character, '1'..='9') || rest.starts_with("k<") {
                return true;
            }
        } else if character == '\\' {
            is_escaped = true;
        } else if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| rest.starts_with(start)) {
            return true;
        }
    }
    false
}

/// Values in a value, itself included.
pub(super) fn count(value: &Value) -> u32 {
    let parts: u32 = match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    };
    parts.saturating_add(1)
}
