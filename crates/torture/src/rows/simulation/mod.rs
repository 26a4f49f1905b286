//! The selling side in simulated worlds, and what fuzzing finds.

mod many_worlds;

use super::Row;

pub const ROWS: &[Row] = &[many_worlds::ROW];
