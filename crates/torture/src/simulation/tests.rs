//! The simulator is only worth something if it is the same each time, and sees what is wrong.

use super::customers::Payer;
use super::faults::Faults;
use super::mistake::Mistake;
use super::tools::Course;
use super::world::World;
use super::{Outcome, Setup, play, simulate};
use rialto_ledger::job::Stage;

/// Worlds in which a mistake must be found.
const SEEDS: u64 = 1_000;

fn setup(seed: u64, mistake: Option<Mistake>) -> Setup {
    Setup { seed, jobs: 50, mistake }
}

#[test]
fn a_seed_is_one_history() {
    for seed in 1..=5 {
        let (first, second) = (simulate(setup(seed, None)), simulate(setup(seed, None)));
        assert!(first.trace.len() > 100, "seed {seed}: {}", first.trace.last(100));
        assert_eq!(first.trace.last(usize::MAX), second.trace.last(usize::MAX), "seed {seed}");
        assert_eq!((first.trace.hash(), first.counts), (second.trace.hash(), second.counts));
    }
}

#[test]
fn different_seeds_are_different_histories() {
    let hashes: std::collections::BTreeSet<u64> =
        (1..=5).map(|seed| simulate(setup(seed, None)).trace.hash()).collect();
    assert_eq!(hashes.len(), 5);
}

/// One call of a tool that succeeds, in a world where nothing else goes wrong than what is prepared.
fn one_call(tool: &'static str, payer: Payer, prepare: impl FnOnce(&mut World)) -> Outcome {
    let mut world = World::new(1, None);
    world.faults = Faults::none();
    world.vault.holds = true;
    world.open(0);
    let job = world.write(0, Ok(tool), 1_000);
    (world.jobs[job].payer, world.jobs[job].course) = (payer, Course::Succeeds);
    for relay in 0..3 {
        world.after(1_000, move |world| world.requested(job, relay));
    }
    prepare(&mut world);
    play(world, setup(1, None))
}

#[test]
fn an_answer_that_could_not_be_noted_is_noted_later_and_given_once() {
    for tool in ["free", "paid"] {
        check(&one_call(tool, Payer::Prompt, |world| {
            world.vault.holds = false;
            world.disk.refused = Some(Stage::Done);
            world.after(60_000, World::crash);
        }));
    }
}

fn check(outcome: &Outcome) {
    let history = outcome.trace.last(usize::MAX);
    assert_eq!(outcome.complaint, None, "{history}");
    assert!(history.contains("request 0   is answered: success"), "{history}");
}

#[test]
fn what_is_held_and_too_much_is_owed_when_it_is_taken() {
    check(&one_call("paid", Payer::TooMuch, |_| {}));
}

#[test]
fn an_invoice_that_could_not_be_noted_is_noted_later() {
    check(&one_call("paid", Payer::Prompt, |world| world.disk.refused = Some(Stage::Quoted)));
}

#[test]
fn what_too_few_relays_have_when_we_stop_is_sent_again() {
    check(&one_call("paid", Payer::Prompt, |world| {
        world.after(500, |world| [1, 2].into_iter().for_each(|relay| world.disturb(relay, true, 30_000)));
        world.after(20_000, |world| {
            let _ = world.stop.take().map(|stop| stop.send(()));
        });
    }));
}

#[test]
fn whoever_asks_again_does_not_get_the_answer_before_the_money_is_taken() {
    fn ask_again(world: &mut World) {
        if world.jobs[0].runs == 0 {
            return world.after(100, ask_again);
        }
        world.faults.wallet_away = 1_000;
        world.after(30_000, |world| (0..3).for_each(|relay| world.requested(0, relay)));
        world.after(45_000, |world| world.faults.wallet_away = 0);
    }
    check(&one_call("paid", Payer::Prompt, |world| {
        world.jobs[0].takes = 3_000;
        world.after(1_000, ask_again);
    }));
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
    for seed in 1..=12 {
        let counts = simulate(setup(seed, None)).counts;
        all.crashes += counts.crashes;
        all.stops += counts.stops;
        all.faults += counts.faults;
        all.payments += counts.payments;
        all.runs += counts.runs;
    }
    assert!(all.crashes > 10 && all.stops > 0 && all.faults > 1_000 && all.payments > 100 && all.runs > 200, "{all:?}");
}
