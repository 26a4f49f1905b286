//! A database that goes away in the middle: what was asked for counts once, and the answer is true.

use crate::place::Place;
use crate::steps::{begin, entry, id, msat, taken};
use rialto_ledger::job::{Outcome, Stage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CUTS: u64 = 40;

/// Ends all connections of this ledger.
const CUT: &str =
    "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity WHERE application_name = current_schema()";

/// The connections of one ledger are cut again and again, some in the middle of a commit. Each step must be answered with
/// `Taken`: not with `Known`, which would say that somebody else has begun it, and not twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_connection_was_cut_counts_once() {
    let Some(place) = Place::postgres() else { return };
    let ledger = place.open().await;
    let is_over = Arc::new(AtomicBool::new(false));
    let counted = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..6)
        .map(|writer| {
            let (ledger, is_over, counted) = (ledger.clone(), is_over.clone(), counted.clone());
            tokio::spawn(async move {
                let mut job = writer * 1_000_000;
                while !is_over.load(Ordering::Relaxed) {
                    job += 1;
                    let mut step = begin(job, 1, Stage::Done);
                    step.credit = entry(1);
                    assert!(matches!(ledger.commit(vec![step]).await.unwrap()[0], Outcome::Taken { .. }));
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for cut in 0..CUTS {
        // Somewhere in the stream of commits, and not before it goes on.
        let target = counted.load(Ordering::Relaxed) + 1 + cut % 7;
        let end = Instant::now() + Duration::from_secs(60);
        while counted.load(Ordering::Relaxed) < target {
            assert!(Instant::now() < end, "it does not go on");
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
        // Between two connections there may be none to cut.
        place.ask(CUT).await;
    }
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let counted = counted.load(Ordering::Relaxed);
    assert_eq!(ledger.recent(0).await.unwrap().len() as u64, counted);
    assert_eq!(ledger.account(id(1), "echo").await.unwrap().credit, msat(counted));
}

/// A worker that was cut off while it took jobs over has them afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_not_lost_while_it_changes_hands() {
    let Some(place) = Place::postgres() else { return };
    let first = place.open().await;
    for job in 0..50 {
        taken(&*first, begin(job, 1, Stage::Funded)).await;
    }
    let mut ledger = place.reopen(first).await;
    for round in 0..10_u64 {
        let cutting = {
            let cuts = round + 1;
            let place = &place;
            async move {
                for _ in 0..cuts {
                    place.ask(CUT).await;
                }
            }
        };
        let (left, ()) = tokio::join!(ledger.take_over(0), cutting);
        assert_eq!(left.unwrap().len(), 50, "round {round}");
        ledger = place.reopen(ledger).await;
    }
}
