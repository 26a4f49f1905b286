//! Relays and the strangers on them.

use super::Row;

pub const ROWS: &[Row] = &[];
