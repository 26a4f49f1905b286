//! A wallet service for tests: a Lightning network in memory with accounts on it, each reached by Nostr Wallet Connect over
//! a real relay, with faults on command. What was paid can be checked on both sides, and no money is made on the way.

mod bolt11;
mod faults;
mod network;
mod service;

pub use faults::{Effect, Fault, Faults};
pub use network::{Course, Deed, Did, Stage};

use crate::nwc::protocol::service as wire;
use nostr::prelude::{Keys, RelayUrl};
use rialto_payment::amount::Msat;
use rialto_payment::secret::{PaymentHash, Secret};
use rialto_payment::wallet::Order;
use rialto_relay::pool::{self, Pool, Watch};
use service::Service;
use std::io::{Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How long the relay may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Clocks differ.
const SPREAD: Duration = Duration::from_secs(60);

/// An invoice that can be read and not paid: its network does not exist.
pub fn sign_invoice(order: &Order, hash: PaymentHash) -> Result<String> {
    let wanted = network::Wanted { amount: order.amount, memo: &order.memo, expiry: order.expiry, hold: Some(hash) };
    bolt11::write(hash, &wanted, network::now()).map_err(Error::other)
}

/// The same, whose payer chooses the amount.
pub fn sign_open_invoice(memo: &str, expiry: u64, hash: PaymentHash) -> Result<String> {
    let wanted = network::Wanted { amount: Msat::ZERO, memo, expiry, hold: Some(hash) };
    bolt11::write_over(None, hash, &wanted, network::now()).map_err(Error::other)
}

/// What kind of wallet an account has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// It knows the old encryption only.
    pub only_nip04: bool,
    /// It cannot hold money.
    pub no_hold: bool,
    /// It does not say how an invoice is doing other than by when it was settled.
    pub no_state: bool,
    /// It looks up what came in only, and lists what went out.
    pub only_lists_payments: bool,
    /// It does not say whom its answers are for.
    pub no_addressee: bool,
}

/// What the network is like.
#[derive(Debug, Clone)]
pub struct Options {
    /// One account for each.
    pub styles: Vec<Style>,
    /// What each has at the start.
    pub balance: Msat,
    /// What each payment costs.
    pub fee: Msat,
    /// How long money can be held.
    pub hold_limit: Option<Duration>,
}

impl Default for Options {
    /// One account that sells and one that buys.
    fn default() -> Self {
        let balance = Msat::from_sat(100_000).unwrap_or_default();
        Self { styles: vec![Style::default(); 2], balance, fee: Msat::ZERO, hold_limit: None }
    }
}

/// One account, as its service sees it.
#[derive(Debug)]
struct Account {
    service: Keys,
    client: Keys,
    style: Style,
}

impl Account {
    fn methods(&self) -> Vec<&'static str> {
        let mut methods = vec!["get_info", "get_balance", "make_invoice", "lookup_invoice", "pay_invoice"];
        if !self.style.no_hold {
            methods.extend(["make_hold_invoice", "settle_hold_invoice", "cancel_hold_invoice"]);
        }
        if self.style.only_lists_payments {
            methods.push("list_transactions");
        }
        methods
    }
}

/// A running wallet service. It ends when it is dropped.
#[derive(Debug)]
pub struct TestWallet {
    service: Arc<Service>,
    relay: RelayUrl,
    task: AbortHandle,
}

impl Drop for TestWallet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestWallet {
    /// Serves accounts on a relay; when this returns, they can be asked.
    pub async fn start(relay: &str, options: Options) -> Result<Self> {
        let relay: RelayUrl = relay.parse().map_err(Error::other)?;
        let account = |style: &Style| Account { service: Keys::generate(), client: Keys::generate(), style: *style };
        let accounts: Vec<Account> = options.styles.iter().map(account).collect();
        let filter = wire::requests_filter(accounts.iter().map(|account| account.service.public_key()));
        let pool_options = pool::Options { quorum: 1, ..pool::Options::default() };
        let watches = vec![Watch { filter, spread: SPREAD }];
        let (pool, arrivals) = Pool::start(std::slice::from_ref(&relay), watches, pool_options);
        let network = network::Network::new(accounts.len(), options.balance, options.fee);
        let service = Arc::new(Service { network, accounts, faults: Faults::default(), pool, options });
        let task = tokio::spawn(service::serve(service.clone(), arrivals)).abort_handle();
        let wallet = Self { service, relay, task };
        let is_heard = |relays: &[rialto_relay::status::Status]| {
            relays.iter().any(|relay| relay.state == rialto_relay::status::State::Subscribed)
        };
        if !wallet.service.pool.wait(PATIENCE, is_heard).await {
            return Err(Error::other("the relay cannot be reached"));
        }
        for announcement in wallet.service.announce() {
            let report = tokio::time::timeout(PATIENCE, announcement.settled()).await.map_err(Error::other)?;
            if report.accepted == 0 {
                return Err(Error::other("the relay does not take what the wallet says of itself"));
            }
        }
        Ok(wallet)
    }

    /// How to reach an account's wallet; there is none beyond the last.
    pub fn uri(&self, account: usize) -> Option<Secret> {
        let Account { service, client, .. } = self.service.accounts.get(account)?;
        let secret = client.secret_key().to_secret_hex();
        Some(Secret::new(format!(
            "nostr+walletconnect://{}?relay={}&secret={secret}",
            service.public_key(),
            self.relay
        )))
    }

    pub fn balance(&self, account: usize) -> Option<Msat> {
        self.service.network.balance(account)
    }

    /// What there is in all, on accounts and on its way; never changes.
    pub fn total(&self) -> Msat {
        Msat::new(self.service.network.total()).unwrap_or_default()
    }

    /// Everything that ever happened to money here, in order.
    pub fn deeds(&self) -> Vec<Deed> {
        self.service.network.deeds()
    }

    /// How an account's invoice is doing.
    pub fn stage(&self, account: usize, hash: PaymentHash) -> Option<Stage> {
        self.service.network.bill(account, &hash).map(|bill| bill.stage)
    }

    /// How an account's payment is doing.
    pub fn course(&self, account: usize, hash: PaymentHash) -> Option<Course> {
        self.service.network.payment(account, &hash).map(|payment| payment.course)
    }

    pub fn faults(&self) -> &Faults {
        &self.service.faults
    }

    /// Ends a payment that is stuck: it arrives, or it comes back.
    pub fn resolve(&self, hash: PaymentHash, arrives: bool) {
        self.service.network.resolve(&hash, arrives);
    }
}
