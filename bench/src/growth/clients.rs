//! Clients at once: sessions over HTTP, each on a connection of its own, and customers over Nostr. Each has one call in flight.

use std::path::Path;

use super::{Options, curve::Curve};
use crate::{Failure, http, nostr};

const SIZES: [usize; 4] = [1, 10, 100, 1_000];

pub fn curves(rialto: &Path, options: &Options) -> Result<Vec<Curve>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut over_http = Curve {
        file: "clients-http",
        what: "a call over HTTP to the gateway, in a session",
        unit: "CPU µs/call",
        size: "clients",
        target: 0.1,
        points: Vec::new(),
    };
    for size in SIZES {
        eprint!("\rgateway with {size} clients over HTTP{:40}", "");
        let calls = options.calls(20_000).max(size * 2);
        over_http.push(size, runtime.block_on(http::cost(rialto, size, calls, options.rounds))?);
    }
    let mut curves = vec![over_http];
    for (file, what, privacy) in [
        ("clients-nostr", "a plain call over Nostr to a provider", nostr::Privacy::Plain),
        ("clients-sealed", "a sealed call over Nostr to a provider", nostr::Privacy::Sealed),
    ] {
        let mut curve = Curve { file, what, size: "customers", points: Vec::new(), ..curves[0] };
        for size in SIZES {
            eprint!("\rprovider with {size} customers over Nostr{:40}", "");
            let calls = options.calls(6_000).max(size * 2);
            curve.push(size, runtime.block_on(nostr::cost(rialto, privacy, size, calls, options.rounds))?);
        }
        curves.push(curve);
    }
    Ok(curves)
}
