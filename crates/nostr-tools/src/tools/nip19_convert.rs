//! `nostr_nip19_convert`: keys, events and addresses in the forms that people pass around.

use crate::argument;
use crate::failure::Failure;
use crate::result::npub;
use crate::shape::{choice, record};
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::nips::nip01::Coordinate;
use nostr::nips::nip19::{FromBech32, Nip19, Nip19Coordinate, Nip19Event, Nip19Profile, ToBech32};
use nostr::prelude::{EventId, Keys, Kind, PublicKey, RelayUrl};

choice! {
    enum Target {
        Npub = "npub",
        Nsec = "nsec",
        Note = "note",
        Nprofile = "nprofile",
        Nevent = "nevent",
        Naddr = "naddr",
    }
}

record! {
    secret struct Input {
        /// The form to convert to
        target: Target,
        /// Key, event id or address (kind:pubkey:identifier), hex or NIP-19
        input: String,
        /// Convert a secret, if allowed (default false)
        allow_secret: Option<bool>,
        /// For nevent, naddr: the author
        author: Option<String>,
        /// For naddr: the identifier (d tag)
        identifier: Option<String>,
        /// For nevent, naddr: the kind
        kind: Option<u16>,
        /// Where it can be found
        relays: Option<Vec<String>>,
    }
}

record! {
    struct Output {
        /// What was converted; secrets are masked
        input: String,
        /// The form
        target: Target,
        /// The result
        encoded: String,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 58,
        name: "nostr_nip19_convert",
        title: "Convert an identifier",
        status: Status::Experimental,
        nips: &[19],
        summary: "Converts keys, event ids and addresses between hex and the forms of NIP-19.",
        effect: Effect::Calculates,
        example: r#"{"target":"npub","input":"3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let shown = turn.session.masked(&input.input)?;
        if shown != input.input || input.target == Target::Nsec {
            if input.allow_secret != Some(true) {
                return Err(Failure::denied("that would convert a secret key; say so with `allow_secret`").at("/input"));
            }
            turn.session.guard.admit_secret().map_err(|failure| failure.at("/allow_secret"))?;
        }
        let (target, encoded) = (input.target, encode(&input)?);
        Ok(Output { input: shown, target, encoded })
    }
}

fn encode(input: &Input) -> Result<String, Failure> {
    let relays = argument::relays(input.relays.as_deref().unwrap_or_default(), "/relays")?;
    let author = input.author.as_deref().map(|author| argument::public_key(author, "/author")).transpose()?;
    let kind = input.kind.map(Kind::from);
    match input.target {
        Target::Npub => Ok(npub(&key(&input.input)?)),
        Target::Nprofile => written(Nip19Profile::new(key(&input.input)?, relays).to_bech32()),
        Target::Nsec => {
            let keys = Keys::parse(input.input.trim());
            let keys = keys.map_err(|_| Failure::invalid("it is no secret key").at("/input"))?;
            written(keys.secret_key().to_bech32())
        }
        Target::Note => written(event(&input.input)?.event_id.to_bech32()),
        Target::Nevent => {
            let known = event(&input.input)?;
            let event = Nip19Event {
                event_id: known.event_id,
                author: author.or(known.author),
                kind: kind.or(known.kind),
                relays: if relays.is_empty() { known.relays } else { relays },
            };
            written(event.to_bech32())
        }
        Target::Naddr => written(address(input, author, kind, relays)?.to_bech32()),
    }
}

fn written<E: std::fmt::Display>(text: Result<String, E>) -> Result<String, Failure> {
    text.map_err(|error| Failure::invalid(error.to_string()).at("/input"))
}

/// A public key; that of a secret one too, which is allowed by now.
fn key(text: &str) -> Result<PublicKey, Failure> {
    match Nip19::from_bech32(text.trim()) {
        Ok(Nip19::Secret(secret)) => Ok(Keys::new(secret).public_key()),
        _ => argument::public_key(text, "/input"),
    }
}

fn event(text: &str) -> Result<Nip19Event, Failure> {
    match Nip19::from_bech32(argument::bare(text)) {
        Ok(Nip19::Event(event)) => Ok(event),
        _ => argument::event_id(text, "/input").map(|id: EventId| Nip19Event::new(id)),
    }
}

/// An address, in one piece or in parts: the author with the identifier beside it, or the identifier with the author.
fn address(
    input: &Input,
    author: Option<PublicKey>,
    kind: Option<Kind>,
    relays: Vec<RelayUrl>,
) -> Result<Nip19Coordinate, Failure> {
    let text = argument::bare(&input.input);
    if let Ok(Nip19::Coordinate(known)) = Nip19::from_bech32(text) {
        let relays = if relays.is_empty() { known.relays } else { relays };
        return Ok(Nip19Coordinate::new(known.coordinate, relays));
    }
    if let Ok(coordinate) = Coordinate::parse(text) {
        return Ok(Nip19Coordinate::new(coordinate, relays));
    }
    let kind = kind.ok_or_else(|| Failure::invalid("an address needs a kind").at("/kind"))?;
    let (author, identifier) = match (author, &input.identifier) {
        (Some(author), identifier) => (author, identifier.clone().unwrap_or_else(|| input.input.clone())),
        (None, Some(identifier)) => (argument::public_key(text, "/input")?, identifier.clone()),
        (None, None) => return Err(Failure::invalid("an address needs an author").at("/author")),
    };
    let coordinate = Coordinate { kind, public_key: author, identifier };
    coordinate.verify().map_err(|error| Failure::invalid(error.to_string()).at("/kind"))?;
    Ok(Nip19Coordinate::new(coordinate, relays))
}
