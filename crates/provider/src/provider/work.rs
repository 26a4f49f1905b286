//! From a request in the queue to its answer.

use super::intake::PROGRESS_PAUSE;
use super::notes::Noted;
use super::{Cause, Ended, Provider, Ticket};
use crate::call::{self, Form};
use crate::job::{Answered, Happened, State, Task, step};
use nostr::prelude::EventId;
use rialto_ledger::job::{Refusal, Stage};
use rialto_mcp::json;
use rialto_mcp::server::Service;
use rialto_wire::dvmcp::answer::{self, Outcome, Progress};
use rialto_wire::failure::{Code, Failure};
use rialto_wire::request::{Body, Command};
use rialto_wire::service::Wire;
use rialto_wire::size;
use std::borrow::Cow;
use tokio::time::Instant;

/// The longest result that is sent, in however many parts.
const MAX_RESULT: usize = 1024 * 1024;

impl<S: Service> Provider<S> {
    /// Starts as many waiting jobs as there are places.
    pub(super) fn fill_places(&mut self) {
        let now = Instant::now();
        let mut index = 0;
        while index < self.queue.len() && !self.gauge.is_full() {
            let id = self.queue[index];
            let Some(customer) = self.jobs.get(&id).map(|job| job.ticket.address.customer) else {
                self.queue.remove(index);
                continue;
            };
            // One who has used up their places does not hold up those behind.
            if self.gauge.start(&customer, now) {
                self.queue.remove(index);
                self.start(id);
            } else {
                index += 1;
            }
        }
    }

    fn start(&mut self, id: EventId) {
        let now = self.now();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (state, task) = step(job.state, Happened::Placed);
        job.state = state;
        if task != Task::Run {
            return;
        }
        let mut ticket = job.ticket.clone();
        // Who has paid still wants it.
        if ticket.quote.is_none() && ticket.expires.is_some_and(|end| end <= now) {
            // It waited too long; nobody wants it any more.
            self.jobs.remove(&id);
            return self.gauge.end(&ticket.address.customer);
        }
        let free_use = job.free_use.clone();
        // On disk before anything happens: whatever is not there never runs.
        let mut noted = self.step(&mut ticket, Stage::Running);
        noted.free_use = free_use;
        if let Some(job) = self.jobs.get_mut(&id) {
            job.ticket = ticket;
        }
        self.note(noted, move |provider, noted| provider.placed(id, noted));
    }

