//! A ledger that is nothing but maps. Whatever it says, the real ones must say too; simulations keep their books with it.

use crate::job::{Before, Id, Job, Money, Refusal, Stage, Step};
use crate::ledger::{Account, Seen};
use rialto_payment::amount::Msat;
use std::collections::{BTreeMap, BTreeSet};

/// A job, and whether its answers have been sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub job: Job,
    pub is_sent: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub jobs: BTreeMap<Id, Kept>,
    coins: BTreeSet<Vec<u8>>,
    credit: BTreeMap<Id, i64>,
    used: BTreeMap<(Id, String), u32>,
}

impl Model {
    /// Takes one step, and says which fence the next one needs.
    pub fn take(&mut self, step: &Step) -> Result<u64, Refusal> {
        let known = self.jobs.get(&step.id);
        let mut kept = match (&step.before, known) {
            (Before::Unknown(_), Some(kept)) => return Err(Refusal::Known(kept.job.stage)),
            (Before::Unknown(new), None) => {
                let job = Job {
                    id: step.id,
                    customer: new.customer,
                    stage: step.stage,
                    came: new.came,
                    at: step.at,
                    origin: new.origin.clone(),
                    request: new.request.clone(),
                    attempts: 0,
                    fence: 1,
                    quote: None,
                    answers: Vec::new(),
                };
                Kept { job, is_sent: false }
            }
            (Before::Stage(stage), Some(kept)) if kept.job.stage == *stage && kept.job.fence == step.fence => {
                kept.clone()
            }
            (Before::Stage(_), _) => return Err(Refusal::Moved),
        };
        if let Some(hash) = step.quote.as_ref().and_then(|quote| quote.hash) {
            let has_it = |kept: &Kept| kept.job.quote.as_ref().is_some_and(|quote| quote.hash == Some(hash));
            if self.jobs.iter().any(|(id, kept)| *id != step.id && has_it(kept)) {
                return Err(Refusal::HashUsed);
            }
        }
        let coins: BTreeSet<Vec<u8>> = step.coins.iter().map(|coin| coin.to_vec()).collect();
        if coins.len() < step.coins.len() || !coins.is_disjoint(&self.coins) {
            return Err(Refusal::CoinUsed);
        }
        let customer = kept.job.customer;
        let credit = self.credit(&customer) + step.credit.as_ref().map_or(0, |one| one.msat);
        if credit < 0 {
            return Err(Refusal::NoCredit);
        }
        if let Some(free) = &step.free_use {
            let used = self.used.entry((customer, free.tool.clone())).or_default();
            if *used >= free.of {
                return Err(Refusal::NoneFree);
            }
            *used += 1;
        }
        self.credit.insert(customer, credit);
        self.coins.extend(coins);
        let was_done = known.is_some() && kept.job.stage == Stage::Done;
        kept.job.fence += u64::from(was_done);
        if let Some(answers) = &step.answers {
            kept.job.answers.clone_from(answers);
            kept.is_sent = false;
        }
        if step.stage == Stage::Done && (step.answers.is_some() || !was_done) {
            kept.is_sent = kept.job.answers.is_empty();
        }
        (kept.job.stage, kept.job.at) = (step.stage, step.at);
        kept.job.attempts += u32::from(step.stage == Stage::Running);
        if step.stage == Stage::Done {
            kept.job.request = None;
        }
        if step.quote.is_some() {
            kept.job.quote.clone_from(&step.quote);
        }
        let fence = kept.job.fence;
        self.jobs.insert(step.id, kept);
        Ok(fence)
    }

    /// Enough relays have the answers to a job.
    pub fn sent(&mut self, id: &Id) {
        if let Some(kept) = self.jobs.get_mut(id).filter(|kept| kept.job.stage == Stage::Done) {
            kept.is_sent = true;
        }
    }

    pub fn credit(&self, customer: &Id) -> i64 {
        self.credit.get(customer).copied().unwrap_or(0)
    }

    /// As [`Ledger::account`](crate::ledger::Ledger::account).
    pub fn account(&self, customer: Id, tool: &str) -> Account {
        let credit = u64::try_from(self.credit(&customer)).ok().and_then(Msat::new).unwrap_or_default();
        Account { credit, free_uses: self.used.get(&(customer, tool.to_owned())).copied().unwrap_or(0) }
    }

    /// As [`Ledger::recent`](crate::ledger::Ledger::recent).
    pub fn recent(&self, since: u64) -> Vec<Seen> {
        let jobs = self.jobs.values().map(|kept| &kept.job).filter(|job| job.at >= since);
        jobs.map(|job| Seen { id: job.id, stage: job.stage, at: job.at }).collect()
    }

    /// As [`Ledger::take_over`](crate::ledger::Ledger::take_over).
    pub fn left(&self, unsent: u64) -> Vec<Job> {
        let is_left = |kept: &&Kept| kept.job.stage != Stage::Done || (!kept.is_sent && kept.job.at >= unsent);
        self.jobs.values().filter(is_left).map(|kept| kept.job.clone()).collect()
    }

    /// As [`Ledger::lapsed`](crate::ledger::Ledger::lapsed).
    pub fn lapsed(&self, since: u64) -> Vec<Job> {
        let is_lapsed =
            |job: &&Job| job.quote.as_ref().is_some_and(|quote| quote.money == Money::Lapsed && quote.expires >= since);
        self.jobs.values().map(|kept| &kept.job).filter(is_lapsed).cloned().collect()
    }

    pub fn answers(&self, id: &Id) -> Vec<String> {
        self.jobs.get(id).map(|kept| kept.job.answers.clone()).unwrap_or_default()
    }
}
