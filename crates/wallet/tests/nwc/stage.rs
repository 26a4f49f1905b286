//! A real relay, a wallet service with two accounts on it, and our connectors for both.

use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::PaymentHash;
use rialto_payment::wallet::{Order, Standing, Wallet as _};
use rialto_relay::embedded;
use rialto_wallet::nwc::{Nwc, Patience};
use rialto_wallet::testing::{Course, Options, Style, TestWallet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const SELLER: usize = 0;
pub(crate) const BUYER: usize = 1;

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// For answers that never come.
const SHORT: Duration = Duration::from_millis(700);

pub(crate) struct Stage {
    pub(crate) relay: embedded::Relay,
    pub(crate) wallet: TestWallet,
    pub(crate) seller: Arc<Nwc>,
    pub(crate) buyer: Arc<Nwc>,
}

pub(crate) fn sat(sat: u64) -> Msat {
    Msat::from_sat(sat).unwrap()
}

pub(crate) fn order(amount: u64) -> Order {
    Order { amount: sat(amount), memo: "a call".to_owned(), expiry: 600 }
}

pub(crate) fn options(seller: Style, buyer: Style) -> Options {
    Options { styles: vec![seller, buyer], balance: sat(1000), fee: sat(1), hold_limit: None }
}

impl Stage {
    pub(crate) async fn plain() -> Self {
        Self::with(options(Style::default(), Style::default()), embedded::Options::default()).await
    }

    pub(crate) async fn with(options: Options, relay: embedded::Options) -> Self {
        let relay = embedded::Relay::start(relay).await.unwrap();
        let wallet = TestWallet::start(&relay.url(), options).await.unwrap();
        let open = |account| {
            let patience = Patience { pay: LONG, other: LONG };
            Arc::new(Nwc::open(&wallet.uri(account).unwrap(), patience).unwrap())
        };
        Self { seller: open(SELLER), buyer: open(BUYER), relay, wallet }
    }

    /// A connector that does not wait long.
    pub(crate) fn hasty(&self, account: usize) -> Nwc {
        let patience = Patience { pay: SHORT, other: SHORT };
        Nwc::open(&self.wallet.uri(account).unwrap(), patience).unwrap()
    }

    pub(crate) fn fault(&self, text: &str) {
        self.wallet.faults().add(text.parse().unwrap());
    }

    /// What both have, in satoshis; nothing may have been made or lost.
    pub(crate) fn balances(&self) -> (u64, u64) {
        assert_eq!(self.wallet.total(), sat(2000));
        let of = |account| self.wallet.balance(account).unwrap().sat_rounded_down();
        (of(SELLER), of(BUYER))
    }

    /// An invoice of the seller.
    pub(crate) async fn invoice(&self, amount: u64) -> Invoice {
        self.seller.make(&order(amount)).await.unwrap()
    }

    /// Waits until the buyer's payment has got there: a request may be given up before the wallet has read it.
    pub(crate) async fn until_payment(&self, hash: PaymentHash, course: Course) {
        let reached = async {
            while self.wallet.course(BUYER, hash) != Some(course) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, reached).await.expect("the payment gets there");
    }

    /// Waits until the seller's wallet says so.
    pub(crate) async fn until(&self, hash: PaymentHash, standing: Standing) {
        let reached = async {
            while self.seller.look_up(hash).await.unwrap() != standing {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LONG, reached).await.expect("the invoice gets there");
    }
}
