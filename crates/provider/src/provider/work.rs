//! From a request in the queue to its answer.

use super::intake::PROGRESS_PAUSE;
use super::{Cause, Ended, Provider, Ticket};
use crate::call::{self, Form};
use crate::job::{Happened, State, Task, step};
use crate::record::{Recovered, Unfinished};
use nostr::prelude::EventId;
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
        let Some(body) = job.body.take() else { return };
        let ticket = job.ticket.clone();
        let address = &ticket.address;
        if ticket.expires.is_some_and(|end| end <= now) {
            // It waited too long; nobody wants it any more.
            self.jobs.remove(&id);
            return self.gauge.end(&address.customer);
        }
        // On disk before anything happens: whatever is not there never runs.
        if let Err(error) = self.record.begin(address, ticket.way, now) {
            self.observer.warn(format!("cannot write the record, so nothing is run: {error}"));
            self.jobs.remove(&id);
            self.gauge.end(&address.customer);
            let failure = Failure::new(Code::Busy, "the provider cannot take requests now");
            return self.fail_unrecorded(&ticket, &failure);
        }
        if has_feedback(&ticket) {
            let begun = self.writer(&ticket).feedback(address, &Progress::Begun);
            self.send(&ticket, begun);
        }
        let token = self.token(id);
        let form = match (ticket.way.wire, &body) {
            (Wire::Manifest, Body::Execute(execution)) => Form::Message(self.catalogue.output(&execution.name)),
            _ => Form::Response,
        };
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
        let (state, task) = step(job.state, Happened::Answered);
        job.state = state;
        self.gauge.end(&job.ticket.address.customer);
        if task == Task::Answer {
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

    /// Sees to what an earlier process has left: what it was doing is not done again, what it had to say is said.
    pub(super) fn recover(&mut self, recovered: Recovered) {
        let came = Instant::now();
        for unfinished in recovered.unfinished {
            let (_, task) = step(State::Running, Happened::Restarted);
            if task == Task::Unknown {
                let relay = self.plan.relays.first().cloned().unwrap_or_default();
                let Unfinished { address, way } = unfinished;
                let what = address.command.map_or("?", Command::name).to_owned();
                let ticket = Ticket { address, relay: relay.into(), way, came, what, expires: None };
                let words = "the provider stopped during the call; nobody knows what it did";
                self.fail(&ticket, &Failure::new(Code::OutcomeUnknown, words));
            }
        }
        for (id, answers) in recovered.undelivered {
            self.publish(id, answers);
        }
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
