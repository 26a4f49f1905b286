//! Ecash: tokens that pay for a request, and tokens that give back what is credited.

use super::notes::Noted;
use super::{Cause, Ended, Provider, Ticket};
use crate::call::Reply;
use crate::job::{Happened, State, Task, step};
use crate::till::Till;
use nostr::prelude::EventId;
use rialto_ledger::job::{Money, Quote, Rail, Refusal, Stage};
use rialto_mcp::server::Service;
use rialto_payment::amount::Msat;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{self, Token};
use rialto_wire::failure::{Code, Failure};
use tokio::task::AbortHandle;

/// How long a token must still be ours alone when it comes, so that changing it cannot be overtaken.
const TOKEN_MARGIN_SECS: u64 = 300;

/// How long a token that gives money back is the customer's alone. Nobody may ever fetch it; then it is ours again.
const REFUND_SECS: u64 = 30 * 24 * 60 * 60;

impl<S: Service> Provider<S> {
    /// Takes a token for a request; `payment` is the request that brought it, if that was another.
    pub(super) fn take_token(&mut self, id: &EventId, token: Secret, mut quote: Quote, payment: Option<Box<Ticket>>) {
        let read = self.till.as_ref().and_then(|till| till.purse.as_ref()).map(|purse| {
            let read = purse.read(&token).map_err(|_| "this is no token that can be read".to_owned());
            read.and_then(|read| self.acceptable(&read, &quote, &purse.mints()).map(|()| read))
        });
        let read = match read {
            Some(Ok(read)) => read,
            refused => {
                let words = match refused {
                    Some(Err(words)) => words,
                    _ => "tokens are not taken here".to_owned(),
                };
                let failure = Failure::new(Code::PaymentRefused, words);
                return match payment {
                    // The quote stays as it is: it can still be paid.
                    Some(payment) => self.fail(&payment, &failure),
                    None => self.unpayable(id, &failure),
                };
            }
        };
        let Some(job) = self.jobs.get_mut(id) else { return };
        let happened = if job.state == State::Quoted { Happened::Offered } else { Happened::Priced(Some(Rail::Token)) };
        let (state, task) = step(job.state, happened);
        if task != Task::Receive {
            return;
        }
        job.state = state;
        if let Some(watching) = job.running.take() {
            watching.abort();
        }
        let mut ticket = job.ticket.clone();
        job.payment = payment;
        (quote.rail, quote.token) = (Rail::Token, Some(token));
        ticket.quote = Some(quote.clone());
        let mut noted = self.step(&mut ticket, Stage::Receiving);
        (noted.quote, noted.coins) = (Some(quote), read.coins);
        let Some(old) = self.jobs.get_mut(id).map(|job| std::mem::replace(&mut job.ticket, ticket)) else { return };
        let id = *id;
        self.note(noted, move |provider, noted| match noted {
            Noted::Yes => {
                provider.known.opened(&id, provider.now());
                // What was asked for before is not wanted any more.
                provider.close_invoice(&old);
                provider.change_token(&id);
            }
            Noted::No(Refusal::CoinUsed) => {
                let words = "these coins have paid for another request";
                provider.untaken(&id, old, &Failure::new(Code::PaymentRefused, words));
            }
            Noted::No(_) => {
                provider.jobs.remove(&id);
                provider.leave(&id, noted);
            }
            Noted::Broken => {
                provider.untaken(&id, old, &Failure::new(Code::Busy, "the provider cannot take tokens now"));
            }
        });
    }

    /// A token was not taken, nor touched. What was quoted before can still be paid.
    fn untaken(&mut self, id: &EventId, old: Ticket, failure: &Failure) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let is_quoted = old.noted == Some(Stage::Quoted);
        job.ticket = old;
        if !is_quoted {
            return self.unpayable(id, failure);
        }
        job.state = State::Quoted;
        if let Some(payment) = job.payment.take() {
            self.fail(&payment, failure);
        }
        self.charge(id);
    }

    /// Why a token is not taken. What it is really worth, only its mint knows.
    fn acceptable(&self, token: &Token, quote: &Quote, mints: &[String]) -> Result<(), String> {
        let is_known = mints.iter().any(|mint| mint.trim_end_matches('/') == token.mint.trim_end_matches('/'));
        if !is_known {
            return Err(format!("tokens of that mint are not taken; taken are those of {}", mints.join(", ")));
        }
        let now = self.now().as_secs();
        let is_ours = token.lock.is_some_and(|lock| {
            let is_long = lock.until.is_none_or(|until| until >= now + TOKEN_MARGIN_SECS);
            lock.key == self.plan.keys.public_key().to_bytes() && is_long
        });
        // One that others can spend could be gone before it is changed, and nobody could tell by whom.
        if !is_ours {
            return Err("the token must be locked to this provider's key for at least five minutes".to_owned());
        }
        if token.amount < quote.due() {
            return Err(format!("the token is worth {}, and {} are asked for", token.amount, quote.due()));
        }
        Ok(())
    }

    pub(super) fn change_token(&mut self, id: &EventId) {
        let purse = self.till.as_ref().and_then(|till| till.purse.clone());
        let token = self.jobs.get(id).and_then(|job| job.ticket.quote.as_ref()?.token.clone());
        let (Some(purse), Some(token)) = (purse, token) else { return };
        let (id, causes) = (*id, self.causes.clone());
        tokio::spawn(async move {
            let received = Till::receive(&*purse, &token).await;
            let _ = causes.send(Cause::Received { id, received });
        });
    }

    /// Gives back, as a token that only the customer can spend; `None` if there is nothing to do it with.
    pub(super) fn refund(&self, id: EventId, mint: Option<String>) -> Option<AbortHandle> {
        let purse = self.till.as_ref()?.purse.clone()?;
        let job = self.jobs.get(&id)?;
        let (amount, customer) = (job.ticket.quote.as_ref()?.price, job.ticket.address.customer.to_bytes());
        let (causes, until) = (self.causes.clone(), self.now().as_secs() + REFUND_SECS);
        let given = tokio::spawn(async move {
            let mint = mint.or_else(|| purse.mints().into_iter().next()).unwrap_or_default();
            let lock = wallet::Lock { key: customer, until: Some(until) };
            let outcome = match purse.send(&mint, amount, lock).await {
                Ok(token) => {
                    let content =
                        serde_json::json!({ "token": token.reveal(), "amount_sat": amount.sat_rounded_down() });
                    Ok(Reply { content: content.to_string(), complaint: None })
                }
                Err(_) => Err(Failure::new(Code::UpstreamUnavailable, "the mint gives no token now")),
            };
            let _ = causes.send(Cause::Ended(Ended { id, outcome }));
        });
        Some(given.abort_handle())
    }

    pub(super) fn received(&mut self, id: &EventId, received: Result<Msat, wallet::Error>) {
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.state == State::Receiving) else { return };
        let Some(quote) = job.ticket.quote.clone() else { return };
        let paid = match received {
            Ok(paid) => paid,
            Err(error) => {
                self.observer.warn(format!("a token is worth nothing: {error}"));
                let words = "the mint does not take the token; nothing was run";
                return self.unpayable(id, &Failure::new(Code::PaymentRefused, words));
            }
        };
        let quote = Quote { money: Money::Ours, paid, ..quote };
        if paid >= quote.due() {
            return self.note_funded(id, quote);
        }
        let words = format!("{paid} came in, and {} were asked for", quote.due());
        job.ticket.quote = Some(quote);
        self.unpayable(id, &Failure::new(Code::PaymentRefused, words));
    }
}
