//! What the operator allows.

use crate::failure::Failure;
use crate::tool::About;
use nostr::prelude::{Kind, RelayUrl};

/// Limits on what tools may do.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Nothing may be changed or published.
    pub is_read_only: bool,
    /// A model may see and give secret keys.
    pub allows_secrets: bool,
}

impl Guard {
    /// Whether a tool is offered at all.
    pub fn offers(&self, about: &About) -> bool {
        !self.is_read_only || about.effect.is_reading()
    }

    /// Whether an event of this kind may be published to these relays.
    pub(crate) fn admit_event(&self, _kind: Kind, _relays: &[RelayUrl]) -> Result<(), Failure> {
        if self.is_read_only {
            return Err(Failure::denied("this server is read-only"));
        }
        Ok(())
    }

    /// Whether a secret may pass through the model.
    pub(crate) fn admit_secret(&self) -> Result<(), Failure> {
        if self.allows_secrets {
            return Ok(());
        }
        Err(Failure::denied(
            "secret keys do not pass through this server; its operator can allow it with --allow-secrets",
        ))
    }
}
