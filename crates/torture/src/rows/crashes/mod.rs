//! Who is killed, and when: what is paid is answered, once.

use super::Row;

pub const ROWS: &[Row] = &[];
