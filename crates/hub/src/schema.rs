//! Checks JSON values against JSON Schemas that strangers wrote.
//!
//! A schema is a program: a kilobyte of doubled references can ask for more work than there is time. So the walk over
//! schema and value is ours, and every step of it is counted, while what one keyword means for one value (`enum`,
//! `minimum`, `pattern`, `format`) and what a schema may look like is left to the `jsonschema` crate. Nothing is ever
//! fetched, regular expressions run in linear time, and what would cost too much is refused with its reason, before
//! anything runs when it can be seen in the schema.

mod alternatives;
mod compile;
mod cost;
mod document;
mod keywords;
mod leaf;
mod message;
mod unique;
mod walk;

#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

use compile::Program;

/// Longer than any schema that a model would want to read.
pub const MAX_TEXT: usize = 256 * 1024;

/// Brackets in brackets in the text of a schema.
pub const MAX_DEPTH: usize = 64;

/// Subschemas that a schema may have once its references are written out.
pub const MAX_STEPS: u32 = 10_000;

/// Steps that the check of one value may take, each well below a microsecond.
pub const MAX_CHECK_STEPS: u32 = 1_000_000;

/// A compiled schema, safe to run.
pub struct Schema {
    program: Program,
}

impl Schema {
    /// Compiles; refuses what could cost too much or reach out. Empty text stands for a missing schema, which allows
    /// everything.
    pub fn compile(text: &[u8]) -> Result<Self, Refused> {
        compile::compile(text).map(|program| Self { program })
    }

    /// Checks a value. The first misfit is always the same one: what is missing comes first, then what stands first
    /// in the schema.
    pub fn check(&self, value: &Value) -> Result<(), Misfit> {
        walk::check(&self.program, value)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// Why a schema is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    reason: String,
}

impl Refused {
    fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)
    }
}

impl std::error::Error for Refused {}

/// Where and why a value does not fit. Nothing of the value is repeated but the names of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// A JSON pointer (RFC 6901); empty for the whole value.
    pub pointer: String,
    /// A short sentence that names the field.
    pub message: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Misfit {}
