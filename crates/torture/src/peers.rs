//! What other programs did in the same experiment.
//!
//! These were measured by hand or read in their source in November 2026, on the versions named in `docs/scoreboard.md`; the command
//! does not repeat them. The benchmarks, in contrast, run their peers beside Rialto every time.

/// How it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    Measured,
    Read,
}

/// What is known about others in this row.
pub fn known(row: &str) -> Option<(&'static str, Evidence)> {
    use Evidence::{Measured, Read};
    Some(match row {
        "R01" => {
            ("dvmcp, ContextVM: jobs are kept in memory, so each kill loses all that are paid and not answered", Read)
        }
        "R02" => (
            "dvmcp runs a request again for each time a relay reconnects (3 bounces: 4 runs); ContextVM's TypeScript SDK on 3 relays ran 10 plain calls 30 times",
            Measured,
        ),
        "R03" => ("ContextVM: the last 5,000 ids are remembered; older ones run again", Read),
        "R04" => ("dvmcp took 20 of 20 receipts that nobody had paid", Measured),
        "R05" => {
            ("nostr-relay-pool 0.44.0 refuses a forged event once, and delivers it when it is sent again", Measured)
        }
        "R06" => ("dvmcp ran a request whose sender was forged, past its list of allowed callers", Measured),
        "R06b" => ("dvmcp answered after 0.16 s, and never again: 0 of 5 later calls", Measured),
        "R07" => ("dvmcp: money that comes late is lost", Read),
        "R09" => ("dvmcp waits 10 s, and opens one more subscription each time", Measured),
        "R10" => (
            "dvmcp paid 3 invoices of a stranger for one call; ContextVM pays an invoice without reading its amount",
            Measured,
        ),
        "R11" => (
            "nostr-relay-pool 0.44.3 lost 6,003 of 10,000 events when its reader was slow, and said so only in notifications",
            Measured,
        ),
        "R12" => ("jsonschema 0.60 as it comes: 7 s of CPU for a schema of 1.9 kB", Measured),
        "R16" => ("dvmcp: one OK from any relay is enough, everything else is dropped", Read),
        "R18" => ("dvmcp writes preimages into its log; rmcp passes all of its environment on", Read),
        "R20" => ("rmcp: `Origin` is not checked unless configured", Read),
        "R22" => ("dvmcp called a look-alike whose key shares 16 bits", Measured),
        "R24" => ("ContextVM fetches the callback of an LNURL from anywhere", Read),
        "R25" => ("context-core follows absolute paths, `..` and links in a cache's manifest", Read),
        "R26" => ("dvmcp: what cannot be encrypted is sent in the clear", Read),
        "R28" => ("dvmcp: silence for 2 of 6 inputs", Measured),
        "R29" => ("agentgateway: 3 targets; rust-nostr: none in its tree", Read),
        _ => return None,
    })
}
