//! From an event to a request that may be served, or to the reason why not.

use super::notes::Noted;
use super::{Job, Provider, Ticket};
use crate::call::Reply;
use crate::job::{Happened, State, Task, step};
use crate::known::Known;
use crate::limits::{Gauge, Limits};
use nostr::prelude::{Event, EventId, PublicKey, UnsignedEvent};
use rialto_ledger::job::{Money, Stage};
use rialto_mcp::server::Service;
use rialto_payment::secret::Secret;
use rialto_relay::seal;
use rialto_wire::dvmcp::answer::Outcome;
use rialto_wire::failure::{Code, Failure};
use rialto_wire::request::{self, Address, Body, Command, Reading, Request};
use rialto_wire::service::{Way, Wire};
use rialto_wire::{dvmcp, manifest};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A repeat gets its answer again if the first is this old; sooner, it is still on its way.
const RESEND_AFTER_SECS: u64 = 10;

/// Answers that are sent again in a minute, whoever asks.
const RESENT_PER_MINUTE: u32 = 300;

/// Counts answers that are sent again.
pub(super) fn resend_gauge(now: Instant) -> Gauge {
    Gauge::new(Limits { rate: RESENT_PER_MINUTE, rate_per_key: 0, ..Limits::default() }, now)
}

impl<S: Service> Provider<S> {
    pub(super) fn arrived(&mut self, event: Event, relay: Arc<str>, stored: bool) {
        let me = self.plan.keys.public_key();
        if event.pubkey == me && dvmcp::is_answer(event.kind) {
            return self.heard_ourselves(&event, stored);
        }
        // What cannot be opened is not for us, or not for anybody.
        let Some((event, way)) = self.opened(event) else { return };
        let reading = match way.wire {
            Wire::Dvmcp => dvmcp::request::read(&event, &me, self.plan.open_jobs),
            Wire::Manifest => manifest::request::read(&event, &me),
        };
        let (address, read) = match reading {
            Reading::NotOurs => return,
            Reading::Refused { address, failure } => (address, Err(failure)),
            Reading::Request(request) => (request.address.clone(), Ok(request)),
        };
        let what = name(&address, read.as_ref().ok().map(|request| &request.body));
        let id = address.request;
        let expires = request::expiration(&event);
        let request = match &read {
            Ok(request) if self.must_survive(&request.body) => Some(event.as_json()),
            _ => None,
        };
        let came = Instant::now();
        let ticket = Ticket { address, relay, way, came, what, expires, noted: None, fence: 0, quote: None, request };
        if self.jobs.contains_key(&id) || self.known.get(&id) != Known::New {
            if !stored {
                self.repeated(&id, &ticket.relay);
            }
            return;
        }
        match self.check(&event, &ticket, stored) {
            Check::Go => {}
            Check::Drop => return,
            Check::Complain(failure) => {
                // Who asked nobody in particular is not told who would not serve them.
                if way.sealed || dvmcp::request::is_addressed(&event) {
                    self.complain(&ticket, &failure);
                }
                return;
            }
            Check::Refuse(failure) => {
                if way.sealed || dvmcp::request::is_addressed(&event) {
                    self.refuse(&ticket, &failure);
                }
                return;
            }
        }
        match read {
            Ok(request) => self.take(*request, ticket),
            Err(failure) => self.turn_down(&ticket, &failure),
        }
    }

    /// Answers a request that makes no sense, as long as there are not too many of them: keys cost nothing.
    fn turn_down(&mut self, ticket: &Ticket, failure: &Failure) {
        if self.gauge.may_refuse(Instant::now()) {
            self.fail(ticket, failure);
        }
    }

    /// The event inside, if it is one of ours to read, and which way it came.
    fn opened(&self, event: Event) -> Option<(UnsignedEvent, Way)> {
        let (event, way) = if seal::is_wrap(&event) {
            let inner = self.sealer.open(&event).ok()?;
            let way = if manifest::is_sealed(inner.kind) { Way::SEALED_MESSAGE } else { Way::SEALED };
            (inner, way)
        } else if manifest::is_encrypted(event.kind) {
            let mut event = unsigned(event);
            event.content = self.sealer.reveal(&event.pubkey, &event.content).ok()?;
            (event, Way::MESSAGE)
        } else {
            (unsigned(event), Way::PUBLIC)
        };
        self.plan.wires.contains(&way.wire).then_some((event, way))
    }

