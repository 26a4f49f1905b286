//! The simulator is only worth something if it is the same each time, and sees what is wrong.

use super::mistake::Mistake;
use super::{Setup, simulate};

/// Worlds in which a mistake must be found.
const SEEDS: u64 = 1_000;

fn setup(seed: u64, mistake: Option<Mistake>) -> Setup {
    Setup { seed, jobs: 50, mistake }
}

#[test]
fn a_seed_is_one_history() {
    for seed in 1..=12 {
        let (first, second) = (simulate(setup(seed, None)), simulate(setup(seed, None)));
        assert!(first.trace.len() > 100, "seed {seed}: {}", first.trace.last(100));
        assert_eq!(first.trace.last(usize::MAX), second.trace.last(usize::MAX), "seed {seed}");
        assert_eq!((first.trace.hash(), first.counts), (second.trace.hash(), second.counts));
    }
}

#[test]
fn different_seeds_are_different_histories() {
    let hashes: std::collections::BTreeSet<u64> = (1..=12).map(|seed| simulate(setup(seed, None)).trace.hash()).collect();
    assert_eq!(hashes.len(), 12);
}

/// The first seed that finds a mistake, and what it says.
fn found(mistake: Mistake) -> Option<(u64, String)> {
    (1..=SEEDS).find_map(|seed| Some((seed, simulate(setup(seed, Some(mistake))).complaint?)))
}

#[test]
fn every_mistake_is_found() {
    for mistake in Mistake::ALL {
        let (seed, complaint) = found(mistake).unwrap_or_else(|| panic!("{mistake:?} is not found in {SEEDS} worlds"));
        println!("{mistake:?}: seed {seed}: {complaint}");
    }
}

#[test]
fn everything_that_can_go_wrong_does() {
    let mut all = super::Counts::default();
    for seed in 1..=20 {
        let counts = simulate(setup(seed, None)).counts;
        all.crashes += counts.crashes;
        all.stops += counts.stops;
        all.faults += counts.faults;
        all.payments += counts.payments;
        all.runs += counts.runs;
    }
    assert!(all.crashes > 20 && all.stops > 2 && all.faults > 1_000 && all.payments > 100 && all.runs > 300, "{all:?}");
}
