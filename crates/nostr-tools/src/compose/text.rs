//! What a text mentions (NIP-27), as tags: people are told, and events that are cited can be found.

use crate::compose::{Tags, hint, tag};
use nostr::nips::nip21::Nip21;
use nostr::parser::{NostrParser, Token};
use nostr::prelude::{PublicKey, RelayUrl, Tag};

/// Adds the `p` and `q` tags that a text asks for.
pub(crate) fn mention(tags: &mut Tags, text: &str) {
    for token in NostrParser::new().parse(text) {
        match token {
            Token::Nostr(Nip21::Pubkey(key)) => tags.add(person(&key, None)),
            Token::Nostr(Nip21::Profile(profile)) => tags.add(person(&profile.public_key, profile.relays.first())),
            Token::Nostr(Nip21::EventId(id)) => tags.add(tag("q", [&id.to_hex()])),
            Token::Nostr(Nip21::Event(event)) => {
                let relay = event.relays.first();
                let author = event.author.map(|key| key.to_hex()).unwrap_or_default();
                tags.add(tag("q", [&event.event_id.to_hex(), hint(relay), &author]));
                // NIP-10: whoever is quoted is told.
                event.author.into_iter().for_each(|author| tags.add(person(&author, relay)));
            }
            Token::Nostr(Nip21::Coordinate(event)) => {
                let relay = event.relays.first();
                tags.add(tag("q", [&event.coordinate.to_string(), hint(relay)]));
                tags.add(person(&event.coordinate.public_key, relay));
            }
            _ => {}
        }
    }
}

/// Adds a `t` tag for each #topic in a text.
pub(crate) fn hashtags(tags: &mut Tags, text: &str) {
    for token in NostrParser::new().parse(text) {
        match token {
            // "#1" counts something.
            Token::Hashtag(topic) if topic.chars().any(char::is_alphabetic) => {
                tags.add(tag("t", [&topic.to_lowercase()]));
            }
            _ => {}
        }
    }
}

/// `["p", key, relay]`
pub(crate) fn person(key: &PublicKey, relay: Option<&RelayUrl>) -> Tag {
    tag("p", [&key.to_hex(), hint(relay)])
}

#[cfg(test)]
mod tests {
    use super::{hashtags, mention};
    use crate::compose::Tags;
    use nostr::nips::nip01::Coordinate;
    use nostr::nips::nip19::{Nip19Coordinate, Nip19Event, Nip19Profile, ToBech32};
    use nostr::prelude::{EventId, Keys, Kind, RelayUrl, Tag};

    #[test]
    fn mentions_become_tags() {
        let [one, two, three, four] = [(); 4].map(|()| Keys::generate().public_key());
        let relay = RelayUrl::parse("wss://relay.example").unwrap();
        let id = EventId::from_hex(&"ab".repeat(32)).unwrap();
        let article = Coordinate::new(Kind::LongFormTextNote, four).identifier("x");
        let names = [
            one.to_bech32().unwrap(),
            Nip19Profile::new(two, [relay.clone()]).to_bech32().unwrap(),
            Nip19Event::new(id).author(three).relays([relay.clone()]).to_bech32().unwrap(),
            Nip19Coordinate::new(article, []).to_bech32().unwrap(),
            one.to_bech32().unwrap(),
        ];
        let text: Vec<String> = names.iter().map(|name| format!("hello (nostr:{name}).")).collect();
        let text = format!("{}\n#Rust, #rust and issue #5 at https://x.example/#part", text.join(" "));
        let mut tags = Tags::default();
        mention(&mut tags, &text);
        hashtags(&mut tags, &text);
        let tags: Vec<String> = tags.into_vec().iter().map(|tag: &Tag| tag.as_slice().join(" ")).collect();
        let id = id.to_hex();
        let expected = [
            format!("p {one}"),
            format!("p {two} wss://relay.example"),
            format!("q {id} wss://relay.example {three}"),
            format!("p {three} wss://relay.example"),
            format!("q 30023:{four}:x"),
            format!("p {four}"),
            "t rust".to_owned(),
        ];
        assert_eq!(tags, expected);
    }
}
