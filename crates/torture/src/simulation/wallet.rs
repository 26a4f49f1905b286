//! The wallet: invoices that are paid, held, settled, cancelled, called back or forgotten by everybody; and answers that come
//! late or never.

use super::mistake::Mistake;
use super::rules;
use super::world::{Shared, World};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::{Invoice, Network};
use rialto_payment::secret::{PaymentHash, Preimage};
use rialto_payment::wallet::{Abilities, Error, Later, Order, Payment, Receipt, Standing, Wallet};
use std::sync::Arc;
use tokio::sync::{broadcast, oneshot};

/// How long a wallet is waited for.
const PATIENCE: u64 = 10_000;

/// Where the money of an invoice is, in msat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Money {
    Nowhere,
    Held(u64),
    Settled(u64),
    /// Cancelled: back with whoever has paid, if anybody has.
    Back,
}

pub(super) struct Bill {
    pub(super) hash: PaymentHash,
    pub(super) amount: u64,
    /// Seconds since 1970.
    pub(super) expires: u64,
    is_held: bool,
    pub(super) money: Money,
    /// The most that was ever here.
    pub(super) most: u64,
    /// The request that it is for, by its memo.
    pub(super) job: Option<usize>,
}

pub(super) struct Vault {
    /// It can hold money.
    pub(super) holds: bool,
    pub(super) bills: Vec<Bill>,
    hints: broadcast::Sender<PaymentHash>,
}

impl Vault {
    pub(super) fn new(holds: bool) -> Self {
        Self { holds, bills: Vec::new(), hints: broadcast::Sender::new(64) }
    }

    pub(super) fn bill(&self, hash: &PaymentHash) -> Option<usize> {
        self.bills.iter().position(|bill| bill.hash == *hash)
    }
}

fn refused(words: &str) -> Error {
    Error::Refused(words.to_owned())
}

impl World {
    fn make(&mut self, order: &Order, hash: Option<PaymentHash>) -> Result<Invoice, Error> {
        let number = match hash.and_then(|hash| self.vault.bill(&hash)) {
            // Some wallets give the same again, some do not.
            Some(number) if self.chances(500) => number,
            Some(_) => return Err(refused("there is such an invoice")),
            None => {
                let hash = hash.unwrap_or_else(|| {
                    let mut bytes = [0; 32];
                    bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.chance.next().to_be_bytes()));
                    Preimage::new(bytes).hash()
                });
                let job = (0..self.jobs.len()).find(|job| order.memo.contains(&self.jobs[*job].hex));
                let bill = Bill {
                    hash,
                    amount: order.amount.get(),
                    expires: self.seconds() + order.expiry,
                    is_held: self.vault.holds,
                    money: Money::Nowhere,
                    most: 0,
                    job,
                };
                self.vault.bills.push(bill);
                self.vault.bills.len() - 1
            }
        };
        let bill = &self.vault.bills[number];
        self.trace.add(self.now, "gets an invoice", bill.job, "");
        Ok(Invoice {
            text: format!("lnsim{number}"),
            amount: Msat::new(bill.amount),
            hash: bill.hash,
            payee: [2; 33],
            description: None,
            made: bill.expires - order.expiry,
            expires: bill.expires,
            network: Network::Regtest,
        })
    }

    fn settle(&mut self, hash: PaymentHash) -> Result<(), Error> {
        let number = self.vault.bill(&hash).ok_or_else(|| refused("no such invoice"))?;
        let bill = &mut self.vault.bills[number];
        match bill.money {
            Money::Held(amount) => {
                bill.money = Money::Settled(amount);
                self.trace.add(self.now, "its money is taken", bill.job, "");
                self.disk.is_changed = true;
                rules::taken(self, number);
                Ok(())
            }
            Money::Settled(_) => Ok(()),
            Money::Nowhere | Money::Back => Err(refused("nothing is held")),
        }
    }

    fn cancel(&mut self, hash: PaymentHash) -> Result<(), Error> {
        let number = self.vault.bill(&hash).ok_or_else(|| refused("no such invoice"))?;
        if self.mistake == Some(Mistake::KeepsHolds) {
            return Ok(());
        }
        let bill = &mut self.vault.bills[number];
        match bill.money {
            Money::Settled(_) => Err(refused("it is settled")),
            Money::Nowhere | Money::Held(_) | Money::Back => {
                let was_held = matches!(bill.money, Money::Held(_));
                bill.money = Money::Back;
                self.trace.add(
                    self.now,
                    "its invoice is cancelled",
                    bill.job,
                    if was_held { "with money" } else { "" },
                );
                if was_held {
                    rules::given_back(self, number);
                }
                Ok(())
            }
        }
    }

    fn look_up(&mut self, hash: PaymentHash) -> Standing {
        let Some(bill) = self.vault.bill(&hash).map(|number| &self.vault.bills[number]) else {
            return Standing::Missing;
        };
        let seen = |amount: u64| {
            let is_blind = self.mistake == Some(Mistake::TakesTooLittle);
            Msat::new(if is_blind { amount.max(bill.amount) } else { amount }).unwrap()
        };
        match bill.money {
            Money::Nowhere if self.seconds() < bill.expires => Standing::Open,
            // By the clock: one that is not held may still be paid.
            Money::Nowhere | Money::Back => Standing::Over,
            Money::Held(amount) => Standing::Held { amount: seen(amount) },
            Money::Settled(amount) => Standing::Settled { amount: seen(amount) },
        }
    }

    /// A payment arrives.
    pub(super) fn paid(&mut self, number: usize, msat: u64) {
        let now = self.seconds();
        let bill = &mut self.vault.bills[number];
        if bill.money != Money::Nowhere || (bill.is_held && now >= bill.expires) {
            return self.trace.add(self.now, "cannot be paid any more", bill.job, "");
        }
        bill.money = if bill.is_held { Money::Held(msat) } else { Money::Settled(msat) };
        bill.most = msat;
        let hash = bill.hash;
        let (job, is_held) = (bill.job, bill.is_held);
        self.counts.payments += 1;
        self.trace.add(self.now, "is paid", job, if is_held { "and held" } else { "" });
        self.disk.is_changed = true;
        if self.chances(700) {
            let _ = self.vault.hints.send(hash);
        }
        if is_held && self.fails(self.faults.called_back) {
            let wait = self.between(100, 60_000);
            self.after(wait, move |world| {
                let bill = &mut world.vault.bills[number];
                if matches!(bill.money, Money::Held(_)) {
                    bill.money = Money::Back;
                    world.trace.add(world.now, "its money is called back", job, "");
                }
            });
        }
    }

    /// Has something asked of the wallet; whether it is done and what is said are two things.
    fn ask<T: Send + 'static>(
        &mut self,
        what: &'static str,
        deed: impl FnOnce(&mut World) -> Result<T, Error> + Send + 'static,
    ) -> Option<oneshot::Receiver<Result<T, Error>>> {
        if self.crashes() {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let travel = self.between(1, self.faults.delay.max(2));
        if self.fails(self.faults.wallet_away) {
            self.trace.add(self.now, "the wallet is not there:", None, what);
            self.after(travel, |_| drop(answer.send(Err(Error::Unreachable("it is away".to_owned())))));
            return Some(answered);
        }
        if self.fails(self.faults.wallet_silent) {
            self.trace.add(self.now, "the wallet does not answer:", None, what);
            // Not done, done, or done when nobody waits for it any more.
            if self.chances(600) {
                let late = self.between(1, 3 * PATIENCE);
                self.after(late, |world| drop(deed(world)));
            }
            self.after(PATIENCE, |_| drop(answer.send(Err(Error::Unknown("no answer".to_owned())))));
            return Some(answered);
        }
        self.after(travel, move |world| {
            if world.crashes() {
                return;
            }
            let done = deed(world);
            if !world.crashes() {
                let travel = world.between(1, world.faults.delay.max(2));
                world.after(travel, move |_| drop(answer.send(done)));
            }
        });
        Some(answered)
    }
}

