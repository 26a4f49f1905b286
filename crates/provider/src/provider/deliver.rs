//! Answers on their way out: signed or sealed, recorded, published.

use super::notes::Noted;
use super::{Cause, Provider, Ticket};
use crate::event::Event as Told;
use crate::job::close;
use nostr::prelude::{Event, EventId, UnsignedEvent};
use rialto_ledger::job::{Before, Money, Stage, Step};
use rialto_mcp::server::Service;
use rialto_relay::publication::Report;
use rialto_relay::seal;
use rialto_relay::sign::sign;
use rialto_relay::verdict::Verdict;
use rialto_relay::work;
use rialto_wire::dvmcp::answer::Writer;
use rialto_wire::failure::Failure;
use rialto_wire::service::{Way, Wire};
use rialto_wire::{manifest, size};
use std::sync::Arc;
use std::time::Duration;

/// No event is longer, whatever relays say: most take 64 KiB.
const MAX_EVENT: usize = 60 * 1024;

/// A sealed event is encrypted twice, and each time a third longer, and padded.
const MAX_SEALED: usize = 24 * 1024;

/// How long relays are waited for before work is done for those that want it.
const WORK_WAIT: Duration = Duration::from_secs(3);

/// When something that somebody waits for could not be noted, how long until it is tried again.
pub(super) const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// A request's end, until it is noted.
#[derive(Clone)]
pub(super) struct Conclusion {
    ticket: Ticket,
    answers: Vec<Event>,
    code: Option<&'static str>,
    /// The answers were sent although they could not be noted.
    is_given: bool,
}

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

    /// Whether a message with this text fits into an event. Encryption makes it a third longer.
    pub(super) fn fits(&self, way: Way, text: &str) -> bool {
        let limit = self.content_limit(way.sealed);
        if way == Way::MESSAGE { text.len() <= limit / 4 * 3 } else { size::quoted(text) <= limit }
    }

    /// An answer by message.
    pub(super) fn message(&self, ticket: &Ticket, text: String) -> UnsignedEvent {
        manifest::answer::write(&ticket.address, text, ticket.way.sealed, self.plan.keys.public_key(), self.now())
    }

    fn enclose(&self, ticket: &Ticket, mut event: UnsignedEvent) -> Option<Event> {
        let (keys, customer) = (&self.plan.keys, &ticket.address.customer);
        let enclosed = match ticket.way {
            Way { sealed: true, .. } => self.sealer.close(customer, event, self.now()),
            Way { wire: Wire::Manifest, .. } => self.sealer.hide(customer, &event.content).map(|hidden| {
                event.content = hidden;
                sign(keys, event)
            }),
            Way { wire: Wire::Dvmcp, .. } => Ok(sign(keys, event)),
        };
        // Never in the open instead.
        enclosed.map_err(|error| self.observer.warn(format!("an answer could not be sealed: {error}"))).ok()
    }

    /// Sends something that nobody needs to keep.
    pub(super) fn send(&self, ticket: &Ticket, event: UnsignedEvent) {
        if let Some(event) = self.enclose(ticket, event) {
            self.pool.publish(&event);
        }
    }

    /// Everything that is said to a request that failed.
    fn failure(&self, ticket: &Ticket, failure: &Failure) -> Vec<UnsignedEvent> {
        match ticket.way.wire {
            Wire::Dvmcp => self.writer(ticket).failure(&ticket.address, failure).to_vec(),
            Wire::Manifest => vec![self.message(ticket, manifest::answer::failed(failure))],
        }
    }

    pub(super) fn fail(&mut self, ticket: &Ticket, failure: &Failure) {
        let events = self.failure(ticket, &Self::refunded(ticket, failure));
        self.answer(ticket, events, Some(failure.code.as_str()));
    }

    /// A failure as it is sent.
    pub(super) fn enclosed_failure(&self, ticket: &Ticket, failure: &Failure) -> Vec<Event> {
        let events = self.failure(ticket, failure);
        events.into_iter().filter_map(|event| self.enclose(ticket, event)).collect()
    }

    /// The same, for requests that leave no trace.
    pub(super) fn fail_unrecorded(&mut self, ticket: &Ticket, failure: &Failure) {
        for event in self.failure(ticket, failure) {
            self.send(ticket, event);
        }
        self.tell(ticket, Some(failure.code.as_str()));
    }

    /// Notes the final answers to a request and what they mean for its money, then sends them.
    pub(super) fn answer(&mut self, ticket: &Ticket, events: Vec<UnsignedEvent>, code: Option<&'static str>) {
        let answers: Vec<Event> = events.into_iter().filter_map(|event| self.enclose(ticket, event)).collect();
        let mut ticket = ticket.clone();
        let closing = ticket.quote.as_ref().map(|quote| close(quote, code.is_none()));
        let mut step = self.step(&mut ticket, closing.as_ref().map_or(Stage::Done, |closing| closing.stage));
        step.answers = Some(answers.iter().map(Event::as_json).collect());
        if let (Some(closing), Some(quote)) = (closing, &mut ticket.quote) {
            quote.money = closing.money;
            step.credit = closing.credit;
            step.quote = Some(quote.clone());
        }
        self.conclude(step, Conclusion { ticket, answers, code, is_given: false });
    }

    pub(super) fn conclude(&mut self, mut step: Step, conclusion: Conclusion) {
        // All but the answers, which are long and are here already.
        let answers = step.answers.take();
        let again = step.clone();
        step.answers = answers;
        self.note(step, move |provider, noted| provider.concluded(conclusion, again, noted));
    }

    fn concluded(&mut self, mut conclusion: Conclusion, mut again: Step, noted: Noted) {
        match noted {
            // Another worker has answered.
            Noted::No(_) => self.leave(&conclusion.ticket.address.request, noted),
            Noted::Yes => self.give_answer(conclusion),
            Noted::Broken => {
                // Who has paid gets it when it is noted; others at once: better an answer that may be given again than none.
                if conclusion.ticket.quote.is_none() && !conclusion.is_given {
                    self.give_answer(conclusion.clone());
                    conclusion.is_given = true;
                }
                again.answers = Some(conclusion.answers.iter().map(Event::as_json).collect());
                // Noted as soon as that can be, lest a restart finds it running and answers something else.
                let causes = self.causes.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(NOTE_AGAIN).await;
                    let _ = causes.send(Cause::Again(Box::new((again, conclusion))));
                });
            }
        }
    }

    fn give_answer(&mut self, conclusion: Conclusion) {
        let Conclusion { ticket, answers, code, is_given } = conclusion;
        let id = ticket.address.request;
        let money = ticket.quote.as_ref().map(|quote| quote.money);
        // Until its money is taken nobody gets the answer, however often they ask for it.
        if money != Some(Money::Taking) {
            self.known.done(&id, self.now());
        }
        if !is_given {
            self.tell(&ticket, code);
        }
        match money {
            Some(Money::Taking) => self.move_money(ticket, answers),
            Some(Money::Returning) => {
                self.publish(id, answers.clone());
                self.move_money(ticket, answers);
            }
            _ => self.publish(id, answers),
        }
    }

    /// Publishes answers, and notes when enough relays have the last of them.
    pub(super) fn publish(&self, id: EventId, answers: Vec<Event>) {
        let mut published: Vec<_> = answers.iter().map(|event| self.pool.publish(event)).collect();
        let Some(last) = published.pop() else { return };
        let (causes, observer) = (self.causes.clone(), self.observer.clone());
        // The answers are kept only for the rare relay that wants work done.
        let keys = self.plan.keys.clone();
        tokio::spawn(async move {
            // A relay that is away may still come back; one that wants work is told apart by then.
            let report = match tokio::time::timeout(WORK_WAIT, last.settled()).await {
                Ok(report) => report,
                Err(_) if work::demanded(&last.report()).is_some() => last.report(),
                Err(_) => last.settled().await,
            };
            // What is on its way when we stop is left to whoever serves next: too few relays may have it.
            if report.verdicts.iter().any(|(_, verdict)| *verdict == Verdict::Stopped) {
                return;
            }
            if report.accepted > 0 {
                let _ = causes.send(Cause::Delivered(id));
            } else if let Some(bits) = work::demanded(&report).filter(|_| !answers.iter().any(seal::is_wrap)) {
                let mut worked = Vec::new();
                for answer in &answers {
                    worked.extend(work::done(&keys, answer, bits).await);
                }
                let _ = causes.send(Cause::Worked { id, answers: worked });
            } else {
                observer.warn(format!("no relay took the answer to {}: {}", id.to_hex(), said(&report)));
            }
        });
    }

    /// Enough relays have the answers. Of a job whose money still moves, that is noted when it has moved: the ledger asks only
    /// of jobs that are done whether their answers were sent.
    pub(super) fn delivered(&mut self, id: &EventId) {
        match self.settling.get_mut(id) {
            Some(settling) => settling.is_delivered = true,
            None => self.sent.push(id.to_bytes()),
        }
    }

    /// The same answers with work done: they take the place of the others.
    pub(super) fn worked(&mut self, id: EventId, answers: &[Event]) {
        if answers.is_empty() {
            return;
        }
        let mut step = Step::new(id.to_bytes(), Before::Stage(Stage::Done), Stage::Done, self.now().as_secs());
        step.fence = 1;
        step.answers = Some(answers.iter().map(Event::as_json).collect());
        let answers = answers.to_vec();
        // If it cannot be noted, the others are sent again after a restart, and refused again.
        self.note(step, move |provider, _| answers.iter().for_each(|answer| drop(provider.pool.publish(answer))));
    }

    fn tell(&self, ticket: &Ticket, code: Option<&'static str>) {
        let Ticket { address, way, came, what, .. } = ticket;
        let (customer, what, took) = (address.customer, what.clone(), came.elapsed());
        let paid = ticket.quote.as_ref().filter(|_| code.is_none()).map(|quote| quote.price);
        self.observer.tell(Told::Answered { customer, what, took, code, way: *way, paid });
    }
}

/// What each relay said, for the operator.
pub(super) fn said(report: &Report) -> String {
    let said = |(relay, verdict): &(Arc<str>, Verdict)| format!("{relay}: {verdict:?}");
    report.verdicts.iter().map(said).collect::<Vec<_>>().join("; ")
}
