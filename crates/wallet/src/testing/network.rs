//! A Lightning network in memory: accounts with balances, invoices, payments, and money that is held in between. Money is
//! only ever moved, so that what all have together stays the same.

use super::bolt11;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// Why something was not done: a code of NIP-47, and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: String,
    pub(super) words: String,
}

pub(super) fn refusal(code: &str, words: &str) -> Refusal {
    Refusal { code: code.to_owned(), words: words.to_owned() }
}

/// How an invoice is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Open,
    Held,
    Settled,
    Cancelled,
}

/// Something that happened to money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deed {
    /// Milliseconds since 1970.
    pub at: u64,
    pub hash: PaymentHash,
    pub did: Did,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// An account asked for an invoice.
    Made {
        payee: usize,
        amount: Msat,
    },
    /// An account began to pay one.
    Paid {
        payer: usize,
        amount: Msat,
    },
    /// What was paid is here, and waits.
    Held,
    Settled,
    Cancelled,
    /// What was paid is with the payer again.
    CameBack {
        payer: usize,
    },
}

/// An invoice of an account.
#[derive(Debug, Clone)]
pub(super) struct Bill {
    pub(super) payee: usize,
    pub(super) amount: Msat,
    pub(super) text: String,
    pub(super) memo: String,
    pub(super) hash: PaymentHash,
    /// Known from the start, unless the money is to be held.
    pub(super) preimage: Option<Preimage>,
    pub(super) is_hold: bool,
    pub(super) stage: Stage,
    pub(super) made: u64,
    pub(super) expires: u64,
    pub(super) settled: Option<u64>,
}

/// How a payment is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    Pending,
    Paid,
    Failed,
}

/// A payment by an account.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) course: Course,
    pub(super) amount: Msat,
    pub(super) fee: Msat,
    pub(super) preimage: Option<Preimage>,
    pub(super) text: String,
    pub(super) at: u64,
}

/// What is asked for with an invoice.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) amount: Msat,
    pub(super) memo: &'a str,
    pub(super) expiry: u64,
    /// The money is to be held for this hash.
    pub(super) hold: Option<PaymentHash>,
}

#[derive(Debug)]
pub(super) struct Network {
    state: Mutex<State>,
    changed: Notify,
    fee: Msat,
}

