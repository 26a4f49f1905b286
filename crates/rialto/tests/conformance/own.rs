//! The suite against our own server.

use crate::SERVE;
use crate::peers::{Peers, words};
use crate::serving::Serving;
use crate::suite::{Selection, run};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(our_server_in_older_versions),
    case!(our_server_in_2025_11_25),
    case!(our_server_in_2026_07_28),
    case!(our_server_and_what_2025_11_25_requires),
    case!(our_server_and_what_2026_07_28_requires_and_tasks),
];

/// The scenarios of the tasks extension. The suite does not know yet how to check the notifications.
pub(crate) const TASKS: [&str; 10] = [
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-status-notifications",
    "tasks-wire-fields",
];

/// Starts our server.
fn server() -> Serving {
    let program = std::env::current_exe().unwrap();
    Serving::start(&words(&[program.to_str().unwrap(), SERVE, "--http", "127.0.0.1:0"]))
}

fn our_server_in_older_versions() {
    let Some(peers) = Peers::installed() else { return };
    let server = server();
    run(&peers, "own-2025-03-26", &server.url, Selection::Everything("2025-03-26")).expect(1, 3);
    run(&peers, "own-2025-06-18", &server.url, Selection::Everything("2025-06-18")).expect(27, 56);
}

fn our_server_in_2025_11_25() {
    let Some(peers) = Peers::installed() else { return };
    let found = run(&peers, "own-2025-11-25", &server().url, Selection::Everything("2025-11-25"));
    found.expect(33, 83);
    // Without it the scenario passes as well, but shows nothing.
    found.expect_passed("server-sse-polling", "server-sse-disconnect-resume");
}

fn our_server_in_2026_07_28() {
    let Some(peers) = Peers::installed() else { return };
    run(&peers, "own-2026-07-28", &server().url, Selection::Everything("2026-07-28")).expect(40, 152);
}

fn our_server_and_what_2025_11_25_requires() {
    let Some(peers) = Peers::installed() else { return };
    run(&peers, "own-required-2025-11-25", &server().url, Selection::Requirements("2025-11-25")).expect(33, 83);
}

fn our_server_and_what_2026_07_28_requires_and_tasks() {
    let Some(peers) = Peers::installed() else { return };
    let selection = Selection::Requirements("2026-07-28");
    let found = run(&peers, "own-required-2026-07-28", &server().url, selection);
    found.expect(50, 196);
    for scenario in TASKS {
        assert!(found.scenarios.contains_key(scenario), "{scenario} was not run");
    }
}
