//! Money after the answer: what is held is taken or given back, what comes late is credited.

use super::notes::Noted;
use super::{Cause, Provider, Settling, Ticket};
use crate::plan::Window;
use crate::till::Moved;
use nostr::prelude::{Event, EventId};
use rialto_ledger::job::{Before, Entry, Job as Stored, Money, Rail, Stage, Step};
use rialto_ledger::ledger::Horizon;
use rialto_mcp::server::Service;
use rialto_payment::amount::Msat;
use rialto_payment::wallet::Standing;
use rialto_wire::failure::{Code, Failure};

/// How long after its end a quote may still be paid, and be found out.
const LATE_SECS: u64 = 24 * 60 * 60;

/// How long after its end an invoice is not believed to be over. Wallets call one expired by the clock; a payment that was on
/// its way by then may still arrive.
const ON_ITS_WAY_SECS: u64 = 2 * 60;

/// Answers of jobs that are paid are kept this long, and so is what was said in them.
const KEEP_SECS: u64 = 7 * 24 * 60 * 60;

/// Nothing is forgotten that would be taken once more if the clock were put back by this much. What is known in memory is not
/// kept so long; the ledger refuses what it has seen.
const CLOCK_SECS: u64 = 60 * 60;

/// What is old enough to be forgotten.
fn horizon(now: u64, window: Window) -> Horizon {
    let taken = window.past.saturating_add(window.future).saturating_add(CLOCK_SECS);
    Horizon { free: now.saturating_sub(taken), paid: now.saturating_sub(KEEP_SECS.max(taken)) }
}

impl<S: Service> Provider<S> {
    /// Takes what is held for a job, or gives it back.
    pub(super) fn move_money(&mut self, ticket: Ticket, answers: Vec<Event>) {
        let id = ticket.address.request;
        let (Some(till), Some(quote)) = (self.till.clone(), ticket.quote.clone()) else {
            return self.observer.warn(format!("there is money held for {}, but no wallet to move it", id.to_hex()));
        };
        self.settling.insert(id, Settling { ticket, answers, is_delivered: false });
        let causes = self.causes.clone();
        tokio::spawn(async move {
            let moved = match (quote.money, &quote.preimage, quote.hash) {
                (Money::Taking, Some(preimage), _) => till.take(preimage).await,
                (_, _, Some(hash)) => till.give_back(hash).await,
                _ => Moved::Otherwise,
            };
            let _ = causes.send(Cause::Moved { id, moved });
        });
    }

    pub(super) fn moved(&mut self, id: &EventId, moved: Moved) {
        let Some(Settling { mut ticket, mut answers, is_delivered }) = self.settling.remove(id) else { return };
        let Some(mut quote) = ticket.quote.clone() else { return };
        let was_taking = quote.money == Money::Taking;
        let mut credit = quote.credit;
        quote.money = match (was_taking, moved) {
            (true, Moved::Yes) => Money::Taken,
            (true, Moved::Otherwise) => Money::Closed,
            (false, Moved::Yes) => Money::Returned,
            (false, Moved::Otherwise) => {
                credit = quote.paid;
                Money::Credited
            }
        };
        let is_lost = was_taking && moved == Moved::Otherwise;
        if is_lost {
            let words = "the payment was called back before the call was done";
            answers = self.enclosed_failure(&ticket, &Failure::new(Code::PaymentExpired, words));
        }
        ticket.quote = Some(quote.clone());
        let mut step = self.step(&mut ticket, Stage::Done);
        let (owed, why) = match quote.money {
            // All that is held can only be taken as a whole; what was too much stays the customer's.
            Money::Taken => (quote.paid.saturating_sub(quote.due().rounded_up()), "more was paid than asked for"),
            Money::Returned => (Msat::ZERO, ""),
            _ => (credit, "money could not be moved"),
        };
        let msat = i64::try_from(owed.get()).unwrap_or(0);
        step.credit = (msat > 0).then_some(Entry { msat, why });
        step.quote = Some(quote);
        if is_lost {
            step.answers = Some(answers.iter().map(Event::as_json).collect());
        }
        let id = *id;
        self.note(step, move |provider, noted| match noted {
            Noted::Yes if was_taking => {
                provider.known.done(&id, provider.now());
                provider.publish(id, answers);
            }
            Noted::Yes if is_delivered => provider.delivered(&id),
            Noted::Yes | Noted::No(_) => {}
            Noted::Broken => {
                // The money has moved; that it has is found out again.
                if let Some(quote) = &mut ticket.quote {
                    quote.money = if was_taking { Money::Taking } else { Money::Returning };
                }
                ticket.noted = Some(Stage::Settling);
                provider.move_money(ticket, answers);
                if is_delivered {
                    provider.delivered(&id);
                }
            }
        });
    }

