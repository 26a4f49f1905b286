//! `nostr_keys_import`: a key that somebody already has.

use crate::failure::Failure;
use crate::keyring::{Activate, Material};
use crate::result::KeyEntry;
use crate::shape::record;
use crate::signer::join_within;
use crate::tool::{self, About, Effect, Status, Turn};

record! {
    secret struct Input {
        /// Its name
        label: String,
        /// npub1… or ncryptsec1…; if allowed nsec1…, bunker://…, env:NAME, file:PATH
        key_material: String,
        /// Act as it from now on (default true)
        make_active: Option<bool>,
        /// Keep the secret too (default true)
        persist_secret: Option<bool>,
    }
}

pub(crate) struct Tool;

impl tool::Tool for Tool {
    const ABOUT: About = About {
        place: 2,
        name: "nostr_keys_import",
        title: "Add a key",
        status: Status::Stable,
        nips: &[],
        summary: "Keeps a key under a label: npub to watch, ncryptsec to sign. Raw secrets are the operator's to give.",
        effect: Effect::ChangesHere,
        example: r#"{"label":"fiatjaf","key_material":"npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6","make_active":false}"#,
    };

    type Input = Input;
    type Output = KeyEntry;

    async fn run(input: Input, turn: &Turn<'_>) -> Result<KeyEntry, Failure> {
        let session = turn.session;
        let pointer = "/key_material";
        if Material::is_secret(&input.key_material) {
            session.guard.admit_secret().map_err(|failure| failure.at(pointer))?;
        }
        let parsed = if input.key_material.trim().starts_with("bunker://") {
            join_within(&input.key_material, session.meeting()).await.map(|remote| Material::Remote(Box::new(remote)))
        } else {
            let passphrase = session.keyring.passphrase().clone();
            // Opening a sealed key is slow on purpose.
            let parsed = tokio::task::spawn_blocking(move || Material::parse(&input.key_material, &passphrase)).await;
            parsed.map_err(|error| Failure::internal(error.to_string()))?
        };
        let mut material = parsed.map_err(|failure| failure.at(pointer))?;
        if input.persist_secret == Some(false) {
            material = Material::Watched(material.public_key());
        }
        let activate = Activate::from(input.make_active.unwrap_or(true));
        let identity = session.keyring.keep(&input.label, &material, session.seconds(), activate).await?;
        Ok(KeyEntry::from(&identity))
    }
}
