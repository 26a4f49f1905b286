//! What a file on one machine has to withstand: a second process, a killed one, a full disk, curious eyes.

use crate::child::{Process, say};
use crate::steps::{begin, go_on, id, taken};
use rialto_ledger::job::{Id, Outcome, Stage};
use rialto_ledger::ledger::{Error, Ledger};
use rialto_ledger::sqlite::{Sqlite, file};
use rustix::process::{Resource, Rlimit, prlimit};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

const KILLS: u64 = 32;

/// Writers at once in the child.
const WRITERS: u64 = 8;

#[test]
fn only_the_owner_can_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/jobs");
    let ledger = Sqlite::open(&path).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(taken(&ledger, begin(1, 1, Stage::Funded)));
    let rights = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(rights(&path), 0o700);
    let mut names = Vec::new();
    for entry in path.read_dir().unwrap() {
        let entry = entry.unwrap();
        assert_eq!(rights(&entry.path()), 0o600, "{}", entry.path().display());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["ledger.db", "ledger.db-shm", "ledger.db-wal", "lock"]);
}

pub(crate) fn hold(directory: &str) {
    let _ledger = Sqlite::open(Path::new(directory)).unwrap();
    say("open");
    // Until nobody is there any more.
    drop(std::io::read_to_string(std::io::stdin()));
}

#[test]
fn a_second_process_is_refused_and_a_killed_one_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let mut holder = Process::start("holder", &[directory.path().to_str().unwrap()]);
    assert_eq!(holder.hear().as_deref(), Some("open"));
    assert_eq!(Sqlite::open(directory.path()).unwrap_err(), Error::InUse);
    holder.kill();
    Sqlite::open(directory.path()).unwrap();
}

/// Takes jobs from nowhere to the end, several at once, and says each step once it is committed.
pub(crate) async fn write_for_ever(directory: &str, from: u64) {
    let ledger: Arc<dyn Ledger> = Arc::new(Sqlite::open(Path::new(directory)).unwrap());
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write_jobs(ledger.clone(), from + writer))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

async fn write_jobs(ledger: Arc<dyn Ledger>, from: u64) {
    let mut job = from;
    loop {
        let mut last = go_on(job, Stage::Running, Stage::Done, 1);
        last.answers = Some(vec!["x".repeat(2000), format!("answer {job}")]);
        let steps = [begin(job, job, Stage::Funded), go_on(job, Stage::Funded, Stage::Running, 1), last];
        for mut step in steps {
            // Not only money survives the end of a process.
            step.durable = job.is_multiple_of(2);
            let stage = step.stage.number();
            // The disk may be full. Nothing of the step is there then, and it is tried again.
            loop {
                match ledger.commit(vec![step.clone()]).await {
                    Ok(outcomes) => {
                        assert!(matches!(outcomes[0], Outcome::Taken { .. }), "{outcomes:?} after an error");
                        break;
                    }
                    Err(Error::Broken(_)) => say("error"),
                    Err(other) => panic!("{other}"),
                }
            }
            say(&format!("{job} {stage}"));
        }
        job += WRITERS;
    }
}

fn parse(line: &str) -> (u64, i64) {
    let (job, stage) = line.split_once(' ').unwrap();
    (job.parse().unwrap(), stage.parse().unwrap())
}

/// Whatever was said to be committed is there.
async fn check(directory: &Path, said: &[(u64, i64)]) {
    let ledger = Sqlite::open(directory).unwrap();
    let recent = ledger.recent(0).await.unwrap();
    let stages: std::collections::HashMap<Id, Stage> = recent.into_iter().map(|seen| (seen.id, seen.stage)).collect();
    for (job, stage) in said {
        let stage = Stage::from_number(*stage).unwrap();
        assert!(stages.get(&id(*job)).is_some_and(|known| *known >= stage), "{stage:?} of job {job} is lost");
        if stage == Stage::Done {
            assert_eq!(ledger.answers(id(*job)).await.unwrap()[1], format!("answer {job}"));
        }
    }
}

async fn is_sound(directory: &Path) {
    let connection = rialto_ledger::sqlite::read_only(&file(directory)).unwrap();
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    for kill in 0..KILLS {
        let from = (kill * 1_000_000).to_string();
        let mut child = Process::start("writer", &[directory.path().to_str().unwrap(), &from]);
        // Anywhere between the first step and the hundredth, differently each time.
        let after = 1 + (kill * 37) % 101;
        for _ in 0..after {
            said.push(parse(&child.hear().expect("the writer has ended")));
        }
        said.extend(child.kill().iter().map(|line| parse(line)));
        check(directory.path(), &said).await;
    }
    is_sound(directory.path()).await;
    assert!(said.len() as u64 > KILLS * 20, "only {} steps were acknowledged", said.len());
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_then_it_works_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Process::start("writer", &[directory.path().to_str().unwrap(), "1000000"]);
    let mut said = Vec::new();
    let mut errors = 0;
    let limit = |current| Rlimit { current, maximum: None };
    for round in 1..=3_u64 {
        let before = said.len();
        while said.len() < before + 50 {
            match child.hear().expect("the writer has ended") {
                line if line == "error" => errors += 1,
                line => said.push(parse(&line)),
            }
        }
        let wal = directory.path().join("ledger.db-wal").metadata().unwrap().len();
        // No file may grow beyond where the log is now, and the log must: there is no room for a checkpoint.
        prlimit(Some(child.pid()), Resource::Fsize, limit(Some(wal + 4096 * round))).unwrap();
        let enough = errors + 5;
        while errors < enough {
            match child.hear().expect("the writer has ended") {
                line if line == "error" => errors += 1,
                line => said.push(parse(&line)),
            }
        }
        prlimit(Some(child.pid()), Resource::Fsize, limit(None)).unwrap();
    }
    // It goes on with the steps that had failed.
    let before = said.len();
    while said.len() < before + 50 {
        match child.hear().expect("the writer has ended") {
            line if line == "error" => {}
            line => said.push(parse(&line)),
        }
    }
    said.extend(child.kill().iter().filter(|line| *line != "error").map(|line| parse(line)));
    check(directory.path(), &said).await;
    is_sound(directory.path()).await;
}

#[test]
fn what_a_killed_process_of_a_later_version_left_is_not_tidied_up() {
    let (before, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    drop(Sqlite::open(before.path()).unwrap());
    let later = rusqlite::Connection::open(file(before.path())).unwrap();
    later.pragma_update(None, "user_version", 4711).unwrap();
    // Copied while it is open, as it is when its process is killed.
    let names = ["ledger.db", "ledger.db-wal"];
    let read = |directory: &Path| names.map(|name| std::fs::read(directory.join(name)).unwrap());
    for name in names {
        std::fs::copy(before.path().join(name), directory.path().join(name)).unwrap();
    }
    let left = read(directory.path());
    assert!(!left[1].is_empty());
    let refused = Sqlite::open(directory.path()).unwrap_err();
    assert!(matches!(refused, Error::TooNew { found: 4711, .. }), "{refused}");
    assert_eq!(read(directory.path()), left);
}
