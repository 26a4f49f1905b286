//! Who is killed, and when: what is paid is answered, once.

mod crash_loop;
mod crash_points;
mod hold_atomicity;
mod split_brain;
pub mod storm;
mod upgrade;

pub use upgrade::record;

use super::Row;

pub(super) const ROWS: &[Row] =
    &[crash_loop::ROW, crash_points::ROW, hold_atomicity::ROW, split_brain::ROW, upgrade::ROW];
