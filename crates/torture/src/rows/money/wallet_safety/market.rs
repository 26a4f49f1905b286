//! The wallets of everybody, and the invoices that were made for each call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::wallet::{Order, Wallet as _};
use rialto_wallet::nwc::{Nwc, Patience};
use rialto_wallet::testing::{Options, Stage, Style, TestWallet};

use crate::nostr_side::process::Process;
use crate::nostr_side::world::World;
use crate::nostr_side::{PATIENCE, runtime};

/// What the tool says it costs, in satoshis.
pub(super) const PRICE: u64 = 5;

/// Accounts of the wallet service.
pub(super) const PROVIDER: usize = 0;
pub(super) const CUSTOMER: usize = 1;
pub(super) const STRANGER: usize = 2;

/// The wallet service, and those who make invoices.
pub(super) struct Bank {
    pub(super) wallet: TestWallet,
    provider: Nwc,
    stranger: Nwc,
    _relay: Process,
}

impl Bank {
    pub(super) fn open(world: &World) -> Self {
        let (relay, url) = world.relay();
        let options = Options { styles: vec![Style::default(); 3], ..Options::default() };
        let wallet = runtime().block_on(TestWallet::start(&url, options)).unwrap();
        let _inside = runtime().enter();
        let open = |account| Nwc::open(&wallet.uri(account).unwrap(), Patience::default()).unwrap();
        Self { provider: open(PROVIDER), stranger: open(STRANGER), wallet, _relay: relay }
    }

    pub(super) fn invoice(&self, by: usize, sat: u64, expiry: u64) -> Invoice {
        let by = if by == PROVIDER { &self.provider } else { &self.stranger };
        let order = Order { amount: Msat::from_sat(sat).unwrap(), memo: "a call".into(), expiry };
        runtime().block_on(by.make(&order)).unwrap()
    }

    pub(super) fn balance(&self, account: usize) -> u64 {
        self.wallet.balance(account).unwrap().get()
    }

    pub(super) fn is_paid(&self, invoice: &Invoice) -> bool {
        [PROVIDER, STRANGER].iter().any(|account| self.wallet.stage(*account, invoice.hash) == Some(Stage::Settled))
    }
}

/// The provider, with everything that it has asked for.
pub(super) struct Market {
    pub(super) bank: Bank,
    /// All invoices that were made for a call, by its number.
    invoices: Mutex<BTreeMap<usize, Vec<Invoice>>>,
    pub(super) expired: Invoice,
    pub(super) used: Invoice,
    /// All calls have been answered.
    pub(super) is_over: AtomicBool,
}

impl Market {
    pub(super) fn new(bank: Bank, expired: Invoice, used: Invoice) -> Self {
        Self { bank, invoices: Mutex::default(), expired, used, is_over: AtomicBool::new(false) }
    }

    pub(super) fn invoices(&self) -> MutexGuard<'_, BTreeMap<usize, Vec<Invoice>>> {
        self.invoices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another invoice that is for a call.
    pub(super) fn note(&self, number: usize, invoice: Invoice) {
        self.invoices().entry(number).or_default().push(invoice);
    }

    pub(super) fn invoice(&self, number: usize, by: usize, sat: u64) -> String {
        let invoice = self.bank.invoice(by, sat, 600);
        let text = invoice.text.clone();
        self.note(number, invoice);
        text
    }

    /// Waits until one of the invoices of a call is paid; not for ever, because the budget may be used up, nor longer than
    /// anybody waits for a result.
    pub(super) fn is_paid_soon(&self, number: usize) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && !self.is_over.load(Ordering::Relaxed) {
            let invoices = self.invoices().get(&number).cloned().unwrap_or_default();
            if invoices.iter().any(|invoice| self.bank.is_paid(invoice)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}
