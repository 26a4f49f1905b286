//! Payments, prices and whom the customer trusts.

mod bad_input;
mod crowd;
mod forgery;
mod hostile_text;
mod late_money;
mod pins;
mod policy;
mod shadowing;
mod wallet_safety;

use super::Row;

pub const ROWS: &[Row] = &[
    forgery::ROW,
    late_money::ROW,
    wallet_safety::ROW,
    pins::ROW,
    hostile_text::ROW,
    shadowing::ROW,
    policy::ROW,
    bad_input::ROW,
];
