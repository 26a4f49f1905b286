//! An ecash wallet (Cashu) that needs no account and no node: coins of mints that the user trusts.
//!
//! Anybody can pay it, with a token or, through the mint, with any Lightning wallet. The coins are kept by the `cdk` library in
//! a redb file; what this module adds is that nothing is lost or counted twice, whenever the process dies:
//!
//! - *Receiving.* That a token is begun is written down before its mint hears of it, and the library writes down what the mint
//!   will be asked to sign before it asks. After a crash there are these cases. Nothing was sent: nothing has happened, and the
//!   token can be changed again. Something was sent: the library asks again or has the mint repeat its signatures; and the mint
//!   is asked, with what it was to sign, whether it was us whom it gave the coins to, since a token that is spent may have been
//!   spent by somebody else. The coins are kept and we were stopped before we wrote it down: the library's own list, which is
//!   marked with the attempt, has the amount. So the same token counts as received once, with the same amount, for ever; and a
//!   token that others have spent is refused.
//! - *Sending.* What is needed to make the coins is written down before they are asked for, and the token before it is given
//!   away; see [`send`]. Until it is known to be spent it can be taken back, once its time has come.
//! - *Invoices.* Which invoice belongs to which quote is written down before the invoice is seen by anybody. It counts as
//!   settled when its coins are here; a mint gives the same coins for the same request, and only to us (NUT-20).
//! - *Payments.* Which payment belongs to which quote is written down before the mint is asked to pay. As long as its end is
//!   not known, its coins are set aside and it counts as pending.
//!
//! What is given up on in the middle, by a timeout or because nobody waits any more, is treated like a crash.

mod address;
mod branch;
mod face;
mod invoices;
mod memory;
mod mints;
mod payments;
mod place;
mod receive;
mod send;
mod sweep;
mod token;
mod trouble;

pub use address::{Address, NoAddress};
pub use mints::{Mints, NoMints};
pub use place::Unusable;
pub use sweep::Pending;

use branch::Branch;
use memory::{Memory, Paying};
use place::Place;
use rialto_http::client::Agent;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Secret};
use rialto_payment::wallet::{Error, Order, Payment, Purse as _, Receipt};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long opening may wait for mints, to bring what was begun to its end. It goes on later otherwise.
const OPENING: Duration = Duration::from_secs(10);

/// What a wallet is opened with.
#[derive(Clone)]
pub struct Settings {
    /// Its own, made if it is not there.
    pub directory: PathBuf,
    pub mints: Mints,
    /// What a mint may at most owe us in all: it could vanish with it.
    pub cap: Msat,
    /// The secret Nostr key that tokens are locked to.
    pub key: [u8; 32],
    /// For Lightning addresses.
    pub agent: Agent,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("directory", &self.directory)
            .field("mints", &self.mints)
            .finish_non_exhaustive()
    }
}

/// Coins at one or more mints.
pub struct Cashu {
    branches: Vec<Branch>,
    memory: Memory,
    cap: Msat,
    /// What is being received, in satoshis: it counts for the cap before it is here.
    arriving: Mutex<u64>,
    /// The invoices that are being paid: the same one must not be paid by two mints.
    paying: Mutex<HashSet<PaymentHash>>,
    agent: Agent,
    /// Last, so that the lock is given up after everything else.
    _place: Place,
}

impl std::fmt::Debug for Cashu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cashu").field("mints", &self.mints()).finish_non_exhaustive()
    }
}

impl Cashu {
    /// Opens a wallet and brings what was begun to its end, as far as the mints can be reached.
    pub async fn open(settings: Settings) -> Result<Self, Unusable> {
        let place = Place::open(&settings.directory)?;
        let unusable = |words: String| Unusable::Store { path: place.store.clone(), words };
        let memory = Memory::open(&place.store).await.map_err(unusable)?;
        let key =
            cdk::nuts::SecretKey::from_slice(&settings.key).map_err(|_| unusable("the key is not a key".into()))?;
        let mut branches = Vec::new();
        for mint in settings.mints.iter() {
            let branch = Branch::open(mint.clone(), memory.clone(), place.seed.clone(), key.clone());
            branches.push(branch.await.map_err(|error| unusable(error.to_string()))?);
        }
        let Settings { cap, agent, .. } = settings;
        let wallet =
            Self { branches, memory, cap, arriving: Mutex::default(), paying: Mutex::default(), agent, _place: place };
        let _ = tokio::time::timeout(OPENING, wallet.catch_up()).await;
        Ok(wallet)
    }

