//! What is remembered of a remote signer (NIP-46), so that it need not be asked for permission at every start.

use super::meeting::Meeting;
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
    /// Hosts of relays that the operator has named, which may be inside the network that we are in. A signer cannot add to them.
    pub(super) trusted: Vec<String>,
}

impl Bond {
    /// Whether it is for this identity: the file may have been exchanged.
    pub(crate) fn is_for(&self, user: &PublicKey) -> bool {
        self.user == *user
    }

    /// Whether the signer may be met under these conditions.
    pub(crate) fn check(&self, meeting: &Meeting) -> Result<(), Failure> {
        meeting.admit(&self.relays).map(drop)
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
            "trusted": self.trusted,
        });
        Ok(text.to_string())
    }

    /// The bond in a file. The text is not part of any message.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let read = || {
            let value: Value = serde_json::from_str(text).ok()?;
            let key = |name: &str| PublicKey::from_hex(value.get(name)?.as_str()?).ok();
            let texts = |name: &str| {
                let all = value.get(name)?.as_array()?.iter();
                Some(all.filter_map(|text| text.as_str().map(ToOwned::to_owned)).collect::<Vec<String>>())
            };
            let relays: Vec<RelayUrl> =
                texts("relays")?.iter().filter_map(|relay| RelayUrl::parse(relay).ok()).collect();
            // What was kept by earlier versions was named by the operator.
            let named = || relays.iter().filter_map(|relay| relay.host()).map(|host| host.to_string()).collect();
            Some(Self {
                client: Keys::parse(value.get("client")?.as_str()?).ok()?,
                signer: key("signer")?,
                user: key("user")?,
                trusted: texts("trusted").unwrap_or_else(named),
                relays,
            })
        };
        read().ok_or_else(|| Failure::no_signer("what was kept of the signer cannot be read; connect to it again"))
    }
}
