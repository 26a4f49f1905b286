//! Invoices (BOLT 11): what stands inside them, which is all that counts.

use crate::amount::Msat;
use crate::secret::PaymentHash;
use lightning_invoice::{Bolt11Invoice, Bolt11InvoiceDescriptionRef};
use std::str::FromStr;

/// The longest invoice that is read.
pub const MAX_LENGTH: usize = 4096;

/// An invoice whose signature fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoice {
    /// As it was written, in small letters.
    pub text: String,
    /// `None` if the payer chooses; such an invoice is never paid by us.
    pub amount: Option<Msat>,
    pub hash: PaymentHash,
    pub payee: [u8; 33],
    pub description: Option<String>,
    /// Seconds since 1970.
    pub made: u64,
    pub expires: u64,
    pub network: Network,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Bitcoin,
    Testnet,
    Signet,
    Regtest,
    Simnet,
}

/// Why a text is no invoice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoInvoice {
    #[error("the invoice is longer than {MAX_LENGTH} characters")]
    TooLong,
    #[error("the invoice cannot be read: {0}")]
    Unreadable(String),
    #[error("the invoice asks for more money than there is")]
    TooMuch,
}

impl FromStr for Invoice {
    type Err = NoInvoice;

    fn from_str(text: &str) -> Result<Self, NoInvoice> {
        let text = text.trim();
        let text = text.strip_prefix("lightning:").unwrap_or(text);
        if text.len() > MAX_LENGTH {
            return Err(NoInvoice::TooLong);
        }
        let text = text.to_ascii_lowercase();
        let parsed: Bolt11Invoice = text.parse().map_err(|error| NoInvoice::Unreadable(format!("{error}")))?;
        let amount = match parsed.amount_milli_satoshis() {
            Some(msat) => Some(Msat::new(msat).ok_or(NoInvoice::TooMuch)?),
            None => None,
        };
        let description = match parsed.description() {
            Bolt11InvoiceDescriptionRef::Direct(words) => Some(words.to_string()),
            Bolt11InvoiceDescriptionRef::Hash(_) => None,
        };
        let made = parsed.duration_since_epoch().as_secs();
        Ok(Self {
            amount,
            hash: PaymentHash(parsed.payment_hash().0),
            payee: parsed.get_payee_pub_key().serialize(),
            description,
            made,
            expires: made.saturating_add(parsed.expiry_time().as_secs()),
            network: match parsed.currency() {
                lightning_invoice::Currency::Bitcoin => Network::Bitcoin,
                lightning_invoice::Currency::BitcoinTestnet => Network::Testnet,
                lightning_invoice::Currency::Signet => Network::Signet,
                lightning_invoice::Currency::Regtest => Network::Regtest,
                lightning_invoice::Currency::Simnet => Network::Simnet,
            },
            text,
        })
    }
}
