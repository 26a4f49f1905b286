//! What a demand asks for: what stands in its invoice, and nothing else.

use super::unpaid::Why;
use crate::error::Demand;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::{Invoice, Network};

/// A demand that could be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    pub invoice: Invoice,
    pub amount: Msat,
    /// The mints whose tokens are taken instead.
    pub mints: Vec<String>,
}

impl Bill {
    /// Reads a demand at a time (seconds since 1970).
    pub(super) fn read(demand: &Demand, network: Network, now: u64) -> Result<Self, Why> {
        let text = demand.invoice.as_deref().ok_or(Why::NoInvoice)?;
        let invoice: Invoice = text.parse().map_err(|error| Why::Invoice(format!("{error}")))?;
        if invoice.network != network {
            return Err(Why::Network(invoice.network));
        }
        let amount = invoice.amount.filter(|amount| !amount.is_zero()).ok_or(Why::NoAmount)?;
        let bill = Self { invoice, amount, mints: demand.mints.clone() };
        bill.check(now)?;
        Ok(bill)
    }

    /// Whether it can still be paid.
    pub(super) fn check(&self, now: u64) -> Result<(), Why> {
        if self.invoice.expires <= now { Err(Why::Expired) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::Bill;
    use crate::error::Demand;
    use crate::payment::Why;
    use rialto_payment::invoice::Network;

    /// From the text of BOLT 11: 2500 µBTC within a minute; and one whose payer chooses.
    const COFFEE: &str = "lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh";
    const OPEN: &str = "lnbc1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyafkq3yap9us6v52vjjsrvywa6rt52cm9r9zqt8r2t7mlcwspyetp5h2tztugp9lfyql";
    const MADE: u64 = 1_496_314_658;

    #[test]
    fn only_what_stands_in_the_invoice_counts() {
        let demand = |invoice: &str| Demand::new(Some("1"), Some(invoice.to_owned()), Vec::new(), "one satoshi");
        let read = |invoice: &str, network, now| Bill::read(&demand(invoice), network, now);
        let bill = read(COFFEE, Network::Bitcoin, MADE + 59).unwrap();
        assert_eq!(bill.amount.to_string(), "250000 sat", "whatever stands beside it");
        assert_eq!(read(COFFEE, Network::Bitcoin, MADE + 60), Err(Why::Expired));
        assert_eq!(read(COFFEE, Network::Regtest, MADE), Err(Why::Network(Network::Bitcoin)));
        assert_eq!(read(OPEN, Network::Bitcoin, MADE), Err(Why::NoAmount));
        assert!(matches!(read("lnbc210n1x", Network::Bitcoin, MADE), Err(Why::Invoice(_))));
        let none = Demand::new(Some("1"), None, Vec::new(), "");
        assert_eq!(Bill::read(&none, Network::Bitcoin, MADE), Err(Why::NoInvoice));
    }
}
