//! One request on its way: waits for what comes, and knows when to stop waiting.

mod paying;

use self::paying::{Paying, Stand};
use crate::customer::{Customer, Inner, seconds_after};
use crate::directory::Promise;
use crate::error::{Demand, Error};
pub use crate::exchange::Progress;
use crate::exchange::{Exchange, News};
use crate::lane::Turn;
use crate::payment::{Met, Purchase, Why};
use crate::reply::Reply;
use nostr::prelude::{EventId, PublicKey};
use rialto_ledger::spending::Rail;
use rialto_mcp::pending::Patience;
use rialto_payment::secret::Secret;
use rialto_wire::request::{self, Command};
use rialto_wire::service::{Way, Wire};
use rialto_wire::{dvmcp, manifest};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long we wait unless told otherwise.
pub const PATIENCE: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(600) };

/// After this time without a word, the provider may be one that does not name the customer in its answers.
const WIDEN_AFTER: Duration = Duration::from_secs(1);

/// How long a response may come after the feedback that says it failed.
const AFTER_COMPLAINT: Duration = Duration::from_secs(2);

/// How long the wallet may take to say that it has paid, once the result is there.
const AFTER_RESULT: Duration = Duration::from_secs(5);

/// How long a person may think; an invoice expires before.
const DECIDING: Duration = Duration::from_secs(24 * 60 * 60);

/// What is asked of whom.
#[derive(Debug, Clone)]
pub struct Order {
    pub provider: PublicKey,
    pub command: Command,
    pub content: String,
    pub way: Way,
    pub patience: Patience,
    /// What is paid if the provider asks for it; nothing if absent.
    pub purchase: Option<Arc<Purchase>>,
}

/// What belongs to a call by message.
#[derive(Debug)]
pub(crate) struct ByMessage {
    pub(crate) promise: Promise,
    pub(crate) turn: Turn,
}

/// What a request has come to.
#[derive(Debug)]
pub enum Step {
    Progress(Progress),
    /// What the provider asked for was paid.
    Paid(Met),
    Done(Reply),
}

/// A request that was sent. Dropping it gives it up.
pub struct Ongoing {
    customer: Arc<Inner>,
    id: EventId,
    provider: PublicKey,
    command: Command,
    way: Way,
    patience: Patience,
    changed: Arc<Notify>,
    undeliverable: Pin<Box<dyn Future<Output = Error> + Send>>,
    began: Instant,
    heard: Instant,
    signs: u64,
    complained: Option<Instant>,
    has_widened: bool,
    is_over: bool,
    purchase: Option<Arc<Purchase>>,
    payment: Option<Box<Paying>>,
    /// Dropped last, when nobody waits for the answer any more.
    _turn: Option<Turn>,
}

impl std::fmt::Debug for Ongoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ongoing").field("id", &self.id).field("command", &self.command).finish_non_exhaustive()
    }
}

impl Ongoing {
    pub(crate) fn begin(customer: &Customer, order: Order, message: Option<ByMessage>) -> Result<Self, Error> {
        let Order { provider, command, content, way, patience, purchase } = order;
        let customer = customer.0.clone();
        let now = customer.clock.now();
        let mut event = match way.wire {
            Wire::Dvmcp => dvmcp::request::write(command, Some(provider), content, customer.me(), now),
            Wire::Manifest => manifest::request::write(provider, content, way.sealed, customer.me(), now),
        };
        if command.has_feedback() {
            // Nobody waits for a run that begins later than this. What has to be paid first may take its time.
            let is_paid =
                purchase.as_ref().is_some_and(|purchase| purchase.price.is_some_and(|price| !price.is_free()));
            request::expire(&mut event, seconds_after(now, if is_paid { patience.total } else { patience.silence }));
        }
        // What is encrypted with NIP-04 differs each time by itself.
        if way != Way::MESSAGE {
            request::distinguish(&mut event, &customer.salt());
        }
        let (id, event) = customer.enclose(event, &provider, way)?;
        let (promise, mut turn) =
            message.map_or_else(Default::default, |message| (message.promise, Some(message.turn)));
        // Expected before it is sent, so that no answer can come too early.
        let changed = customer.expect(id, Exchange::new(provider, way, promise, now))?;
        if let Some(turn) = &mut turn {
            turn.sent();
        }
        let publication = customer.pool.publish(&event);
        let undeliverable = Box::pin(customer.clone().undeliverable(publication));
        let began = Instant::now();
        Ok(Self {
            customer,
            id,
            provider,
            command,
            way,
            patience,
            changed,
            undeliverable,
            began,
            heard: began,
            signs: 0,
            complained: None,
            has_widened: way != Way::PUBLIC,
            is_over: false,
            purchase,
            payment: None,
            _turn: turn,
        })
    }

    /// The id by which the provider knows the request.
    pub fn id(&self) -> EventId {
        self.id
    }