#[derive(Debug)]
struct State {
    balances: Vec<Msat>,
    /// What those in between have earned.
    routers: Msat,
    bills: HashMap<PaymentHash, Bill>,
    payments: HashMap<(usize, PaymentHash), Outgoing>,
    /// All that ever happened, in order.
    deeds: Vec<Deed>,
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Network {
    pub(super) fn new(accounts: usize, balance: Msat, fee: Msat) -> Self {
        let state = State {
            balances: vec![balance; accounts],
            routers: Msat::ZERO,
            bills: HashMap::new(),
            payments: HashMap::new(),
            deeds: Vec::new(),
        };
        Self { state: Mutex::new(state), changed: Notify::new(), fee }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn deeds(&self) -> Vec<Deed> {
        self.state().deeds.clone()
    }

    pub(super) fn balance(&self, account: usize) -> Option<Msat> {
        self.state().balances.get(account).copied()
    }

    /// What all accounts have, what is on its way, and what was earned on the way.
    pub(super) fn total(&self) -> u64 {
        let state = self.state();
        let pending = state.payments.values().filter(|payment| payment.course == Course::Pending);
        let pending: u64 = pending.map(|payment| payment.amount.get() + payment.fee.get()).sum();
        state.balances.iter().map(|balance| balance.get()).sum::<u64>() + pending + state.routers.get()
    }

    pub(super) fn make(&self, payee: usize, wanted: &Wanted<'_>) -> Result<Bill, Refusal> {
        let preimage = Preimage::generate().map_err(|error| refusal("INTERNAL", &error.to_string()))?;
        let hash = wanted.hold.unwrap_or_else(|| preimage.hash());
        let made = now();
        let text = bolt11::write(hash, wanted, made).map_err(|words| refusal("OTHER", &words))?;
        let bill = Bill {
            payee,
            amount: wanted.amount,
            text,
            memo: wanted.memo.to_owned(),
            hash,
            preimage: wanted.hold.is_none().then_some(preimage),
            is_hold: wanted.hold.is_some(),
            stage: Stage::Open,
            made,
            expires: made.saturating_add(wanted.expiry),
            settled: None,
        };
        let mut state = self.state();
        if state.bills.contains_key(&hash) {
            return Err(refusal("OTHER", "there is an invoice with this hash already"));
        }
        state.bills.insert(hash, bill.clone());
        state.note(hash, Did::Made { payee, amount: wanted.amount });
        Ok(bill)
    }

    /// The payee takes less for an invoice than stands in it.
    pub(super) fn lower(&self, text: &str, less: Msat) {
        let Ok(invoice) = text.parse::<Invoice>() else { return };
        let mut state = self.state();
        let bill = state.bills.get_mut(&invoice.hash).filter(|bill| bill.stage == Stage::Open);
        if let Some(bill) = bill {
            bill.amount = bill.amount.saturating_sub(less);
        }
    }

    /// An invoice over this amount that was made before.
    pub(super) fn earlier(&self, payee: usize, amount: Msat) -> Option<Bill> {
        self.state().bills.values().find(|bill| bill.payee == payee && bill.amount == amount).cloned()
    }

    /// Begins to pay; what has become of the invoice then. If `is_stuck`, the money leaves and does not arrive.
    pub(super) fn begin(&self, payer: usize, text: &str, is_stuck: bool) -> Result<Bill, Refusal> {
        let invoice: Invoice = text.parse().map_err(|_| refusal("OTHER", "this is no invoice"))?;
        let mut state = self.state();
        let state = &mut *state;
        match state.payments.get(&(payer, invoice.hash)).map(|payment| payment.course) {
            Some(Course::Paid) => return Err(refusal("OTHER", "this invoice has already been paid")),
            Some(Course::Pending) => return Err(refusal("OTHER", "this invoice is being paid already")),
            Some(Course::Failed) | None => {}
        }
        let no_way = || refusal("PAYMENT_FAILED", "there is no way to the payee");
        let bill = state.bills.get(&invoice.hash).filter(|bill| bill.text == invoice.text).ok_or_else(no_way)?;
        if bill.payee == payer || bill.stage != Stage::Open || bill.expires <= now() {
            return Err(refusal("PAYMENT_FAILED", "the payee refuses the payment"));
        }
        let balance = state.balances.get_mut(payer).ok_or_else(no_way)?;
        let cost = bill.amount.checked_add(self.fee).filter(|cost| cost <= balance);
        let cost = cost.ok_or_else(|| refusal("INSUFFICIENT_BALANCE", "there is not enough money"))?;
        *balance = balance.saturating_sub(cost);
        let payment = Outgoing {
            course: Course::Pending,
            amount: bill.amount,
            fee: self.fee,
            preimage: None,
            text: bill.text.clone(),
            at: now(),
        };
        let did = Did::Paid { payer, amount: bill.amount };
        state.payments.insert((payer, invoice.hash), payment);
        state.note(invoice.hash, did);
        if !is_stuck {
            state.arrive(&invoice.hash);
        }
        self.changed.notify_waiters();
        state.bills.get(&invoice.hash).cloned().ok_or_else(no_way)
    }

    /// Ends what is stuck: it arrives, or it comes back.
    pub(super) fn resolve(&self, hash: &PaymentHash, arrives: bool) {
        if arrives {
            self.state().arrive(hash);
        } else {
            self.state().fail(hash);
        }
        self.changed.notify_waiters();
    }

    /// Waits until a payment has ended.
    pub(super) async fn ended(&self, payer: usize, hash: &PaymentHash) -> Option<Outgoing> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let payment = self.payment(payer, hash)?;
            if payment.course != Course::Pending {
                return Some(payment);
            }
            changed.await;
        }
    }

