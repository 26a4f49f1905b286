//! What is near: the tool servers, the local clients, files and the machine itself.

mod cache_traversal;
mod child_faults;
mod hostile_child;
mod listener;
mod local_http;
mod private_addresses;
mod resource_bombs;
mod schema_fetches;
mod secret_canaries;
mod soak;

use super::Row;

pub(super) const ROWS: &[Row] = &[
    child_faults::ROW,
    resource_bombs::ROW,
    schema_fetches::ROW,
    secret_canaries::ROW,
    hostile_child::ROW,
    local_http::ROW,
    private_addresses::ROW,
    cache_traversal::ROW,
    soak::ROW,
];
