//! `rialto nostr keys`: the identities of the Nostr tools. This is where secrets are given, so that no model sees them.

use std::io::{IsTerminal, Read};
use std::time::Duration;

use clap::{Args, Subcommand};
use nostr::nips::nip19::ToBech32;
use nostr::prelude::Timestamp;
use qrcode::QrCode;
use qrcode::render::unicode;
use rialto_nostr_tools::{
    Activate, Fate, Identity, Invitation, Keyring, Material, Passphrase, Place as SecretPlace, join, page,
};
use serde_json::{Value, json};

use super::failure;
use super::settings::{Place, Purpose, ask};
use crate::commands::wait_for;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::relays::RelayFlags;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto nostr keys                            Which keys there are
  rialto nostr keys add work                   Make a key
  rialto nostr keys add work --sealed          The same, sealed with a passphrase (NIP-49)
  rialto nostr keys add work --keyring         The same, kept in the keyring of the system
  rialto nostr keys import me                  Add a key that you have; it is asked for
  rialto nostr keys import me env:MY_NSEC      Leave the key in a variable, or with file:PATH in a file
  rialto nostr keys import friend npub1…       A key that can only be watched
  rialto nostr keys connect me --relay wss://relay.example
                                               Let a signer such as a phone keep the key (NIP-46)";

const LIST_EXAMPLES: &str = "\
Examples:
  rialto nostr keys list
  rialto nostr keys list --json";

const ADD_EXAMPLES: &str = "\
Examples:
  rialto nostr keys add work
  rialto nostr keys add work --keyring
  rialto nostr keys add work --sealed --passphrase-file ~/.passphrase";

const IMPORT_EXAMPLES: &str = "\
Examples:
  rialto nostr keys import me                  Asks for the key
  pass nostr/me | rialto nostr keys import me  Reads it from another program
  rialto nostr keys import me --keyring        Keeps it in the keyring of the system
  rialto nostr keys import me env:MY_NSEC
  rialto nostr keys import me keyring:npub1…   A key that the keyring of the system holds already
  rialto nostr keys import friend npub1…";

const CONNECT_EXAMPLES: &str = "\
Examples:
  rialto nostr keys connect me                 Asks for the signer's address, bunker://…
  rialto nostr keys connect me --relay wss://relay.example
                                               Shows an address that the signer can scan";

const USE_EXAMPLES: &str = "\
Examples:
  rialto nostr keys use work";

const RENAME_EXAMPLES: &str = "\
Examples:
  rialto nostr keys rename work office";

const REMOVE_EXAMPLES: &str = "\
Examples:
  rialto nostr keys remove old                 The secret is set aside, not deleted
  rialto nostr keys remove old --erase";

const SHOW_EXAMPLES: &str = "\
Examples:
  rialto nostr keys show work
  rialto nostr keys show work --secret         Also the secret key; beware who is looking";

/// How long a signer may take to join us: somebody has to find their phone first.
const JOIN: Duration = Duration::from_secs(300);

/// Keep the keys that the Nostr tools sign with
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List keys, without their secrets
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Make a key
    #[command(after_help = ADD_EXAMPLES)]
    Add {
        /// The name to keep it under
        #[arg(value_name = "LABEL")]
        label: String,
        #[command(flatten)]
        keep: Keep,
        #[command(flatten)]
        use_it: UseIt,
    },
    /// Add a key that you have
    #[command(after_help = IMPORT_EXAMPLES)]
    Import {
        /// The name to keep it under
        #[arg(value_name = "LABEL")]
        label: String,
        /// npub1…, ncryptsec1…, env:NAME, file:PATH or keyring:npub1…; a secret itself is asked for, or read from standard input
        #[arg(value_name = "KEY")]
        key: Option<String>,
        #[command(flatten)]
        keep: Keep,
        #[command(flatten)]
        use_it: UseIt,
    },
    /// Let a remote signer keep the key (NIP-46)
    #[command(after_help = CONNECT_EXAMPLES)]
    Connect {
        /// The name to keep it under
        #[arg(value_name = "LABEL")]
        label: String,
        #[command(flatten)]
        relays: RelayFlags,
        #[command(flatten)]
        use_it: UseIt,
    },
    /// Choose the key that the tools act as
    #[command(after_help = USE_EXAMPLES)]
    Use {
        /// The label of the key
        #[arg(value_name = "LABEL")]
        label: String,
    },
    /// Give a key another label
    #[command(after_help = RENAME_EXAMPLES)]
    Rename {
        /// The label as it is
        #[arg(value_name = "FROM")]
        from: String,
        /// The new label
        #[arg(value_name = "TO")]
        to: String,
    },
    /// Forget a key
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove {
        /// The label of the key
        #[arg(value_name = "LABEL")]
        label: String,
        /// Delete the secret, instead of leaving it in the keyring of the system or in the folder `secrets/removed`
        #[arg(long)]
        erase: bool,
    },
    /// Show a key
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// The label of the key
        #[arg(value_name = "LABEL")]
        label: String,
        /// Show the secret key too
        #[arg(long)]
        secret: bool,
    },
}

