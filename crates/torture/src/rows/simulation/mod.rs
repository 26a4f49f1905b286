//! The pure core under simulated faults, and what fuzzing finds.

use super::Row;

pub const ROWS: &[Row] = &[];
