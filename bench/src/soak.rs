//! A long run: memory must not grow with the number of calls.

use std::path::Path;

use crate::{
    Failure,
    drive::Session,
    subject::{OUR_BOTH, OUR_SERVER, all},
};

/// Points of the curve.
const STEPS: usize = 20;

/// Growth between a tenth of the run and its end that still counts as flat, in KiB: allocators breathe.
const BREATH: u64 = 512;

pub fn run(rialto: &Path, calls: usize) -> Result<(), Failure> {
    let subjects: Vec<_> =
        all(rialto).into_iter().filter(|subject| [OUR_SERVER, OUR_BOTH].contains(&subject.name)).collect();
    let step = calls.div_ceil(STEPS).max(1);
    let mut curves = Vec::new();
    for subject in &subjects {
        let (mut session, _) = Session::open(&subject.command)?;
        session.sequential(1)?;
        let mut curve = vec![session.process.resident()?];
        for done in (0..calls).step_by(step) {
            session.pipelined(step.min(calls - done))?;
            curve.push(session.process.resident()?);
            eprint!("\r{}: {} calls ", subject.name, done + step);
        }
        eprint!("\r{:70}\r", "");
        curves.push(curve);
    }
    let names: Vec<_> = subjects.iter().map(|subject| subject.name).collect();
    println!("| calls | {} |\n|---:|{}", names.join(", KiB | ") + ", KiB", "---:|".repeat(names.len()));
    for point in 0..curves[0].len() {
        let row: Vec<_> = curves.iter().map(|curve| curve[point].to_string()).collect();
        println!("| {} | {} |", calls.min(point * step), row.join(" | "));
    }
    println!();
    for (name, curve) in names.iter().zip(&curves) {
        let (early, end) = (curve[curve.len().min(STEPS) / 10], curve[curve.len() - 1]);
        let verdict = if end <= early + BREATH { "flat" } else { "grows" };
        println!("{name}: {early} KiB after a tenth, {end} KiB at the end: {verdict}");
    }
    Ok(())
}