/// How a secret is kept, if not in a file as it is.
#[derive(Debug, Clone, Copy, Args)]
struct Keep {
    /// Seal the secret with a passphrase; it is asked for if it is not given
    #[arg(long)]
    sealed: bool,
    /// Keep the secret in the keyring of the system: the Secret Service, or the keychain of a Mac
    #[arg(long, conflicts_with = "sealed")]
    keyring: bool,
}

/// Whether a new key is acted as.
#[derive(Debug, Clone, Copy, Args)]
struct UseIt {
    /// Do not act as this key from now on
    #[arg(long)]
    no_use: bool,
}

impl UseIt {
    fn activate(self) -> Activate {
        Activate::from(!self.no_use)
    }
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let place = &arguments.place;
    let ring = || place.keyring(environment);
    let told = |error: rialto_nostr_tools::Failure| failure(&error);
    match &arguments.action {
        None | Some(Action::List) => list(&ring()?, talk),
        Some(Action::Add { label, keep, use_it }) => {
            let ring = place.keyring_with(environment, sealing(place, keep.sealed, environment)?)?;
            let new = New { label, keep: *keep, activate: use_it.activate() };
            wait_for(new.add(&ring, Material::generate(), talk))
        }
        Some(Action::Import { label, key, keep, use_it }) => {
            let new = New { label, keep: *keep, activate: use_it.activate() };
            wait_for(import(new, place, key.as_deref(), environment, talk))
        }
        Some(Action::Connect { label, relays, use_it }) => {
            let chosen = relays.chosen(environment)?;
            let ring = ring()?;
            wait_for(async {
                let remote = if chosen.is_empty() {
                    let address = ask_or_read("Address of the signer (bunker://…): ")?;
                    attended(join(address.trim()), talk).await
                } else {
                    attended(invite(&chosen, talk).await?.accept(JOIN), talk).await
                };
                let material = Material::Remote(Box::new(remote.map_err(told)?));
                let identity = ring.add(label, &material, now(), use_it.activate()).map_err(told)?;
                report(&identity, "tied to its signer", talk)
            })
        }
        Some(Action::Use { label }) => report(&ring()?.activate(label).map_err(told)?, "in use", talk),
        Some(Action::Rename { from, to }) => report(&ring()?.rename(Some(from), to).map_err(told)?, "renamed", talk),
        Some(Action::Remove { label, erase }) => {
            let fate = if *erase { Fate::Erase } else { Fate::SetAside };
            wait_for(async {
                let Some(identity) = ring()?.remove(label, fate).await.map_err(told)? else {
                    return Err(Failure::usage(format!("there is no key `{label}`")).hint("rialto nostr keys"));
                };
                if identity.secret == SecretPlace::System && fate == Fate::SetAside {
                    talk.info("the secret stays in the keyring of the system");
                }
                report(&identity, "forgotten", talk)
            })
        }
        Some(Action::Show { label, secret }) => wait_for(show(place, label, *secret, environment, talk)),
    }
}

fn now() -> i64 {
    i64::try_from(Timestamp::now().as_secs()).unwrap_or(i64::MAX)
}

/// What new secrets are sealed with: what was given, else what is asked for, if sealing was.
fn sealing(place: &Place, is_wanted: bool, environment: &Environment) -> Result<Passphrase, Failure> {
    if is_wanted { place.passphrase_or_ask(environment, Purpose::Seal) } else { place.passphrase(environment) }
}

/// An identity that is to be added.
struct New<'a> {
    label: &'a str,
    keep: Keep,
    activate: Activate,
}

impl New<'_> {
    async fn add(&self, ring: &Keyring, material: Material, talk: &Talk) -> Outcome {
        let added = match &material {
            Material::Secret(keys) | Material::Sealed { keys, .. } if self.keep.keyring => {
                ring.add_to_system(self.label, keys, now(), self.activate).await
            }
            _ if self.keep.keyring => {
                return Err(Failure::usage("only a secret key itself can be put into the keyring of the system"));
            }
            _ => ring.add(self.label, &material, now(), self.activate),
        };
        report(&added.map_err(|error| failure(&error))?, "kept", talk)
    }
}

async fn import(new: New<'_>, place: &Place, key: Option<&str>, environment: &Environment, talk: &Talk) -> Outcome {
    let text = match key {
        Some(key) if key.trim().to_lowercase().starts_with("nsec1") => {
            return Err(Failure::usage("a secret on the command line can be seen by others on this machine")
                .code("secret_exposed")
                .hint("leave it out: it is then asked for, or read from standard input"));
        }
        Some(key) => key.to_owned(),
        None => ask_or_read("Key (nsec1… or ncryptsec1…): ")?,
    };
    let passphrase = if text.trim().starts_with("ncryptsec1") {
        place.passphrase_or_ask(environment, Purpose::Open)?
    } else {
        sealing(place, new.keep.sealed, environment)?
    };
    let material = match text.trim().strip_prefix("keyring:") {
        Some(key) => Material::in_system(key).await,
        None => Material::parse(&text, &passphrase),
    };
    let ring = place.keyring_with(environment, passphrase)?;
    new.add(&ring, material.map_err(|error| failure(&error))?, talk).await
}