    /// Whether a request comes at the right time from somebody who may ask.
    fn check(&mut self, event: &UnsignedEvent, ticket: &Ticket, stored: bool) -> Check {
        let (address, now) = (&ticket.address, self.now());
        if ticket.expires.is_some_and(|end| end <= now) {
            return Check::Drop;
        }
        let (made, now) = (event.created_at.as_secs(), now.as_secs());
        let window = self.plan.window;
        let is_old = made.saturating_add(window.past) < now;
        // Wraps are kept for days, and come again after each restart: most of those in them were answered long ago.
        if is_old && stored {
            return Check::Drop;
        }
        if is_old || made > now.saturating_add(window.future) {
            let words = "the request was made too long ago, or in the future";
            return Check::Complain(Failure::new(Code::StaleRequest, words));
        }
        if !self.gauge.admit(&address.customer, Instant::now()) {
            return Check::Complain(Failure::new(Code::RateLimited, "too many requests; try again in a minute"));
        }
        if !self.plan.access.allows(&address.customer) {
            return Check::Refuse(Failure::new(Code::Unauthorized, "this key may not use this service"));
        }
        Check::Go
    }

    fn take(&mut self, request: Request, ticket: Ticket) {
        match &request.body {
            Body::List { cursor } => return self.give_list(&ticket, cursor.as_deref(), request.parts),
            Body::Cancel { target } => {
                let cancelled = self.cancel(target, &ticket.address.customer);
                return self.succeed(&ticket, format!("{{\"cancelled\":{cancelled}}}"));
            }
            Body::Pay { target, token } => return self.offered(target, token.clone(), ticket),
            _ => {}
        }
        match self.admit(&request.body, ticket.way.wire) {
            Ok(()) => self.enqueue(request, ticket),
            Err(failure) => self.turn_down(&ticket, &failure),
        }
    }

    /// Whether there is such a tool, and it takes these arguments.
    pub(super) fn admit(&self, body: &Body, wire: Wire) -> Result<(), Failure> {
        match body {
            Body::Execute(execution) => self.catalogue.admit(execution, wire),
            Body::Batch(executions) => executions.iter().enumerate().try_for_each(|(index, execution)| {
                self.catalogue.admit(execution, wire).map_err(|failure| Failure {
                    message: format!("call {index}: {}", failure.message),
                    pointer: failure.pointer.map(|pointer| format!("/calls/{index}/parameters{pointer}")),
                    ..failure
                })
            }),
            _ => Ok(()),
        }
    }

    /// Ecash for a request that waits for its money.
    fn offered(&mut self, target: &EventId, token: Secret, ticket: Ticket) {
        let job = self.jobs.get(target).filter(|job| job.ticket.address.customer == ticket.address.customer);
        let quote = job.filter(|job| job.state == State::Quoted).and_then(|job| job.ticket.quote.clone());
        match quote {
            Some(quote) => self.take_token(target, token, quote, Some(Box::new(ticket))),
            None => {
                let words = "no request of yours with this id waits to be paid";
                self.fail(&ticket, &Failure::new(Code::PaymentRefused, words));
            }
        }
    }

    fn give_list(&mut self, ticket: &Ticket, cursor: Option<&str>, parts: bool) {
        let Ok(start) = cursor.map_or(Ok(0), str::parse::<usize>) else {
            let failure = Failure::new(Code::InvalidInput, "`cursor` is not one that this service gave");
            return self.fail(ticket, &failure);
        };
        let limit = self.content_limit(ticket.way.sealed);
        let list = ticket.address.command.and_then(|command| self.catalogue.list(command));
        let Some((key, items)) = list else { return };
        let content = dvmcp::announcement::page(key, items, start, limit);
        // A single definition may be too long for an event.
        self.reply(ticket, Reply { content, complaint: None }, parts);
    }

    /// Puts a request that may be served in the queue, or finds out how it is paid.
    fn enqueue(&mut self, request: Request, ticket: Ticket) {
        let asked = match self.asked(&request.body, &ticket.address.customer.to_bytes()) {
            Ok(asked) => asked,
            Err(failure) => return self.fail(&ticket, &failure),
        };
        let customer = ticket.address.customer;
        let is_same = |id: &&EventId| self.jobs.get(id).is_some_and(|job| job.ticket.address.customer == customer);
        let waiting = self.queue.iter().filter(is_same).count();
        let may_come = match &asked {
            None => self.gauge.may_wait(self.queue.len(), waiting),
            Some(_) => self.may_quote(&ticket),
        };
        if !may_come {
            let failure = Failure::new(Code::Busy, "too many requests are waiting; try again in ten seconds");
            return self.complain(&ticket, &failure);
        }
        let id = ticket.address.request;
        let Request { body, progress, parts, token, .. } = request;
        let (body, state) = (Some(body), State::Received);
        let job = Job {
            ticket,
            body,
            progress,
            parts,
            state,
            running: None,
            last_progress: None,
            token,
            free_use: None,
            payment: None,
        };
        self.jobs.insert(id, job);
        if asked.is_some() {
            return self.ask_account(id);
        }
        if let Some(job) = self.jobs.get_mut(&id) {
            job.state = step(job.state, Happened::Priced(None)).0;
        }
        self.queue.push_back(id);
        self.fill_places();
    }

