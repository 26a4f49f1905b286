//! Paying invoices: the mint pays, and keeps coins of ours for it (NUT-05).

use super::branch::Branch;
use super::memory::Paying;
use super::trouble::{own, short, undone, within};
use cdk::Amount;
use cdk::nuts::{MeltQuoteState, PaymentMethod};
use cdk::wallet::types::{TransactionDirection, TransactionStatus};
use cdk::wallet::{MeltConfirmOptions, MeltOutcome, MeltQuote};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage};
use rialto_payment::wallet::{Error, Payment, Receipt};
use std::collections::HashMap;
use std::time::Duration;

/// How often a payment that is on its way is asked about, and for how long. Who waits longer looks it up.
const PAUSE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

impl Branch {
    /// What paying this invoice may cost at most beside its amount, in satoshis, and the offer of the mint's for it.
    pub(super) async fn offer(&self, invoice: &Invoice) -> Result<MeltQuote, Error> {
        let wanted = invoice.amount.ok_or_else(|| Error::Refused("the invoice names no amount".into()))?;
        let quote = self.wallet.melt_quote(PaymentMethod::BOLT11, invoice.text.clone(), None, None);
        let quote = within(quote).await.map_err(|error| undone(&error))?;
        if u64::from(quote.amount) > wanted.sat_rounded_up() {
            return Err(Error::Refused("the mint wants more than the invoice does".into()));
        }
        Ok(quote)
    }

    /// Has the mint pay an invoice, and waits for the end.
    pub(super) async fn pay(&self, invoice: &Invoice, max_fee: Msat) -> Result<Receipt, Error> {
        match self.begin(invoice, max_fee).await? {
            Payment::Paid(receipt) => return Ok(receipt),
            Payment::Not => return Err(Error::Refused("the mint could not pay".into())),
            Payment::Pending => {}
        }
        let until = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::Instant::now() < until {
            tokio::time::sleep(PAUSE).await;
            match self.look_up_payment(invoice.hash).await {
                Ok(Payment::Paid(receipt)) => return Ok(receipt),
                Ok(Payment::Not) => return Err(Error::Refused("the mint could not pay".into())),
                // Others may use the coins meanwhile, and the mint may have better moments.
                Ok(Payment::Pending) | Err(_) => {}
            }
        }
        Err(Error::Unknown("the payment is still on its way".into()))
    }

    async fn begin(&self, invoice: &Invoice, max_fee: Msat) -> Result<Payment, Error> {
        let turn = self.turn().await?;
        let quote = self.offer(invoice).await?;
        let prepared =
            within(self.wallet.prepare_melt(&quote.id, HashMap::new())).await.map_err(|error| undone(&error))?;
        let (options, fee) = match self.gives_change().await? {
            true => (MeltConfirmOptions::skip_swap(), prepared.input_fee_without_swap()),
            false => (MeltConfirmOptions::new(), prepared.total_fee_with_swap()),
        };
        let fee = quote.fee_reserve.checked_add(fee);
        let is_cheap = fee.is_some_and(|fee| u64::from(fee) <= max_fee.sat_rounded_down());
        if !is_cheap {
            within(prepared.cancel()).await.map_err(|error| undone(&error))?;
            turn.finish();
            let fee = fee.map_or(0, u64::from);
            return Err(Error::Refused(format!("paying might cost {fee} sat, which is more than {max_fee}")));
        }
        let paying = Paying { mint: self.mint.to_string(), quote: quote.id.clone() };
        // Before the mint can pay, so that the same invoice is not paid by another way as well.
        self.memory.write(&invoice.hash.to_string(), &paying).await?;
        let begun = within(prepared.confirm_prefer_async_with_options(options)).await;
        match begun {
            Ok(MeltOutcome::Paid(paid)) => {
                turn.finish();
                Ok(Payment::Paid(receipt(paid.payment_proof(), paid.fee_paid(), invoice.hash)?))
            }
            Ok(MeltOutcome::Pending(_)) => {
                turn.finish();
                Ok(Payment::Pending)
            }
            Err(error) => {
                let payment = self.state(&quote.id, invoice.hash).await;
                match payment {
                    Ok(Payment::Not) => {
                        turn.finish();
                        Err(undone(&error))
                    }
                    Ok(payment) => {
                        turn.finish();
                        Ok(payment)
                    }
                    Err(_) => Ok(Payment::Pending),
                }
            }
        }
    }

    /// Whether the mint returns what it was given too much (NUT-08). Otherwise our coins are changed for fitting ones first,
    /// which costs a fee more, even if the payment fails.
    async fn gives_change(&self) -> Result<bool, Error> {
        Ok(self.info().await?.nuts.nut08.supported)
    }

    /// How a payment is doing that was begun at this mint.
    pub(super) async fn look_up_payment(&self, hash: PaymentHash) -> Result<Payment, Error> {
        let Some(paying) = self.memory.read::<Paying>(&hash.to_string()).await? else { return Ok(Payment::Not) };
        let turn = self.turn().await?;
        let payment = self.state(&paying.quote, hash).await?;
        turn.finish();
        Ok(payment)
    }

    /// Only while it is our turn.
    async fn state(&self, quote: &str, hash: PaymentHash) -> Result<Payment, Error> {
        let quote = within(self.wallet.check_melt_quote_status(quote)).await;
        let quote = quote.map_err(|error| Error::Unknown(short(error)))?;
        match quote.state {
            MeltQuoteState::Paid => {
                let fee = self.fee(&quote.id).await?;
                Ok(Payment::Paid(receipt(quote.payment_proof.as_deref(), fee, hash)?))
            }
            // As long as coins of ours are set aside for it, it may still be paid.
            MeltQuoteState::Unpaid | MeltQuoteState::Failed if quote.used_by_operation.is_none() => Ok(Payment::Not),
            _ => Ok(Payment::Pending),
        }
    }

    /// What a payment has cost in the end.
    async fn fee(&self, quote: &str) -> Result<Amount, Error> {
        let outgoing = Some(TransactionDirection::Outgoing);
        let all = self.memory.0.list_transactions(Some(self.mint.clone()), outgoing, None).await.map_err(own)?;
        let paid = all.iter().find(|transaction| {
            transaction.status == TransactionStatus::Completed && transaction.quote_id.as_deref() == Some(quote)
        });
        Ok(paid.map_or(Amount::ZERO, |transaction| transaction.fee))
    }
}

fn receipt(preimage: Option<&str>, fee: Amount, hash: PaymentHash) -> Result<Receipt, Error> {
    let fee = Msat::from_sat(fee.into()).ok_or_else(|| Error::Malformed("more money than there is".into()))?;
    let preimage = preimage.and_then(|preimage| Preimage::from_hex(preimage).ok());
    // Mints that pay each other's invoices, or only play to, have none; what does not fit proves nothing.
    Ok(Receipt { preimage: preimage.filter(|preimage| preimage.hash() == hash), fee })
}
