//! Where the money goes: the wallet of a provider, and how it is asked.
//!
//! What is asked of a wallet more than once does no harm; what it does not answer is asked again until it does.

use rialto_ledger::job::Quote;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rialto_payment::wallet::{Error, Order, Purse, Standing, Wallet};
use rialto_relay::clock::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;

/// Between two looks at an invoice, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LAST_LOOK: Duration = Duration::from_secs(15);

/// How long after its end an invoice is looked at once more: a payment may be on its way.
const GRACE_SECS: u64 = 5;

/// How often a wallet that does not answer is asked for an invoice.
const TRIES: u32 = 3;

/// A wallet at work.
#[derive(Debug, Clone)]
pub struct Till {
    pub wallet: Arc<dyn Wallet>,
    /// The same, if it also takes ecash.
    pub purse: Option<Arc<dyn Purse>>,
    /// It can hold money until a job is done.
    pub holds: bool,
}

/// How a quote has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Held(Msat),
    Settled(Msat),
    Lapsed,
}

/// What has become of money that was to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    Yes,
    /// It is somewhere else: gone back when it was to be taken, taken when it was to go back.
    Otherwise,
}

impl Till {
    pub(crate) fn mints(&self) -> Vec<String> {
        self.purse.as_ref().map(|purse| purse.mints()).unwrap_or_default()
    }

    /// Asks for an invoice with the amount and, if it holds, the hash of a quote.
    pub(crate) async fn invoice(&self, quote: &Quote, memo: String, expiry: u64) -> Result<Invoice, Error> {
        let order = Order { amount: quote.due().rounded_up(), memo, expiry };
        let mut pause = FIRST_LOOK;
        for _ in 1..TRIES {
            match self.try_invoice(quote, &order).await {
                Err(error) if error.is_temporary() => tokio::time::sleep(pause).await,
                done => return done,
            }
            pause *= 2;
        }
        self.try_invoice(quote, &order).await
    }

    async fn try_invoice(&self, quote: &Quote, order: &Order) -> Result<Invoice, Error> {
        let held = quote.preimage.as_ref().map(Preimage::hash);
        let invoice = match held {
            Some(hash) => self.wallet.hold(order, hash).await?,
            None => self.wallet.make(order).await?,
        };
        // Whatever the wallet is, a customer pays what stands in the invoice.
        let is_ours = held.is_none_or(|hash| hash == invoice.hash);
        if invoice.amount != Some(order.amount) || !is_ours {
            return Err(Error::Malformed("it is not the invoice that was asked for".to_owned()));
        }
        Ok(invoice)
    }

    /// Watches an invoice until its money is here, or will not come. A wallet that does not answer is asked until it does.
    pub(crate) async fn watch(&self, hash: PaymentHash, due: Msat, expires: u64, clock: Arc<dyn Clock>) -> Ending {
        let mut hints = self.wallet.hints();
        let mut pause = FIRST_LOOK;
        loop {
            let is_late = clock.now().as_secs() > expires.saturating_add(GRACE_SECS);
            match self.wallet.look_up(hash).await {
                Ok(Standing::Held { amount }) if amount >= due => return Ending::Held(amount),
                Ok(Standing::Settled { amount }) if amount >= due => return Ending::Settled(amount),
                Ok(Standing::Over) => return Ending::Lapsed,
                Ok(_) if is_late => return Ending::Lapsed,
                _ => {}
            }
            let left =
                Duration::from_secs(expires.saturating_add(GRACE_SECS + 1).saturating_sub(clock.now().as_secs()));
            hinted(&mut hints, hash, pause.min(left.max(FIRST_LOOK))).await;
            pause = (pause * 2).min(LAST_LOOK);
        }
    }

    /// Takes what is held.
    pub(crate) async fn take(&self, preimage: &Preimage) -> Moved {
        let mut pause = FIRST_LOOK;
        loop {
            let done = match self.wallet.settle(preimage).await {
                Ok(()) => return Moved::Yes,
                Err(error) if error.is_temporary() => None,
                // It may have been taken before.
                Err(_) => match self.wallet.look_up(preimage.hash()).await {
                    Ok(Standing::Settled { .. }) => Some(Moved::Yes),
                    Ok(Standing::Over | Standing::Missing | Standing::Open) => Some(Moved::Otherwise),
                    Ok(Standing::Held { .. }) | Err(_) => None,
                },
            };
            if let Some(done) = done {
                return done;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_LOOK);
        }
    }

    /// Gives back what is held; also an invoice that nobody has paid.
    pub(crate) async fn give_back(&self, hash: PaymentHash) -> Moved {
        let mut pause = FIRST_LOOK;
        loop {
            let done = match self.wallet.cancel(hash).await {
                Ok(()) => return Moved::Yes,
                Err(error) if error.is_temporary() => None,
                Err(_) => match self.wallet.look_up(hash).await {
                    Ok(Standing::Settled { .. }) => Some(Moved::Otherwise),
                    Ok(Standing::Over | Standing::Missing | Standing::Open) => Some(Moved::Yes),
                    Ok(Standing::Held { .. }) | Err(_) => None,
                },
            };
            if let Some(done) = done {
                return done;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_LOOK);
        }
    }

    /// Changes a token; says how much came in, or why it is worth nothing.
    pub(crate) async fn receive(purse: &dyn Purse, token: &Secret) -> Result<Msat, Error> {
        let mut pause = FIRST_LOOK;
        loop {
            match purse.receive(token).await {
                Err(error) if error.is_temporary() => tokio::time::sleep(pause).await,
                done => return done,
            }
            pause = (pause * 2).min(LAST_LOOK);
        }
    }
}

/// Waits for a hint about this payment, but not longer than `pause`. A hint proves nothing: it is a reason to look.
async fn hinted(hints: &mut Option<Receiver<PaymentHash>>, hash: PaymentHash, pause: Duration) {
    let hint = async {
        let Some(hints) = hints else { return std::future::pending().await };
        loop {
            match hints.recv().await {
                Ok(hinted) if hinted != hash => {}
                // Too many to remember: this one may have been among them.
                Ok(_) | Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => return,
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    };
    let _ = tokio::time::timeout(pause, hint).await;
}