    /// Refuses a request, at most now and then.
    fn complain(&mut self, ticket: &Ticket, failure: &Failure) {
        if self.gauge.may_complain(&ticket.address.customer, ticket.came) {
            self.refuse(ticket, failure);
        }
    }

    /// Who was told no may try again with another request, so that this one must not run any more; but the answer is not kept:
    /// a flood must not fill the disk.
    pub(super) fn refuse(&mut self, ticket: &Ticket, failure: &Failure) {
        let (mut noted, failure) = (ticket.clone(), failure.clone());
        noted.request = None;
        let step = self.step(&mut noted, Stage::Done);
        let ticket = ticket.clone();
        self.note(step, move |provider, noted| {
            if let Noted::No(_) = noted {
                return provider.leave(&ticket.address.request, noted);
            }
            provider.known.done(&ticket.address.request, provider.now());
            provider.fail_unrecorded(&ticket, &failure);
        });
    }

    /// Cancels a job of the same customer; says whether there was one.
    fn cancel(&mut self, target: &EventId, customer: &PublicKey) -> bool {
        let Some(job) = self.jobs.get_mut(target).filter(|job| job.ticket.address.customer == *customer) else {
            return false;
        };
        // What was paid for and runs has its effects: they are not to be had for nothing.
        let is_paid = job.ticket.quote.as_ref().is_some_and(|quote| quote.money != Money::Open);
        let is_asking = matches!(job.state, State::Asking | State::Receiving);
        if is_asking || (is_paid && job.state == State::Running) {
            return false;
        }
        let was_running = job.state == State::Running;
        let (state, task) = step(job.state, Happened::Cancelled);
        job.state = state;
        if task != Task::Stop {
            return false;
        }
        let Some(job) = self.jobs.remove(target) else { return false };
        self.queue.retain(|id| id != target);
        self.tokens.retain(|_, id| id != target);
        if let Some(running) = &job.running {
            running.abort();
        }
        if was_running {
            self.gauge.end(customer);
        }
        self.close_invoice(&job.ticket);
        self.fail(&job.ticket, &Failure::new(Code::Cancelled, "cancelled at the customer's wish"));
        self.fill_places();
        true
    }

    /// A request that has been here before: if it was answered a while ago, the answer may have been lost.
    pub(super) fn repeated(&mut self, id: &EventId, relay: &str) {
        // Every request comes once from each relay, so this is looked at before anything is read from the disk.
        let Known::Done(at) = self.known.get(id) else { return };
        let is_old = u64::from(at).saturating_add(RESEND_AFTER_SECS) <= self.now().as_secs();
        if is_old && self.resent.admit(&self.plan.keys.public_key(), Instant::now()) {
            let (ledger, pool, id, relay) = (self.ledger.clone(), self.pool.clone(), id.to_bytes(), relay.to_owned());
            tokio::spawn(async move {
                let answers = ledger.answers(id).await.unwrap_or_default();
                for answer in answers.iter().filter_map(|text| Event::from_json(text).ok()) {
                    pool.publish_to(&answer, |url| url == relay);
                }
            });
        }
    }

    pub(super) fn succeed(&mut self, ticket: &Ticket, content: String) {
        let events = match ticket.way.wire {
            Wire::Dvmcp => vec![self.writer(ticket).response(&ticket.address, Outcome::Success, content)],
            Wire::Manifest => vec![self.message(ticket, content)],
        };
        self.answer(ticket, events, None);
    }
}

/// What a request is called in the operator's log: the command, and the name in it.
fn name(address: &Address, body: Option<&Body>) -> String {
    let command = address.command.map_or("?", Command::name);
    let name = match body {
        Some(Body::Execute(execution)) => &execution.name,
        Some(Body::Prompt { name, .. }) => name,
        Some(Body::Read { uri }) => uri,
        _ => return command.to_owned(),
    };
    let name: String = name.chars().take(MAX_NAME).collect();
    format!("{command} {name}")
}

/// Customers choose names; longer ones are cut in the log.
const MAX_NAME: usize = 100;

enum Check {
    Go,
    Drop,
    /// To be said now and then.
    Complain(Failure),
    /// To be said each time.
    Refuse(Failure),
}

fn unsigned(event: Event) -> UnsignedEvent {
    let Event { id, pubkey, created_at, kind, tags, content, .. } = event;
    UnsignedEvent { id: Some(id), pubkey, created_at, kind, tags, content }
}

/// At most one progress event in this time.
pub(super) const PROGRESS_PAUSE: Duration = Duration::from_secs(1);
