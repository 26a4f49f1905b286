//! Payments, prices and whom the customer trusts.

use super::Row;

pub const ROWS: &[Row] = &[];
