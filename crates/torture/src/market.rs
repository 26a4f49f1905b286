//! A relay, a Lightning network with a wallet for each side, and a provider whose calls cost something.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::wallet::{Receipt, Wallet};
use rialto_wallet::reference;
use rialto_wallet::testing::{Options, Style, TestWallet};

use crate::nostr_side::actor;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::event::Event;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::process::Process;
use crate::nostr_side::world::{Provider, World};
use crate::nostr_side::{PATIENCE, log, runtime};

/// The accounts.
pub const PROVIDER: usize = 0;
pub const CUSTOMER: usize = 1;

pub struct Market {
    pub world: World,
    /// Where the wallets are, and calls unless there are other places for them.
    pub relay: String,
    /// Where calls are asked for and answered.
    pub places: Vec<String>,
    _relay: Option<Process>,
    pub bank: TestWallet,
    payer: Arc<dyn Wallet>,
}

/// What an account has at the start.
pub const BALANCE: u64 = 100_000;

impl Market {
    /// Wallets that can hold money.
    pub fn holding() -> Self {
        Self::new(Style::default())
    }

    /// Calls are made at these relays, and not where the wallets are.
    #[must_use]
    pub fn at(mut self, relays: &[FakeRelay]) -> Self {
        self.places = relays.iter().map(FakeRelay::url).collect();
        self
    }

    /// The provider's wallet cannot hold money.
    pub fn plain() -> Self {
        Self::new(Style { no_hold: true, ..Style::default() })
    }

    fn new(provider: Style) -> Self {
        let world = World::new();
        let (process, relay) = world.relay();
        Self::with(world, relay, Some(process), provider)
    }

    /// Wallets that can hold money, on a relay that is there already.
    pub fn on(relay: &FakeRelay) -> Self {
        Self::with(World::new(), relay.url(), None, Style::default())
    }

    fn with(world: World, relay: String, process: Option<Process>, provider: Style) -> Self {
        let options = Options { styles: vec![provider, Style::default()], ..Options::default() };
        let (bank, payer) = runtime().block_on(async {
            let bank = TestWallet::start(&relay, options).await.unwrap();
            let payer = reference::open(&bank.uri(CUSTOMER).unwrap()).unwrap().wallet();
            // Until a wallet has answered once, each request changes the subscription; answers to others that are on their way
            // then can be lost.
            payer.balance().await.unwrap();
            (bank, payer)
        });
        let places = vec![relay.clone()];
        let market = Self { world, relay, places, _relay: process, bank, payer };
        market.keep_wallet("wallet", PROVIDER);
        market
    }

    /// A file with the address of a wallet.
    pub fn keep_wallet(&self, name: &str, account: usize) -> PathBuf {
        self.keep(name, self.bank.uri(account).unwrap().reveal())
    }

    /// Begins to serve, with these flags.
    #[track_caller]
    pub fn serve(&self, flags: &[&str]) -> Provider {
        let wallet = format!("file:{}", self.world.path().join("wallet").display());
        let mut all = vec!["--wallet", wallet.as_str()];
        all.extend_from_slice(flags);
        self.world.serve(&self.places(), &all)
    }

    /// One of several workers that serve with one key, each as if on a machine of its own.
    #[track_caller]
    pub fn serve_worker(&self, number: usize, flags: &[&str]) -> Provider {
        let wallet = format!("file:{}", self.world.path().join("wallet").display());
        let mut all = vec!["--wallet", wallet.as_str()];
        all.extend_from_slice(flags);
        let program = std::env::current_exe().unwrap();
        let server = [program.to_str().unwrap(), actor::ACTOR, self.world.path().to_str().unwrap()];
        self.world.serve_command(&format!("worker-{number}"), &self.places(), &all, &server)
    }

    fn places(&self) -> Vec<&str> {
        self.places.iter().map(String::as_str).collect()
    }

    /// A file that only we can read.
    pub fn keep(&self, name: &str, text: &str) -> PathBuf {
        secret_file(&self.world, name, text)
    }

    pub fn customer(&self, provider: &Provider) -> Customer {
        Customer::new(&self.relay, &provider.pubkey)
    }

    /// The wallet that pays.
    pub fn payer(&self) -> Arc<dyn Wallet> {
        self.payer.clone()
    }

    /// Where a provider keeps its ledger.
    pub fn ledger_directory(&self, provider: &str) -> PathBuf {
        self.world.home("provider").join("data/rialto/jobs").join(provider)
    }

    /// What an account has, in satoshis.
    pub fn sat(&self, account: usize) -> u64 {
        self.bank.balance(account).unwrap().sat_rounded_down()
    }

    /// What has been earned and spent, in satoshis.
    pub fn earned_and_spent(&self) -> (u64, u64) {
        (self.sat(PROVIDER).saturating_sub(BALANCE), BALANCE.saturating_sub(self.sat(CUSTOMER)))
    }

    #[track_caller]
    pub fn wait_for_balances(&self, earned: u64, spent: u64) {
        log::until(&format!("{earned} earned and {spent} spent"), PATIENCE, || {
            self.earned_and_spent() == (earned, spent)
        });
        assert_eq!(self.bank.total(), Msat::from_sat(2 * BALANCE).unwrap(), "no money is made");
    }

    /// Pays an invoice, and waits until it is taken or goes back.
    pub fn pay(&self, invoice: &str) -> Result<Receipt, rialto_payment::wallet::Error> {
        let invoice: Invoice = invoice.parse().unwrap();
        runtime().block_on(self.payer.pay(&invoice, Msat::ZERO))
    }

    /// The same, while the test goes on.
    pub fn begin_to_pay(
        &self,
        invoice: &str,
    ) -> tokio::task::JoinHandle<Result<Receipt, rialto_payment::wallet::Error>> {
        let (payer, invoice) = (self.payer.clone(), invoice.parse::<Invoice>().unwrap());
        runtime().spawn(async move { payer.pay(&invoice, Msat::ZERO).await })
    }
}

/// A file that only its owner can read.
pub fn secret_file(world: &World, name: &str, text: &str) -> PathBuf {
    let path = world.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The invoice in feedback that asks for money, which must be written both ways and say what it asks for.
#[track_caller]
pub fn invoice(feedback: &Event, sat: u64) -> String {
    let amount = feedback.tags("amount");
    assert_eq!((amount.len(), amount[0][0].as_str()), (1, sat.to_string().as_str()), "{feedback:?}");
    let invoice = feedback.tag("invoice");
    assert_eq!(amount[0][1], invoice);
    let read: Invoice = invoice.parse().unwrap();
    assert_eq!(read.amount, Msat::from_sat(sat), "what is asked for is what stands in the invoice");
    invoice.to_owned()
}
