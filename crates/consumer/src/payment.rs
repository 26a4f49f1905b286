//! Paying: a demand of the provider that was asked is read, allowed by a budget or by a person, noted, and paid once.
//!
//! The order is what keeps money safe. What the invoice says is all that counts, not what stands beside it. A payment is noted
//! in the ledger, together with the budget that it uses, before the wallet is asked; and whatever the wallet does or fails to
//! say, there is never a second one for the same request. What is uncertain counts as spent until the wallet's own look-up
//! says otherwise.

mod approval;
mod bill;
pub(crate) mod pay;
mod price;
mod resolve;
mod unpaid;

pub use self::approval::{Approver, Decision, Later, Nobody, Question, Reason};
pub use self::bill::Bill;
pub use self::price::{announced, price_of};
pub use self::unpaid::{Unpaid, Why};

use rialto_ledger::spending::{Rail, Spending};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Network;
use rialto_payment::price::Rule;
use rialto_payment::wallet::{Purse, Wallet};
use rialto_relay::clock::{Clock, SystemClock};
use std::sync::Arc;

/// What sending a payment may cost: a hundredth of it, which is what routes over a few nodes take; of small amounts more,
/// because the fixed part of what nodes ask for is about a satoshi each.
const MAX_FEE_PERCENT: u64 = 1;
const MAX_FEE_AT_LEAST_SAT: u64 = 10;

/// The most that sending this much may cost.
pub fn max_fee(amount: Msat) -> Msat {
    let part = Msat::new(amount.get() / 100 * MAX_FEE_PERCENT).unwrap_or_default();
    part.max(Msat::from_sat(MAX_FEE_AT_LEAST_SAT).unwrap_or_default())
}

/// What pays, and what is remembered about it. For all requests of a process.
#[derive(Debug)]
pub struct Payer {
    wallet: Option<Arc<dyn Wallet>>,
    purse: Option<Arc<dyn Purse>>,
    spending: Spending,
    network: Network,
    clock: Arc<dyn Clock>,
}

impl Payer {
    /// Without a wallet, everything that costs something has to be paid elsewhere.
    pub fn new(wallet: Option<Arc<dyn Wallet>>, spending: Spending, network: Network) -> Self {
        Self { wallet, purse: None, spending, network, clock: Arc::new(SystemClock) }
    }

    /// One that pays with ecash where that is taken, and over Lightning elsewhere.
    pub fn with_purse(purse: Arc<dyn Purse>, spending: Spending, network: Network) -> Self {
        let wallet: Arc<dyn Wallet> = purse.clone();
        Self { purse: Some(purse), ..Self::new(Some(wallet), spending, network) }
    }

    pub fn spending(&self) -> &Spending {
        &self.spending
    }

    pub fn has_wallet(&self) -> bool {
        self.wallet.is_some()
    }

    fn now(&self) -> u64 {
        self.clock.now().as_secs()
    }

    /// Asks the ledger, which may have to wait for other processes.
    async fn ledger<T: Send + 'static>(&self, ask: impl FnOnce(&Spending) -> T + Send + 'static) -> Result<T, Why> {
        let spending = self.spending.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&spending)).await;
        asked.map_err(|error| Why::Ledger(error.to_string()))
    }
}

/// What is bought with one request, and who may be asked whether it is worth it.
#[derive(Debug, Clone)]
pub struct Purchase {
    pub payer: Arc<Payer>,
    /// The provider's name and the tool's, fit to be shown.
    pub service: String,
    pub tool: String,
    /// What the tool says it costs, if it does.
    pub price: Option<Rule>,
    /// The length of the arguments.
    pub input: usize,
    /// A person has allowed this much for this request, fees included, and no more.
    pub allowed: Option<Msat>,
    pub approver: Arc<dyn Approver>,
}

impl Purchase {
    /// What the tool says that this request costs.
    pub fn announced(&self) -> Option<Msat> {
        self.price.and_then(|price| price.amount(self.input))
    }
}

/// How a demand was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Met {
    Paid {
        amount: Msat,
        fee: Msat,
        rail: Rail,
    },
    /// A person pays with a wallet that we know nothing of, until this time at most (seconds since 1970).
    Elsewhere {
        until: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::max_fee;
    use rialto_payment::amount::Msat;

    #[test]
    fn sending_costs_little() {
        for (amount, fee) in [(1, 10), (1000, 10), (1001, 10), (2000, 20), (1_000_000, 10_000)] {
            assert_eq!(max_fee(Msat::from_sat(amount).unwrap()).sat_rounded_down(), fee, "{amount}");
        }
    }
}
