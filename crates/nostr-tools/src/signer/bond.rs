//! What is remembered of a remote signer (NIP-46), so that it need not be asked for permission at every start.

use crate::failure::Failure;
use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Keys, PublicKey, RelayUrl};
use serde_json::{Value, json};

/// The tie between us and a signer. Our half of it is a secret: with it, anybody could have things signed. So it can be
/// neither printed nor written but by [`Bond::to_text`].
#[derive(Clone)]
pub(crate) struct Bond {
    /// Who we are to the signer.
    pub(super) client: Keys,
    pub(super) signer: PublicKey,
    pub(super) relays: Vec<RelayUrl>,
    /// Whom it signs for.
    pub(super) user: PublicKey,
}

impl Bond {
    /// Whether it is for this identity: the file may have been exchanged.
    pub(crate) fn is_for(&self, user: &PublicKey) -> bool {
        self.user == *user
    }

    /// The text for the file.
    pub(crate) fn to_text(&self) -> Result<String, Failure> {
        let client = self.client.secret_key().to_bech32().map_err(|error| Failure::internal(error.to_string()))?;
        let relays: Vec<String> = self.relays.iter().map(ToString::to_string).collect();
        let text = json!({
            "client": client,
            "signer": self.signer.to_hex(),
            "relays": relays,
            "user": self.user.to_hex(),
        });
        Ok(text.to_string())
    }

    /// The bond in a file. The text is not part of any message.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let read = || {
            let value: Value = serde_json::from_str(text).ok()?;
            let key = |name: &str| PublicKey::from_hex(value.get(name)?.as_str()?).ok();
            let relays = value.get("relays")?.as_array()?.iter();
            Some(Self {
                client: Keys::parse(value.get("client")?.as_str()?).ok()?,
                signer: key("signer")?,
                relays: relays.filter_map(|relay| RelayUrl::parse(relay.as_str()?).ok()).collect(),
                user: key("user")?,
            })
        };
        read().ok_or_else(|| Failure::no_signer("what was kept of the signer cannot be read; connect to it again"))
    }
}
