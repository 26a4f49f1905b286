//! The promises, each a question to a history that should find nothing.

use std::collections::{BTreeMap, BTreeSet};

use rialto_ledger::export::Record;
use rialto_wallet::testing::Did;

use super::{Fault, History, Request, Said, Violation, Word};

/// Everything that is wrong with a history.
pub fn check(history: &History) -> Vec<Violation> {
    let index = Index::of(history);
    let mut found = Vec::new();
    for (id, request) in &history.requests {
        let one = One { id, request, index: &index };
        let faults = [one.runs(), one.answer(), one.invoices(), one.versions(), one.paying()];
        let faults = faults.into_iter().flatten().chain(one.money());
        found.extend(faults.map(|fault| Violation { request: id.clone(), fault }));
    }
    found.extend(strangers(history, &index));
    found
}

/// How long money was held before it was taken or went back, in milliseconds; what is held still, until `now`.
pub fn holds(history: &History, now: u64) -> Vec<u64> {
    let bills = Index::of(history).bills.into_values();
    bills.filter_map(|bill| Some(bill.over.unwrap_or(now).saturating_sub(bill.held?))).collect()
}

/// An invoice and its money.
#[derive(Default)]
struct Bill {
    payee: Option<usize>,
    /// When the money came, and when it was taken or went back.
    held: Option<u64>,
    over: Option<u64>,
    arrived: Option<u64>,
    settled: u64,
    amount: u64,
    /// Who began to pay, and how much.
    payers: Vec<(usize, u64)>,
    /// Who has it back.
    back: Vec<usize>,
}

/// A history by what is asked of it.
struct Index<'a> {
    bills: BTreeMap<String, Bill>,
    /// Requests that a payment was asked for, by their own provider.
    quoted: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// And the other way.
    hashes: BTreeMap<&'a str, BTreeSet<&'a str>>,
    said: BTreeMap<&'a str, Vec<&'a Said>>,
    records: BTreeMap<&'a str, &'a Record>,
    runs: BTreeMap<&'a str, Vec<u64>>,
    history: &'a History,
}

impl<'a> Index<'a> {
    fn of(history: &'a History) -> Self {
        let mut bills: BTreeMap<String, Bill> = BTreeMap::new();
        for deed in &history.wallet {
            let bill = bills.entry(deed.hash.to_string()).or_default();
            match deed.did {
                Did::Made { payee, amount } => (bill.payee, bill.amount) = (Some(payee), amount.get()),
                Did::Paid { payer, amount } => bill.payers.push((payer, amount.get())),
                Did::Held => (bill.held, bill.arrived) = (Some(deed.at), Some(deed.at)),
                Did::Settled => {
                    bill.settled += bill.payers.last().map_or(bill.amount, |(_, amount)| *amount);
                    bill.arrived.get_or_insert(deed.at);
                    bill.over.get_or_insert(deed.at);
                }
                Did::Cancelled => drop(bill.over.get_or_insert(deed.at)),
                Did::CameBack { payer } => bill.back.push(payer),
            }
        }
        let mut quoted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut said: BTreeMap<&str, Vec<&Said>> = BTreeMap::new();
        for one in &history.said {
            let Some(request) = history.requests.get(&one.request) else { continue };
            if one.event.pubkey != request.provider {
                continue;
            }
            if let Word::Quote { hash, .. } = &one.word {
                quoted.entry(hash).or_default().insert(&one.request);
            }
            said.entry(&one.request).or_default().push(one);
        }
        let records: BTreeMap<&str, &Record> =
            history.ledger.iter().map(|record| (record.id.as_str(), record)).collect();
        for (id, record) in &records {
            if let Some(hash) = record.quote.as_ref().and_then(|quote| quote.payment_hash.as_deref()) {
                quoted.entry(hash).or_default().insert(id);
            }
        }
        let mut runs: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for run in &history.runs {
            runs.entry(&run.effect).or_default().push(run.at);
        }
        let mut hashes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (hash, of) in &quoted {
            for id in of {
                hashes.entry(id).or_default().insert(hash);
            }
        }
        Self { bills, quoted, hashes, said, records, runs, history }
    }
}

/// One request.
struct One<'a> {
    id: &'a str,
    request: &'a Request,
    index: &'a Index<'a>,
}