    /// Whether a job may really run has been decided.
    fn placed(&mut self, id: EventId, noted: Noted) {
        if noted == Noted::Yes {
            self.known.opened(&id, self.now());
            return self.launch(id);
        }
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.state == State::Running) else { return };
        self.gauge.end(&job.ticket.address.customer);
        match noted {
            Noted::No(Refusal::NoneFree) => self.price_again(&id),
            Noted::Broken if job.ticket.quote.is_some() => {
                // It is paid for, and waits until it can be noted.
                (job.state, job.ticket.noted) = (State::Waiting, Some(Stage::Funded));
                self.queue.push_back(id);
            }
            _ => {
                let Some(job) = self.jobs.remove(&id) else { return };
                self.leave(&id, noted);
                if noted == Noted::Broken {
                    let failure = Failure::new(Code::Busy, "the provider cannot take requests now");
                    self.fail_unrecorded(&job.ticket, &failure);
                }
            }
        }
    }

    fn launch(&mut self, id: EventId) {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.state == State::Running) else { return };
        let Some(mut body) = job.body.take() else { return };
        let ticket = job.ticket.clone();
        if has_feedback(&ticket) {
            let begun = self.writer(&ticket).feedback(&ticket.address, &Progress::Begun);
            self.send(&ticket, begun);
        }
        let token = self.token(id);
        let form = match (ticket.way.wire, &body) {
            (Wire::Manifest, Body::Execute(execution)) => Form::Message(self.catalogue.output(&execution.name)),
            _ => Form::Response,
        };
        if let Body::Execute(execution) = &mut body
            && self.plan.idempotent.contains(&execution.name)
        {
            let meta = execution.meta.take().unwrap_or_else(|| "{}".to_owned());
            let member = format!("\"rialto/idempotencyKey\":\"{}\"", id.to_hex());
            let meta = json::without_members(meta.as_bytes(), &["rialto/idempotencyKey"]);
            execution.meta = String::from_utf8(json::with_members(&meta, member.as_bytes())).ok();
        }
        if let Body::Refund { mint } = body {
            match self.refund(id, mint) {
                Some(running) => {
                    if let Some(job) = self.jobs.get_mut(&id) {
                        job.running = Some(running);
                    }
                }
                // A wallet that was there when it was asked for, and is not any more.
                None => {
                    let outcome = Err(Failure::new(Code::Unsupported, "ecash is not given here"));
                    self.ended(Ended { id, outcome });
                }
            }
            return;
        }
        let (local, causes, limit) = (self.local.clone(), self.causes.clone(), self.plan.timeout);
        let task = tokio::spawn(async move {
            let unreported = Unreported { id, causes: Some(causes) };
            let outcome = call::perform(&local, &body, limit, token, &form).await;
            unreported.report(outcome);
        });
        if let Some(job) = self.jobs.get_mut(&id) {
            job.running = Some(task.abort_handle());
        }
    }

    /// A token for a job's progress, if its customer wants it.
    fn token(&mut self, id: EventId) -> Option<u64> {
        self.jobs.get(&id).filter(|job| job.progress)?;
        let token = self.next_token;
        self.next_token += 1;
        self.tokens.insert(token, id);
        Some(token)
    }

    pub(super) fn progressed(&mut self, params: &[u8]) {
        let token = json::get(params, "progressToken").and_then(|token| std::str::from_utf8(token).ok()?.parse().ok());
        let Some(id) = token.and_then(|token: u64| self.tokens.get(&token)).copied() else { return };
        let now = Instant::now();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.last_progress.is_some_and(|last| now - last < PROGRESS_PAUSE) {
            return;
        }
        job.last_progress = Some(now);
        let ticket = job.ticket.clone();
        let words = json::get_string(params, "message").unwrap_or_default();
        let words: String = words.chars().take(200).collect();
        // Our token is no business of the customer's.
        let params = json::without_members(params, &["progressToken", "_meta"]);
        let Ok(params) = String::from_utf8(params) else { return };
        if size::quoted(&params) > self.content_limit(ticket.way.sealed) {
            return;
        }
        let step = Progress::Step { params: &params, words: Cow::Owned(words) };
        let event = self.writer(&ticket).feedback(&ticket.address, &step);
        self.send(&ticket, event);
    }

    pub(super) fn ended(&mut self, ended: Ended) {
        let Ended { id, outcome } = ended;
        let Some(mut job) = self.jobs.remove(&id) else { return };
        if job.progress {
            self.tokens.retain(|_, job| *job != id);
        }
        let rail = job.ticket.quote.as_ref().map(|quote| quote.rail);
        let (state, task) = step(job.state, Happened::Answered(Answered { success: outcome.is_ok(), rail }));
        job.state = state;
        self.gauge.end(&job.ticket.address.customer);
        if task != Task::Nothing {
            match outcome {
                Ok(reply) if reply.content.len() > MAX_RESULT => self.too_large(&job.ticket),
                Ok(reply) => self.reply(&job.ticket, reply, job.parts),
                Err(failure) => self.fail(&job.ticket, &failure),
            }
        }
        self.fill_places();
    }

    pub(super) fn reply(&mut self, ticket: &Ticket, reply: call::Reply, parts: bool) {
        if ticket.way.wire == Wire::Manifest {
            return self.reply_by_message(ticket, reply);
        }
        let limit = self.content_limit(ticket.way.sealed);
        let fits = self.fits(ticket.way, &reply.content);
        if !fits && !parts {
            return self.too_large(ticket);
        }
        let (writer, address) = (self.writer(ticket), &ticket.address);
        let outcome = if reply.complaint.is_some() { Outcome::Error } else { Outcome::Success };
        let mut events = Vec::new();
        match &reply.complaint {
            Some(words) => {
                let failed = Progress::Failed { code: Code::ToolError.as_str(), message: Cow::Borrowed(words) };
                events.push(writer.feedback(address, &failed));
            }
            None if has_feedback(ticket) => {
                events.push(writer.feedback(address, &Progress::Succeeded));
            }
            None => {}
        }
        if fits {
            events.push(writer.response(address, outcome, reply.content));
        } else {
            let parts = writer.parts(address, outcome, &reply.content, limit);
            // More than a customer takes.
            if parts.len() > answer::MAX_PARTS {
                return self.too_large(ticket);
            }
            events.extend(parts);
        }
        self.answer(ticket, events, reply.complaint.map(|_| Code::ToolError.as_str()));
    }

    fn reply_by_message(&mut self, ticket: &Ticket, reply: call::Reply) {
        match reply.complaint {
            _ if self.fits(ticket.way, &reply.content) => {
                let event = self.message(ticket, reply.content);
                self.answer(ticket, vec![event], reply.complaint.map(|_| Code::ToolError.as_str()));
            }
            // The words without the rest.
            Some(words) => self.fail(ticket, &Failure::new(Code::ToolError, words)),
            None => self.too_large(ticket),
        }
    }

    fn too_large(&mut self, ticket: &Ticket) {
        let words = match ticket.way.wire {
            Wire::Dvmcp => "the result fits into no event; ask for it in parts with `\"metadata\": {\"parts\": true}`",
            Wire::Manifest => "the result fits into no message",
        };
        self.fail(ticket, &Failure::new(Code::ResultTooLarge, words));
    }
}

/// Whether the customer is told when the work begins and when it has succeeded.
fn has_feedback(ticket: &Ticket) -> bool {
    ticket.way.wire == Wire::Dvmcp && ticket.address.command.is_some_and(Command::has_feedback)
}

/// Answers for a task that panics or is dropped.
struct Unreported {
    id: EventId,
    causes: Option<tokio::sync::mpsc::UnboundedSender<Cause>>,
}

impl Unreported {
    fn report(mut self, outcome: Result<call::Reply, Failure>) {
        if let Some(causes) = self.causes.take() {
            let _ = causes.send(Cause::Ended(Ended { id: self.id, outcome }));
        }
    }
}

impl Drop for Unreported {
    fn drop(&mut self) {
        if let Some(causes) = self.causes.take() {
            let outcome = Err(Failure::new(Code::InternalError, "something went wrong inside the provider"));
            let _ = causes.send(Cause::Ended(Ended { id: self.id, outcome }));
        }
    }
}
