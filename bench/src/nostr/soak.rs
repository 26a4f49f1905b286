//! A long run: the provider's memory must not grow with the number of calls.

use std::path::Path;

use super::{
    drive::{CUSTOMERS, Session},
    measure::{Relay, megabytes},
    server::Server,
    subject::{OUR_PLAIN, all},
};
use crate::{Failure, process::resident};

/// Points of the curve.
const STEPS: usize = 20;

/// Growth between a tenth of the run and its end that still counts as flat, in MB: allocators breathe.
const BREATH: f64 = 1.0;

pub async fn run(rialto: &Path, relay: Option<&str>, calls: usize) -> Result<(), Failure> {
    let subjects = all(rialto, |name| name == OUR_PLAIN);
    let subject = subjects.first().ok_or("no such subject")?;
    let relay = Relay::start(rialto, relay).await?;
    let provider = Server::start(&subject.command(&relay.url)).await?;
    let key = provider.ready["pubkey"].as_str().ok_or("the provider does not say its key")?;
    let mut session = Session::open(&relay.url, subject.dialect, key, CUSTOMERS).await?;
    println!("| calls | provider MB |\n|---:|---:|");
    let mut curve = Vec::new();
    let step = calls.div_ceil(STEPS).max(1);
    let mut done = 0;
    loop {
        let size = megabytes(resident(provider.pid)?);
        println!("| {done} | {size:.1} |");
        curve.push(size);
        if done == calls {
            break;
        }
        // Signed in steps: requests must not be older than a provider takes them.
        let prepared = session.prepare(step.min(calls - done), 64)?;
        let run = session.run(&prepared).await?;
        session.verify(&prepared, &run)?;
        done += run.latencies.len();
    }
    let (early, end) = (curve[STEPS.min(curve.len()) / 10], curve[curve.len() - 1]);
    let verdict = if end <= early + BREATH { "flat" } else { "grows" };
    println!("\n{early:.1} MB after a tenth, {end:.1} MB at the end: {verdict}");
    provider.stop().await;
    relay.stop().await;
    Ok(())
}
