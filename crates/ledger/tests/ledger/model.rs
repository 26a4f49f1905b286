//! Random steps, and a ledger that is nothing but maps: whatever it says, the real ones must say too.

use crate::place::Place;
use crate::steps::{coin, entry, id, msat, new, quote};
use proptest::prelude::{Strategy, any, prop};
use proptest::test_runner::{Config, TestRunner};
use rialto_ledger::job::{Before, FreeUse, Id, Money, Outcome, Quote, Refusal, Stage, Step};
use rialto_ledger::ledger::{Account, Ledger};
use std::collections::{BTreeMap, BTreeSet};

const TOOLS: [&str; 2] = ["echo", "add"];

/// A job as the model keeps it.
#[derive(Debug, Clone, PartialEq)]
struct Kept {
    customer: Id,
    stage: Stage,
    at: u64,
    attempts: u32,
    quote: Option<Quote>,
    answers: Vec<String>,
    fence: u64,
    is_sent: bool,
}

#[derive(Default)]
struct Model {
    jobs: BTreeMap<Id, Kept>,
    coins: BTreeSet<Vec<u8>>,
    credit: BTreeMap<Id, i64>,
    used: BTreeMap<(Id, String), u32>,
}

impl Model {
    fn take(&mut self, step: &Step) -> Result<u64, Refusal> {
        let known = self.jobs.get(&step.id);
        let mut job = match (&step.before, known) {
            (Before::Unknown(_), Some(job)) => return Err(Refusal::Known(job.stage)),
            (Before::Unknown(new), None) => Kept {
                customer: new.customer,
                stage: step.stage,
                at: 0,
                attempts: 0,
                quote: None,
                answers: Vec::new(),
                fence: 1,
                is_sent: false,
            },
            (Before::Stage(stage), Some(job)) if job.stage == *stage => job.clone(),
            (Before::Stage(_), _) => return Err(Refusal::Moved),
        };
        if let Some(hash) = step.quote.as_ref().and_then(|quote| quote.hash)
            && self
                .jobs
                .iter()
                .any(|(id, job)| *id != step.id && job.quote.as_ref().is_some_and(|quote| quote.hash == Some(hash)))
        {
            return Err(Refusal::HashUsed);
        }
        let coins: BTreeSet<Vec<u8>> = step.coins.iter().map(|coin| coin.to_vec()).collect();
        if coins.len() < step.coins.len() || !coins.is_disjoint(&self.coins) {
            return Err(Refusal::CoinUsed);
        }
        let credit =
            self.credit.get(&job.customer).copied().unwrap_or(0) + step.credit.as_ref().map_or(0, |one| one.msat);
        if credit < 0 {
            return Err(Refusal::NoCredit);
        }
        if let Some(free) = &step.free_use {
            let used = self.used.entry((job.customer, free.tool.clone())).or_default();
            if *used >= free.of {
                return Err(Refusal::NoneFree);
            }
            *used += 1;
        }
        self.credit.insert(job.customer, credit);
        self.coins.extend(coins);
        let was_done = known.is_some() && job.stage == Stage::Done;
        job.fence += u64::from(was_done);
        if let Some(answers) = &step.answers {
            job.answers.clone_from(answers);
            job.is_sent = false;
        }
        if step.stage == Stage::Done && (step.answers.is_some() || !was_done) {
            job.is_sent = job.answers.is_empty();
        }
        job.stage = step.stage;
        job.at = step.at;
        job.attempts += u32::from(step.stage == Stage::Running);
        if step.quote.is_some() {
            job.quote.clone_from(&step.quote);
        }
        let fence = job.fence;
        self.jobs.insert(step.id, job);
        Ok(fence)
    }

    fn sent(&mut self, id: &Id) {
        if let Some(job) = self.jobs.get_mut(id).filter(|job| job.stage == Stage::Done) {
            job.is_sent = true;
        }
    }
}

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
    let Some(job) = model.jobs.get(&step.id) else { return };
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
    let mut left: Vec<_> = ledger.take_over(10).await.unwrap();
    left.sort_by_key(|job| job.id);
    let is_left = |job: &Kept| job.stage != Stage::Done || (!job.is_sent && job.at >= 10);
    let expected: Vec<_> = model.jobs.iter().filter(|(_, job)| is_left(job)).collect();
    assert_eq!(
        left.iter().map(|job| &job.id).collect::<Vec<_>>(),
        expected.iter().map(|(id, _)| *id).collect::<Vec<_>>()
    );
    for (job, (_, kept)) in left.iter().zip(expected) {
        assert_eq!((job.stage, job.at, job.attempts), (kept.stage, kept.at, kept.attempts));
        assert_eq!((&job.quote, &job.answers), (&kept.quote, &kept.answers));
    }
}

async fn look(ledger: &dyn Ledger, model: &Model) {
    let mut seen = ledger.recent(0).await.unwrap();
    seen.sort_by_key(|seen| seen.id);
    let seen: Vec<_> = seen.iter().map(|seen| (seen.id, seen.stage, seen.at)).collect();
    let expected: Vec<_> = model.jobs.iter().map(|(id, job)| (*id, job.stage, job.at)).collect();
    assert_eq!(seen, expected);
    for (job, kept) in &model.jobs {
        assert_eq!(ledger.answers(*job).await.unwrap(), kept.answers);
    }
    for customer in 0..3 {
        for tool in TOOLS {
            let credit = u64::try_from(model.credit.get(&id(customer)).copied().unwrap_or(0)).unwrap();
            let free_uses = model.used.get(&(id(customer), tool.to_owned())).copied().unwrap_or(0);
            let account = ledger.account(id(customer), tool).await.unwrap();
            assert_eq!(account, Account { credit: msat(credit), free_uses });
        }
    }
    let status = ledger.status().await.unwrap();
    let unsent = model.jobs.values().filter(|job| job.stage == Stage::Done && !job.is_sent).count();
    assert_eq!(status.unsent, unsent as u64);
    for (stage, count) in status.jobs {
        assert_eq!(count, model.jobs.values().filter(|job| job.stage == stage).count() as u64);
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
