//! Random steps, for the real ledgers and for one that is nothing but maps: they must say the same.

use crate::place::Place;
use crate::steps::{coin, entry, id, new, quote};
use proptest::prelude::{Strategy, any, prop};
use proptest::test_runner::{Config, TestRunner};
use rialto_ledger::job::{Before, FreeUse, Job, Money, Outcome, Stage, Step};
use rialto_ledger::ledger::Ledger;
use rialto_ledger::model::Model;

const TOOLS: [&str; 2] = ["echo", "add"];

fn stage() -> impl Strategy<Value = Stage> {
    prop::sample::select(Stage::ALL)
}

/// Few jobs, customers, hashes and coins, so that they meet.
fn step() -> impl Strategy<Value = Step> {
    let parts = (
        (0..6_u64, prop::option::weighted(0.7, stage()), stage(), 0..50_u64),
        prop::option::of((prop::option::of(0..4_u64), prop::sample::select(Money::ALL))),
        prop::collection::vec(0..12_u8, 0..3),
        prop::option::of(-3..5_i64),
        prop::option::of((0..2_usize, 0..3_u32)),
        prop::option::of(prop::collection::vec("[a-z\"\\\\é]{0,8}", 0..3)),
        any::<bool>(),
    );
    parts.prop_map(|((job, before, stage, at), offered, coins, credit, free, answers, durable)| {
        let before = before.map_or_else(|| new(id(job % 3)), Before::Stage);
        let mut step = Step::new(id(job), before, stage, at);
        step.quote = offered.map(|(hash, money)| quote(hash, money));
        step.coins = coins.into_iter().map(coin).collect();
        step.credit = credit.and_then(entry);
        step.free_use = free.map(|(tool, of)| FreeUse { tool: TOOLS[tool].to_owned(), of });
        step.answers = answers;
        step.durable = durable;
        step
    })
}

/// Batches of steps; and after each, a job whose answers have been sent.
fn batches() -> impl Strategy<Value = Vec<(Vec<Step>, u64)>> {
    prop::collection::vec((prop::collection::vec(step(), 1..8), 0..6_u64), 1..16)
}

/// Half of the steps are made to fit, so that jobs come somewhere.
fn fit(model: &Model, step: &mut Step) {
    let Some(job) = model.jobs.get(&step.id).map(|kept| &kept.job) else { return };
    step.fence = job.fence;
    if step.at.is_multiple_of(2) && matches!(step.before, Before::Stage(_)) {
        step.before = Before::Stage(job.stage);
    }
}

async fn compare(place: &Place, batches: Vec<(Vec<Step>, u64)>) {
    let ledger = place.open().await;
    let mut model = Model::default();
    for (steps, sent) in batches {
        let mut given = Vec::new();
        let mut expected = Vec::new();
        for mut step in steps {
            fit(&model, &mut step);
            expected.push(model.take(&step));
            given.push(step);
        }
        let outcomes = ledger.commit(given).await.unwrap();
        for (outcome, expected) in outcomes.iter().zip(&expected) {
            match (outcome, expected) {
                (Outcome::Taken { fence }, Ok(expected)) => assert_eq!(fence, expected),
                (Outcome::Refused(refusal), Err(expected)) => assert_eq!(refusal, expected),
                _ => panic!("{outcome:?}, but {expected:?}"),
            }
        }
        ledger.sent(vec![id(sent)]).await.unwrap();
        model.sent(&id(sent));
    }
    look(&*ledger, &model).await;
    let ledger = place.reopen(ledger).await;
    look(&*ledger, &model).await;
    for since in [0, 10, 1_000, 1_001] {
        assert_eq!(sorted(ledger.lapsed(since).await.unwrap()), model.lapsed(since));
    }
    let left = sorted(ledger.take_over(10).await.unwrap());
    let expected = model.left(10);
    assert_eq!(left.len(), expected.len());
    for (mut job, expected) in left.into_iter().zip(expected) {
        // Whoever takes it gets a fence of their own, where there are several.
        job.fence = expected.fence;
        assert_eq!(job, expected);
    }
}

fn sorted(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.sort_by_key(|job| job.id);
    jobs
}

async fn look(ledger: &dyn Ledger, model: &Model) {
    for since in [0, 25] {
        let mut seen = ledger.recent(since).await.unwrap();
        seen.sort_by_key(|seen| seen.id);
        assert_eq!(seen, model.recent(since));
    }
    for job in model.jobs.keys() {
        assert_eq!(ledger.answers(*job).await.unwrap(), model.answers(job));
    }
    for customer in 0..3 {
        for tool in TOOLS {
            assert_eq!(ledger.account(id(customer), tool).await.unwrap(), model.account(id(customer), tool));
        }
    }
    let status = ledger.status().await.unwrap();
    let unsent = model.jobs.values().filter(|kept| kept.job.stage == Stage::Done && !kept.is_sent).count();
    assert_eq!(status.unsent, unsent as u64);
    for (stage, count) in status.jobs {
        assert_eq!(count, model.jobs.values().filter(|kept| kept.job.stage == stage).count() as u64);
    }
}

fn run(cases: u32, place: impl Fn() -> Option<Place>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let compared = runner.run(&batches(), |batches| {
        if let Some(place) = place() {
            runtime.block_on(compare(&place, batches));
        }
        Ok(())
    });
    compared.unwrap();
}

#[test]
fn sqlite_agrees_with_the_model() {
    run(96, || Some(Place::sqlite()));
}

#[test]
fn postgres_agrees_with_the_model() {
    run(48, Place::postgres);
}
