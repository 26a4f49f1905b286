//! What is near: the tool servers, the local clients, files and the machine itself.

use super::Row;

pub const ROWS: &[Row] = &[];
