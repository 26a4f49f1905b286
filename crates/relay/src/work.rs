//! Proof of work (NIP-13), for relays that take nothing without it.
//!
//! Working on an event changes its id, so it is only done while no relay has it.

use crate::publication::Report;
use crate::sign::sign;
use crate::verdict::Verdict;
use nostr::nips::nip13::{Nip13Tag, SingleThreadPow};
use nostr::prelude::{Event, Keys, Tag, UnsignedEvent};
use std::num::NonZeroU8;
use tokio::sync::Semaphore;

/// More would take minutes.
pub const MAX_BITS: u8 = 20;

/// What a relay that says nothing precise is given.
const USUAL_BITS: u8 = 16;

static ONE_AT_A_TIME: Semaphore = Semaphore::const_new(1);

/// How many bits would get the event to a relay, if it is with none and work that is worth doing would help.
pub fn demanded(report: &Report) -> Option<NonZeroU8> {
    if report.accepted > 0 {
        return None;
    }
    let bits = |verdict: &Verdict| match verdict {
        Verdict::Work { bits, .. } => Some(bits.unwrap_or(USUAL_BITS)),
        _ => None,
    };
    let least = report.verdicts.iter().filter_map(|(_, verdict)| bits(verdict)).min()?;
    NonZeroU8::new(least).filter(|bits| bits.get() <= MAX_BITS)
}

/// Whether work was done for an event.
pub fn is_in(event: &Event) -> bool {
    event.tags.iter().any(|tag| Nip13Tag::try_from(tag).is_ok())
}

/// The event with the work done and a new signature; `None` if it cannot be done. Takes up to seconds, on another thread.
pub async fn done(keys: &Keys, event: &Event, bits: NonZeroU8) -> Option<Event> {
    let Event { pubkey, created_at, kind, tags, content, .. } = event.clone();
    let mined = mined(UnsignedEvent::new(pubkey, created_at, kind, tags, content), bits).await?;
    Some(sign(keys, mined))
}

/// The same for an event that is not signed yet.
pub async fn mined(mut unsigned: UnsignedEvent, bits: NonZeroU8) -> Option<UnsignedEvent> {
    unsigned.tags.retain(|tag: &Tag| Nip13Tag::try_from(tag).is_err());
    unsigned.id = None;
    // A relay that wants work for every answer must not have all processors to itself.
    let _turn = ONE_AT_A_TIME.acquire().await.ok()?;
    tokio::task::spawn_blocking(move || unsigned.mine(&SingleThreadPow, bits)).await.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::{MAX_BITS, demanded, done};
    use crate::publication::Report;
    use crate::sign::sign;
    use crate::verdict::Verdict;
    use nostr::prelude::{Keys, Kind, Timestamp, UnsignedEvent};
    use std::num::NonZeroU8;

    #[test]
    fn work_is_done_only_if_it_helps_and_no_relay_has_the_event() {
        let work = |bits| Verdict::Work { bits, message: "pow: more".into() };
        let report = |accepted, verdicts: &[Verdict]| Report {
            accepted,
            verdicts: verdicts.iter().map(|verdict| ("ws://a".into(), verdict.clone())).collect(),
            open: 0,
        };
        assert_eq!(demanded(&report(0, &[work(Some(18)), work(Some(9))])), NonZeroU8::new(9));
        assert_eq!(demanded(&report(0, &[work(None)])), NonZeroU8::new(16));
        assert_eq!(demanded(&report(1, &[Verdict::Accepted, work(Some(9))])), None);
        assert_eq!(demanded(&report(0, &[work(Some(MAX_BITS + 1))])), None);
        assert_eq!(demanded(&report(0, &[Verdict::Refused("no".into())])), None);
    }

    #[tokio::test]
    async fn the_work_shows_in_the_id() {
        let keys = Keys::generate();
        let event = sign(&keys, UnsignedEvent::new(keys.public_key(), Timestamp::from(1), Kind::TextNote, [], "x"));
        let worked = done(&keys, &event, NonZeroU8::new(8).unwrap()).await.unwrap();
        worked.verify().unwrap();
        assert!(worked.check_pow(8));
        assert_eq!(worked.content, event.content);
    }
}
