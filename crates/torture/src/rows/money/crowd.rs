//! Ten customers of one provider, all at once: one key may only have so many quotes open.

use std::collections::HashSet;
use std::panic::resume_unwind;

use serde_json::{Value, json};

use crate::market::{Market, invoice};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::event::Draft;
use crate::nostr_side::log::until;
use crate::nostr_side::world::Provider;

pub(super) const CUSTOMERS: usize = 10;

/// What a call costs, in satoshis.
pub(super) const PRICE: u64 = 5;

pub(super) struct Crowd {
    pub(super) market: Market,
    pub(super) customers: Vec<Customer>,
    pub(super) provider: Provider,
    flags: Vec<String>,
}

/// A call that waits to be paid.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) customer: usize,
    pub(super) number: usize,
    pub(super) tag: String,
    pub(super) id: String,
    pub(super) invoice: String,
}

/// Runs that were not paid for, and payments that were not served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) unpaid: usize,
    pub(super) unserved: usize,
}

impl std::ops::Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { unpaid: self.unpaid + other.unpaid, unserved: self.unserved + other.unserved }
    }
}

pub(super) fn note(tag: &str) -> Value {
    json!({ "name": "note", "parameters": { "tag": tag, "text": "done" } })
}

impl Crowd {
    pub(super) fn new(market: Market, flags: &[&str]) -> Self {
        let price = format!("*={PRICE}");
        let mut all = vec!["--price", &price, "--rate-per-key", "0", "--rate", "0"];
        all.extend_from_slice(flags);
        let provider = market.serve(&all);
        let customers = (0..CUSTOMERS).map(|_| Customer::one_of_many(&market.relay, &provider.pubkey)).collect();
        let flags = all.into_iter().map(str::to_owned).collect();
        Self { market, customers, provider, flags }
    }

    /// Ends the provider as a power cut would, and begins again: then it looks at once for what came late.
    pub(super) fn restart(&mut self) {
        self.provider.process.kill();
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.provider = self.market.serve(&flags);
    }

    pub(super) fn of(&self, job: &Job) -> &Customer {
        &self.customers[job.customer]
    }

    /// Does something for each number: one customer's one after the other, customers at the same time.
    pub(super) fn each<T: Send>(&self, count: usize, act: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
        let act = &act;
        let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
            let work = |customer: usize| {
                let numbers = (customer..count).step_by(CUSTOMERS);
                scope.spawn(move || numbers.map(|number| (number, act(customer, number))).collect::<Vec<_>>())
            };
            let threads: Vec<_> = (0..CUSTOMERS).map(work).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, done)| done).collect()
    }

    /// The same for each of these calls.
    pub(super) fn each_of<T: Send>(&self, jobs: &[Job], act: impl Fn(&Customer, &Job) -> T + Sync) -> Vec<T> {
        self.each(jobs.len(), |customer, index| {
            assert_eq!(jobs[index].customer, customer);
            act(&self.customers[customer], &jobs[index])
        })
    }

    /// Asks for a call, and waits for its price.
    pub(super) fn quote(&self, customer: usize, number: usize, name: &str) -> Job {
        let tag = format!("{name}-{number}");
        let draft = self.customers[customer].draft("execute-tool", &note(&tag));
        self.quote_of(customer, number, tag, &draft)
    }

    /// The same for any request.
    pub(super) fn quote_of(&self, customer: usize, number: usize, tag: String, draft: &Draft) -> Job {
        let asker = &self.customers[customer];
        let id = asker.post(draft);
        let invoice = invoice(&asker.wait_for_status(&id, "payment-required"), PRICE);
        Job { customer, number, tag, id, invoice }
    }

    pub(super) fn quotes(&self, name: &str, count: usize) -> Vec<Job> {
        self.each(count, |customer, number| self.quote(customer, number, name))
    }

    /// How many of these calls were not answered with success.
    pub(super) fn unserved(&self, jobs: &[Job]) -> usize {
        let served = self.each_of(jobs, |customer, job| {
            let answers = customer.answers(&job.id);
            answers.response().tags("status").first().is_none_or(|status| status[0] == "success")
        });
        served.iter().filter(|served| !**served).count()
    }

    /// Pays in earnest; gives how many were not served.
    pub(super) fn pay(&self, jobs: &[Job]) -> usize {
        self.each_of(jobs, |_, job| self.market.pay(&job.invoice).unwrap());
        self.unserved(jobs)
    }

    /// After these were answered, everything that was said before has been dealt with.
    pub(super) fn pay_some(&self, name: &str) -> (Vec<Job>, usize) {
        self.customers.iter().for_each(Customer::barrier);
        let jobs = self.quotes(name, CUSTOMERS);
        let unserved = self.pay(&jobs);
        (jobs, unserved)
    }

    /// Calls that were not paid still wait for it.
    #[track_caller]
    pub(super) fn all_wait(&self, jobs: &[Job]) {
        for job in jobs {
            assert_eq!(self.of(job).so_far(&job.id).statuses(), ["payment-required"], "{job:?}");
        }
    }

    /// What a command says of the ledger.
    fn ledger(&self, action: &str) -> String {
        let mut process = self.market.world.rialto("provider", &["ledger", action]);
        let output = process.output();
        assert!(process.end().success(), "{action}: {output}");
        output
    }

    /// What all customers have with the provider, in satoshis.
    pub(super) fn credit(&self) -> u64 {
        let export = self.ledger("export");
        let jobs = export.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let credits = jobs.flat_map(|job| job["credits"].as_array().cloned().unwrap_or_default());
        let msat: i64 = credits.map(|credit| credit["msat"].as_i64().unwrap()).sum();
        u64::try_from(msat).unwrap() / 1000
    }

    #[track_caller]
    pub(super) fn wait_for_credit(&self, sat: u64) {
        until(&format!("{sat} credited"), PATIENCE, || self.credit() == sat);
    }

    /// Runs that nobody has paid for. A second run of what was paid once is one of them.
    pub(super) fn unpaid_runs(&self, paid: &[Job]) -> usize {
        let effects = self.market.world.effects();
        let paid: HashSet<String> = paid.iter().map(|job| format!("note {}", job.tag)).collect();
        let ran: HashSet<&String> = effects.iter().filter(|effect| paid.contains(*effect)).collect();
        effects.len() - ran.len()
    }

    /// Whatever happened, the books add up.
    pub(super) fn check(&self) {
        self.ledger("check");
    }

    /// What the tries of one forgery came to.
    pub(super) fn count(&self, paid: &[Job], unserved: usize) -> Count {
        self.check();
        Count { unpaid: self.unpaid_runs(paid), unserved }
    }
}
