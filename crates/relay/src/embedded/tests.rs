//! What cannot be seen from outside: that memory and disk are really given back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::path::Path;
use std::sync::Arc;

use nostr::event::{EventBuilder, FinalizeEvent, Kind, Tag};
use nostr::key::Keys;
use nostr::types::Timestamp;

use super::event::{Event, Unverified};
use super::journal::Journal;
use super::store::{Step, Store};

fn event(kind: u16, created_at: u64, tags: &[[&str; 2]], keys: &Keys) -> Arc<Event> {
    let event = EventBuilder::new(Kind::from_u16(kind), "")
        .tags(tags.iter().map(|tag| Tag::parse(*tag).unwrap()))
        .custom_created_at(Timestamp::from_secs(created_at))
        .finalize(keys)
        .unwrap();
    Arc::new(Unverified::parse(&serde_json::to_string(&event).unwrap()).unwrap().verify().unwrap())
}

fn empty() -> Store {
    Store::new(1000, usize::MAX)
}

#[test]
fn digits_beyond_the_last_are_not_passed_on() {
    let text = event(1, 1, &[], &Keys::generate()).text.to_string();
    let fields: serde_json::Value = serde_json::from_str(&text).unwrap();
    for name in ["id", "pubkey", "sig"] {
        let mut longer = fields.clone();
        longer[name] = format!("{}ab", fields[name].as_str().unwrap()).into();
        // Whoever reads more leniently than we write must not make us pass on what nobody signed.
        if let Ok(kept) = Unverified::parse(&longer.to_string()).and_then(|read| read.verify().map_err(str::to_owned)) {
            let kept: serde_json::Value = serde_json::from_str(&kept.text).unwrap();
            assert_eq!(kept, fields, "{name}");
        }
    }
}

#[test]
fn nothing_is_left_of_what_was_removed() {
    let mut store = empty();
    let keys = Keys::generate();
    for number in 0..10 {
        store.insert(&event(1, number, &[["expiration", "100"], ["t", &number.to_string()], ["t", "x"]], &keys));
    }
    store.insert(&event(10_002, 1, &[["expiration", "200"]], &keys));
    store.insert(&event(10_002, 2, &[["expiration", "200"]], &keys));
    assert_eq!((store.sweep(99, 100), store.len()), (Step::Done, 11));
    assert_eq!((store.sweep(100, 4), store.len()), (Step::More, 7));
    assert_eq!((store.sweep(100, 100), store.len()), (Step::Done, 1));
    assert_eq!((store.sweep(200, 100), store.len()), (Step::Done, 0));
    assert!(store.is_hollow(), "{store:?}");
}

#[test]
fn events_that_come_during_a_rewrite_are_in_the_new_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.jsonl");
    let keys = Keys::generate();
    let mut store = empty();
    let mut journal = Journal::open(&path, &mut store, 0).unwrap();
    let publish = |event: &Arc<Event>, journal: &mut Journal, store: &mut Store| {
        journal.append(event).unwrap();
        store.insert(event);
    };
    for number in 0..1001 {
        publish(&event(10_002, number, &[], &keys), &mut journal, &mut store);
    }
    assert!(journal.is_mostly_dead(store.len()));
    let draft = journal.begin_compaction();
    let snapshot = store.all();
    publish(&event(1, 1, &[], &keys), &mut journal, &mut store);
    assert!(!journal.is_mostly_dead(store.len()), "one rewrite at a time");
    assert_eq!(lines(&path), 1002, "until it is done, the old file is the one that counts");
    journal.end_compaction(draft.write(&snapshot));
    assert_eq!(lines(&path), 2);
    publish(&event(1, 2, &[], &keys), &mut journal, &mut store);
    drop(journal);
    let mut again = empty();
    let mut journal = Journal::open(&path, &mut again, 0).unwrap();
    assert_eq!(again.len(), 3);
    // A rewrite that fails changes nothing.
    let _ = journal.begin_compaction();
    journal.end_compaction(Err(std::io::Error::other("disk full")));
    assert_eq!(lines(&path), 3);
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}
