//! What a request costs, and how it comes to be paid.

use super::deliver::NOTE_AGAIN;
use super::notes::Noted;
use super::{Cause, Job, Provider, Ticket};
use crate::job::{Happened, State, Task, step};
use crate::till::Ending;
use nostr::prelude::EventId;
use rialto_ledger::job::{Entry, FreeUse, Money, Quote, Rail, Refusal, Stage};
use rialto_ledger::ledger::{self, Account};
use rialto_mcp::server::Service;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::price::Rule;
use rialto_payment::secret::Preimage;
use rialto_payment::wallet;
use rialto_wire::charge::Charge;
use rialto_wire::dvmcp::answer::Progress;
use rialto_wire::failure::{Code, Failure};
use rialto_wire::manifest;
use rialto_wire::request::Body;
use rialto_wire::service::Wire;

/// Quotes that are open at once, for one customer and for all: each may keep somebody's money waiting.
const QUOTES_PER_KEY: usize = 16;
const QUOTES: usize = 1000;

/// What a refund is called where calls have the names of tools.
const REFUND: &str = "refund";

/// What is asked for a request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) amount: Msat,
    /// Calls that are free, if it is one call.
    first_free: u32,
}

impl<S: Service> Provider<S> {
    /// What a request costs; `None` if nothing.
    pub(super) fn asked(&self, body: &Body, customer: &[u8; 32]) -> Result<Option<Asked>, Failure> {
        let prices = &self.plan.prices;
        let too_much = || Failure::new(Code::InvalidInput, "the call would cost more money than there is");
        let amount = |name: &str, length: usize| prices.amount(name, length, customer).ok_or_else(too_much);
        let asked = match body {
            Body::Execute(execution) => {
                let amount = amount(&execution.name, execution.arguments.len())?;
                Asked { tool: execution.name.clone(), amount, first_free: prices.rule(&execution.name).first_free }
            }
            Body::Batch(executions) => {
                let mut all = Msat::ZERO;
                for execution in executions {
                    let one = amount(&execution.name, execution.arguments.len())?;
                    all = all.checked_add(one).ok_or_else(too_much)?;
                }
                Asked { tool: format!("{} calls", executions.len()), amount: all, first_free: 0 }
            }
            // All that we owe; how much that is, the ledger knows.
            Body::Refund { .. } => {
                return Ok(Some(Asked { tool: REFUND.to_owned(), amount: Msat::ZERO, first_free: 0 }));
            }
            _ => return Ok(None),
        };
        Ok((!asked.amount.is_zero()).then_some(asked))
    }

    /// Whether a request must be kept until it is done.
    pub(super) fn must_survive(&self, body: &Body) -> bool {
        let concerns = |name: &str| self.plan.prices.rule(name) != Rule::FREE || self.plan.idempotent.contains(name);
        match body {
            Body::Execute(execution) => concerns(&execution.name),
            Body::Batch(executions) => executions.iter().any(|execution| concerns(&execution.name)),
            Body::Refund { .. } => true,
            _ => false,
        }
    }

    /// Whether one more quote may be made for this customer.
    pub(super) fn may_quote(&self, ticket: &Ticket) -> bool {
        let is_open =
            |job: &&Job| matches!(job.state, State::Received | State::Asking | State::Quoted | State::Receiving);
        let open = self.jobs.values().filter(is_open);
        let (mut all, mut own) = (0, 0);
        for job in open {
            all += 1;
            own += usize::from(job.ticket.address.customer == ticket.address.customer);
        }
        all < QUOTES && own < QUOTES_PER_KEY
    }

    /// Finds out what the customer has with us.
    pub(super) fn ask_account(&self, id: EventId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let customer = job.ticket.address.customer.to_bytes();
        let tool = job.body.as_ref().map_or(String::new(), tool_of);
        let (ledger, causes) = (self.ledger.clone(), self.causes.clone());
        tokio::spawn(async move {
            let account = ledger.account(customer, &tool).await;
            let _ = causes.send(Cause::Account { id, account });
        });
    }

