//! Several real processes that serve with one key, and what happens when they die or sleep.

use crate::child::{Process, say};
use crate::place::Place;
use crate::steps::{begin, go_on, id};
use rialto_ledger::job::{Job, Outcome, Refusal, Stage};
use rialto_ledger::ledger::{Ledger, Presence};
use rialto_ledger::postgres::Postgres;
use rialto_payment::secret::Secret;
use rustix::process::Signal;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// Long enough for a worker on a busy machine, short enough not to wait for. Nothing below is wrong if a worker that lives is
/// taken for dead; it only takes longer.
const LEASE: Duration = Duration::from_secs(2);

const KILLS: usize = 50;

fn key() -> [u8; 32] {
    [0x77; 32]
}

async fn open(address: &str, key: &[u8; 32]) -> Arc<dyn Ledger> {
    Arc::new(Postgres::open_with(&Secret::new(address), key, LEASE).await.unwrap())
}

/// Serves requests as they come, one number in each line, and what others have left.
pub(crate) async fn work(address: &str, log: &str) {
    let ledger = open(address, &key()).await;
    let log = Arc::new(OpenOptions::new().append(true).create(true).open(log).unwrap());
    say("ready");
    let keeping = {
        let (ledger, log) = (ledger.clone(), log.clone());
        tokio::spawn(async move {
            loop {
                ledger.renew().await.unwrap();
                for job in ledger.take_over(0).await.unwrap() {
                    finish(&*ledger, &log, job).await;
                }
                tokio::time::sleep(LEASE / 8).await;
            }
        })
    };
    let mut requests = BufReader::new(tokio::io::stdin()).lines();
    let mut serving = Vec::new();
    while let Some(line) = requests.next_line().await.unwrap() {
        let number: u64 = line.parse().unwrap();
        let (ledger, log) = (ledger.clone(), log.clone());
        serving.push(tokio::spawn(async move {
            if let Outcome::Taken { fence } = ledger.commit(vec![begin(number, 1, Stage::Funded)]).await.unwrap()[0] {
                run(&*ledger, &log, number, fence).await;
            }
        }));
    }
    for one in serving {
        one.await.unwrap();
    }
    keeping.await.unwrap();
}

/// Runs a job that may run.
async fn run(ledger: &dyn Ledger, mut log: &File, number: u64, fence: u64) {
    let running = ledger.commit(vec![go_on(number, Stage::Funded, Stage::Running, fence)]).await.unwrap();
    let Outcome::Taken { fence } = running[0] else { return };
    // The effect that must not happen twice. A short line is written whole.
    log.write_all(format!("{number}\n").as_bytes()).unwrap();
    say(&format!("ran {number}"));
    answer(ledger, number, fence, "answer").await;
}

async fn answer(ledger: &dyn Ledger, number: u64, fence: u64, words: &str) {
    let mut last = go_on(number, Stage::Running, Stage::Done, fence);
    last.answers = Some(vec![words.to_owned()]);
    ledger.commit(vec![last]).await.unwrap();
}

