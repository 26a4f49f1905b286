//! The event that another one is about: what the caller says of it, checked against the event itself where relays have it.

use crate::argument;
use crate::compose::address::{Name, Reference};
use crate::compose::{hint, tag};
use crate::failure::Failure;
use crate::network::{PATIENCE, Progress};
use crate::publish::{Route, Wishes};
use crate::tool::Turn;
use nostr::nips::nip01::Coordinate;
use nostr::prelude::{Event, EventId, Filter, Kind, PublicKey, RelayUrl, Tag};
use std::fmt::Display;

/// A value, and where in the arguments it stands.
pub(crate) type Argument<T> = (&'static str, T);

/// What a caller says of an event.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) event: Argument<&'a str>,
    pub(crate) author: Argument<Option<&'a str>>,
    pub(crate) kind: Argument<Option<u16>>,
    /// A relay that has it.
    pub(crate) relay: Argument<Option<&'a str>>,
}

/// An event that is replied to, reacted to, or otherwise named.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Unknown only if it was named by an address and is nowhere to be found.
    pub(crate) id: Option<EventId>,
    pub(crate) author: Option<PublicKey>,
    pub(crate) kind: Option<Kind>,
    pub(crate) address: Option<Coordinate>,
    /// A relay that has it.
    pub(crate) relay: Option<RelayUrl>,
    /// The event, if relays have it.
    pub(crate) event: Option<Event>,
    /// Why it is not known whether relays have it.
    pub(crate) silence: Option<Failure>,
}

impl Claim<'_> {
    /// Looks the event up. It is an error that the caller is wrong about it, but not that nobody has it.
    pub(crate) async fn find(&self, turn: &Turn<'_>, wishes: &Wishes) -> Result<Target, Failure> {
        // Whoever cannot sign need not look anything up.
        turn.session.keyring.signer().await?;
        let reference = Reference::parse(self.event.1, self.event.0)?;
        let author = self.author.1.map(|text| argument::public_key(text, self.author.0)).transpose()?;
        let author = agreed("author", self.author.0, author, reference.author)?;
        let kind = agreed("kind", self.kind.0, self.kind.1.map(Kind::from_u16), reference.kind)?;
        let relay = self.relay.1.map(|text| argument::relay(text, self.relay.0)).transpose()?;
        let mut places: Vec<RelayUrl> = relay.into_iter().chain(reference.relays.iter().cloned()).collect();
        places.extend(turn.home(author).await);
        // Where it goes is no place where it can be found by others.
        let relay = places.first().cloned();
        places.extend(argument::relays(wishes.to_relays.as_deref().unwrap_or_default(), "/to_relays")?);
        let (event, silence) = match turn.look(&reference, &places).await {
            Ok(event) => (event, None),
            Err(failure) => (None, Some(failure)),
        };
        let author = agreed("author", self.author.0, author, event.as_ref().map(|event| event.pubkey))?;
        let kind = agreed("kind", self.kind.0, kind, event.as_ref().map(|event| event.kind))?;
        let id = match (&event, &reference.name) {
            (Some(event), _) => Some(event.id),
            (None, Name::Id(id)) => Some(*id),
            (None, Name::Address(_)) => None,
        };
        let address = match (&event, reference.name, author, kind) {
            (_, Name::Address(address), ..) => Some(address),
            (_, _, _, Some(kind)) if !super::has_address(kind) => None,
            (Some(event), ..) => event.coordinate(),
            (None, _, Some(author), Some(kind)) if !kind.is_addressable() => Some(Coordinate::new(kind, author)),
            (None, _, _, Some(kind)) => {
                if let Some(silence) = silence {
                    return Err(silence);
                }
                let words = format!("no relay that was asked has this event, and kind {kind} is named by address");
                return Err(Failure::not_found(format!("{words}: give its naddr1… instead")).at(self.event.0));
            }
            _ => None,
        };
        Ok(Target { id, author, kind, address, relay, event, silence })
    }
}

/// One value, if what is said and what is known agree.
fn agreed<T: PartialEq + Display>(
    what: &str,
    pointer: &str,
    said: Option<T>,
    known: Option<T>,
) -> Result<Option<T>, Failure> {
    match (said, known) {
        (Some(said), Some(known)) if said != known => {
            Err(Failure::invalid(format!("the {what} of the event is {known}")).at(pointer))
        }
        (said, known) => Ok(known.or(said)),
    }
}

impl Target {
    /// That nobody has it; or, if nobody could be asked, that.
    pub(crate) fn missing(&self, words: &str, pointer: &str) -> Failure {
        self.silence.clone().unwrap_or_else(|| Failure::not_found(words).at(pointer))
    }

    /// The id; who named the event by its address at `pointer` hears that nobody has it.
    pub(crate) fn id(&self, pointer: &str) -> Result<EventId, Failure> {
        self.id.ok_or_else(|| self.missing("no relay that was asked has this event", pointer))
    }

    /// `["e", id, relay, author]`, or the same by another name.
    pub(crate) fn event_tag(&self, name: &str) -> Option<Tag> {
        let author = self.author.map(|key| key.to_hex()).unwrap_or_default();
        self.id.map(|id| tag(name, [&id.to_hex(), hint(self.relay.as_ref()), &author]))
    }

    /// `["a", address, relay]`, if it has an address.
    pub(crate) fn address_tag(&self, name: &str) -> Option<Tag> {
        self.address.as_ref().map(|address| tag(name, [&address.to_string(), hint(self.relay.as_ref())]))
    }

    /// `["p", author, relay]`, if the author is known.
    pub(crate) fn author_tag(&self, name: &str) -> Option<Tag> {
        self.author.map(|key| tag(name, [&key.to_hex(), hint(self.relay.as_ref())]))
    }

    /// `["k", kind]`, if the kind is known.
    pub(crate) fn kind_tag(&self, name: &str) -> Option<Tag> {
        self.kind.map(|kind| tag(name, [&kind.to_string()]))
    }
}

impl Turn<'_> {
    /// A relay that somebody writes to, where others will find their events.
    pub(crate) async fn home(&self, who: Option<PublicKey>) -> Option<RelayUrl> {
        let lists = self.session.network.lists_of(&who.into_iter().collect(), &Progress::of(self)).await;
        lists.into_values().next().and_then(|list| list.write.into_iter().next())
    }

    /// The newest event of this name, from where such events usually are, and from these places.
    pub(crate) async fn look(&self, reference: &Reference, places: &[RelayUrl]) -> Result<Option<Event>, Failure> {
        let found = self.fetch(&[reference.filter()], Route::Also(places), PATIENCE).await?;
        Ok(found.into_iter().find(|event| reference.fits(event)))
    }

    /// One of our relays that has an event.
    pub(crate) async fn holder(&self, id: EventId) -> Result<Option<RelayUrl>, Failure> {
        let network = &self.session.network;
        let relays = network.read_relays()?;
        let filters = [Filter::new().id(id)];
        let asked = relays.iter().map(|relay| network.fetch(&filters, std::slice::from_ref(relay), PATIENCE));
        let answers = futures_util::future::join_all(asked).await;
        let has = |answer: &Result<Vec<Event>, Failure>| answer.as_ref().is_ok_and(|events| !events.is_empty());
        Ok(relays.iter().zip(&answers).find(|(_, answer)| has(answer)).map(|(relay, _)| relay.clone()))
    }
}
