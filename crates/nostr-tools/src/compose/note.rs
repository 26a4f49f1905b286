//! Replies among notes (NIP-10).

use crate::compose::target::Target;
use crate::compose::text::{self, person};
use crate::compose::{Tags, hint, tag};
use nostr::prelude::{Event, EventId, PublicKey, RelayUrl, Tag};

/// A thread can have named thousands of people. Whoever answers in it does not have to wake them all, and relays refuse
/// events with that many tags.
const MOST_INHERITED: usize = 100;

/// The tags of a reply to a note. Without `root`, the parent says what it is itself a reply to.
pub(crate) fn reply(parent: &Target, root: Option<Target>, mentioned: &[PublicKey], content: &str) -> Tags {
    let root = root.or_else(|| parent.event.as_ref().and_then(root_of)).filter(|root| root.id != parent.id);
    let mut tags = Tags::default();
    match &root {
        Some(root) => {
            tags.add_all(marked(root, "root"));
            tags.add_all(marked(parent, "reply"));
        }
        // The parent is the root; it is not marked twice.
        None => tags.add_all(marked(parent, "root")),
    }
    tags.add_all(parent.author_tag("p"));
    tags.add_all(root.and_then(|root| root.author_tag("p")));
    let inherited = parent.event.iter().flat_map(|event| event.tags.public_keys());
    tags.add_all(inherited.take(MOST_INHERITED).map(|key| person(&key, None)));
    tags.add_all(mentioned.iter().map(|key| person(key, None)));
    text::mention(&mut tags, content);
    text::hashtags(&mut tags, content);
    tags
}

/// `["e", id, relay, marker, author]`
fn marked(target: &Target, marker: &str) -> Option<Tag> {
    let author = target.author.map(|key| key.to_hex()).unwrap_or_default();
    target.id.map(|id| tag("e", [&id.to_hex(), hint(target.relay.as_ref()), marker, &author]))
}

/// The beginning of the thread that a note is in, if it is not the beginning itself.
fn root_of(event: &Event) -> Option<Target> {
    let named: Vec<&[String]> =
        event.tags.iter().map(Tag::as_slice).filter(|tag| tag.first().is_some_and(|name| name == "e")).collect();
    let marker = |tag: &&&[String], marker: &str| tag.get(3).is_some_and(|found| found == marker);
    let is_bare = |tag: &&&[String]| tag.get(3).is_none_or(|marker| marker != "mention");
    let root = named.iter().find(|tag| marker(tag, "root"));
    // Some clients mark the parent only; before there were markers, the first one was the root.
    let root = root.or_else(|| named.iter().find(|tag| marker(tag, "reply"))).or_else(|| named.iter().find(is_bare))?;
    let author = root.get(4).and_then(|key| PublicKey::from_hex(key).ok());
    Some(Target {
        id: Some(EventId::from_hex(root.get(1)?).ok()?),
        author,
        kind: None,
        address: None,
        relay: root.get(2).and_then(|relay| RelayUrl::parse(relay).ok()),
        event: None,
        silence: None,
    })
}

#[cfg(test)]
mod tests {
    use super::{MOST_INHERITED, reply};
    use crate::compose::target::Target;
    use nostr::prelude::{Event, Keys, Kind, Tag, Timestamp, UnsignedEvent};
    use rialto_relay::sign::sign;

    fn note(keys: &Keys, tags: &[Vec<String>]) -> Event {
        let tags = tags.iter().map(|tag| Tag::parse(tag).unwrap());
        sign(keys, UnsignedEvent::new(keys.public_key(), Timestamp::from(1), Kind::TextNote, tags, "hi"))
    }

    fn target(event: &Event) -> Target {
        let (id, author) = (Some(event.id), Some(event.pubkey));
        let event = Some(event.clone());
        Target {
            id,
            author,
            kind: event.as_ref().map(|event| event.kind),
            address: None,
            relay: None,
            event,
            silence: None,
        }
    }

    fn check(parent: &[&str], expected: &[&str]) {
        let keys = Keys::parse("0000000000000000000000000000000000000000000000000000000000000001").unwrap();
        let names = [("ROOT", "a".repeat(64)), ("MID", "b".repeat(64)), ("WHO", keys.public_key().to_hex())];
        let fill = |text: &str| {
            names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value)).replace('~', "")
        };
        let split = |line: &&str| fill(line).split(' ').map(str::to_owned).collect::<Vec<_>>();
        let parent = note(&keys, &parent.iter().map(split).collect::<Vec<_>>());
        let tags = reply(&target(&parent), None, &[], "").into_vec();
        let tags: Vec<Vec<String>> = tags.iter().map(|tag| tag.as_slice().to_vec()).collect();
        let id = parent.id.to_hex();
        let expected: Vec<Vec<String>> =
            expected.iter().map(|line| split(&line.replace("PARENT", &id).as_str())).collect();
        assert_eq!(tags, expected);
    }

    #[test]
    fn the_root_is_found_in_every_form() {
        check(&[], &["e PARENT ~ root WHO", "p WHO"]);
        let in_thread = ["e ROOT ~ root", "e PARENT ~ reply WHO", "p WHO"];
        check(&["e ROOT ~ root", "e MID ~ reply"], &in_thread);
        check(&["e ROOT"], &in_thread);
        check(&["e ROOT", "e MID"], &in_thread);
        check(&["e ROOT ~ reply"], &in_thread);
        check(&["e MID ~ mention", "e ROOT ~ root"], &in_thread);
        check(&["e MID ~ mention"], &["e PARENT ~ root WHO", "p WHO"]);
        check(
            &["e ROOT wss://r.example root WHO"],
            &["e ROOT wss://r.example root WHO", "e PARENT ~ reply WHO", "p WHO"],
        );
        check(&["e nonsense"], &["e PARENT ~ root WHO", "p WHO"]);
    }

    #[test]
    fn a_crowd_is_not_woken() {
        let crowd: Vec<Vec<String>> =
            (0..150).map(|_| vec!["p".to_owned(), Keys::generate().public_key().to_hex()]).collect();
        let parent = note(&Keys::generate(), &crowd);
        let people = reply(&target(&parent), None, &[], "").into_vec().len() - 1;
        assert_eq!(people, MOST_INHERITED + 1);
    }
}
