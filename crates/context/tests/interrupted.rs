//! Builds that are killed, at every step that there is: the old cache as it was or the new one whole, never in between.
//!
//! The build runs in a process of its own (this test, started again), which kills itself without warning.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rialto_context::build::{Existing, Flush, IgnoreFiles, Plan, build};
use rialto_context::library::resolve_folder;
use rialto_context::verify::verify;
use rustix::process::{Signal, getpid, kill_process};
use support::{Place, snapshot};

const CHILD: &str = "CONTEXT_TEST_BUILD";

/// Only with the variable set: builds, and kills itself at the given step.
#[test]
#[ignore = "started by the other test"]
fn child() {
    let Ok(work) = std::env::var(CHILD) else { return };
    let mut words = work.split('|');
    let mut next = || words.next().unwrap().to_owned();
    let (sources, cache, step) = (PathBuf::from(next()), PathBuf::from(next()), next().parse::<usize>().unwrap());
    let plan = Plan {
        sources,
        cache,
        existing: Existing::Replace,
        ignore_files: IgnoreFiles::Disregard,
        flush: Flush::Once,
        created_at: std::time::SystemTime::now(),
    };
    let mut count = 0;
    build(&plan, &mut |_| {
        if count == step {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        count += 1;
    })
    .unwrap();
}

/// Says whether the build came to its end.
fn build_until(place: &Place, step: usize) -> bool {
    let work = format!("{}|{}|{step}", place.path("sources").display(), place.path("root/c").display());
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--quiet"])
        .env(CHILD, work)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    status.success()
}

#[test]
fn a_build_that_is_killed_leaves_the_old_cache_or_the_new_one() {
    let mut seen = (0, 0);
    for step in 0.. {
        let place = Place::new();
        for number in 0..5 {
            place.write(&format!("sources/{number}.md"), format!("text {number}"));
        }
        let old = place.build("c").unwrap().cache_version;
        let before = snapshot(&place.path("root/c"));
        place.write("sources/0.md", "changed").write("sources/9.md", "more");
        let has_ended = build_until(&place, step);
        let report = verify(&place.path("root/c")).unwrap();
        assert!(report.valid, "step {step}: {report:?}");
        if report.cache_version == old {
            assert_eq!(snapshot(&place.path("root/c")), before, "step {step}");
            seen.0 += 1;
        } else {
            seen.1 += 1;
        }
        // The next build does the work and clears up what was left.
        let again = place.rebuild("c").unwrap();
        assert_eq!(again.documents, 6);
        assert!(verify(&place.path("root/c")).unwrap().valid);
        let names: Vec<_> = fs::read_dir(place.path("root")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["c"], "step {step}");
        if has_ended {
            // Found, begun, six documents, complete, flushed, placed, cleared.
            assert_eq!(step, 12);
            break;
        }
    }
    assert_eq!(seen, (10, 3));
}

#[test]
fn a_first_build_that_is_killed_leaves_nothing_or_a_whole_cache() {
    for step in 0.. {
        let place = Place::new();
        place.write("sources/a.md", "a").write("sources/b.md", "b");
        let has_ended = build_until(&place, step);
        match verify(&place.path("root/c")) {
            Ok(report) => assert!(report.valid, "step {step}: {report:?}"),
            Err(error) => assert_eq!(error.kind.code(), "cache_missing", "step {step}"),
        }
        // What is left is not offered as a cache.
        let listing = rialto_context::inspect::list(&place.path("root")).unwrap();
        assert!(listing.caches.iter().all(|cache| cache.path == "c"), "step {step}: {listing:?}");
        if has_ended {
            break;
        }
    }
}

/// Two at once: one may lose, but none breaks what the other makes.
#[test]
fn builds_at_the_same_time_do_not_disturb_each_other() {
    let place = Place::new();
    for number in 0..50 {
        place.write(&format!("sources/{number}.md"), format!("text {number}"));
    }
    place.build("c").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let _ = place.rebuild("c");
                }
            });
        }
        scope.spawn(|| {
            let library = place.library();
            for _ in 0..200 {
                let answer = support::resolve(&library, "c", "text", 10_000).unwrap();
                assert!(answer.contains("\"documents_selected\":50"), "{answer}");
            }
        });
        scope.spawn(|| {
            for _ in 0..50 {
                let fresh = resolve_folder(&place.path("root/c"), "text", 10_000, None).unwrap();
                assert_eq!(fresh.documents.len(), 50);
            }
        });
    });
    assert!(verify(&place.path("root/c")).unwrap().valid);
    let left = fs::read_dir(place.path("root")).unwrap().count();
    assert_eq!(left, 1);
}
