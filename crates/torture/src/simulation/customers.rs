//! Customers: they ask, ask again, cancel, and pay at once, late, too little, too much or not at all.

use super::relays::COUNT;
use super::tools::{Course, NAMES};
use super::world::{CALM, STORM, World};
use super::{RUNNING, RUNNING_PER_KEY, rules};
use nostr::prelude::{Keys, SecretKey, Timestamp, UnsignedEvent};
use rialto_relay::sign::sign;
use rialto_wire::dvmcp::request;
use rialto_wire::request::Command;
use std::sync::LazyLock;

const CUSTOMERS: usize = 6;

/// Before the end it is tried whether every place to run is free.
const LAST_LOOK: u64 = 60_000;

/// How a customer pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payer {
    Prompt,
    Slow,
    /// In the last moment, so that it may arrive after it.
    Last,
    Never,
    TooLittle,
    TooMuch,
}

/// A request, and what has become of it.
pub(super) struct Job {
    pub(super) customer: usize,
    /// `None` for one that cancels another.
    pub(super) tool: Option<&'static str>,
    pub(super) id: [u8; 32],
    pub(super) hex: String,
    pub(super) text: String,
    /// Seconds since 1970.
    pub(super) made: u64,
    pub(super) course: Course,
    pub(super) takes: u64,
    pub(super) payer: Payer,
    pub(super) bill: Option<usize>,
    pub(super) runs: u32,
    pub(super) is_running: bool,
    /// Different responses, and how the last one said that it went.
    pub(super) answers: u32,
    pub(super) succeeded: bool,
}

/// Keys cost more to make than anything else here.
static KEYS: LazyLock<Vec<Keys>> = LazyLock::new(|| {
    let key = |number: usize| Keys::new(SecretKey::from_slice(&[u8::try_from(number + 1).unwrap(); 32]).unwrap());
    (0..=CUSTOMERS).map(key).collect()
});

pub(super) fn provider() -> Keys {
    KEYS[CUSTOMERS].clone()
}

impl World {
    /// What will happen: requests, outages, the end of the storm, and the end.
    pub(super) fn open(&mut self, jobs: usize) {
        self.customers = KEYS[..CUSTOMERS].to_vec();
        for _ in 0..jobs {
            let (at, customer) = (self.between(0, STORM * 4 / 5), self.chance.below(CUSTOMERS));
            let target = match self.chances(100) {
                true => (0..self.jobs.len()).rev().find(|job| self.jobs[*job].customer == customer),
                false => None,
            };
            // More of those that cost something.
            let tool = NAMES[[0, 0, 1, 1, 1, 1, 2, 2, 3, 3][self.chance.below(10)]];
            let job = match target {
                Some(target) => self.write(customer, Err(target), at.max(self.age(target) + 1)),
                None => self.write(customer, Ok(tool), at),
            };
            self.send(job, at.max(self.age(job)));
        }
        for relay in 0..COUNT {
            for is_outage in [true, false] {
                let happens = if is_outage { self.faults.outage } else { self.faults.mute };
                for _ in 0..if happens { self.chance.below(4) } else { 0 } {
                    let (at, wait) = (self.between(0, STORM), self.between(1_000, 60_000));
                    self.after(at, move |world| world.disturb(relay, is_outage, wait.min(STORM - at + 1)));
                }
            }
        }
        if self.faults.stop {
            let at = self.between(STORM / 10, STORM);
            self.after(at, |world| {
                if let Some(stop) = world.stop.take() {
                    world.counts.stops += 1;
                    world.trace.add(world.now, "the provider is stopped", None, "");
                    let _ = stop.send(());
                }
            });
        }
        self.after(STORM, Self::calm_down);
        self.after(STORM + CALM - LAST_LOOK, Self::fill_places);
        self.after(STORM + CALM, rules::finally);
    }

    /// When a request was made, in our time.
    fn age(&self, job: usize) -> u64 {
        (self.jobs[job].made - super::world::EPOCH) * 1000
    }

