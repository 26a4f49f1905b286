//! Relays and the strangers on them.

mod book;
mod churn;
mod duplicates;
mod flood;
mod forgeries;
mod identity;
mod privacy;
mod replays;
mod times;
mod verdicts;

use super::Row;

pub(super) const ROWS: &[Row] = &[
    duplicates::ROW,
    replays::ROW,
    forgeries::ROW,
    identity::ROW,
    churn::ROW,
    flood::ROW,
    times::ROW,
    verdicts::ROW,
    privacy::ROW,
];
