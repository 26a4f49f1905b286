//! The record, cut off anywhere: whatever was noted before is still known.

use nostr::prelude::{Event, EventId, Keys, Kind, Timestamp, UnsignedEvent};
use rialto_provider::record::{Known, Record};
use rialto_relay::sign::sign;
use rialto_wire::request::Address;
use rialto_wire::request::Command;
use rialto_wire::service::Way;
use std::path::Path;
use std::sync::LazyLock;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const KEEP: u64 = 1920;

/// Whose does not matter.
static KEYS: LazyLock<Keys> = LazyLock::new(Keys::generate);

fn address(number: u8) -> Address {
    let request = EventId::from_byte_array([number; 32]);
    Address { request, customer: KEYS.public_key(), command: Some(Command::ExecuteTool) }
}

fn answer() -> Event {
    static ANSWER: LazyLock<Event> =
        LazyLock::new(|| sign(&KEYS, UnsignedEvent::new(KEYS.public_key(), NOW, Kind::from(6910), [], "an answer")));
    ANSWER.clone()
}

/// A few requests in every state, and the length of the file when each was noted.
fn write(folder: &Path) -> Vec<(u8, usize)> {
    let file = folder.join("jobs");
    let length = || std::fs::metadata(&file).unwrap().len() as usize;
    let (mut record, _) = Record::open(folder, KEEP, NOW).unwrap();
    let mut noted = Vec::new();
    for number in 1..=3 {
        record.begin(&address(number), [Way::PUBLIC, Way::SEALED, Way::MESSAGE][usize::from(number) % 3], NOW).unwrap();
        noted.push((number, length()));
    }
    for number in [2, 3, 4] {
        record.finish(&address(number).request, &[answer()], NOW).unwrap();
        noted.push((number, length()));
    }
    record.sent(&address(3).request).unwrap();
    noted
}

#[test]
fn cut_off_anywhere_what_was_noted_before_is_known_and_what_is_noted_later_too() {
    let folder = tempfile::tempdir().unwrap();
    let noted = write(folder.path());
    let whole = std::fs::read(folder.path().join("jobs")).unwrap();
    for (name, step) in [("jobs", 1), ("jobs.old", 5)] {
        for cut in (0..=whole.len()).step_by(step) {
            for name in ["jobs", "jobs.old"] {
                let _ = std::fs::remove_file(folder.path().join(name));
            }
            std::fs::write(folder.path().join(name), &whole[..cut]).unwrap();
            let (mut record, recovered) = Record::open(folder.path(), KEEP, NOW).unwrap();
            for (number, length) in &noted {
                // The line break itself may be missing.
                if cut + 1 >= *length {
                    assert_ne!(record.known(&address(*number).request), Known::New, "{name} {cut}: {number}");
                }
            }
            for unfinished in &recovered.unfinished {
                assert_eq!(record.known(&unfinished.address.request), Known::Running);
            }
            for (id, answers) in &recovered.undelivered {
                assert_eq!((record.known(id), answers.len()), (Known::Done, 1));
            }
            record.begin(&address(9), Way::PUBLIC, NOW).unwrap();
            record.finish(&address(8).request, &[answer()], NOW).unwrap();
            assert!(record.answers(&address(8).request).is_some());
            drop(record);
            let (record, _) = Record::open(folder.path(), KEEP, NOW).unwrap();
            assert_eq!(record.known(&address(9).request), Known::Running, "{name} {cut}");
            assert_eq!(record.answers(&address(8).request).map(|answers| answers.len()), Some(1), "{name} {cut}");
        }
    }
}

#[test]
fn rubbish_in_the_record_is_no_reason_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let whole = std::fs::read(folder.path().join("jobs")).unwrap();
    // Each byte changed, as a bad disk would.
    for at in (0..whole.len()).step_by(11) {
        for byte in [0, b'"', b'\n', 0xff] {
            let mut changed = whole.clone();
            changed[at] = byte;
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("jobs"), changed).unwrap();
            Record::open(folder.path(), KEEP, NOW).unwrap();
        }
    }
    let extreme = format!("{{\"done\":{{\"id\":\"{}\",\"at\":18446744073709551615}}}}\n", "11".repeat(32));
    std::fs::write(folder.path().join("jobs"), extreme).unwrap();
    let (mut record, _) = Record::open(folder.path(), KEEP, NOW).unwrap();
    record.begin(&address(9), Way::PUBLIC, NOW).unwrap();
}
