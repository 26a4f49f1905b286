//! Answers on their way out: signed or sealed, recorded, published.

use super::{Cause, Provider, Ticket};
use crate::event::Event as Told;
use nostr::prelude::{Event, EventId, UnsignedEvent};
use rialto_mcp::server::Service;
use rialto_relay::seal;
use rialto_relay::sign::sign;
use rialto_relay::verdict::Verdict;
use rialto_wire::dvmcp::answer::Writer;
use rialto_wire::dvmcp::failure::Failure;

/// No event is longer, whatever relays say: most take 64 KiB.
const MAX_EVENT: usize = 60 * 1024;

/// A sealed event is encrypted twice, and each time a third longer, and padded.
const MAX_SEALED: usize = 24 * 1024;

/// What an event has beside its content.
const AROUND: usize = 1536;

impl<S: Service> Provider<S> {
    pub(super) fn writer(&self, ticket: &Ticket) -> Writer {
        let relay = (!ticket.relay.is_empty()).then(|| ticket.relay.to_string());
        Writer { provider: self.plan.keys.public_key(), relay, now: self.now() }
    }

    /// How long a content may be, as a JSON string.
    pub(super) fn content_limit(&self, sealed: bool) -> usize {
        let relays = self.pool.message_limit().unwrap_or(MAX_EVENT).min(MAX_EVENT);
        let whole = if sealed { MAX_SEALED.min(relays * 2 / 5) } else { relays };
        whole.saturating_sub(AROUND).max(1024)
    }

    fn enclose(&self, ticket: &Ticket, event: UnsignedEvent) -> Option<Event> {
        if !ticket.sealed {
            return Some(sign(&self.plan.keys, event));
        }
        match seal::close(&self.plan.keys, &ticket.address.customer, event, self.now()) {
            Ok(wrap) => Some(wrap),
            // Never in the open instead.
            Err(error) => {
                self.observer.warn(format!("an answer could not be sealed: {error}"));
                None
            }
        }
    }

    /// Sends something that nobody needs to keep.
    pub(super) fn send(&self, ticket: &Ticket, event: UnsignedEvent) {
        if let Some(event) = self.enclose(ticket, event) {
            self.pool.publish(&event);
        }
    }

    /// Both answers to a request that failed.
    pub(super) fn fail(&mut self, ticket: &Ticket, failure: &Failure) {
        let events = self.writer(ticket).failure(&ticket.address, failure).to_vec();
        self.answer(ticket, events, Some(failure.code.as_str()));
    }

    /// The same, for requests that leave no trace.
    pub(super) fn fail_unrecorded(&mut self, ticket: &Ticket, failure: &Failure) {
        for event in self.writer(ticket).failure(&ticket.address, failure) {
            self.send(ticket, event);
        }
        self.tell(ticket, Some(failure.code.as_str()));
    }

    /// Records the final answers to a request, then sends them.
    pub(super) fn answer(&mut self, ticket: &Ticket, events: Vec<UnsignedEvent>, code: Option<&'static str>) {
        let id = ticket.address.request;
        let events: Vec<Event> = events.into_iter().filter_map(|event| self.enclose(ticket, event)).collect();
        if let Err(error) = self.record.finish(&id, &events, self.now()) {
            self.observer.warn(format!("cannot write the record: {error}"));
        }
        self.publish(id, &events);
        self.tell(ticket, code);
    }

    /// Publishes answers, and notes when enough relays have the last of them.
    pub(super) fn publish(&self, id: EventId, answers: &[Event]) {
        let Some(last) = answers.iter().map(|event| self.pool.publish(event)).last() else { return };
        let (causes, observer) = (self.causes.clone(), self.observer.clone());
        tokio::spawn(async move {
            let report = last.settled().await;
            if report.accepted > 0 {
                let _ = causes.send(Cause::Delivered(id));
                return;
            }
            let said = |(relay, verdict): &(std::sync::Arc<str>, Verdict)| format!("{relay}: {verdict:?}");
            let said: Vec<String> = report.verdicts.iter().map(said).collect();
            observer.warn(format!("no relay took the answer to {}: {}", id.to_hex(), said.join("; ")));
        });
    }

    fn tell(&self, ticket: &Ticket, code: Option<&'static str>) {
        let Ticket { address, sealed, came, what, .. } = ticket;
        let (customer, what, took) = (address.customer, what.clone(), came.elapsed());
        self.observer.tell(Told::Answered { customer, what, took, code, sealed: *sealed });
    }
}
