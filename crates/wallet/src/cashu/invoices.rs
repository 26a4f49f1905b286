//! Being paid by anybody: an invoice of the mint's, and coins for it once it is paid (NUT-04).

use super::branch::Branch;
use super::memory::Asked;
use super::trouble::{short, undone, unknown, within};
use cdk::Amount;
use cdk::amount::SplitTarget;
use cdk::nuts::nut04::MintMethodOptions;
use cdk::nuts::{CurrencyUnit, MintQuoteState, PaymentMethod};
use cdk::wallet::MintQuote;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::PaymentHash;
use rialto_payment::wallet::{Error, Standing};
use std::time::{SystemTime, UNIX_EPOCH};

/// How long after an invoice has expired it may still turn out to have been paid: parts of a payment that were on their way
/// arrive within minutes, or not at all.
const LATEST: u64 = 600;

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Branch {
    /// An invoice whose money becomes coins of ours.
    pub(super) async fn make(&self, sat: u64, memo: &str) -> Result<Invoice, Error> {
        let info = self.info().await?;
        let settings = info.nuts.nut04.get_settings(&CurrencyUnit::Sat, &PaymentMethod::BOLT11);
        let takes_memo = matches!(
            settings.and_then(|settings| settings.options),
            Some(MintMethodOptions::Bolt11 { description: true })
        );
        let memo = Some(memo.to_owned()).filter(|memo| takes_memo && !memo.is_empty());
        let quote = self.wallet.mint_quote(PaymentMethod::BOLT11, Some(Amount::from(sat)), memo, None);
        let quote = within(quote).await.map_err(|error| undone(&error))?;
        let invoice: Invoice = quote.request.parse().map_err(|error| Error::Malformed(short(error)))?;
        if invoice.amount != Msat::from_sat(sat) {
            return Err(Error::Malformed("the mint's invoice is for another amount".into()));
        }
        let asked =
            Asked { mint: self.mint.to_string(), quote: quote.id, sat, expires: invoice.expires, is_settled: false };
        // Before anybody can pay it.
        self.memory.write(&invoice.hash.to_string(), &asked).await?;
        Ok(invoice)
    }

    /// How an invoice is doing. Its money is ours when its coins are.
    pub(super) async fn look_up(&self, hash: PaymentHash, asked: &Asked) -> Result<Standing, Error> {
        let amount = Msat::from_sat(asked.sat).ok_or_else(|| Error::Malformed("more money than there is".into()))?;
        if asked.is_settled {
            return Ok(Standing::Settled { amount });
        }
        let turn = self.turn().await?;
        let mut quote = self.quote(&asked.quote).await?;
        if quote.state == MintQuoteState::Paid {
            if let Err(error) = within(self.wallet.mint(&asked.quote, SplitTarget::None, None)).await {
                // The coins may be signed and not here yet: asking once more brings them.
                self.recover().await?;
                quote = self.quote(&asked.quote).await?;
                if quote.state != MintQuoteState::Issued {
                    return Err(unknown(&error));
                }
            } else {
                quote.state = MintQuoteState::Issued;
                quote.used_by_operation = None;
            }
        }
        let standing = match quote.state {
            MintQuoteState::Issued if quote.used_by_operation.is_some() => {
                return Err(Error::Unknown("the coins of a paid invoice are not here yet".into()));
            }
            MintQuoteState::Issued => {
                let settled = Asked { is_settled: true, mint: asked.mint.clone(), quote: quote.id, ..*asked };
                self.memory.write(&hash.to_string(), &settled).await?;
                Standing::Settled { amount }
            }
            _ if now() > asked.expires.saturating_add(LATEST) => Standing::Over,
            _ => Standing::Open,
        };
        turn.finish();
        Ok(standing)
    }

    /// A quote as the mint sees it. What was begun and not finished for it is finished on the way.
    async fn quote(&self, id: &str) -> Result<MintQuote, Error> {
        within(self.wallet.check_mint_quote_status(id)).await.map_err(|error| undone(&error))
    }
}
