//! The kinds, tags and encryptions of NIP-47. Nothing else knows them.

use nostr::nips::{nip04, nip44};
use nostr::prelude::{Event, EventId, Filter, Keys, Kind, PublicKey, Tag, Timestamp, UnsignedEvent};
use rialto_relay::sign::sign;

/// What a wallet can do, in its own words.
pub(crate) const INFO: Kind = Kind::Custom(13194);
pub(crate) const REQUEST: Kind = Kind::Custom(23194);
pub(crate) const RESPONSE: Kind = Kind::Custom(23195);
/// Something has happened in the wallet; which of the two follows from the encryption.
const NOTICE_NIP04: Kind = Kind::Custom(23196);
const NOTICE_NIP44: Kind = Kind::Custom(23197);

const ADDRESSEE: &str = "p";
const ENCRYPTION: &str = "encryption";
const EXPIRATION: &str = "expiration";
#[cfg(feature = "testing")]
const NOTIFICATIONS: &str = "notifications";

/// How contents are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    Nip44,
    Nip04,
}

impl Encryption {
    fn name(self) -> &'static str {
        match self {
            Encryption::Nip44 => "nip44_v2",
            Encryption::Nip04 => "nip04",
        }
    }

    /// The better one of those in a list. The old one is meant where nothing is said, and never where something is said
    /// that we do not know.
    pub(crate) fn choose(offered: Option<&str>) -> Option<Self> {
        let Some(offered) = offered else { return Some(Encryption::Nip04) };
        let has = |encryption: Encryption| offered.split_ascii_whitespace().any(|word| word == encryption.name());
        [Encryption::Nip44, Encryption::Nip04].into_iter().find(|encryption| has(*encryption))
    }

    pub(crate) fn notice(self) -> Kind {
        match self {
            Encryption::Nip44 => NOTICE_NIP44,
            Encryption::Nip04 => NOTICE_NIP04,
        }
    }

    /// `None` if the text is too long.
    pub(crate) fn hide(self, keys: &Keys, peer: &PublicKey, text: &str) -> Option<String> {
        match self {
            Encryption::Nip44 => nip44::encrypt(keys.secret_key(), peer, text, nip44::Version::V2).ok(),
            Encryption::Nip04 => nip04::encrypt(keys.secret_key(), peer, text).ok(),
        }
    }

    /// `None` if it was not written for us by `peer` in this way.
    pub(crate) fn reveal(self, keys: &Keys, peer: &PublicKey, text: &str) -> Option<String> {
        match self {
            Encryption::Nip44 => nip44::decrypt(keys.secret_key(), peer, text).ok(),
            Encryption::Nip04 => nip04::decrypt(keys.secret_key(), peer, text).ok(),
        }
    }
}

/// Where the wallet describes itself.
pub(crate) fn info_filter(wallet: PublicKey) -> Filter {
    Filter::new().kind(INFO).author(wallet).limit(1)
}

/// What a wallet sends to us.
pub(crate) fn answers_filter(wallet: PublicKey, me: PublicKey) -> Filter {
    Filter::new().kinds([RESPONSE, NOTICE_NIP04, NOTICE_NIP44]).author(wallet).pubkey(me)
}

/// The answers of a wallet that does not say whom they are for.
pub(crate) fn named_filter(wallet: PublicKey, requests: impl IntoIterator<Item = EventId>) -> Filter {
    Filter::new().kind(RESPONSE).author(wallet).events(requests)
}

/// A request, which a wallet must not take any more after `end`.
pub(crate) fn request(
    keys: &Keys,
    wallet: PublicKey,
    encryption: Encryption,
    hidden: String,
    (now, end): (Timestamp, Timestamp),
) -> Event {
    let tags = [
        Tag::public_key(wallet),
        Tag::custom(ENCRYPTION, [encryption.name()]),
        Tag::custom(EXPIRATION, [end.as_secs().to_string()]),
    ];
    sign(keys, UnsignedEvent::new(keys.public_key(), now, REQUEST, tags, hidden))
}

/// The value of an event's tag with this name.
fn tag<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    event.tags.iter().find(|tag| tag.kind() == name).and_then(Tag::content)
}

/// The encryptions that an event names.
pub(crate) fn encryption(event: &Event) -> Option<&str> {
    tag(event, ENCRYPTION)
}

/// The only request that an event answers.
pub(crate) fn answered(event: &Event) -> Option<EventId> {
    let mut ids = event.tags.event_ids();
    ids.next().filter(|_| ids.next().is_none())
}

/// Whether an event says whom it is for.
pub(crate) fn is_addressed(event: &Event) -> bool {
    event.tags.iter().any(|tag| tag.kind() == ADDRESSEE)
}

/// The only one whom an event is for.
pub(crate) fn addressee(event: &Event) -> Option<PublicKey> {
    let mut keys = event.tags.public_keys();
    keys.next().filter(|_| keys.next().is_none())
}

/// The other end's part, for the wallet service of the tests.
#[cfg(feature = "testing")]
pub(crate) mod service {
    use super::{
        ENCRYPTION, EXPIRATION, Encryption, Event, EventId, Filter, INFO, Keys, NOTIFICATIONS, PublicKey, REQUEST,
        RESPONSE, Tag, Timestamp, UnsignedEvent, sign, tag,
    };

    pub(crate) fn requests_filter(services: impl IntoIterator<Item = PublicKey>) -> Filter {
        Filter::new().kind(REQUEST).pubkeys(services)
    }

    pub(crate) fn info(keys: &Keys, methods: &str, encryptions: Option<&str>) -> Event {
        let mut tags = vec![Tag::custom(NOTIFICATIONS, ["payment_received hold_invoice_accepted"])];
        tags.extend(encryptions.map(|names| Tag::custom(ENCRYPTION, [names])));
        sign(keys, UnsignedEvent::new(keys.public_key(), Timestamp::now(), INFO, tags, methods))
    }

    pub(crate) fn response(keys: &Keys, client: Option<PublicKey>, request: EventId, hidden: String) -> Event {
        let tags: Vec<Tag> = client.map(Tag::public_key).into_iter().chain([Tag::event(request)]).collect();
        sign(keys, UnsignedEvent::new(keys.public_key(), Timestamp::now(), RESPONSE, tags, hidden))
    }

    pub(crate) fn notice(keys: &Keys, client: PublicKey, encryption: Encryption, hidden: String) -> Event {
        let tags = [Tag::public_key(client)];
        sign(keys, UnsignedEvent::new(keys.public_key(), Timestamp::now(), encryption.notice(), tags, hidden))
    }

    /// When a request ends, in seconds since 1970.
    pub(crate) fn expiration(event: &Event) -> Option<u64> {
        tag(event, EXPIRATION)?.parse().ok()
    }
}