    /// Decides how a call is paid.
    pub(super) fn accounted(&mut self, id: &EventId, account: Result<Account, ledger::Error>) {
        let Some(job) = self.jobs.get(id).filter(|job| job.state == State::Received) else { return };
        let customer = job.ticket.address.customer.to_bytes();
        let asked = job.body.as_ref().map(|body| self.asked(body, &customer));
        let (Some(Ok(Some(asked))), Ok(account)) = (asked, account) else {
            return self.unpayable(id, &Failure::new(Code::Busy, "the provider cannot take requests now"));
        };
        let Some(till) = &self.till else {
            return self.unpayable(id, &Failure::new(Code::Busy, "the provider cannot be paid now"));
        };
        let expires = self.now().as_secs() + self.plan.quote.as_secs();
        let mut quote = Quote {
            tool: asked.tool.clone(),
            price: asked.amount,
            credit: Msat::ZERO,
            rail: if till.holds { Rail::Hold } else { Rail::Invoice },
            money: Money::Open,
            hash: None,
            preimage: None,
            invoice: None,
            token: None,
            expires,
            paid: Msat::ZERO,
        };
        if let Some(Body::Refund { .. }) = &job.body {
            let whole = Msat::from_sat(account.credit.sat_rounded_down()).unwrap_or_default();
            if whole.is_zero() || till.purse.is_none() {
                let words = if whole.is_zero() { "nothing is credited to you" } else { "ecash is not given here" };
                return self.unpayable(id, &Failure::new(Code::PaymentRefused, words));
            }
            // A call that is paid with all that is credited, and gives a token: if it fails, the credit is there again.
            (quote.price, quote.credit, quote.rail, quote.money) = (whole, whole, Rail::Credit, Money::Ours);
            return self.begin_quote(id, quote);
        }
        if account.free_uses < asked.first_free {
            return self.give(id, FreeUse { tool: asked.tool, of: asked.first_free });
        }
        if let Some(token) = job.token.clone() {
            return self.take_token(id, token, quote, None);
        }
        // Whole satoshis: not every wallet can ask for less.
        let whole = Msat::from_sat(account.credit.sat_rounded_down()).unwrap_or_default();
        quote.credit = whole.min(asked.amount);
        if quote.due().is_zero() {
            (quote.rail, quote.money) = (Rail::Credit, Money::Ours);
        }
        self.begin_quote(id, quote);
    }