/// A job that somebody has left.
async fn finish(ledger: &dyn Ledger, log: &File, job: Job) {
    let number = u64::from_be_bytes(job.id[..8].try_into().unwrap());
    match job.stage {
        Stage::Funded => run(ledger, log, number, job.fence).await,
        // Perhaps it has run. It must not run again.
        Stage::Running => answer(ledger, number, job.fence, "interrupted").await,
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_workers_of_which_one_is_killed_again_and_again() {
    let Some(Place::Postgres { address, .. }) = Place::postgres() else { return };
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("runs");
    let arguments = [address.as_str(), log.to_str().unwrap()];
    let start = || {
        let mut worker = Process::start("worker", &arguments);
        assert_eq!(worker.hear().as_deref(), Some("ready"));
        worker
    };
    let mut others = [start(), start()];
    let mut number = 0;
    let mut ran_by_victims = 0;
    for kill in 0..KILLS {
        let mut victim = start();
        // Relays give each request to everybody, sooner or later. The victim hears of them first, so that it has something
        // to lose; the others hear of them around the time when it dies.
        let requests: Vec<String> = (1..=20).map(|one| (number + one).to_string()).collect();
        number += 20;
        requests.iter().for_each(|request| victim.tell(request));
        for _ in 0..kill % 4 {
            victim.hear().expect("the victim has ended");
            ran_by_victims += 1;
        }
        for other in &mut others {
            requests.iter().for_each(|request| other.tell(request));
        }
        ran_by_victims += victim.kill().len();
    }
    let ledger = open(&address, &key()).await;
    let end = Instant::now() + Duration::from_secs(120);
    let seen = loop {
        let seen = ledger.recent(0).await.unwrap();
        if seen.len() as u64 == number && seen.iter().all(|seen| seen.stage == Stage::Done) {
            break seen;
        }
        assert!(Instant::now() < end, "jobs are lost: {:?}", ledger.status().await);
        // We are a worker too, but one that takes nothing.
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(ledger.renew().await.unwrap(), Presence::WithOthers);
    others.iter_mut().for_each(Process::hang_up);
    let mut runs: HashMap<String, u32> = HashMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        *runs.entry(line.to_owned()).or_default() += 1;
    }
    assert!(runs.values().all(|times| *times == 1), "a job has run twice");
    let mut interrupted = 0;
    for seen in &seen {
        let answers = ledger.answers(seen.id).await.unwrap();
        let number = u64::from_be_bytes(seen.id[..8].try_into().unwrap());
        match answers[0].as_str() {
            "answer" => assert!(runs.contains_key(&number.to_string()), "job {number} was answered, but has not run"),
            _ => interrupted += 1,
        }
    }
    println!("{number} jobs, {} ran, {ran_by_victims} of them by victims, {interrupted} interrupted", runs.len());
    assert!(ran_by_victims > 0);
}

/// Runs one job; says when it runs, and ends it when it is told to.
pub(crate) async fn work_slowly(address: &str) {
    let ledger = open(address, &[0x78; 32]).await;
    let Outcome::Taken { fence } = ledger.commit(vec![begin(1, 1, Stage::Running)]).await.unwrap()[0] else {
        panic!("somebody else has it")
    };
    say("running");
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    lines.next_line().await.unwrap();
    let mut last = go_on(1, Stage::Running, Stage::Done, fence);
    last.answers = Some(vec!["too late".to_owned()]);
    say(&format!("{:?}", ledger.commit(vec![last]).await.unwrap()[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_slept_past_its_lease_cannot_end_its_job() {
    let Some(Place::Postgres { address, .. }) = Place::postgres() else { return };
    let mut sleeper = Process::start("slow worker", &[&address]);
    assert_eq!(sleeper.hear().as_deref(), Some("running"));
    let ledger = open(&address, &[0x78; 32]).await;
    sleeper.signal(Signal::STOP);
    let end = Instant::now() + Duration::from_secs(60);
    let job = loop {
        assert!(Instant::now() < end, "the job cannot be taken over");
        if let Some(job) = ledger.take_over(0).await.unwrap().pop() {
            break job;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!((job.id, job.stage, job.attempts), (id(1), Stage::Running, 1));
    sleeper.signal(Signal::CONT);
    sleeper.tell("go");
    assert_eq!(sleeper.hear(), Some(format!("{:?}", Outcome::Refused(Refusal::Moved))));
    let mut last = go_on(1, Stage::Running, Stage::Done, job.fence);
    last.answers = Some(vec!["in time".to_owned()]);
    assert!(matches!(ledger.commit(vec![last]).await.unwrap()[0], Outcome::Taken { .. }));
    assert_eq!(ledger.answers(id(1)).await.unwrap(), ["in time"]);
}
