//! The suite through our gateway, in front of a server that somebody else's SDK keeps: it must find the same as without us.

use crate::peers::{Peers, words};
use crate::serving::Serving;
use crate::suite::{Selection, run};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(rust_sdk_through_the_gateway_in_2025_11_25),
    case!(rust_sdk_through_the_gateway_in_2026_07_28),
    case!(rust_sdk_through_the_gateway_with_tasks),
    case!(rust_sdk_through_one_gateway_in_both_eras),
];

/// Our gateway over HTTP in front of a server, adding nothing to its names.
fn gateway(server: &[String]) -> Serving {
    let options = ["--http", "127.0.0.1:0", "--no-token", "--prefix", "never", "--startup-grace-ms", "30000"];
    let gateway = [&[env!("CARGO_BIN_EXE_rialto"), "gateway"][..], &options].concat();
    Serving::start(&[words(&gateway), server.to_vec()].concat())
}

/// Once directly, once with the server as a child of the gateway, once with the gateway as a client of the server.
fn same_through_gateway(name: &str, selection: Selection, scenarios: usize, checks: usize) {
    let Some(peers) = Peers::installed() else { return };
    let server = peers.conformance_server();
    let direct = Serving::start(&[server.clone(), words(&["--http", "127.0.0.1:0"])].concat());
    let directly = run(&peers, &format!("{name}-direct"), &direct.url, selection);
    directly.expect(scenarios, checks);
    for (way, behind) in [("stdio", [words(&["--"]), server].concat()), ("http", words(&["--url", &direct.url]))] {
        let through = run(&peers, &format!("{name}-{way}"), &gateway(&behind).url, selection);
        let differences = directly.differences(&through);
        assert!(differences.is_empty(), "{name}, {way}: something else through the gateway\n{differences}");
    }
}

fn rust_sdk_through_the_gateway_in_2025_11_25() {
    same_through_gateway("rust-2025-11-25", Selection::Everything("2025-11-25"), 33, 83);
}

fn rust_sdk_through_the_gateway_in_2026_07_28() {
    same_through_gateway("rust-2026-07-28", Selection::Everything("2026-07-28"), 40, 153);
}

fn rust_sdk_through_the_gateway_with_tasks() {
    same_through_gateway("rust-tasks", Selection::Requirements("2026-07-28"), 50, 197);
}

/// Clients of both eras share one gateway and one server, which is spoken to in the newer one: neither spoils anything for the other.
fn rust_sdk_through_one_gateway_in_both_eras() {
    let Some(peers) = Peers::installed() else { return };
    let gateway = gateway(&[words(&["--era", "modern", "--"]), peers.conformance_server()].concat());
    for (round, version, scenarios, checks) in
        [(1, "2026-07-28", 40, 152), (2, "2025-11-25", 33, 82), (3, "2026-07-28", 40, 152)]
    {
        let name = format!("rust-both-{round}");
        run(&peers, &name, &gateway.url, Selection::Everything(version)).expect(scenarios, checks);
    }
}