#[derive(Debug)]
pub(super) struct Port(pub(super) Arc<Shared>);

impl Port {
    fn ask<T: Send + 'static>(
        &self,
        what: &'static str,
        deed: impl FnOnce(&mut World) -> Result<T, Error> + Send + 'static,
    ) -> Later<'_, T> {
        let answered = self.0.enter().ask(what, deed);
        Box::pin(async move {
            if let Some(answered) = answered
                && let Ok(answer) = answered.await
            {
                return answer;
            }
            // Whoever asked is gone.
            std::future::pending().await
        })
    }

    fn never<T: Send + 'static>() -> Later<'static, T> {
        Box::pin(std::future::ready(Err(Error::Unsupported("a provider does not pay"))))
    }
}

impl Wallet for Port {
    fn name(&self) -> String {
        "simulated".to_owned()
    }

    fn abilities(&self) -> Later<'_, Abilities> {
        let hold = self.0.enter().vault.holds;
        Box::pin(std::future::ready(Ok(Abilities { hold, pay: false })))
    }

    fn make<'a>(&'a self, order: &'a Order) -> Later<'a, Invoice> {
        let order = order.clone();
        self.ask("make", move |world| world.make(&order, None))
    }

    fn hold<'a>(&'a self, order: &'a Order, hash: PaymentHash) -> Later<'a, Invoice> {
        let order = order.clone();
        self.ask("hold", move |world| world.make(&order, Some(hash)))
    }

    fn settle<'a>(&'a self, preimage: &'a Preimage) -> Later<'a, ()> {
        let hash = preimage.hash();
        self.ask("settle", move |world| world.settle(hash))
    }

    fn cancel(&self, hash: PaymentHash) -> Later<'_, ()> {
        self.ask("cancel", move |world| world.cancel(hash))
    }

    fn look_up(&self, hash: PaymentHash) -> Later<'_, Standing> {
        self.ask("look up", move |world| Ok(world.look_up(hash)))
    }

    fn pay<'a>(&'a self, _invoice: &'a Invoice, _max_fee: Msat) -> Later<'a, Receipt> {
        Self::never()
    }

    fn look_up_payment(&self, _hash: PaymentHash) -> Later<'_, Payment> {
        Self::never()
    }

    fn balance(&self) -> Later<'_, Msat> {
        Self::never()
    }

    fn hints(&self) -> Option<broadcast::Receiver<PaymentHash>> {
        Some(self.0.enter().vault.hints.subscribe())
    }
}

impl World {
    /// Takes what is held for a request, before anybody has noted that it is done.
    pub(super) fn settle_early(&mut self, job: usize) {
        let held = self.vault.bills.iter().find(|bill| bill.job == Some(job) && matches!(bill.money, Money::Held(_)));
        if let Some(hash) = held.map(|bill| bill.hash) {
            let _ = self.settle(hash);
        }
    }
}