impl One<'_> {
    fn said(&self) -> &[&Said] {
        self.index.said.get(self.id).map_or(&[], Vec::as_slice)
    }

    fn ran(&self) -> &[u64] {
        self.index.runs.get(self.request.effect.as_str()).map_or(&[], Vec::as_slice)
    }

    /// The invoices that were made for it.
    fn bills(&self) -> impl Iterator<Item = &Bill> {
        self.hashes().filter_map(|hash| self.index.bills.get(hash))
    }

    fn hashes(&self) -> impl Iterator<Item = &str> {
        self.index.hashes.get(self.id).into_iter().flatten().copied()
    }

    fn outcomes(&self) -> BTreeSet<&str> {
        let outcomes = self.said().iter().filter_map(|said| match &said.word {
            Word::Answer { outcome, .. } => Some(outcome.as_str()),
            _ => None,
        });
        outcomes.collect()
    }

    /// Whether all of its price came from what the provider owed, or as ecash, which no invoice shows.
    fn needs_no_invoice(&self) -> bool {
        let quote = self.index.records.get(self.id).and_then(|record| record.quote.as_ref());
        quote.is_some_and(|quote| ["Credit", "Token"].contains(&quote.rail))
    }

    fn is_paid(&self) -> bool {
        self.needs_no_invoice() || self.bills().any(|bill| bill.arrived.is_some())
    }

    /// P1.
    fn runs(&self) -> Option<Fault> {
        let times = self.ran().len();
        (times > self.request.most_runs).then_some(Fault::RanAgain { times })
    }

    /// P2: one answer.
    fn answer(&self) -> Option<Fault> {
        let outcomes = self.outcomes();
        match outcomes.len() {
            0 => self.is_paid().then_some(Fault::Silence),
            1 => None,
            _ => Some(Fault::TwoEnds { outcomes: outcomes.into_iter().map(str::to_owned).collect() }),
        }
    }

    /// P2, P3 and P4: what was taken is the price of what succeeded, and nothing for the rest; and it came first.
    fn money(&self) -> Option<Fault> {
        if self.request.price_msat == 0 {
            return None;
        }
        let begun = self.ran().iter().min();
        let came = self.bills().filter_map(|bill| bill.arrived).min();
        if begun.is_some_and(|begun| came.is_none_or(|came| came > *begun)) && !self.needs_no_invoice() {
            return Some(Fault::RanUnpaid);
        }
        let outcomes = self.outcomes();
        let (Some(outcome), 1) = (outcomes.first(), outcomes.len()) else { return None };
        let record = self.index.records.get(self.id);
        let credited: i64 = record.map_or(0, |record| record.credits.iter().map(|credit| credit.msat).sum());
        let settled: u64 = self.bills().map(|bill| bill.settled).sum();
        // Ecash is in no wallet that is watched here; the ledger says what came.
        let quote = record.and_then(|record| record.quote.as_ref()).filter(|quote| quote.rail == "Token");
        let changed = quote.map_or(0, |quote| quote.paid_msat);
        let taken = i64::try_from(settled + changed).unwrap_or(i64::MAX) - credited;
        let price = self.request.price_msat;
        if *outcome == "success" && self.ran().is_empty() {
            return Some(Fault::NeverRan);
        }
        if *outcome == "success" {
            let is_right = u64::try_from(taken) == Ok(price);
            return (!is_right).then_some(Fault::WrongCharge { price, taken });
        }
        let held = self.bills().filter(|bill| bill.held.is_some() && bill.over.is_none()).map(|bill| bill.amount).sum();
        let msat = taken.saturating_add_unsigned(held);
        (msat != 0).then(|| Fault::NotReturned { outcome: (*outcome).to_owned(), msat })
    }

    /// P4: a payment of its own.
    fn invoices(&self) -> Option<Fault> {
        let is_shared = |hash: &&str| self.index.quoted.get(hash).is_some_and(|of| of.len() > 1);
        if let Some(hash) = self.hashes().find(is_shared) {
            return Some(Fault::SharedPayment { hash: hash.to_owned() });
        }
        let hashes: Vec<String> = self.hashes().map(str::to_owned).collect();
        (hashes.len() > 1).then_some(Fault::TwoInvoices { hashes })
    }

    /// P5.
    fn versions(&self) -> Option<Fault> {
        // That it ended in two ways is worse, and was told.
        if self.outcomes().len() > 1 {
            return None;
        }
        let mut versions: BTreeMap<Option<usize>, &Said> = BTreeMap::new();
        let stored = self.index.history.stored.get(self.id);
        for said in self.said() {
            let role = match &said.word {
                Word::Answer { part, .. } => Some(*part),
                Word::Ending => None,
                Word::Quote { .. } | Word::Progress => continue,
            };
            if versions.entry(role).or_insert(said).event != said.event {
                return Some(Fault::AnswerChanged);
            }
            // A refusal that nobody paid for is not kept, so that a flood cannot fill the disk.
            let must_be = |stored: &&Vec<_>| !stored.is_empty() || self.is_paid();
            if stored.filter(must_be).is_some_and(|stored| !stored.contains(&said.event)) {
                return Some(Fault::AnswerNotStored);
            }
        }
        None
    }

    /// P6: how much and how often.
    fn paying(&self) -> Option<Fault> {
        let payer = self.request.payer;
        let payments = || self.bills().flat_map(|bill| &bill.payers).filter(|(who, _)| *who == payer);
        if let Some((_, msat)) = payments().find(|(_, msat)| *msat > self.request.cap_msat) {
            return Some(Fault::OverCap { msat: *msat });
        }
        let back = self.bills().flat_map(|bill| &bill.back).filter(|who| **who == payer).count();
        (payments().count() > back + 1).then_some(Fault::PaidTwice)
    }
}

/// P6: whom.
fn strangers<'a>(history: &'a History, index: &'a Index<'_>) -> impl Iterator<Item = Violation> + 'a {
    let payers: BTreeSet<usize> = history.requests.values().map(|request| request.payer).collect();
    let of_customers =
        index.bills.iter().filter(move |(_, bill)| bill.payers.iter().any(|(who, _)| payers.contains(who)));
    of_customers.filter_map(move |(hash, bill)| {
        let asked = index.quoted.get(hash.as_str()).and_then(|of| of.first());
        let payee = asked.and_then(|id| history.requests.get(*id)).map(|request| request.payee);
        let request = asked.map_or(hash.as_str(), |id| *id).to_owned();
        (payee.is_none() || payee != bill.payee).then_some(Violation { request, fault: Fault::PaidStranger })
    })
}