/// A secret from the terminal, or from a program before us.
fn ask_or_read(prompt: &str) -> Result<String, Failure> {
    /// Longer than any key or address.
    const MOST: u64 = 16 * 1024;
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return ask(prompt);
    }
    let mut text = String::new();
    let read = stdin.lock().take(MOST).read_to_string(&mut text);
    read.map_err(|error| Failure::unexpected("standard input cannot be read").because(&error))?;
    if text.trim().is_empty() {
        return Err(Failure::usage("nothing came on standard input"));
    }
    Ok(text.trim().to_owned())
}

/// Shows where a signer can meet us.
async fn invite(relays: &[nostr::prelude::RelayUrl], talk: &Talk) -> Result<Invitation, Failure> {
    let invitation = Invitation::new(relays).map_err(|error| failure(&error))?;
    invitation.listening().await.map_err(|error| failure(&error))?;
    match talk.format {
        Format::Json => output::json(&json!({ "address": invitation.address() }))?,
        Format::Text => {
            if let Ok(code) = QrCode::new(invitation.address()) {
                talk.info(&code.render::<unicode::Dense1x2>().quiet_zone(true).build());
            }
            talk.info("scan this with your signer, or give it this address:");
            output::text(&format!("{}\n", invitation.address()))?;
            talk.info("waiting for the signer …");
        }
    }
    Ok(invitation)
}

/// Does something, and tells of pages that the signer wants its owner to open meanwhile.
async fn attended<T>(work: impl Future<Output = T>, talk: &Talk) -> T {
    let (work, mut pages) = page::watched(work);
    tokio::pin!(work);
    loop {
        tokio::select! {
            outcome = &mut work => return outcome,
            Some(page) = pages.recv() => talk.info(&page::words(&page)),
        }
    }
}

fn about(identity: &Identity) -> Value {
    json!({
        "label": identity.label,
        "npub": identity.public_key.to_bech32().unwrap_or_default(),
        "pubkey": identity.public_key.to_hex(),
        "created_at": identity.created_at,
        "secret": identity.secret.words(),
    })
}

fn report(identity: &Identity, what: &str, talk: &Talk) -> Outcome {
    match talk.format {
        Format::Json => output::json(&about(identity)),
        Format::Text => {
            let npub = identity.public_key.to_bech32().unwrap_or_default();
            talk.info(&format!("{}: {what} ({})", identity.label, identity.secret.words()));
            output::text(&format!("{npub}\n"))
        }
    }
}

fn list(ring: &Keyring, talk: &Talk) -> Outcome {
    let (identities, active) = ring.list().map_err(|error| failure(&error))?;
    let is_active = |identity: &Identity| Some(&identity.label) == active.as_ref();
    if talk.format == Format::Json {
        let all: Vec<Value> = identities
            .iter()
            .map(|identity| {
                let mut about = about(identity);
                about["active"] = is_active(identity).into();
                about
            })
            .collect();
        return output::json(&all);
    }
    if identities.is_empty() {
        talk.info("there are no keys yet; make one with: rialto nostr keys add LABEL");
        return Ok(());
    }
    let mut rows: Vec<Vec<String>> = vec![["", "LABEL", "SECRET", "KEY"].iter().map(ToString::to_string).collect()];
    for identity in &identities {
        let mark = if is_active(identity) { "*" } else { "" };
        let npub = identity.public_key.to_bech32().unwrap_or_default();
        rows.push(vec![mark.to_owned(), identity.label.clone(), identity.secret.words(), npub]);
    }
    output::text(&output::table(&rows))
}

async fn show(place: &Place, label: &str, secret: bool, environment: &Environment, talk: &Talk) -> Outcome {
    let ring = place.keyring(environment)?;
    let identity = ring.find(label).map_err(|error| failure(&error))?;
    let mut about = about(&identity);
    if secret {
        let is_locked = identity.secret == SecretPlace::Sealed && !ring.passphrase().is_set();
        let ring = match is_locked {
            true => place.keyring_with(environment, place.passphrase_or_ask(environment, Purpose::Open)?)?,
            false => ring,
        };
        let keys = ring.keys_of(&identity).await.map_err(|error| failure(&error))?;
        about["nsec"] = keys.secret_key().to_bech32().unwrap_or_default().into();
    }
    if talk.format == Format::Json {
        return output::json(&about);
    }
    let members = ["label", "npub", "pubkey", "secret", "nsec"];
    let rows: Vec<Vec<String>> = members
        .iter()
        .filter_map(|name| Some(vec![(*name).to_owned(), about.get(*name)?.as_str()?.to_owned()]))
        .collect();
    output::text(&output::table(&rows))
}
