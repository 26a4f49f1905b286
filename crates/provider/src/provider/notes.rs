//! Everything that must survive goes through here: noted, committed together with whatever else is noted meanwhile, and only
//! then followed by what it permits.

use super::{Provider, Ticket};
use crate::origin::Origin;
use nostr::prelude::EventId;
use rialto_ledger::job::{Before, New, Outcome, Refusal, Stage, Step};
use rialto_mcp::server::Service;
use std::sync::Arc;

/// What has become of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    Yes,
    No(Refusal),
    /// Nothing can be noted now.
    Broken,
}

/// What is done once a note is kept, or is not.
pub(super) type After<S> = Box<dyn FnOnce(&mut Provider<S>, Noted) + Send>;

impl<S: Service> Provider<S> {
    /// The step that moves a request from where it was noted last to `stage`. From now on it counts as being there.
    pub(super) fn step(&self, ticket: &mut Ticket, stage: Stage) -> Step {
        let before = match ticket.noted {
            Some(noted) => Before::Stage(noted),
            None => Before::Unknown(Box::new(New {
                customer: ticket.address.customer.to_bytes(),
                came: self.now().as_secs(),
                origin: Origin::new(&ticket.address, ticket.way, &ticket.relay, &ticket.what).text(),
                request: ticket.request.clone(),
            })),
        };
        let mut step = Step::new(ticket.address.request.to_bytes(), before, stage, self.now().as_secs());
        step.fence = ticket.fence;
        step.durable = ticket.quote.is_some();
        if ticket.noted.is_none() {
            // That of whoever was first.
            ticket.fence = 1;
        }
        ticket.noted = Some(stage);
        step
    }

    pub(super) fn note(&mut self, step: Step, after: impl FnOnce(&mut Self, Noted) + Send + 'static) {
        self.notes.push((step, Box::new(after)));
    }

    /// Commits what was noted, and does what it permits, until there is nothing more.
    pub(super) async fn flush(&mut self) {
        loop {
            let notes = std::mem::take(&mut self.notes);
            if notes.is_empty() {
                break;
            }
            let (steps, afters): (Vec<Step>, Vec<After<S>>) = notes.into_iter().unzip();
            let ledger = Arc::clone(&self.ledger);
            match ledger.commit(steps).await {
                Ok(outcomes) => {
                    for (after, outcome) in afters.into_iter().zip(outcomes) {
                        let noted = match outcome {
                            Outcome::Taken { .. } => Noted::Yes,
                            Outcome::Refused(refusal) => Noted::No(refusal),
                        };
                        after(self, noted);
                    }
                }
                Err(error) => {
                    self.observer.warn(format!("nothing is run and nobody is charged meanwhile: {error}"));
                    for after in afters {
                        after(self, Noted::Broken);
                    }
                }
            }
        }
        // After the steps: an answer may have been delivered whose job is done only now.
        let sent = std::mem::take(&mut self.sent);
        if !sent.is_empty()
            && let Err(error) = self.ledger.sent(sent).await
        {
            self.observer.warn(format!("{error}"));
        }
    }

    /// A request that another worker has, or had: it is none of ours.
    pub(super) fn leave(&mut self, id: &EventId, noted: Noted) {
        let now = self.now();
        match noted {
            Noted::No(Refusal::Known(Stage::Done)) => self.known.done(id, now),
            Noted::No(_) => self.known.opened(id, now),
            Noted::Yes | Noted::Broken => {}
        }
    }
}
