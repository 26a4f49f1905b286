//! What an earlier process, or another worker, has left.

use super::{Job, Provider, Ticket};
use crate::job::{Found, Recovery, State, recover};
use crate::origin::Origin;
use nostr::prelude::{Event, EventId, UnsignedEvent};
use rialto_ledger::job::{Job as Stored, Money, Stage};
use rialto_mcp::server::Service;
use rialto_payment::secret::Preimage;
use rialto_wire::failure::{Code, Failure};
use rialto_wire::request::{Body, Reading, Request};
use rialto_wire::service::Wire;
use rialto_wire::{dvmcp, manifest};
use tokio::time::Instant;

/// How often a tool that may be called again is.
const MAX_ATTEMPTS: u32 = 3;

impl<S: Service> Provider<S> {
    /// Sees to what was left. What is to be run comes back, for when it is known what there is to run.
    pub(super) fn recover(&mut self, found: Vec<Stored>) -> Vec<EventId> {
        let mut queued = Vec::new();
        for stored in found {
            let Some((ticket, request)) = self.read(&stored) else {
                self.observer.warn("the ledger holds a job that this version cannot read");
                continue;
            };
            let id = ticket.address.request;
            // Ours already: it only took long.
            let ours = self.jobs.get_mut(&id).map(|job| &mut job.ticket);
            if let Some(ours) = ours.or_else(|| self.settling.get_mut(&id).map(|settling| &mut settling.ticket)) {
                ours.fence = stored.fence;
                continue;
            }
            let is_repeatable = request.as_ref().is_some_and(|request| match &request.body {
                Body::Execute(execution) => self.plan.idempotent.contains(&execution.name),
                _ => false,
            });
            let found = Found {
                stage: stored.stage,
                money: stored.quote.as_ref().map(|quote| quote.money),
                repeatable: is_repeatable && stored.attempts < MAX_ATTEMPTS,
            };
            if stored.stage != Stage::Done {
                self.known.opened(&id, self.now());
            }
            self.go_on(found, &stored, ticket, request, &mut queued);
        }
        queued
    }

    fn go_on(
        &mut self,
        found: Found,
        stored: &Stored,
        mut ticket: Ticket,
        request: Option<Request>,
        queued: &mut Vec<EventId>,
    ) {
        let id = ticket.address.request;
        let recovery = recover(found);
        let answers = || stored.answers.iter().filter_map(|text| Event::from_json(text).ok()).collect();
        let state = match recovery {
            Recovery::Send => return self.publish(id, answers()),
            Recovery::Take => return self.move_money(ticket, answers()),
            Recovery::Return => {
                self.publish(id, answers());
                return self.move_money(ticket, answers());
            }
            Recovery::Unknown => {
                let words = "the provider stopped during the call; nobody knows what it did";
                return self.fail(&ticket, &Failure::new(Code::OutcomeUnknown, words));
            }
            Recovery::Ask => State::Asking,
            Recovery::Watch => State::Quoted,
            Recovery::Receive => State::Receiving,
            Recovery::Queue | Recovery::Again => State::Waiting,
        };
        let Some(Request { body, progress, parts, .. }) = request else {
            return self.fail(&ticket, &Failure::new(Code::InternalError, "the request was lost"));
        };
        if recovery == Recovery::Ask
            && let Some(quote) = ticket.quote.as_mut().filter(|quote| quote.preimage.is_some())
            && let Ok(preimage) = Preimage::generate()
        {
            // Whether the wallet has made an invoice for the old hash or not: nobody has seen it, and nobody will.
            (quote.hash, quote.preimage) = (Some(preimage.hash()), Some(preimage));
        }
        let job = Job {
            ticket,
            body: Some(body),
            progress,
            parts,
            state,
            running: None,
            last_progress: None,
            token: None,
            free_use: None,
            payment: None,
        };
        self.jobs.insert(id, job);
        match recovery {
            Recovery::Ask => self.ask_wallet(&id),
            Recovery::Watch => self.charge(&id),
            Recovery::Receive => self.change_token(&id),
            _ => queued.push(id),
        }
    }

    /// Puts what is to be run in the queue, if it can still be: the servers may offer something else by now.
    pub(super) fn resume(&mut self, queued: Vec<EventId>) {
        for id in queued {
            let Some(job) = self.jobs.get(&id) else { continue };
            let admitted = job.body.as_ref().map_or(Ok(()), |body| self.admit(body, job.ticket.way.wire));
            match admitted {
                Ok(()) => self.queue.push_back(id),
                Err(failure) => {
                    if let Some(job) = self.jobs.remove(&id) {
                        self.fail(&job.ticket, &failure);
                    }
                }
            }
        }
        self.fill_places();
    }

    /// A job as it was kept.
    fn read(&self, stored: &Stored) -> Option<(Ticket, Option<Request>)> {
        let origin = Origin::read(&stored.origin)?;
        let way = origin.way();
        let ticket = Ticket {
            address: origin.address(stored),
            relay: origin.relay.as_str().into(),
            way,
            came: Instant::now(),
            what: origin.what.clone(),
            expires: None,
            noted: Some(stored.stage),
            fence: stored.fence,
            quote: stored.quote.clone(),
            request: stored.request.clone(),
        };
        let event = stored.request.as_ref().and_then(|text| UnsignedEvent::from_json(text).ok());
        let reading = event.map(|event| {
            let me = self.plan.keys.public_key();
            match way.wire {
                Wire::Dvmcp => dvmcp::request::read(&event, &me, self.plan.open_jobs),
                Wire::Manifest => manifest::request::read(&event, &me),
            }
        });
        let request = match reading {
            Some(Reading::Request(request)) => Some(*request),
            _ => None,
        };
        Some((ticket, request))
    }

    /// What a customer is told about their money when a call has failed.
    pub(super) fn refunded(ticket: &Ticket, failure: &Failure) -> Failure {
        let words = match &ticket.quote {
            Some(quote) => match quote.money {
                Money::Held => "; what you paid goes back to you".to_owned(),
                Money::Ours => {
                    let paid = quote.paid.min(quote.due()).checked_add(quote.credit).unwrap_or_default();
                    format!("; {paid} are credited to you for your next call")
                }
                _ => String::new(),
            },
            None => String::new(),
        };
        Failure { message: format!("{}{words}", failure.message), ..failure.clone() }
    }
}
