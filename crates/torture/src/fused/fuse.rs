//! A ledger and a wallet that end their own process at a chosen moment, as a power cut would.

use rialto_ledger::job::{Id, Job, Outcome, Stage, Step};
use rialto_ledger::ledger::{self, Account, Horizon, Ledger, Presence, Seen, Status};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rialto_payment::wallet::{Abilities, Error, Later, Lock, Order, Payment, Purse, Receipt, Standing, Token, Wallet};
use rustix::process::{Signal, getpid, kill_process};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::broadcast;

/// What the process is doing when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The first step to this stage is committed.
    Commit(Stage),
    /// The wallet is asked for an invoice.
    Make,
    /// The wallet is asked whether money has come. `After` is after it said that it has.
    Look,
    Settle,
    Cancel,
    /// A token is changed.
    Receive,
    /// It is noted that relays have the answers.
    Sent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

/// Where a process ends: the so-many-th time that it comes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub point: Point,
    pub when: When,
    pub nth: usize,
}

/// Burns through once, at its mark if it has one.
#[derive(Debug, Clone, Default)]
pub(super) struct Fuse {
    mark: Option<Mark>,
    met: Arc<AtomicUsize>,
}

impl Fuse {
    pub(super) fn new(mark: Option<Mark>) -> Self {
        Self { mark, met: Arc::default() }
    }

    fn meets(&self, point: Point, when: When) {
        let Some(mark) = self.mark.filter(|mark| (mark.point, mark.when) == (point, when)) else { return };
        if self.met.fetch_add(1, Ordering::SeqCst) + 1 == mark.nth {
            let _ = kill_process(getpid(), Signal::KILL);
            // It takes effect before this returns; should it not, this does.
            std::process::abort();
        }
    }
}

#[derive(Debug)]
pub(super) struct FusedLedger<L> {
    pub inner: L,
    pub fuse: Fuse,
}

/// A wallet, and beside it a mint that remembers in a folder which tokens were changed.
#[derive(Debug)]
pub(super) struct FusedWallet {
    pub inner: Arc<dyn Wallet>,
    pub fuse: Fuse,
    pub mint: PathBuf,
    /// To whom all tokens are locked.
    pub key: [u8; 32],
}

/// The address of that mint; nobody asks for it there.
const MINT: &str = "https://mint.test";

impl<L: Ledger> Ledger for FusedLedger<L> {
    fn commit(&self, steps: Vec<Step>) -> ledger::Later<'_, Vec<Outcome>> {
        Box::pin(async move {
            let stages: Vec<Stage> = steps.iter().map(|step| step.stage).collect();
            stages.iter().for_each(|stage| self.fuse.meets(Point::Commit(*stage), When::Before));
            let outcomes = self.inner.commit(steps).await;
            stages.iter().for_each(|stage| self.fuse.meets(Point::Commit(*stage), When::After));
            outcomes
        })
    }

    fn sent(&self, ids: Vec<Id>) -> ledger::Later<'_, ()> {
        Box::pin(async move {
            self.fuse.meets(Point::Sent, When::Before);
            let done = self.inner.sent(ids).await;
            self.fuse.meets(Point::Sent, When::After);
            done
        })
    }

    fn recent(&self, since: u64) -> ledger::Later<'_, Vec<Seen>> {
        self.inner.recent(since)
    }

    fn take_over(&self, unsent: u64) -> ledger::Later<'_, Vec<Job>> {
        self.inner.take_over(unsent)
    }

    fn lapsed(&self, since: u64) -> ledger::Later<'_, Vec<Job>> {
        self.inner.lapsed(since)
    }

    fn answers(&self, id: Id) -> ledger::Later<'_, Vec<String>> {
        self.inner.answers(id)
    }

    fn account<'a>(&'a self, customer: Id, tool: &'a str) -> ledger::Later<'a, Account> {
        self.inner.account(customer, tool)
    }

    fn renew(&self) -> ledger::Later<'_, Presence> {
        self.inner.renew()
    }

    fn purge(&self, horizon: Horizon) -> ledger::Later<'_, bool> {
        self.inner.purge(horizon)
    }

    fn status(&self) -> ledger::Later<'_, Status> {
        self.inner.status()
    }
}

impl FusedWallet {
    /// Does something at a point.
    async fn at<R>(&self, point: Point, work: Later<'_, R>) -> Result<R, Error> {
        self.fuse.meets(point, When::Before);
        let done = work.await;
        self.fuse.meets(point, When::After);
        done
    }
}

impl Wallet for FusedWallet {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn abilities(&self) -> Later<'_, Abilities> {
        self.inner.abilities()
    }

    fn make<'a>(&'a self, order: &'a Order) -> Later<'a, Invoice> {
        Box::pin(self.at(Point::Make, self.inner.make(order)))
    }

    fn hold<'a>(&'a self, order: &'a Order, hash: PaymentHash) -> Later<'a, Invoice> {
        Box::pin(self.at(Point::Make, self.inner.hold(order, hash)))
    }

    fn settle<'a>(&'a self, preimage: &'a Preimage) -> Later<'a, ()> {
        Box::pin(self.at(Point::Settle, self.inner.settle(preimage)))
    }

    fn cancel(&self, hash: PaymentHash) -> Later<'_, ()> {
        Box::pin(self.at(Point::Cancel, self.inner.cancel(hash)))
    }

    fn look_up(&self, hash: PaymentHash) -> Later<'_, Standing> {
        Box::pin(async move {
            self.fuse.meets(Point::Look, When::Before);
            let standing = self.inner.look_up(hash).await;
            if let Ok(Standing::Held { .. } | Standing::Settled { .. }) = standing {
                self.fuse.meets(Point::Look, When::After);
            }
            standing
        })
    }

    fn pay<'a>(&'a self, invoice: &'a Invoice, max_fee: Msat) -> Later<'a, Receipt> {
        self.inner.pay(invoice, max_fee)
    }

    fn look_up_payment(&self, hash: PaymentHash) -> Later<'_, Payment> {
        self.inner.look_up_payment(hash)
    }

    fn balance(&self) -> Later<'_, Msat> {
        self.inner.balance()
    }

    fn hints(&self) -> Option<broadcast::Receiver<PaymentHash>> {
        self.inner.hints()
    }
}

/// Every token is one coin of five satoshis.
impl Purse for FusedWallet {
    fn mints(&self) -> Vec<String> {
        vec![MINT.to_owned()]
    }

    fn read(&self, token: &Secret) -> Result<Token, Error> {
        let mut coin = [2; 33];
        coin.iter_mut().zip(token.reveal().bytes()).for_each(|(coin, byte)| *coin = byte);
        let lock = Some(Lock { key: self.key, until: None });
        Ok(Token { mint: MINT.to_owned(), amount: worth(), fee: Msat::ZERO, lock, coins: vec![coin] })
    }

    fn receive<'a>(&'a self, token: &'a Secret) -> Later<'a, Msat> {
        let changed = Box::pin(async move {
            std::fs::write(self.mint.join(token.reveal()), "").map_err(|error| Error::Refused(error.to_string()))?;
            Ok(worth())
        });
        Box::pin(self.at(Point::Receive, changed))
    }

    fn send<'a>(&'a self, _mint: &'a str, _amount: Msat, _lock: Lock) -> Later<'a, Secret> {
        Box::pin(async { Err(Error::Unsupported("sending")) })
    }

    fn take_back<'a>(&'a self, _token: &'a Secret) -> Later<'a, Msat> {
        Box::pin(async { Err(Error::Unsupported("taking back")) })
    }
}

fn worth() -> Msat {
    Msat::from_sat(5).unwrap()
}
