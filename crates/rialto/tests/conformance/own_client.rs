//! The suite against our client: every scenario that is no extension.

use crate::CALL;
use crate::peers::Peers;
use crate::suite::{Selection, run_client};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] =
    &[case!(our_client_in_older_versions), case!(our_client_in_2025_11_25), case!(our_client_in_2026_07_28)];

fn suite_passes(version: &'static str, scenarios: usize, checks: usize) {
    let Some(peers) = Peers::installed() else { return };
    let command = format!("{} {CALL}", std::env::current_exe().unwrap().display());
    let found = run_client(&peers, &format!("client-{version}"), &command, Selection::Everything(version));
    found.expect(scenarios, checks);
}

fn our_client_in_older_versions() {
    suite_passes("2025-03-26", 2, 19);
    suite_passes("2025-06-18", 5, 60);
}

fn our_client_in_2025_11_25() {
    suite_passes("2025-11-25", 19, 249);
}

fn our_client_in_2026_07_28() {
    suite_passes("2026-07-28", 33, 411);
}
