//! `nostr_events_parse_refs`: references in a text.

use crate::failure::Failure;
use crate::shape::{choice, record};
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::nips::nip19::{FromBech32, Nip19};
use nostr::prelude::RelayUrl;

choice! {
    enum ReferenceType {
        Npub = "npub",
        Nprofile = "nprofile",
        Note = "note",
        Nevent = "nevent",
        Naddr = "naddr",
        Nsec = "nsec",
        Invalid = "invalid",
    }
}

record! {
    struct Input {
        /// The text
        content: String,
    }
}

record! {
    struct TextReference {
        /// As it stands in the text; secrets are masked
        raw: String,
        /// The same without nostr:
        bech32: String,
        /// What it is
        reference_type: ReferenceType,
        /// The public key, or the author
        pubkey: Option<String>,
        /// The event id
        event_id: Option<String>,
        /// The kind of the event
        kind: Option<u16>,
        /// The identifier (d tag)
        identifier: Option<String>,
        /// Where it can be found
        relays: Option<Vec<String>>,
        /// What is wrong with it
        error: Option<String>,
    }
}

record! {
    struct Output {
        /// The references, in their order
        references: Vec<TextReference>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 62,
        name: "nostr_events_parse_refs",
        title: "Find references",
        status: Status::Stable,
        nips: &[27],
        summary: "Finds and decodes nostr: references in a text.",
        effect: Effect::Calculates,
        example: r#"{"content":"ask nostr:npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, _turn: &Turn<'_>) -> Result<Output, Failure> {
        Ok(Output { references: references(&input.content) })
    }
}

const SCHEME: &str = "nostr:";

fn references(text: &str) -> Vec<TextReference> {
    let mut found = Vec::new();
    // The same length, so that places in one are places in the other.
    let lower = text.to_ascii_lowercase();
    let mut place = 0;
    while let Some(start) = lower[place..].find(SCHEME).map(|offset| place + offset) {
        place = start + SCHEME.len();
        let rest = &text[place..];
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let is_within = text[..start].chars().next_back().is_some_and(char::is_alphanumeric);
        if length > 0 && !is_within {
            found.push(explain(&text[start..place], &rest[..length]));
        }
        place += length;
    }
    found
}

fn explain(scheme: &str, word: &str) -> TextReference {
    let mut reference = TextReference {
        raw: format!("{scheme}{word}"),
        bech32: word.to_owned(),
        reference_type: ReferenceType::Invalid,
        pubkey: None,
        event_id: None,
        kind: None,
        identifier: None,
        relays: None,
        error: None,
    };
    match Nip19::from_bech32(word) {
        Ok(Nip19::Pubkey(key)) => {
            reference.reference_type = ReferenceType::Npub;
            reference.pubkey = Some(key.to_hex());
        }
        Ok(Nip19::Profile(profile)) => {
            reference.reference_type = ReferenceType::Nprofile;
            reference.pubkey = Some(profile.public_key.to_hex());
            reference.relays = Some(names(&profile.relays));
        }
        Ok(Nip19::EventId(id)) => {
            reference.reference_type = ReferenceType::Note;
            reference.event_id = Some(id.to_hex());
        }
        Ok(Nip19::Event(event)) => {
            reference.reference_type = ReferenceType::Nevent;
            reference.event_id = Some(event.event_id.to_hex());
            reference.pubkey = event.author.map(|author| author.to_hex());
            reference.kind = event.kind.map(|kind| kind.as_u16());
            reference.relays = Some(names(&event.relays));
        }
        Ok(Nip19::Coordinate(address)) => {
            reference.reference_type = ReferenceType::Naddr;
            reference.pubkey = Some(address.coordinate.public_key.to_hex());
            reference.kind = Some(address.coordinate.kind.as_u16());
            reference.identifier = Some(address.coordinate.identifier.clone());
            reference.relays = Some(names(&address.relays));
        }
        Ok(Nip19::Secret(_)) => {
            reference.reference_type = ReferenceType::Nsec;
            reference.error = Some("a secret key must never be published".to_owned());
        }
        Ok(Nip19::EncryptedSecret(_)) => {
            reference.error = Some("a sealed key is nothing to refer to".to_owned());
        }
        Err(error) => reference.error = Some(error.to_string()),
    }
    // Damaged or not, it is not for repeating.
    if word.to_ascii_lowercase().starts_with("nsec1") {
        "nsec1…".clone_into(&mut reference.bech32);
        reference.raw = format!("{scheme}nsec1…");
    }
    reference
}

fn names(relays: &[RelayUrl]) -> Vec<String> {
    relays.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::{ReferenceType, references};
    use nostr::nips::nip19::ToBech32;
    use nostr::prelude::Keys;

    #[test]
    fn references_are_found_between_other_words() {
        let keys = Keys::generate();
        let npub = keys.public_key().to_bech32().unwrap();
        let text = format!("É nostr: (nostr:{npub}), xnostr:{npub} NOSTR:{npub}. nostr:npub1x");
        let found = references(&text);
        let kinds: Vec<_> = found.iter().map(|one| one.reference_type).collect();
        assert_eq!(kinds, [ReferenceType::Npub, ReferenceType::Npub, ReferenceType::Invalid]);
        assert_eq!(found[0].pubkey, Some(keys.public_key().to_hex()));
        assert_eq!(found[0].raw, format!("nostr:{npub}"));
    }

    #[test]
    fn secrets_are_masked() {
        let nsec = Keys::generate().secret_key().to_bech32().unwrap();
        let found = references(&format!("nostr:{nsec} nostr:{}x", &nsec[..40]));
        assert_eq!(found[0].reference_type, ReferenceType::Nsec);
        assert!(found.iter().all(|one| one.raw == "nostr:nsec1…" && one.bech32 == "nsec1…"));
    }
}
