//! Tools in the catalogue of a gateway: what a call costs, and what listing one tool costs.

use std::{env, path::Path};

use super::{Options, SERVER, curve::Curve};
use crate::{Failure, drive::Session};

const SIZES: [usize; 5] = [1, 10, 100, 1_000, 10_000];

/// Tools that are listed in one measurement, over all lists.
const LISTED: usize = 100_000;

pub fn curves(rialto: &Path, options: &Options) -> Result<Vec<Curve>, Failure> {
    let mut call = Curve {
        file: "tools-call",
        what: "a call through the gateway, 64 in flight",
        unit: "CPU µs/call",
        size: "tools",
        target: 0.1,
        points: Vec::new(),
    };
    let mut list = Curve {
        file: "tools-list",
        what: "a tool in a list through the gateway",
        unit: "CPU µs/tool",
        target: 0.1,
        points: Vec::new(),
        ..call
    };
    let own = env::current_exe()?;
    for size in SIZES {
        eprint!("\rgateway with {size} tools{:40}", "");
        let words = ["gateway", "--stdio", "--prefix", "never", "--"].map(str::to_owned);
        let behind = [own.to_string_lossy().into_owned(), SERVER.to_owned(), size.to_string()];
        let command: Vec<_> = [rialto.to_string_lossy().into_owned()].into_iter().chain(words).chain(behind).collect();
        let (mut session, _) = Session::open(&command)?;
        session.sequential(10)?;
        session.pipelined(options.calls(20_000))?;
        let lists = options.calls(LISTED).div_ceil(size).clamp(5, 2_000);
        session.list(size)?;
        let (mut calling, mut listing) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let calls = options.calls(50_000);
            let before = session.process.cpu()?;
            session.pipelined(calls)?;
            let between = session.process.cpu()?;
            for _ in 0..lists {
                session.list(size)?;
            }
            let after = session.process.cpu()?;
            calling.push((between - before).as_secs_f64() * 1e6 / calls as f64);
            listing.push((after - between).as_secs_f64() * 1e6 / (lists * size) as f64);
        }
        call.push(size, calling);
        list.push(size, listing);
    }
    Ok(vec![call, list])
}
