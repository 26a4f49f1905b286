//! The relay's readers and its store, compared with the simplest that could be.

use super::event::{Event, Unverified, to_hex};
use super::filter::Filter;
use super::message::Request;
use super::store::{Step, Store, Walk};
use crate::gate;
use crate::sign::sign;
use nostr::prelude::{Keys, Kind, SecretKey, Tag, Timestamp, UnsignedEvent};
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// What a client says.
pub(crate) fn message(text: &str) {
    match Request::parse(text) {
        Ok(Request::Event(event) | Request::Authenticate(event)) => {
            let Ok(read) = Unverified::parse(event) else { return };
            let Ok(verified) = read.verify() else { return };
            assert!(!verified.text.contains('\n'), "the file has one event in a line");
            let kept: Value = serde_json::from_str(&verified.text).unwrap_or_default();
            assert_eq!(
                (kept["id"].as_str(), kept["pubkey"].as_str()),
                (Some(&*to_hex(&verified.id)), Some(&*to_hex(&verified.author)))
            );
            let is_bare = kept["sig"].as_str().map(str::len) == Some(128)
                && kept.as_object().map(serde_json::Map::len) == Some(7);
            assert!(is_bare, "nothing in it that nobody signed");
            // What we keep and pass on is, to whoever reads it, what was signed.
            if let Ok(theirs) = gate::check(&verified.text) {
                assert_eq!((theirs.id.as_bytes(), theirs.pubkey.as_bytes()), (&verified.id, &verified.author));
            } else {
                assert!(event.len() > gate::MAX_EVENT_BYTES, "nobody would take it from us");
            }
        }
        Ok(Request::Subscribe { name, filters } | Request::Count { name, filters }) => {
            assert!(!name.is_empty() && name.chars().count() <= 64 && !filters.is_empty());
            filters.into_iter().for_each(filter);
        }
        Ok(Request::Close { name }) => assert!(!name.is_empty()),
        Err(words) => assert!(words.starts_with("invalid:") || words.starts_with("unsupported:"), "{words}"),
    }
}

/// What the store finds is what a look at every event finds, in the same order.
pub(crate) fn filter(text: &str) {
    let Ok(filter) = Filter::parse(text) else { return };
    assert!(filter.size() <= text.len(), "what it costs to keep is no more than what was sent");
    // Who names a field twice means the last, like everybody who reads JSON into a map.
    let Ok(wanted) = serde_json::from_str::<Value>(text) else { return };
    let naive: Vec<&Arc<Event>> =
        EVENTS.1.iter().filter(|(_, event)| fits(&wanted, event)).map(|(kept, _)| kept).collect();
    let limit = filter.limit.unwrap_or(usize::MAX).min(EVENTS.1.len());
    let mut walk = Walk::new(EVENTS.0.serial(), 0, limit);
    while EVENTS.0.step(&filter, &mut walk, 7) == Step::More {}
    let ids = |events: &mut dyn Iterator<Item = &Arc<Event>>| events.map(|event| to_hex(&event.id)).collect::<Vec<_>>();
    assert_eq!(ids(&mut walk.found.iter()), ids(&mut naive.into_iter().take(limit)), "{text}");
}

/// NIP-01, word by word.
fn fits(filter: &Value, event: &Value) -> bool {
    let Some(fields) = filter.as_object() else { return false };
    fields.iter().all(|(name, wanted)| {
        let is_listed = |value: &Value| wanted.as_array().is_some_and(|list| list.contains(value));
        match name.as_str() {
            "ids" => is_listed(&event["id"]),
            "authors" => is_listed(&event["pubkey"]),
            "kinds" => is_listed(&event["kind"]),
            "since" => event["created_at"].as_u64() >= wanted.as_u64(),
            "until" => event["created_at"].as_u64() <= wanted.as_u64(),
            "limit" => true,
            "search" => searched(wanted.as_str().unwrap_or_default(), event),
            tag => {
                let tags = event["tags"].as_array().map_or(&[][..], Vec::as_slice);
                tags.iter().any(|have| have[0] == tag[1..] && is_listed(&have[1]))
            }
        }
    })
}

/// Every word stands somewhere; those that set something, like `language:en`, are not looked at.
fn searched(words: &str, event: &Value) -> bool {
    let values =
        event["tags"].as_array().into_iter().flatten().flat_map(|tag| tag.as_array().into_iter().flatten().skip(1));
    let texts: Vec<String> =
        [&event["content"]].into_iter().chain(values).filter_map(|text| Some(text.as_str()?.to_lowercase())).collect();
    let sets = |word: &str| match word.split_once(':') {
        Some((key, value)) => {
            let is_key = !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric());
            is_key && !value.is_empty() && !value.starts_with("//")
        }
        None => false,
    };
    let mut words = words.split_whitespace().filter(|word| !sets(word));
    words.all(|word| texts.iter().any(|text| text.contains(&word.to_lowercase())))
}

/// Some events, as the store has them and as anybody reads them, newest first.
#[expect(clippy::expect_used, reason = "they are ours")]
static EVENTS: LazyLock<(Store, Vec<(Arc<Event>, Value)>)> = LazyLock::new(|| {
    let keys = [1, 2, 3].map(|byte: u8| Keys::new(SecretKey::from_slice(&[byte; 32]).expect("a key")));
    let mut store = Store::new(1000, usize::MAX);
    let mut all = Vec::new();
    for number in 0..60_u64 {
        let kind = Kind::from([1, 7, 5910, 6910, 31990][usize::try_from(number % 5).expect("small")]);
        let author = &keys[usize::try_from(number % 3).expect("small")];
        let d = number.to_string();
        let tags = [["t", "a"], ["t", "b"], ["d", &d], ["e", "a"]]
            .into_iter()
            .take(usize::try_from(number % 5).expect("small"));
        let tags = tags.map(|tag| Tag::parse(tag).expect("a tag"));
        // Some at the same time, so that the order of ids counts.
        let made = Timestamp::from(1000 + number / 4);
        let content = ["", "Hello you", "one two", "ÜBER"][usize::try_from(number % 4).expect("small")];
        let event = sign(author, UnsignedEvent::new(author.public_key(), made, kind, tags, content));
        let text = event.as_json();
        let kept = Arc::new(Unverified::parse(&text).expect("an event").verify().expect("signed"));
        if store.check(&kept).is_ok() {
            store.insert(&kept);
            all.push((kept, serde_json::from_str(&text).expect("JSON")));
        }
    }
    // What was replaced is gone.
    all.retain(|(kept, _): &(Arc<Event>, Value)| store.contains(&kept.id));
    all.sort_by_key(|(kept, _)| kept.position());
    (store, all)
});
