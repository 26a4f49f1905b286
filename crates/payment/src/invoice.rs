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
            hash: PaymentHash(*parsed.payment_hash().as_ref()),
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

#[cfg(test)]
mod tests {
    use super::{Invoice, Network, NoInvoice};

    /// From the text of BOLT 11: 2500 µBTC for a cup of coffee, within a minute.
    const COFFEE: &str = "lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh";

    #[test]
    fn what_stands_inside_counts() {
        let invoice: Invoice = COFFEE.parse().unwrap();
        assert_eq!(invoice.amount.unwrap().to_string(), "250000 sat");
        assert_eq!(invoice.hash.to_string(), "0001020304050607080900010203040506070809000102030405060708090102");
        assert_eq!((invoice.description.as_deref(), invoice.network), (Some("1 cup coffee"), Network::Bitcoin));
        assert_eq!((invoice.made, invoice.expires), (1_496_314_658, 1_496_314_718));
        assert_eq!(format!("lightning:{}", COFFEE.to_uppercase()).parse::<Invoice>().unwrap(), invoice);
    }

    #[test]
    fn what_was_changed_on_its_way_is_no_invoice() {
        let changed = COFFEE.replace("2500u", "2600u");
        assert!(matches!(changed.parse::<Invoice>(), Err(NoInvoice::Unreadable(_))));
        assert!(matches!("x".repeat(5000).parse::<Invoice>(), Err(NoInvoice::TooLong)));
        assert!("".parse::<Invoice>().is_err());
    }
}