    /// Looks for money that came after its quote had run out, and forgets what is old.
    pub(super) fn sweep(&self) {
        let now = self.now().as_secs();
        let (ledger, causes, till) = (self.ledger.clone(), self.causes.clone(), self.till.clone());
        let horizon = horizon(now, self.plan.window);
        tokio::spawn(async move {
            // What cannot be forgotten now is forgotten later.
            while ledger.purge(horizon).await == Ok(true) {}
            let Some(till) = till else { return };
            for job in ledger.lapsed(now.saturating_sub(LATE_SECS)).await.unwrap_or_default() {
                let Some(quote) = &job.quote else { continue };
                let Some(hash) = quote.hash else { continue };
                // Where money is held, nothing can arrive: the invoice was closed.
                let may_arrive = quote.rail != Rail::Hold && now < quote.expires.saturating_add(ON_ITS_WAY_SECS);
                match till.wallet.look_up(hash).await {
                    Ok(Standing::Over) if may_arrive => {}
                    Ok(standing @ (Standing::Settled { .. } | Standing::Over)) => {
                        let _ = causes.send(Cause::Late { job: Box::new(job), standing });
                    }
                    // Nobody waits for it any more: it goes back.
                    Ok(Standing::Held { .. }) => drop(till.wallet.cancel(hash).await),
                    _ => {}
                }
            }
        });
    }

    /// Money for a quote that had run out, or the certainty that none comes.
    pub(super) fn late(&mut self, job: Stored, standing: Standing) {
        let Some(mut quote) = job.quote else { return };
        let mut step = Step::new(job.id, Before::Stage(Stage::Done), Stage::Done, self.now().as_secs());
        step.fence = job.fence;
        step.durable = true;
        match standing {
            Standing::Settled { amount } => {
                (quote.money, quote.paid) = (Money::Credited, amount);
                let msat = i64::try_from(amount.get()).unwrap_or(0);
                step.credit = (msat > 0).then_some(Entry { msat, why: "paid too late" });
                self.observer.warn(format!("{amount} came after the quote had run out, and were credited"));
            }
            _ => quote.money = Money::Closed,
        }
        step.quote = Some(quote);
        // Whoever notes it first is the only one: the next finds no such quote.
        self.note(step, |_, _| {});
    }

    /// Says that we are here, and takes what others have left.
    pub(super) fn renew(&mut self) {
        self.fill_places();
        let (ledger, causes) = (self.ledger.clone(), self.causes.clone());
        let unsent = self.now().as_secs().saturating_sub(super::STILL_WANTED_SECS);
        tokio::spawn(async move {
            let Ok(presence) = ledger.renew().await else { return };
            let _ = causes.send(Cause::Presence(presence));
            if ledger.is_shared()
                && let Ok(found) = ledger.take_over(unsent).await
                && !found.is_empty()
            {
                let _ = causes.send(Cause::Found(found));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{KEEP_SECS, horizon};
    use crate::plan::Window;

    #[test]
    fn a_clock_that_is_put_back_finds_nothing_forgotten_that_it_would_take() {
        let window = Window { past: 900, future: 60 };
        let now = 10_000_000;
        // The clock was an hour ahead when it was purged. What it takes after that was made, and noted, since then.
        let earliest = now - 3600 - window.past - window.future;
        assert!(horizon(now, window).free <= earliest);
        assert_eq!(horizon(now, window).paid, now - KEEP_SECS);
    }
}
