//! The ledger: what is on the disk survives a crash, and nothing else.

use super::mistake::Mistake;
use super::world::{Shared, World};
use rialto_ledger::job::{Before, Entry, Id, Job, Outcome, Stage, Step};
use rialto_ledger::ledger::{Account, Error, Horizon, Later, Ledger, Presence, Seen, Status};
use rialto_ledger::model::Model;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How long a disk that tells lies takes to write.
const LAG: u64 = 400;

#[derive(Default)]
pub(super) struct Disk {
    /// As the provider sees it.
    model: Model,
    /// As it would be found after a crash, if that is something else.
    written: Option<Model>,
    /// Grows with each process that uses it.
    process: u64,
    /// Requests of which something could not be noted, and has not been since. Such a one may be answered once more: better
    /// that than not at all.
    pub(super) shaky: BTreeSet<Id>,
    /// Those of which nothing could be, or not before a crash: whoever comes next cannot know what was said.
    unheard: BTreeSet<Id>,
    /// The next step to there is not taken.
    pub(super) refused: Option<Stage>,
    /// Something was noted since the rules were looked at.
    pub(super) is_changed: bool,
}

impl Disk {
    /// What would survive a crash now.
    pub(super) fn kept(&self) -> &Model {
        self.written.as_ref().unwrap_or(&self.model)
    }

    /// The process that used it is gone.
    pub(super) fn lost(&mut self) {
        self.process += 1;
        // What it could not note before its end, nobody will.
        self.unheard.extend(&self.shaky);
        if let Some(written) = &self.written {
            self.model = written.clone();
        }
    }
}

impl World {
    fn commit(&mut self, steps: Vec<Step>) -> Option<(u64, Result<Vec<Outcome>, Error>)> {
        if self.crashes() {
            return None;
        }
        let is_refused = steps.iter().any(|step| self.disk.refused == Some(step.stage));
        if is_refused || self.fails(self.faults.disk) {
            self.disk.refused.take_if(|_| is_refused);
            for step in &steps {
                self.trace.add(self.now, "cannot be noted as", self.number(&step.id), step.stage.name());
                self.disk.shaky.insert(step.id);
                if matches!(step.before, Before::Unknown(_)) {
                    self.disk.unheard.insert(step.id);
                }
            }
            return Some((1, Err(Error::Broken("the disk is full".to_owned()))));
        }
        let outcomes = steps.into_iter().map(|step| self.take(step)).collect();
        let wait = self.between(0, 3);
        (!self.crashes()).then_some((wait, Ok(outcomes)))
    }

    fn take(&mut self, mut step: Step) -> Outcome {
        match self.mistake {
            Some(Mistake::CreditsTwice) => {
                step.credit = step.credit.map(|one| Entry { msat: one.msat * if one.msat > 0 { 2 } else { 1 }, ..one });
            }
            Some(Mistake::LosesCredit) => step.credit = step.credit.filter(|one| one.msat < 0),
            Some(Mistake::ForgetsRequests) if matches!(step.before, Before::Unknown(_)) => {
                self.disk.model.jobs.remove(&step.id);
            }
            _ => {}
        }
        self.disk.is_changed = true;
        match self.disk.model.take(&step) {
            Ok(fence) => {
                if step.stage == Stage::Done && !self.disk.unheard.contains(&step.id) {
                    self.disk.shaky.remove(&step.id);
                }
                let money = step.quote.as_ref().map_or("", |quote| quote.money.name());
                self.trace.add(self.now, noted(step.stage), self.number(&step.id), money);
                if self.mistake == Some(Mistake::ActsBeforeCommit) {
                    self.disk.written.get_or_insert_default();
                    let (process, wait) = (self.disk.process, self.between(0, LAG));
                    self.after(wait, move |world| world.write_late(process, &step));
                }
                Outcome::Taken { fence }
            }
            Err(refusal) => {
                self.trace.add(self.now, "is not noted as", self.number(&step.id), step.stage.name());
                Outcome::Refused(refusal)
            }
        }
    }

    /// Late, and perhaps too late.
    fn write_late(&mut self, process: u64, step: &Step) {
        let is_alive = self.disk.process == process;
        if let Some(written) = self.disk.written.as_mut().filter(|_| is_alive) {
            let _ = written.take(step);
        }
    }
}

fn noted(stage: Stage) -> &'static str {
    match stage {
        Stage::Asking => "noted: asking",
        Stage::Quoted => "noted: quoted",
        Stage::Receiving => "noted: receiving",
        Stage::Funded => "noted: funded",
        Stage::Running => "noted: running",
        Stage::Settling => "noted: settling",
        Stage::Done => "noted: done",
    }
}

#[derive(Debug)]
pub(super) struct Port(pub(super) Arc<Shared>);

impl Port {
    fn read<T: Send + 'static>(&self, read: impl FnOnce(&mut World) -> T) -> Later<'_, T> {
        let answered = {
            let mut world = self.0.enter();
            // What is read may be old by the time that it is used.
            (!world.crashes()).then(|| (world.between(0, 3), Ok(read(&mut world))))
        };
        Box::pin(self.0.answer(answered))
    }
}

impl Ledger for Port {
    fn commit(&self, steps: Vec<Step>) -> Later<'_, Vec<Outcome>> {
        let answered = self.0.enter().commit(steps);
        Box::pin(self.0.answer(answered))
    }

    fn sent(&self, mut ids: Vec<Id>) -> Later<'_, ()> {
        // They have no order: connections that are ended at once tell so in any.
        ids.sort_unstable();
        self.read(|world| {
            for id in ids {
                let number = world.number(&id);
                world.trace.add(world.now, "noted: sent", number, "");
                world.disk.model.sent(&id);
                if let Some(written) = &mut world.disk.written {
                    written.sent(&id);
                }
            }
        })
    }

    fn recent(&self, since: u64) -> Later<'_, Vec<Seen>> {
        self.read(|world| match world.mistake {
            Some(Mistake::ForgetsRequests) => Vec::new(),
            _ => world.disk.model.recent(since),
        })
    }

    fn take_over(&self, unsent: u64) -> Later<'_, Vec<Job>> {
        self.read(|world| {
            let mut left = world.disk.model.left(unsent);
            if world.mistake == Some(Mistake::ForgetsOutbox) {
                left.retain(|job| job.stage != Stage::Done);
            }
            left
        })
    }

    fn lapsed(&self, since: u64) -> Later<'_, Vec<Job>> {
        self.read(|world| world.disk.model.lapsed(since))
    }

    fn answers(&self, id: Id) -> Later<'_, Vec<String>> {
        self.read(|world| world.disk.model.answers(&id))
    }

    fn account<'a>(&'a self, customer: Id, tool: &'a str) -> Later<'a, Account> {
        self.read(|world| world.disk.model.account(customer, tool))
    }

    fn renew(&self) -> Later<'_, Presence> {
        self.read(|_| Presence::Alone)
    }

    fn purge(&self, _horizon: Horizon) -> Later<'_, bool> {
        self.read(|_| false)
    }

    fn status(&self) -> Later<'_, Status> {
        self.read(|_| Status::default())
    }
}