    /// One of the calls that cost nothing.
    fn give(&mut self, id: &EventId, free_use: FreeUse) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.state = step(job.state, Happened::Priced(None)).0;
            job.free_use = Some(free_use);
            self.queue.push_back(*id);
            self.fill_places();
        }
    }

    /// Notes how a call is to be paid, before anything is asked of the wallet.
    fn begin_quote(&mut self, id: &EventId, mut quote: Quote) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let (state, task) = step(job.state, Happened::Priced(Some(quote.rail)));
        job.state = state;
        if quote.rail == Rail::Hold {
            match Preimage::generate() {
                Ok(preimage) => (quote.hash, quote.preimage) = (Some(preimage.hash()), Some(preimage)),
                Err(_) => return self.unpayable(id, &Failure::new(Code::Busy, "the provider cannot be paid now")),
            }
        }
        let stage = if task == Task::UseCredit { Stage::Funded } else { Stage::Asking };
        self.note_quote(id, stage, quote, move |provider, id| match task {
            Task::UseCredit => provider.funded(id),
            _ => provider.ask_wallet(id),
        });
    }

    /// Notes a quote together with the credit that it uses.
    fn note_quote(
        &mut self,
        id: &EventId,
        stage: Stage,
        quote: Quote,
        then: impl FnOnce(&mut Self, &EventId) + Send + 'static,
    ) {
        let id = *id;
        let Some(mut ticket) = self.jobs.get(&id).map(|job| job.ticket.clone()) else { return };
        ticket.quote = Some(quote.clone());
        let mut step = self.step(&mut ticket, stage);
        let used = i64::try_from(quote.credit.get()).unwrap_or(i64::MAX);
        step.credit = (used > 0).then_some(Entry { msat: -used, why: "a call was paid with it" });
        step.quote = Some(quote);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.ticket = ticket;
        }
        self.note(step, move |provider, noted| match noted {
            Noted::Yes => {
                provider.known.opened(&id, provider.now());
                then(provider, &id);
            }
            Noted::No(Refusal::NoCredit) => provider.price_again(&id),
            Noted::No(_) => {
                provider.jobs.remove(&id);
                provider.leave(&id, noted);
            }
            Noted::Broken => {
                if let Some(job) = provider.jobs.get_mut(&id) {
                    (job.ticket.quote, job.ticket.noted) = (None, None);
                }
                let failure = Failure::new(Code::Busy, "the provider cannot take requests now");
                if let Some(job) = provider.jobs.remove(&id) {
                    provider.fail_unrecorded(&job.ticket, &failure);
                }
            }
        });
    }

    /// What was counted on has been used up meanwhile.
    pub(super) fn price_again(&mut self, id: &EventId) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.state = State::Received;
            (job.ticket.quote, job.ticket.noted, job.free_use) = (None, None, None);
            self.ask_account(*id);
        }
    }

    /// Asks the wallet for the invoice of a quote.
    pub(super) fn ask_wallet(&mut self, id: &EventId) {
        let (Some(till), Some(job)) = (self.till.clone(), self.jobs.get(id)) else { return };
        let Some(quote) = job.ticket.quote.clone() else { return };
        // By the id a careful payer knows what the invoice is for.
        let tool: String = quote.tool.chars().take(64).collect();
        let memo = format!("{}: {tool} ({})", self.plan.name, id.to_hex());
        let (id, causes, expiry) = (*id, self.causes.clone(), self.plan.quote.as_secs());
        tokio::spawn(async move {
            let invoice = till.invoice(&quote, memo, expiry).await;
            let _ = causes.send(Cause::Invoiced { id, invoice });
        });
    }

    pub(super) fn invoiced(&mut self, id: &EventId, invoice: Result<Invoice, wallet::Error>) {
        let now = self.now().as_secs();
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.state == State::Asking) else { return };
        let Some(mut quote) = job.ticket.quote.clone() else { return };
        let invoice = match invoice {
            Ok(invoice) if invoice.expires > now => invoice,
            Ok(_) | Err(_) => {
                let why = invoice.err().map_or("the invoice has run out".to_owned(), |error| error.to_string());
                self.observer.warn(format!("cannot ask for {}: {why}", quote.due()));
                return self.unpayable(id, &Failure::new(Code::Busy, "the provider cannot be paid now"));
            }
        };
        let (state, task) = step(job.state, Happened::Invoiced);
        job.state = state;
        if task != Task::Charge {
            return;
        }
        quote.expires = quote.expires.min(invoice.expires);
        quote.hash = Some(invoice.hash);
        quote.invoice = Some(invoice.text.clone());
        let mut ticket = job.ticket.clone();
        ticket.quote = Some(quote.clone());
        let mut noted = self.step(&mut ticket, Stage::Quoted);
        noted.quote = Some(quote);
        if let Some(job) = self.jobs.get_mut(id) {
            job.ticket = ticket;
        }
        let id = *id;
        self.note(noted, move |provider, noted| match noted {
            Noted::Yes => provider.charge(&id),
            Noted::No(Refusal::HashUsed) => {
                // A wallet that gives one invoice to two customers cannot be used for this one.
                if let Some(job) = provider.jobs.get_mut(&id) {
                    (job.state, job.ticket.noted) = (State::Asking, Some(Stage::Asking));
                    if let Some(quote) = &mut job.ticket.quote {
                        (quote.hash, quote.invoice) = (None, None);
                    }
                }
                provider.unpayable(&id, &Failure::new(Code::Busy, "the provider cannot be paid now"));
            }
            // Nobody has seen the invoice, and another worker has the job.
            Noted::No(_) => drop(provider.jobs.remove(&id)),
            Noted::Broken => provider.invoice_again(&id, invoice),
        });
    }

    /// The invoice could not be noted, and nobody has seen it: it is tried again, or the request would wait for a restart.
    fn invoice_again(&mut self, id: &EventId, invoice: Invoice) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        (job.state, job.ticket.noted) = (State::Asking, Some(Stage::Asking));
        let (id, causes) = (*id, self.causes.clone());
        tokio::spawn(async move {
            tokio::time::sleep(NOTE_AGAIN).await;
            let _ = causes.send(Cause::Invoiced { id, invoice: Ok(invoice) });
        });
    }

    /// Tells the customer what it costs, and watches.
    pub(super) fn charge(&mut self, id: &EventId) {
        let Some(till) = self.till.clone() else { return };
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(quote) = job.ticket.quote.clone() else { return };
        let ticket = job.ticket.clone();
        let due = quote.due().rounded_up();
        let (Some(hash), expires) = (quote.hash, quote.expires) else { return };
        let (causes, clock, id) = (self.causes.clone(), self.clock.clone(), *id);
        let mints = till.mints();
        let watching = tokio::spawn(async move {
            let ending = till.watch(hash, due, expires, clock).await;
            let _ = causes.send(Cause::Ending { id, ending });
        });
        job.running = Some(watching.abort_handle());
        let words = match quote.credit.is_zero() {
            true => format!("{} costs {}", quote.tool, quote.price),
            false => format!("{} costs {}, of which {} are credit", quote.tool, quote.price, quote.credit),
        };
        let words = words.chars().take(200).collect();
        let charge = Charge { sat: due.sat_rounded_up(), invoice: quote.invoice, mints, words };
        let event = match ticket.way.wire {
            Wire::Dvmcp => self.writer(&ticket).feedback(&ticket.address, &Progress::Charged(&charge)),
            Wire::Manifest => self.message(&ticket, manifest::answer::charged(&charge)),
        };
        self.send(&ticket, event);
    }

    /// A quote was paid, or ran out.
    pub(super) fn quote_ended(&mut self, id: &EventId, ending: Ending) {
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.state == State::Quoted) else { return };
        let Some(quote) = job.ticket.quote.clone() else { return };
        let (money, paid) = match ending {
            Ending::Held(paid) => (Money::Held, paid),
            Ending::Settled(paid) => (Money::Ours, paid),
            Ending::Lapsed => return self.lapse(id),
        };
        self.note_funded(id, Quote { money, paid, ..quote });
    }

    fn lapse(&mut self, id: &EventId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let (state, task) = step(job.state, Happened::Lapsed);
        job.state = state;
        if task != Task::Expire {
            return;
        }
        let Some(job) = self.jobs.remove(id) else { return };
        self.close_invoice(&job.ticket);
        self.fail(&job.ticket, &Failure::new(Code::PaymentExpired, "it was not paid in time"));
    }

    /// So that nobody pays what is not wanted any more. Not every wallet can; what comes nevertheless is credited.
    pub(super) fn close_invoice(&self, ticket: &Ticket) {
        let quote = ticket.quote.as_ref().filter(|quote| quote.rail == Rail::Hold && quote.money == Money::Open);
        let (Some(till), Some(hash)) = (self.till.clone(), quote.and_then(|quote| quote.hash)) else { return };
        tokio::spawn(async move { till.give_back(hash).await });
    }

    /// Notes that the money is here.
    pub(super) fn note_funded(&mut self, id: &EventId, quote: Quote) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let (state, task) = step(job.state, Happened::Funded);
        job.state = state;
        if task != Task::Queue {
            return;
        }
        let mut ticket = job.ticket.clone();
        let more = quote.paid.saturating_sub(quote.due().rounded_up());
        ticket.quote = Some(quote.clone());
        let mut noted = self.step(&mut ticket, Stage::Funded);
        // What is held goes back as a whole; what is ours and too much stays the customer's.
        let surplus = i64::try_from(more.get()).unwrap_or(0);
        let is_surplus = surplus > 0 && quote.money == Money::Ours;
        noted.credit = is_surplus.then_some(Entry { msat: surplus, why: "more was paid than asked for" });
        noted.quote = Some(quote);
        if let Some(job) = self.jobs.get_mut(id) {
            job.ticket = ticket;
            job.running = None;
        }
        let id = *id;
        self.note(noted, move |provider, noted| match noted {
            Noted::Yes => provider.funded(&id),
            Noted::No(_) => {
                provider.jobs.remove(&id);
            }
            // The money is there, and will be found again.
            Noted::Broken => provider.watch_again(&id),
        });
    }

    /// Back to where the money had not been seen yet.
    fn watch_again(&mut self, id: &EventId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let Some(quote) = &mut job.ticket.quote else { return };
        (quote.money, quote.paid) = (Money::Open, Msat::ZERO);
        let is_token = quote.rail == Rail::Token;
        job.state = if is_token { State::Receiving } else { State::Quoted };
        job.ticket.noted = Some(if is_token { Stage::Receiving } else { Stage::Quoted });
        if is_token { self.change_token(id) } else { self.charge(id) }
    }

    /// It may run.
    pub(super) fn funded(&mut self, id: &EventId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(payment) = job.payment.take() {
            self.succeed(&payment, "{\"accepted\":true}".to_owned());
        }
        self.queue.push_back(*id);
        self.fill_places();
    }

    /// It cannot be paid for: whatever credit was used goes back.
    pub(super) fn unpayable(&mut self, id: &EventId, failure: &Failure) {
        let Some(job) = self.jobs.remove(id) else { return };
        if let Some(payment) = &job.payment {
            self.fail(payment, failure);
        }
        if job.ticket.noted.is_none() { self.refuse(&job.ticket, failure) } else { self.fail(&job.ticket, failure) }
    }
}

fn tool_of(body: &Body) -> String {
    match body {
        Body::Execute(execution) => execution.name.clone(),
        _ => String::new(),
    }
}