    /// Brings what was begun to its end, where that is possible now.
    async fn catch_up(&self) {
        for branch in &self.branches {
            if let Ok(turn) = branch.turn().await {
                turn.finish();
            }
        }
    }

    /// Our coins at this mint; only those of the mints that the user named are taken.
    fn branch(&self, mint: &str) -> Result<&Branch, Error> {
        let branch = self.branches.iter().find(|branch| branch.is(mint));
        branch.ok_or_else(|| Error::Refused("the mint is not one of those that are trusted".into()))
    }

    async fn sat(&self) -> Result<u64, Error> {
        let mut sum: u64 = 0;
        for branch in &self.branches {
            sum = sum.saturating_add(branch.sat().await?);
        }
        Ok(sum)
    }

    /// Sets room aside under the cap for what comes in.
    async fn room(&self, sat: u64) -> Result<Room<'_>, Error> {
        let here = self.sat().await?;
        let mut arriving = self.arriving.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = here.saturating_add(*arriving).saturating_add(sat);
        if sum > self.cap.sat_rounded_down() {
            return Err(Error::Refused(format!("the wallet would hold more than {}", self.cap)));
        }
        *arriving = arriving.saturating_add(sat);
        Ok(Room { sat, arriving: &self.arriving })
    }

    async fn take(&self, text: &Secret, cap: Cap) -> Result<Msat, Error> {
        let token = token::parse(text.reveal())?;
        let branch = self.branch(&token.mint.to_string())?;
        let sat = match branch.received(&token).await? {
            Some(sat) => sat,
            None => {
                let _room = match cap {
                    Cap::Counts => Some(self.room(token.sat.saturating_sub(token.fee(&branch.known_keysets()))).await?),
                    Cap::DoesNotCount => None,
                };
                branch.receive(&token).await?
            }
        };
        msat(sat)
    }

    async fn ask(&self, order: &Order) -> Result<Invoice, Error> {
        let sat = order.amount.sat_rounded_up();
        drop(self.room(sat).await?);
        let mut last = Error::Unsupported("without a mint");
        for branch in &self.branches {
            match branch.make(sat, &order.memo).await {
                Err(error @ Error::Unreachable(_)) => last = error,
                made => return made,
            }
        }
        Err(last)
    }

    async fn pay_once(&self, invoice: &Invoice, max_fee: Msat) -> Result<Receipt, Error> {
        if !self.paying.lock().unwrap_or_else(PoisonError::into_inner).insert(invoice.hash) {
            return Err(Error::Unknown("it is being paid already".into()));
        }
        let _alone = Alone { hash: invoice.hash, paying: &self.paying };
        match self.payment(invoice.hash).await? {
            Payment::Paid(receipt) => return Ok(receipt),
            Payment::Pending => return Err(Error::Unknown("it is being paid already".into())),
            Payment::Not => {}
        }
        let wanted = invoice.amount.ok_or_else(|| Error::Refused("the invoice names no amount".into()))?;
        let mut last = Error::Insufficient;
        for branch in &self.branches {
            if branch.sat().await? < wanted.sat_rounded_up() {
                continue;
            }
            match branch.pay(invoice, max_fee).await {
                // Nothing was done there.
                Err(error @ (Error::Unreachable(_) | Error::Insufficient)) => last = error,
                paid => return paid,
            }
        }
        Err(last)
    }

    async fn payment(&self, hash: PaymentHash) -> Result<Payment, Error> {
        match self.memory.read::<Paying>(&hash.to_string()).await? {
            Some(paying) => self.branch(&paying.mint)?.look_up_payment(hash).await,
            None => Ok(Payment::Not),
        }
    }
}

/// Whether the cap applies.
#[derive(Clone, Copy)]
enum Cap {
    Counts,
    /// For what was ours before.
    DoesNotCount,
}

struct Room<'a> {
    sat: u64,
    arriving: &'a Mutex<u64>,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut arriving = self.arriving.lock().unwrap_or_else(PoisonError::into_inner);
        *arriving = arriving.saturating_sub(self.sat);
    }
}

struct Alone<'a> {
    hash: PaymentHash,
    paying: &'a Mutex<HashSet<PaymentHash>>,
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.paying.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.hash);
    }
}

fn msat(sat: u64) -> Result<Msat, Error> {
    Msat::from_sat(sat).ok_or_else(|| Error::Malformed("more money than there is".into()))
}