    pub(super) fn settle(&self, payee: usize, preimage: &Preimage) -> Result<(), Refusal> {
        let hash = preimage.hash();
        let mut state = self.state();
        state.held(payee, &hash)?.preimage = Some(preimage.clone());
        state.settle(&hash);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Gives back what is held, or ends an invoice that nobody has paid.
    pub(super) fn cancel(&self, payee: usize, hash: &PaymentHash) -> Result<(), Refusal> {
        let mut state = self.state();
        match state.bills.get(hash) {
            Some(bill) if bill.payee == payee && bill.is_hold && matches!(bill.stage, Stage::Open | Stage::Held) => {}
            Some(bill) if bill.payee == payee => return Err(refusal("OTHER", "it cannot be cancelled any more")),
            _ => return Err(refusal("NOT_FOUND", "there is no such invoice")),
        }
        state.fail(hash);
        state.bills.entry(*hash).and_modify(|bill| bill.stage = Stage::Cancelled);
        state.note(*hash, Did::Cancelled);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    pub(super) fn bill(&self, payee: usize, hash: &PaymentHash) -> Option<Bill> {
        self.state().bills.get(hash).filter(|bill| bill.payee == payee).cloned()
    }

    pub(super) fn payments(&self, payer: usize) -> Vec<(PaymentHash, Outgoing)> {
        let state = self.state();
        let own = state.payments.iter().filter(|((of, _), _)| *of == payer);
        own.map(|((_, hash), payment)| (*hash, payment.clone())).collect()
    }

    pub(super) fn payment(&self, payer: usize, hash: &PaymentHash) -> Option<Outgoing> {
        self.state().payments.get(&(payer, *hash)).cloned()
    }
}

impl State {
    fn note(&mut self, hash: PaymentHash, did: Did) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.deeds.push(Deed { at: u64::try_from(since.as_millis()).unwrap_or(u64::MAX), hash, did });
    }

    /// An invoice whose money is held.
    fn held(&mut self, payee: usize, hash: &PaymentHash) -> Result<&mut Bill, Refusal> {
        let bill = self.bills.get_mut(hash).filter(|bill| bill.payee == payee && bill.is_hold);
        let bill = bill.ok_or_else(|| refusal("NOT_FOUND", "there is no such invoice"))?;
        if bill.stage == Stage::Held { Ok(bill) } else { Err(refusal("OTHER", "nothing is held for it")) }
    }

    /// The money is with the payee, for good unless it is to be held.
    fn arrive(&mut self, hash: &PaymentHash) {
        let Some(bill) = self.bills.get_mut(hash).filter(|bill| bill.stage == Stage::Open) else { return };
        bill.stage = Stage::Held;
        if bill.is_hold {
            self.note(*hash, Did::Held);
        } else {
            self.settle(hash);
        }
    }

    fn settle(&mut self, hash: &PaymentHash) {
        let Some(bill) = self.bills.get_mut(hash).filter(|bill| bill.stage == Stage::Held) else { return };
        bill.stage = Stage::Settled;
        bill.settled = Some(now());
        for ((_, of), payment) in &mut self.payments {
            if of == hash && payment.course == Course::Pending {
                payment.course = Course::Paid;
                payment.preimage.clone_from(&bill.preimage);
                self.routers = sum(self.routers, payment.fee);
            }
        }
        if let Some(balance) = self.balances.get_mut(bill.payee) {
            *balance = sum(*balance, bill.amount);
        }
        self.note(*hash, Did::Settled);
    }

    /// What was on its way is with the payer again.
    fn fail(&mut self, hash: &PaymentHash) {
        let mut back = Vec::new();
        for ((payer, of), payment) in &mut self.payments {
            if of == hash && payment.course == Course::Pending {
                payment.course = Course::Failed;
                back.push(*payer);
                if let Some(balance) = self.balances.get_mut(*payer) {
                    *balance = sum(sum(*balance, payment.amount), payment.fee);
                }
            }
        }
        back.into_iter().for_each(|payer| self.note(*hash, Did::CameBack { payer }));
    }
}

/// No account can have more than there was at the start.
fn sum(one: Msat, other: Msat) -> Msat {
    one.checked_add(other).unwrap_or(one)
}

#[cfg(test)]
mod tests {
    use super::{Course, Network, Stage, Wanted};
    use rialto_payment::amount::Msat;
    use rialto_payment::secret::Preimage;

