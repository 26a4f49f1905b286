//! From a draft to an event that relays have: the one way by which every tool publishes.

use crate::argument;
use crate::failure::Failure;
use crate::result::SendResult;
use crate::tool::Turn;
use nostr::prelude::{Kind, Tag, UnsignedEvent};

/// What every tool that publishes can be told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// Bits of proof of work.
    pub(crate) pow: Option<u8>,
    pub(crate) to_relays: Option<Vec<String>>,
}

impl Turn<'_> {
    /// Signs with the active key, and publishes.
    pub(crate) async fn publish(
        &self,
        kind: Kind,
        tags: Vec<Tag>,
        content: String,
        wishes: Wishes,
    ) -> Result<SendResult, Failure> {
        let session = self.session;
        let relays = argument::relays(wishes.to_relays.as_deref().unwrap_or_default(), "/to_relays")?;
        session.guard.admit_event(kind, &relays)?;
        let signer = session.keyring.signer().await?;
        let draft = UnsignedEvent::new(signer.public_key(), session.clock.now(), kind, tags, content);
        let event = signer.sign(draft).await?;
        session.network.publish(&event, &relays, Some(&signer)).await
    }
}