    /// Writes a call of a tool, or the wish to cancel an earlier one.
    pub(super) fn write(&mut self, customer: usize, what: Result<&'static str, usize>, at: u64) -> usize {
        let (keys, to, number) = (&self.customers[customer], KEYS[CUSTOMERS].public_key(), self.jobs.len());
        let made = super::world::EPOCH + at / 1000;
        let event: UnsignedEvent = match what {
            Ok(tool) => {
                let content = format!("{{\"name\":\"{tool}\",\"parameters\":{{\"job\":{number}}}}}");
                request::write(Command::ExecuteTool, Some(to), content, keys.public_key(), Timestamp::from(made))
            }
            Err(target) => {
                let target = nostr::prelude::EventId::from_byte_array(self.jobs[target].id);
                request::write_cancel(target, to, keys.public_key(), Timestamp::from(made))
            }
        };
        let event = sign(keys, event);
        let takes = self.between(1, 5_000);
        let course = [Course::Succeeds, Course::Complains, Course::Fails, Course::Hangs];
        let course = course[[0, 0, 0, 0, 0, 0, 0, 1, 2, 3][self.chance.below(10)]];
        let payers = [Payer::Prompt, Payer::Slow, Payer::Last, Payer::Never, Payer::TooLittle, Payer::TooMuch];
        let payer = payers[[0, 0, 0, 0, 0, 1, 2, 3, 4, 5][self.chance.below(10)]];
        let (id, hex) = (event.id.to_bytes(), event.id.to_hex());
        self.numbers.insert(id, number);
        let (tool, text) = (what.ok(), event.as_json());
        let (bill, runs, is_running, answers, succeeded) = (None, 0, false, 0, false);
        self.jobs.push(Job {
            customer,
            tool,
            id,
            hex,
            text,
            made,
            course,
            takes,
            payer,
            bill,
            runs,
            is_running,
            answers,
            succeeded,
        });
        number
    }

    /// Publishes it to some relays, and perhaps again.
    pub(super) fn send(&mut self, job: usize, at: u64) {
        for relay in 0..COUNT {
            if self.chances(700) {
                let wait = at + self.between(0, 500);
                self.after(wait, move |world| world.requested(job, relay));
            }
            if self.chances(200) {
                let wait = at + self.between(1_000, 60_000);
                self.after(wait.min(STORM - 1), move |world| world.requested(job, relay));
            }
        }
    }

    /// As many free calls at once as there are places.
    fn fill_places(&mut self) {
        self.most_running = self.running;
        for customer in 0..RUNNING / RUNNING_PER_KEY {
            for _ in 0..RUNNING_PER_KEY {
                let job = self.write(customer, Ok("free"), self.now);
                (self.jobs[job].course, self.jobs[job].takes) = (Course::Succeeds, 20_000);
                (0..COUNT).for_each(|relay| self.requested(job, relay));
            }
        }
    }

    /// A customer hears what it costs.
    pub(super) fn charged(&mut self, job: usize, bill: usize) {
        if self.jobs[job].bill.is_some() {
            return;
        }
        self.jobs[job].bill = Some(bill);
        self.trace.add(self.now, "its customer is told the price", Some(job), "");
        let (amount, expires) = (self.vault.bills[bill].amount, self.vault.bills[bill].expires);
        let left = ((expires - super::world::EPOCH) * 1000).saturating_sub(self.now);
        let (wait, msat) = match self.jobs[job].payer {
            Payer::Never => return,
            Payer::Prompt => (self.between(10, 2_000), amount),
            Payer::Slow => (self.between(1_000, 100_000), amount),
            Payer::Last => (left.saturating_sub(self.between(1, 3_000)), amount),
            Payer::TooLittle => (self.between(10, 2_000), amount / 2),
            Payer::TooMuch => (self.between(10, 2_000), amount + 3_000),
        };
        // Nobody begins to pay what has run out; what was begun may be on its way for a while.
        if wait < left {
            let transit = self.between(20, 30_000).min(self.between(20, 30_000));
            self.after(wait + transit, move |world| world.paid(bill, msat));
        }
    }
}
