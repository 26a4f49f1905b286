//! `nostr_nip19_analyze`: what an identifier stands for.

use crate::argument;
use crate::failure::Failure;
use crate::shape::{choice, record};
use crate::tool::{self, About, Effect, Status, Turn};
use nostr::nips::nip19::{FromBech32, Nip19};
use nostr::prelude::{Keys, PublicKey, RelayUrl};

choice! {
    enum InputType {
        Npub = "npub",
        Nsec = "nsec",
        Note = "note",
        Nprofile = "nprofile",
        Nevent = "nevent",
        Naddr = "naddr",
        Hex = "hex",
    }
}

record! {
    secret struct Input {
        /// NIP-19, nostr: or hex
        input: String,
        /// Look into a secret, if allowed (default false)
        allow_secret: Option<bool>,
    }
}

record! {
    struct Data {
        /// Whether it is a secret key
        is_secret: bool,
        /// The public key
        pubkey_hex: Option<String>,
        /// The event id
        event_id_hex: Option<String>,
        /// The author of the event
        author_hex: Option<String>,
        /// The kind of the event
        kind: Option<u16>,
        /// The identifier (d tag)
        identifier: Option<String>,
        /// Where it can be found
        relays: Option<Vec<String>>,
    }
}

record! {
    struct Output {
        /// What was analysed; secrets are masked
        input: String,
        /// What it is
        input_type: InputType,
        /// What it stands for
        data: Data,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 59,
        name: "nostr_nip19_analyze",
        title: "Explain an identifier",
        status: Status::Experimental,
        nips: &[19],
        summary: "Decodes npub, note, nprofile, nevent, naddr or hex. Secrets are not repeated.",
        effect: Effect::Calculates,
        example: r#"{"input":"npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"}"#,
    };

    type Input = Input;
    type Output = Output;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<Output, Failure> {
        let session = turn.session;
        let shown = session.masked(&input.input)?;
        if input.allow_secret == Some(true) {
            session.guard.admit_secret().map_err(|failure| failure.at("/allow_secret"))?;
        }
        let mut data = Data {
            is_secret: shown != input.input,
            pubkey_hex: None,
            event_id_hex: None,
            author_hex: None,
            kind: None,
            identifier: None,
            relays: None,
        };
        let text = argument::bare(&input.input);
        let input_type = match Nip19::from_bech32(text) {
            Ok(Nip19::Secret(secret)) => {
                data.is_secret = true;
                let may_see = input.allow_secret == Some(true);
                data.pubkey_hex = may_see.then(|| Keys::new(secret).public_key().to_hex());
                InputType::Nsec
            }
            Ok(Nip19::Pubkey(key)) => {
                data.pubkey_hex = Some(key.to_hex());
                InputType::Npub
            }
            Ok(Nip19::Profile(profile)) => {
                data.pubkey_hex = Some(profile.public_key.to_hex());
                data.relays = Some(names(&profile.relays));
                InputType::Nprofile
            }
            Ok(Nip19::EventId(id)) => {
                data.event_id_hex = Some(id.to_hex());
                InputType::Note
            }
            Ok(Nip19::Event(event)) => {
                data.event_id_hex = Some(event.event_id.to_hex());
                data.author_hex = event.author.map(|author| author.to_hex());
                data.kind = event.kind.map(|kind| kind.as_u16());
                data.relays = Some(names(&event.relays));
                InputType::Nevent
            }
            Ok(Nip19::Coordinate(address)) => {
                data.pubkey_hex = Some(address.coordinate.public_key.to_hex());
                data.kind = Some(address.coordinate.kind.as_u16());
                data.identifier = Some(address.coordinate.identifier.clone());
                data.relays = Some(names(&address.relays));
                InputType::Naddr
            }
            Ok(Nip19::EncryptedSecret(_)) => {
                return Err(
                    Failure::invalid("it is a sealed key, which says nothing without its passphrase").at("/input")
                );
            }
            Err(_) if text.len() == 64 && text.chars().all(|letter| letter.is_ascii_hexdigit()) => {
                // It can be a key or an id; what is no key is at least an id.
                let hex = text.to_lowercase();
                let is_key = PublicKey::from_hex(&hex).is_ok_and(|key| key.xonly().is_ok());
                data.pubkey_hex = (is_key && !data.is_secret).then(|| hex.clone());
                data.event_id_hex = (!is_key && !data.is_secret).then_some(hex);
                InputType::Hex
            }
            Err(_) => {
                let words =
                    "it is none of npub1…, note1…, nprofile1…, nevent1…, naddr1…, nsec1… or 64 hexadecimal digits";
                return Err(Failure::invalid(words).at("/input"));
            }
        };
        Ok(Output { input: shown, input_type, data })
    }
}

fn names(relays: &[RelayUrl]) -> Vec<String> {
    relays.iter().map(ToString::to_string).collect()
}
