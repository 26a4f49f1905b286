//! The payment for a request that is on its way. There is at most one.

use crate::customer::Inner;
use crate::error::{Demand, Error};
use crate::payment::pay::{Deliver, Errand, Phase};
use crate::payment::{Met, Purchase, Unpaid, Why};
use nostr::prelude::{EventId, PublicKey};
use rialto_payment::secret::Secret;
use rialto_wire::request::{self, Command};
use rialto_wire::service::{Way, Wire};
use rialto_wire::{dvmcp, manifest};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A demand that is being met, or was.
pub(super) struct Paying {
    demand: Demand,
    task: Option<JoinHandle<Result<Met, Unpaid>>>,
    phase: watch::Receiver<Phase>,
    has_begun: bool,
    /// Another demand for the same request.
    another: Option<Demand>,
    met: Option<Met>,
}

/// What that means for whoever waits.
pub(super) enum Stand {
    /// Somebody thinks about it; nobody else is to blame that nothing comes.
    Deciding,
    /// It has begun to be paid, which is told once.
    Begun,
    Other,
}

impl Paying {
    pub(super) fn begin(
        purchase: Arc<Purchase>,
        request: EventId,
        provider: PublicKey,
        demand: Demand,
        deliver: Deliver,
    ) -> Self {
        let (sender, phase) = watch::channel(Phase::Deciding);
        let errand = Errand { request, provider, demand: demand.clone(), phase: sender, deliver };
        // On its own: what was begun is noted to its end, even if nobody waits for the result any more.
        let task = tokio::spawn(purchase.meet(errand));
        Self { demand, task: Some(task), phase, has_begun: false, another: None, met: None }
    }

    /// The same demand again changes nothing, and another is not met.
    pub(super) fn asked_again(&mut self, demand: Demand) {
        let invoice = |demand: &Demand| demand.invoice.as_ref().map(|text| text.to_ascii_lowercase());
        if invoice(&self.demand) != invoice(&demand) {
            self.another = Some(demand);
        }
    }

    pub(super) fn stand(&mut self) -> Stand {
        match *self.phase.borrow() {
            Phase::Deciding if self.task.is_some() => Stand::Deciding,
            Phase::Paying if !std::mem::replace(&mut self.has_begun, true) => Stand::Begun,
            _ => Stand::Other,
        }
    }

    /// What is wrong, if no answer has come.
    pub(super) fn flaw(&self) -> Option<Unpaid> {
        if self.task.is_some() {
            let why = Why::Unclear("the wallet has not answered yet".to_owned());
            return Some(Unpaid { demand: self.demand.clone(), amount: None, why });
        }
        self.another.clone().map(|demand| Unpaid { demand, amount: None, why: Why::Again })
    }

    /// Waits until it has ended, one way or the other.
    pub(super) async fn end(&mut self) -> Option<Met> {
        if let Some(task) = &mut self.task {
            self.met = task.await.ok().and_then(Result::ok);
            self.task = None;
        }
        self.met.clone()
    }
}

/// Waits until a payment has moved on: `None` if it has begun, else how it ended. For ever if there is none under way.
pub(super) async fn moved(payment: &mut Option<Box<Paying>>) -> Result<Option<Met>, Error> {
    let Some(payment) = payment else { return std::future::pending().await };
    let Paying { demand, task, phase, has_begun, met, .. } = &mut **payment;
    let Some(running) = task else { return std::future::pending().await };
    let ended = tokio::select! {
        biased;
        ended = running => ended,
        Ok(()) = phase.changed(), if !*has_begun => return Ok(None),
    };
    *task = None;
    match ended {
        Ok(Ok(done)) => {
            *met = Some(done.clone());
            Ok(Some(done))
        }
        Ok(Err(unpaid)) => Err(Error::PaymentRequired(Box::new(unpaid))),
        Err(error) => Err(Error::unpaid(demand.clone(), Why::Unclear(error.to_string()))),
    }
}

/// Sends a token to the provider that it is locked to.
pub(super) fn deliver(
    customer: &Inner,
    provider: PublicKey,
    way: Way,
    request: EventId,
    token: &Secret,
) -> Result<(), Error> {
    let (me, now) = (customer.me(), customer.clock.now());
    let mut event = match way.wire {
        Wire::Dvmcp => {
            let content = dvmcp::content::payment(request, token);
            dvmcp::request::write(Command::PayExecution, Some(provider), content, me, now)
        }
        Wire::Manifest => {
            manifest::request::write(provider, manifest::request::payment(request, token), way.sealed, me, now)
        }
    };
    if way != Way::MESSAGE {
        request::distinguish(&mut event, &customer.salt());
    }
    let (_, event) = customer.enclose(event, &provider, way)?;
    customer.pool.publish(&event);
    Ok(())
}