    /// Waits for the next thing that happens. After the end it must not be asked again.
    pub async fn next(&mut self) -> Result<Step, Error> {
        loop {
            match self.look() {
                News::Progress(progress) => return Ok(Step::Progress(progress)),
                News::Ended(outcome) => {
                    self.is_over = true;
                    // Rare, and larger than everything else in here.
                    Box::pin(self.close(&outcome)).await;
                    return outcome.map(Step::Done);
                }
                News::Payment(demand) => {
                    self.demanded(demand)?;
                    continue;
                }
                News::Nothing => {}
            }
            let due = self.due()?;
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                moved = paying::moved(&mut self.payment) => {
                    if let Some(met) = moved? {
                        self.go_on(&met);
                        if let Met::Paid { .. } = met {
                            return Ok(Step::Paid(met));
                        }
                    }
                }
                error = &mut self.undeliverable => {
                    self.is_over = true;
                    return Err(error);
                }
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    /// Waits for the end.
    pub async fn finish(mut self) -> Result<Reply, Error> {
        loop {
            if let Step::Done(reply) = self.next().await? {
                return Ok(reply);
            }
        }
    }

    fn look(&mut self) -> News {
        let now = Instant::now();
        let seen =
            self.customer.look(&self.id, |exchange| (exchange.news(), exchange.signs, exchange.complaint.is_some()));
        let Some((news, signs, has_complaint)) = seen else { return News::Nothing };
        if signs != self.signs {
            (self.signs, self.heard) = (signs, now);
        }
        if has_complaint {
            self.complained.get_or_insert(now);
        }
        news
    }

    /// When to look again if nothing comes; an error if there is no point in it.
    fn due(&mut self) -> Result<Instant, Error> {
        let now = Instant::now();
        match self.payment.as_mut().map(|payment| payment.stand()) {
            Some(Stand::Deciding) => return Ok(now + DECIDING),
            Some(Stand::Begun) => (self.began, self.heard) = (now, now),
            Some(Stand::Other) | None => {}
        }
        let (silence, total) = (self.heard + self.patience.silence, self.began + self.patience.total);
        if let Some(complained) = self.complained {
            let end = complained + AFTER_COMPLAINT;
            if end > now {
                return Ok(end);
            }
            self.is_over = true;
            let complaint = self.customer.look(&self.id, |exchange| exchange.complaint.take()).flatten();
            return Err(complaint.map_or(Error::Silent(AFTER_COMPLAINT), Error::Failed));
        }
        if (total <= now || silence <= now)
            && let Some(unpaid) = self.payment.as_ref().and_then(|payment| payment.flaw())
        {
            return Err(Error::PaymentRequired(Box::new(unpaid)));
        }
        if total <= now {
            return Err(Error::Overdue(self.patience.total));
        }
        if silence <= now {
            let silence = self.patience.silence;
            return Err(if self.signs == 0 { Error::NoAnswer(silence) } else { Error::Silent(silence) });
        }
        let mut due = silence.min(total);
        let widen = self.began + WIDEN_AFTER;
        if !self.has_widened && self.signs == 0 {
            if widen <= now {
                self.has_widened = true;
                self.customer.name(self.id);
            } else {
                due = due.min(widen);
            }
        }
        Ok(due)
    }

    /// Begins to meet a demand. There is one for a request: the same again changes nothing, and another is not met.
    fn demanded(&mut self, demand: Demand) -> Result<(), Error> {
        if let Some(payment) = &mut self.payment {
            payment.asked_again(demand);
            return Ok(());
        }
        let Some(purchase) = self.purchase.clone() else { return Err(Error::unpaid(demand, Why::NotForSale)) };
        let (customer, provider, way, request) = (self.customer.clone(), self.provider, self.way, self.id);
        let deliver = Box::new(move |token: &Secret| paying::deliver(&customer, provider, way, request, token));
        self.payment = Some(Box::new(Paying::begin(purchase, request, provider, demand, deliver)));
        Ok(())
    }

    /// After a payment the waiting begins anew.
    fn go_on(&mut self, met: &Met) {
        let mut now = Instant::now();
        if let Met::Elsewhere { until } = met {
            now += Duration::from_secs(until.saturating_sub(self.customer.clock.now().as_secs()));
        }
        (self.began, self.heard) = (now, now);
    }

    /// What is still to be noted when the answer is there.
    async fn close(&mut self, outcome: &Result<Reply, Error>) {
        // Money that is held arrives at the same time as the answer.
        let met = match &mut self.payment {
            Some(payment) => tokio::time::timeout(AFTER_RESULT, payment.end()).await.ok().flatten(),
            None => None,
        };
        let has_result = outcome.as_ref().is_ok_and(|reply| reply.failure.is_none());
        if let (Some(Met::Paid { fee, rail: Rail::Ecash, .. }), Some(purchase), true) =
            (met, &self.purchase, has_result)
        {
            // Who gave the result has taken the money. If it cannot be noted, the mint is asked later.
            let _ = purchase.payer.settle(*self.id.as_bytes(), fee).await;
        }
    }

    fn cancel(&self) {
        let now = self.customer.clock.now();
        let mut event = dvmcp::request::write_cancel(self.id, self.provider, self.customer.me(), now);
        request::expire(&mut event, seconds_after(now, PATIENCE.silence));
        if let Ok((_, event)) = self.customer.enclose(event, &self.provider, self.way) {
            self.customer.pool.publish(&event);
        }
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.customer.forget(&self.id);
        if !self.is_over && self.way.wire == Wire::Dvmcp && self.command.has_feedback() {
            self.cancel();
        }
    }
}
