//! From a draft to an event that relays have: the one way by which every tool publishes.
//!
//! What replaces an earlier event goes through [`crate::replace`] instead, which reads before it writes.

use crate::argument;
use crate::failure::Failure;
pub(crate) use crate::network::Route;
use crate::network::{Author, Progress, Sent};
use crate::result::SendResult;
use crate::signer::Signer;
use crate::tool::Turn;
use nostr::prelude::{Event, Keys, Kind, RelayUrl, Tag, UnsignedEvent};
use rialto_relay::work;
use std::num::NonZeroU8;

/// What every tool that publishes can be told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    /// Bits of proof of work.
    pub(crate) pow: Option<u8>,
    /// Nowhere else but there.
    pub(crate) to_relays: Option<Vec<String>>,
}

impl Turn<'_> {
    /// Signs with the active key, and publishes where such an event usually goes.
    pub(crate) async fn publish(
        &self,
        kind: Kind,
        tags: Vec<Tag>,
        content: String,
        wishes: Wishes,
    ) -> Result<SendResult, Failure> {
        self.publish_along(kind, tags, content, wishes, Route::Usual).await
    }

    /// The same along another route.
    pub(crate) async fn publish_along(
        &self,
        kind: Kind,
        tags: Vec<Tag>,
        content: String,
        wishes: Wishes,
        route: Route<'_>,
    ) -> Result<SendResult, Failure> {
        let signer = self.session.keyring.signer().await?;
        let name = tags.iter().find(|tag| tag.kind() == "d").and_then(Tag::content).unwrap_or_default();
        let (who, now) = (signer.public_key(), self.session.clock.now());
        let time = self.session.network.versions.next(who, kind, name, now);
        let draft = UnsignedEvent::new(who, time, kind, tags, content);
        // Found out first: nobody should work, or be asked to sign, for what cannot be published.
        let relays = self.relays_for(&draft, &wishes, route, Author::Known).await?;
        let event = signer.sign(worked(draft.clone(), wishes.pow).await?).await?;
        let sent = self.deliver(&event, &relays, Some(&signer)).await?;
        let Some(bits) = sent.work else { return sent.result(&event) };
        // Every relay wants work, and nobody has the event yet.
        let event = signer.sign(worked(draft, Some(bits.get())).await?).await?;
        self.deliver(&event, &relays, Some(&signer)).await?.result(&event)
    }

    /// Publishes what somebody has signed already: us a moment ago, or anybody else. Needs no key.
    pub(crate) async fn publish_signed(
        &self,
        event: &Event,
        to_relays: Option<Vec<String>>,
        route: Route<'_>,
    ) -> Result<SendResult, Failure> {
        let draft = UnsignedEvent::from(event.clone());
        let relays = self.relays_for(&draft, &Wishes { pow: None, to_relays }, route, Author::Known).await?;
        // A relay that wants to know who brings the event is told, if it is our own; else that is nobody's business.
        let signer = self.session.keyring.signer().await.ok().filter(|signer| signer.public_key() == event.pubkey);
        self.deliver(event, &relays, signer.as_ref()).await?.result(event)
    }

    /// Signs with a key that is thrown away, and publishes over connections that carry nothing else: nothing links the
    /// event to the active key, not even to a relay that has both.
    pub(crate) async fn publish_anonymously(
        &self,
        kind: Kind,
        tags: Vec<Tag>,
        content: String,
        wishes: Wishes,
    ) -> Result<SendResult, Failure> {
        let keys = Keys::generate();
        let draft = UnsignedEvent::new(keys.public_key(), self.session.clock.now(), kind, tags, content);
        let relays = self.relays_for(&draft, &wishes, Route::Usual, Author::Nobody).await?;
        let event = Signer::Local(keys.clone()).sign(worked(draft, wishes.pow).await?).await?;
        let sent = self.session.network.publish_apart(&event, &relays, &keys, &Progress::of(self)).await?;
        sent.result(&event)
    }

    /// Where a draft goes, as far as the operator allows it.
    async fn relays_for(
        &self,
        draft: &UnsignedEvent,
        wishes: &Wishes,
        route: Route<'_>,
        author: Author,
    ) -> Result<Vec<RelayUrl>, Failure> {
        let chosen = argument::relays(wishes.to_relays.as_deref().unwrap_or_default(), "/to_relays")?;
        let session = self.session;
        let relays = if chosen.is_empty() { session.network.destinations(draft, route, author).await? } else { chosen };
        session.guard.admit_event(draft.kind, &relays)?;
        Ok(relays)
    }

    async fn deliver(&self, event: &Event, relays: &[RelayUrl], who: Option<&Signer>) -> Result<Sent, Failure> {
        self.session.network.send(event, relays, who, &Progress::of(self)).await
    }
}

/// Does the work that was asked for.
pub(crate) async fn worked(draft: UnsignedEvent, pow: Option<u8>) -> Result<UnsignedEvent, Failure> {
    let Some(bits) = pow.and_then(NonZeroU8::new) else { return Ok(draft) };
    if bits.get() > work::MAX_BITS {
        let words = format!("more than {} bits of work take too long here", work::MAX_BITS);
        return Err(Failure::invalid(words).at("/pow"));
    }
    work::mined(draft, bits).await.ok_or_else(|| Failure::internal("the proof of work could not be done"))
}