    fn sat(sat: u64) -> Msat {
        Msat::from_sat(sat).unwrap()
    }

    #[test]
    fn money_is_moved_and_never_made() {
        let network = Network::new(2, sat(100), sat(1));
        let wanted = Wanted { amount: sat(30), memo: "", expiry: 60, hold: None };
        let bill = network.make(0, &wanted).unwrap();
        assert_eq!(network.begin(1, &bill.text, false).unwrap().stage, Stage::Settled);
        assert_eq!(network.begin(1, &bill.text, false).unwrap_err().code, "OTHER", "not twice");
        assert_eq!((network.balance(0), network.balance(1)), (Some(sat(130)), Some(sat(69))));
        let bill = network.make(0, &Wanted { amount: sat(70), ..wanted }).unwrap();
        assert_eq!(network.begin(1, &bill.text, false).unwrap_err().code, "INSUFFICIENT_BALANCE");
        let late = network.make(0, &Wanted { amount: sat(1), expiry: 0, memo: "", hold: None }).unwrap();
        assert_eq!(network.begin(1, &late.text, false).unwrap_err().code, "PAYMENT_FAILED");
        assert_eq!(network.total(), 200_000);
    }

    #[test]
    fn held_money_goes_one_way_or_the_other() {
        let network = Network::new(2, sat(100), sat(1));
        for settles in [true, false] {
            let before = (network.balance(0), network.balance(1));
            let preimage = Preimage::generate().unwrap();
            let hold = Some(preimage.hash());
            let bill = network.make(0, &Wanted { amount: sat(10), memo: "", expiry: 60, hold }).unwrap();
            assert!(network.settle(0, &preimage).is_err(), "nothing has come yet");
            assert_eq!(network.begin(1, &bill.text, false).unwrap().stage, Stage::Held);
            assert!(network.settle(1, &preimage).is_err(), "not by the payer");
            assert_eq!(network.total(), 200_000);
            if settles {
                network.settle(0, &preimage).unwrap();
                assert!(network.cancel(0, &bill.hash).is_err());
                assert_eq!((network.balance(0), network.balance(1)), (Some(sat(110)), Some(sat(89))));
                assert_eq!(network.payment(1, &bill.hash).unwrap().preimage, Some(preimage));
            } else {
                network.cancel(0, &bill.hash).unwrap();
                assert!(network.settle(0, &preimage).is_err());
                assert_eq!((network.balance(0), network.balance(1)), before);
                assert_eq!(network.payment(1, &bill.hash).unwrap().course, Course::Failed);
            }
            assert_eq!(network.total(), 200_000);
        }
    }

    #[test]
    fn what_is_stuck_arrives_or_comes_back() {
        let network = Network::new(2, sat(100), Msat::ZERO);
        for (arrives, course) in [(true, Course::Paid), (false, Course::Failed)] {
            let bill = network.make(0, &Wanted { amount: sat(10), memo: "", expiry: 60, hold: None }).unwrap();
            assert_eq!(network.begin(1, &bill.text, true).unwrap().stage, Stage::Open);
            network.resolve(&bill.hash, arrives);
            assert_eq!(network.payment(1, &bill.hash).unwrap().course, course);
        }
        assert_eq!((network.balance(0), network.balance(1)), (Some(sat(110)), Some(sat(90))));
    }
}
