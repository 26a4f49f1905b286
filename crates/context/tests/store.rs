//! Indexes that are kept between runs: never needed, never believed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rialto_context::error::Kind;
use rialto_context::{Checking, Interrupt, Library, Store};
use support::{Place, resolve};

fn library(place: &Place) -> Library {
    Library::new(&place.path("root"), place.store("store"), Checking::Used)
}

fn kept(place: &Place, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.path("store")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

#[test]
fn a_kept_index_that_is_wrong_changes_nothing() {
    let place = Place::new();
    place.write("sources/a.md", "one two").write("sources/b.md", "two three three");
    let built = place.build("c").unwrap();
    let expected = resolve(&place.library(), "c", "three", 100).unwrap();
    built.store(&place.store("store").unwrap());
    let index = kept(&place, "index").remove(0);
    let whole = fs::read(&index).unwrap();
    place.write("sources/a.md", "other").build("other").unwrap().store(&place.store("store").unwrap());
    let other = kept(&place, "index").into_iter().find(|path| *path != index).unwrap();
    let other = fs::read(other).unwrap();
    for wrong in [Vec::new(), vec![0; 100], whole[..whole.len() / 2].to_vec(), other, [&whole[..], b"x"].concat()] {
        fs::write(&index, wrong).unwrap();
        assert_eq!(resolve(&library(&place), "c", "three", 100).unwrap(), expected);
        // It was made again.
        assert_eq!(fs::read(&index).unwrap(), whole);
    }
    // A place where nothing can be kept.
    place.write("file", "");
    let nowhere = Library::new(&place.path("root"), place.store("file"), Checking::Used);
    assert_eq!(resolve(&nowhere, "c", "three", 100).unwrap(), expected);
}

/// An index whose hashes are all right, but that somebody made who does not have our key.
#[test]
fn a_forged_index_changes_nothing() {
    let place = Place::new();
    place.write("sources/a.md", "one two").write("sources/b.md", "two three three");
    let expected = || resolve(&place.library(), "c", "three", 100).unwrap();
    let built = place.build("c").unwrap();
    let foreign = Store::open(&place.path("store"), &place.path("foreign")).unwrap();
    built.store(&foreign);
    let index = kept(&place, "index").remove(0);
    // A word is turned into another, and the hash is made to fit.
    let mut forged = fs::read(&index).unwrap();
    let word = forged.windows(5).position(|part| part == b"three").unwrap();
    forged[word..word + 5].copy_from_slice(b"thief");
    let end = forged.len() - 64;
    let hash = ring::digest::digest(&ring::digest::SHA256, &forged[..end]);
    forged[end..end + 32].copy_from_slice(hash.as_ref());
    for tag in [forged[end + 32..].to_vec(), vec![0; 32], hash.as_ref().to_vec(), Vec::new()] {
        fs::write(&index, [&forged[..end + 32], &tag].concat()).unwrap();
        for checking in [Checking::Used, Checking::All] {
            std::thread::sleep(Duration::from_millis(60));
            let library = Library::new(&place.path("root"), place.store("store"), checking);
            assert_eq!(resolve(&library, "c", "three", 100).unwrap(), expected());
        }
    }
    // A whole one of a stranger is not believed either, and a seal of theirs is none.
    built.store(&foreign);
    let theirs = fs::read(&index).unwrap();
    assert_eq!(resolve(&library(&place), "c", "three", 100).unwrap(), expected());
    assert_ne!(fs::read(&index).unwrap(), theirs);
}

/// What stands where an index should be is not waited for, not followed and not taken into memory.
#[test]
fn strange_files_in_the_store() {
    let place = Place::new();
    place.write("sources/a.md", "one two");
    let built = place.build("c").unwrap();
    built.store(&place.store("store").unwrap());
    let expected = resolve(&place.library(), "c", "one", 100).unwrap();
    let index = kept(&place, "index").remove(0);
    let strange: [&dyn Fn(); 4] = [
        &|| assert!(std::process::Command::new("mkfifo").arg(&index).status().unwrap().success()),
        &|| std::os::unix::fs::symlink("/dev/zero", &index).unwrap(),
        &|| fs::File::create(&index).unwrap().set_len(1 << 40).unwrap(),
        &|| fs::create_dir(&index).unwrap(),
    ];
    for make in strange {
        fs::remove_file(&index).unwrap();
        make();
        assert_eq!(resolve(&library(&place), "c", "one", 100).unwrap(), expected);
    }
}

/// Nothing stands between the entries in the hash over a cache, so two caches can have the same one.
#[test]
fn two_caches_with_the_same_version_are_not_mixed_up() {
    let place = Place::new();
    let hash = rialto_context::Document::new("x", "one".to_owned()).version;
    place.write("sources/a.md", "one").write("sources/b.md", "two");
    let first = place.build("first").unwrap();
    fs::remove_dir_all(place.path("sources")).unwrap();
    place.write(&format!("sources/a.md:{hash}b.md"), "two");
    let second = place.build("second").unwrap();
    assert_eq!(first.cache_version, second.cache_version);
    for round in 0..2 {
        for (name, count) in [("first", 2), ("second", 1)] {
            let answer = resolve(&library(&place), name, "two", 100).unwrap();
            assert!(answer.contains(&format!("\"documents_considered\":{count}")), "round {round}: {answer}");
            assert!(answer.contains("\"score\":1.0"), "round {round}: {answer}");
        }
    }
}

/// A damaged document that the answer does not need is found by a new process too, although the index is kept.
#[test]
fn a_seal_is_broken_by_any_change() {
    let place = Place::new();
    place.write("sources/a.md", "one").write("sources/b.md", "two").build("c").unwrap();
    // Files that have just been written are not sealed yet.
    std::thread::sleep(Duration::from_millis(100));
    assert!(resolve(&library(&place), "c", "one", 1).is_ok());
    assert_eq!((kept(&place, "index").len(), kept(&place, "seal").len()), (1, 1));
    assert!(resolve(&library(&place), "c", "one", 1).is_ok());
    let document = place.path("root/c/documents/3fc4ccfe7458.json");
    let whole = fs::read_to_string(&document).unwrap();
    fs::write(&document, whole.replace("two", "TWO")).unwrap();
    assert_eq!(resolve(&library(&place), "c", "one", 1), Err("cache_invalid"));
    // Put right again, it is checked and sealed anew.
    fs::write(&document, whole).unwrap();
    assert!(resolve(&library(&place), "c", "one", 1).is_ok());
}

#[test]
fn work_that_nobody_waits_for_ends() {
    let place = Place::new();
    place.write("sources/a.md", "one").build("c").unwrap();
    let interrupt = Interrupt::default();
    interrupt.set();
    for library in [place.library(), library(&place)] {
        let error = library.resolve("c", "one", 100, &interrupt).unwrap_err();
        assert_eq!(error.kind, Kind::Internal);
        let error = library.search("c", "one", 100, &interrupt).unwrap_err();
        assert_eq!(error.kind, Kind::Internal);
        // And does not stand in the way of the next.
        assert!(resolve(&library, "c", "one", 100).is_ok());
    }
}

#[test]
fn more_caches_than_are_kept_ready() {
    let place = Place::new();
    for number in 0..20 {
        place.write("sources/a.md", format!("text {number}")).build(&format!("c{number}")).unwrap();
    }
    let library = place.library();
    for _ in 0..2 {
        for number in 0..20 {
            assert!(resolve(&library, &format!("c{number}"), "", 9).unwrap().contains(&format!("text {number}")));
        }
    }
}

/// The terms of a query are repeated with each document: a long query must not become a hundred times as long an answer.
#[test]
fn answers_have_a_limit() {
    let place = Place::new();
    for number in 0..100 {
        place.write(&format!("sources/{number}.md"), "");
    }
    place.build("c").unwrap();
    let query = "word ".repeat(200_000);
    assert_eq!(place.resolve("c", &query, 0), Err("internal_error"));
    assert!(place.resolve("c", &query[..50_000], 0).is_ok());
}
