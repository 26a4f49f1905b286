//! What every wallet can do, whatever is behind it.
//!
//! A wallet's own look-up is the only proof that something was paid. What a wallet says that it did not do, it did not do
//! ([`Error::Refused`]); what it does not answer, nobody knows ([`Error::Unknown`]), and has to be looked up.

use crate::amount::Msat;
use crate::invoice::Invoice;
use crate::secret::{PaymentHash, Preimage, Secret};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use tokio::sync::broadcast;

/// What a wallet answers, later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Why a wallet did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It said no, and did nothing.
    #[error("the wallet refuses: {0}")]
    Refused(String),
    /// It could not be asked, and did nothing.
    #[error("the wallet cannot be reached: {0}")]
    Unreachable(String),
    /// It was asked, and did not answer: it may have done it.
    #[error("the wallet does not answer: {0}")]
    Unknown(String),
    #[error("the wallet cannot do that: {0}")]
    Unsupported(&'static str),
    /// There is not enough money in it; it did nothing.
    #[error("there is not enough money in the wallet")]
    Insufficient,
    /// What it answered cannot be believed or read.
    #[error("the wallet's answer cannot be used: {0}")]
    Malformed(String),
}

impl Error {
    /// Whether it may have been done nevertheless.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Error::Unknown(_) | Error::Malformed(_))
    }

    /// Whether trying again later may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Error::Unreachable(_) | Error::Unknown(_))
    }
}

/// What a wallet can do beyond receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// Invoices whose money is held until it is decided.
    pub hold: bool,
    pub pay: bool,
}

/// An invoice that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub amount: Msat,
    /// What the payer sees.
    pub memo: String,
    /// Seconds.
    pub expiry: u64,
}

/// How an invoice of ours is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing has come yet.
    Open,
    /// The money is here, and goes back unless we settle.
    Held { amount: Msat },
    /// The money is ours.
    Settled { amount: Msat },
    /// Cancelled, expired or failed: no money will come any more.
    Over,
    /// The wallet knows nothing of it.
    Missing,
}

/// How a payment of ours has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub preimage: Option<Preimage>,
    pub fee: Msat,
}

/// How a payment of ours is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payment {
    /// Nothing has left, and nothing will.
    Not,
    /// It is on its way.
    Pending,
    Paid(Receipt),
}

/// A Lightning wallet.
pub trait Wallet: fmt::Debug + Send + Sync {
    /// What kind it is and where, without its secrets.
    fn name(&self) -> String;

    /// Asked once, at the start.
    fn abilities(&self) -> Later<'_, Abilities>;

    /// Makes an ordinary invoice.
    fn make<'a>(&'a self, order: &'a Order) -> Later<'a, Invoice>;

    /// Makes an invoice for a hash of our choice, whose money is held.
    fn hold<'a>(&'a self, order: &'a Order, hash: PaymentHash) -> Later<'a, Invoice>;

    /// Takes the money that is held. Doing it twice does no harm.
    fn settle<'a>(&'a self, preimage: &'a Preimage) -> Later<'a, ()>;

    /// Gives it back. Doing it twice does no harm.
    fn cancel(&self, hash: PaymentHash) -> Later<'_, ()>;

    /// How an invoice of ours is doing.
    fn look_up(&self, hash: PaymentHash) -> Later<'_, Standing>;

    /// Pays an invoice and waits until that is certain. Paying the same invoice twice moves money once.
    fn pay<'a>(&'a self, invoice: &'a Invoice, max_fee: Msat) -> Later<'a, Receipt>;

    /// How a payment of ours is doing.
    fn look_up_payment(&self, hash: PaymentHash) -> Later<'_, Payment>;

    fn balance(&self) -> Later<'_, Msat>;

    /// Invoices of ours of which the wallet says by itself that something has come. They are worth a look-up and nothing
    /// more. `None` if it never does.
    fn hints(&self) -> Option<broadcast::Receiver<PaymentHash>> {
        None
    }
}

/// What a token says of itself. Nothing of it is certain before its mint has changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub mint: String,
    pub amount: Msat,
    /// What the mint will keep when it is changed.
    pub fee: Msat,
    /// The Nostr key that alone can spend all of it (x only), and until when nobody else can; `None` if anybody can.
    pub lock: Option<Lock>,
    /// One for each coin in it, the same wherever the coin turns up.
    pub coins: Vec<[u8; 33]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    pub key: [u8; 32],
    /// Seconds since 1970; `None` for ever.
    pub until: Option<u64>,
}

/// A wallet that also takes and gives ecash.
pub trait Purse: Wallet {
    /// The mints whose tokens are taken.
    fn mints(&self) -> Vec<String>;

    /// Reads a token, without asking anybody.
    fn read(&self, token: &Secret) -> Result<Token, Error>;

    /// Changes a token at its mint for coins that only we know; says how much came in. A token that is locked to us and was
    /// changed by us before counts as received, so that a crash in between loses nothing.
    fn receive<'a>(&'a self, token: &'a Secret) -> Later<'a, Msat>;

    /// Takes this much out as a token that is worth `amount` after fees, locked to `key` (x only). If there is a `refund`, it
    /// becomes ours again at that time.
    fn send<'a>(&'a self, mint: &'a str, amount: Msat, lock: Lock) -> Later<'a, Secret>;

    /// Takes a token of ours back that nobody has spent; says how much came in.
    fn take_back<'a>(&'a self, token: &'a Secret) -> Later<'a, Msat>;

    /// Pays everything above `keep` to a Lightning address; says what has left.
    fn sweep<'a>(&'a self, keep: Msat, address: &'a str) -> Later<'a, Msat> {
        let _ = (keep, address);
        Box::pin(std::future::ready(Err(Error::Unsupported("sweep"))))
    }
}
