//! The selling side in simulated worlds, and what fuzzing finds.

mod many_worlds;
mod strange_bytes;

use super::Row;

pub const ROWS: &[Row] = &[strange_bytes::ROW, many_worlds::ROW];
