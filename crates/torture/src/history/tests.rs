//! The checker is shown histories in which one thing is wrong, and must see that and nothing else.

use rialto_ledger::export::{Credit, Quoted, Record};
use rialto_payment::amount::Msat;
use rialto_payment::secret::PaymentHash;
use rialto_wallet::testing::{Deed, Did};

use super::check::{check, holds};
use super::{Fault, History, Promise, Request, Run, Said, Word};
use crate::nostr_side::event::Event;

const PRICE: u64 = 5000;
const SELLER: usize = 0;
const BUYER: usize = 1;
const STRANGER: usize = 2;

fn hash(number: u8) -> PaymentHash {
    PaymentHash([number; 32])
}

fn event(id: &str, author: &str) -> Event {
    let (id, pubkey) = (id.to_owned(), author.to_owned());
    Event { id, pubkey, created_at: 1, kind: 6910, tags: Vec::new(), content: String::new(), sig: "s".to_owned() }
}

fn said(at: u64, request: &str, id: &str, word: Word) -> Said {
    Said { at, request: request.to_owned(), event: event(id, "provider"), word }
}

fn quote(at: u64, request: &str, number: u8) -> Said {
    let word = Word::Quote { hash: hash(number).to_string(), msat: PRICE };
    said(at, request, &format!("quote {number} of {request}"), word)
}

fn answer(at: u64, request: &str, id: &str, outcome: &str) -> Said {
    said(at, request, id, Word::Answer { part: 0, outcome: outcome.to_owned() })
}

fn deed(at: u64, number: u8, did: Did) -> Deed {
    Deed { at, hash: hash(number), did }
}

fn amount() -> Msat {
    Msat::new(PRICE).unwrap()
}

fn record(id: &str, number: u8, money: &'static str, credits: &[i64]) -> Record {
    let credits = credits.iter().map(|msat| Credit { at: 40, msat: *msat, why: String::new() }).collect();
    let quote = Quoted {
        tool: "note".to_owned(),
        price_msat: PRICE,
        credit_msat: 0,
        rail: "Hold",
        money,
        payment_hash: Some(hash(number).to_string()),
        expires: 600,
        paid_msat: PRICE,
    };
    Record {
        id: id.to_owned(),
        customer: "customer".to_owned(),
        stage: "Done",
        came: 1,
        at: 40,
        attempts: 1,
        quote: Some(quote),
        credits,
    }
}

impl History {
    /// A call that was paid with this hash, up to where it has run.
    fn call(&mut self, id: &str, number: u8) {
        let request = Request {
            provider: "provider".to_owned(),
            payer: BUYER,
            payee: SELLER,
            effect: format!("note {id}"),
            price_msat: PRICE,
            cap_msat: PRICE,
            most_runs: 1,
        };
        self.requests.insert(id.to_owned(), request);
        self.said.push(quote(10, id, number));
        let made = Did::Made { payee: SELLER, amount: amount() };
        let paid = Did::Paid { payer: BUYER, amount: amount() };
        self.wallet.extend([deed(9, number, made), deed(15, number, paid), deed(20, number, Did::Held)]);
        self.runs.push(Run { at: 30, effect: format!("note {id}") });
    }

    fn take(&mut self, id: &str, number: u8) {
        self.wallet.push(deed(35, number, Did::Settled));
        self.said.push(answer(40, id, &format!("answer to {id}"), "success"));
        self.ledger.push(record(id, number, "Taken", &[]));
        self.stored.insert(id.to_owned(), vec![event(&format!("answer to {id}"), "provider")]);
    }

    fn give_back(&mut self, id: &str, number: u8) {
        self.wallet.extend([deed(35, number, Did::CameBack { payer: BUYER }), deed(36, number, Did::Cancelled)]);
        self.said.push(answer(40, id, &format!("answer to {id}"), "outcome_unknown"));
        self.ledger.push(record(id, number, "Returned", &[]));
        self.stored.insert(id.to_owned(), vec![event(&format!("answer to {id}"), "provider")]);
    }
}

/// One call that succeeded, one that failed, and both answers sent again.
fn good() -> History {
    let mut history = History::default();
    history.call("a", 1);
    history.take("a", 1);
    history.call("b", 2);
    history.give_back("b", 2);
    history.said.push(answer(50, "a", "answer to a", "success"));
    history.said.push(answer(50, "b", "answer to b", "outcome_unknown"));
    history
}

/// A history with this done to it shows this, and nothing else.
#[track_caller]
fn shows(spoil: impl FnOnce(&mut History), promise: Promise, request: &str, fault: &Fault) {
    let mut history = good();
    spoil(&mut history);
    let found = check(&history);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].promise(), found[0].request.as_str(), &found[0].fault), (promise, request, fault));
}

#[test]
fn nothing_is_wrong_with_a_good_history() {
    assert_eq!(check(&good()), []);
    assert_eq!(holds(&good(), 99), [15, 16]);
}

#[test]
fn a_second_run_breaks_p1() {
    let run = Run { at: 33, effect: "note a".to_owned() };
    shows(|history| history.runs.push(run), Promise::P1, "a", &Fault::RanAgain { times: 2 });
}

#[test]
fn silence_two_ends_and_kept_money_break_p2() {
    let silenced = |history: &mut History| history.said.retain(|said| said.request != "a" || said.at == 10);
    shows(silenced, Promise::P2, "a", &Fault::Silence);
    let outcomes = vec!["outcome_unknown".to_owned(), "success".to_owned()];
    let other = answer(60, "b", "another answer", "success");
    shows(|history| history.said.push(other), Promise::P2, "b", &Fault::TwoEnds { outcomes });
    let kept = Fault::NotReturned { outcome: "outcome_unknown".to_owned(), msat: 5000 };
    let still_held = |history: &mut History| history.wallet.retain(|deed| deed.hash != hash(2) || deed.at < 35);
    shows(still_held, Promise::P2, "b", &kept);
    let settled = |history: &mut History| {
        history.wallet.retain(|deed| deed.hash != hash(2) || deed.at < 35);
        history.wallet.push(deed(35, 2, Did::Settled));
    };
    shows(settled, Promise::P2, "b", &kept);
    // With credit for it, all is well.
    let mut credited = good();
    settled(&mut credited);
    credited.ledger[1] = record("b", 2, "Credited", &[5000]);
    assert_eq!(check(&credited), []);
}

#[test]
fn a_run_before_its_money_breaks_p3() {
    shows(|history| history.runs[0].at = 19, Promise::P3, "a", &Fault::RanUnpaid);
    let unpaid = |history: &mut History| {
        history.wallet.retain(|deed| deed.hash != hash(2) || deed.at < 15);
    };
    shows(unpaid, Promise::P3, "b", &Fault::RanUnpaid);
}

#[test]
fn a_payment_for_two_breaks_p4() {
    let mut history = good();
    history.said.push(quote(11, "b", 1));
    history.said.retain(|said| said.word != quote(0, "b", 2).word);
    history.ledger.retain(|record| record.id != "b");
    history.wallet.retain(|deed| deed.hash != hash(2));
    let found = check(&history);
    assert!(
        found.iter().any(|one| one.request == "a" && matches!(one.fault, Fault::SharedPayment { .. })),
        "{found:?}"
    );
    assert!(found.iter().any(|one| one.request == "b" && one.promise() == Promise::P4), "{found:?}");

    let hashes = vec![hash(1).to_string(), hash(3).to_string()];
    shows(|history| history.said.push(quote(11, "a", 3)), Promise::P4, "a", &Fault::TwoInvoices { hashes });
    let given_away = |history: &mut History| {
        history.wallet.retain(|deed| deed.hash != hash(1) || deed.did != Did::Settled);
        history.wallet.extend([deed(35, 1, Did::CameBack { payer: BUYER }), deed(36, 1, Did::Cancelled)]);
    };
    shows(given_away, Promise::P4, "a", &Fault::WrongCharge { price: PRICE, taken: 0 });
    shows(|history| history.runs.retain(|run| run.effect != "note a"), Promise::P4, "a", &Fault::NeverRan);
}

#[test]
fn another_answer_breaks_p5() {
    let other = answer(60, "a", "another answer", "success");
    shows(|history| history.said.push(other), Promise::P5, "a", &Fault::AnswerChanged);
    let mut resigned = answer(60, "a", "answer to a", "success");
    resigned.event.sig = "t".to_owned();
    shows(|history| history.said.push(resigned), Promise::P5, "a", &Fault::AnswerChanged);
    let lost = |history: &mut History| drop(history.stored.insert("a".to_owned(), Vec::new()));
    shows(lost, Promise::P5, "a", &Fault::AnswerNotStored);
}

#[test]
fn strangers_caps_and_second_payments_break_p6() {
    let to_stranger = |history: &mut History| {
        let made = Did::Made { payee: STRANGER, amount: amount() };
        history.wallet.extend([deed(9, 7, made), deed(15, 7, Did::Paid { payer: BUYER, amount: amount() })]);
        let mut forged = quote(10, "a", 7);
        forged.event.pubkey = "stranger".to_owned();
        history.said.push(forged);
    };
    shows(to_stranger, Promise::P6, &hash(7).to_string(), &Fault::PaidStranger);
    let capped = |history: &mut History| history.requests.get_mut("a").unwrap().cap_msat = 4000;
    shows(capped, Promise::P6, "a", &Fault::OverCap { msat: 5000 });
    let again = |history: &mut History| history.wallet.push(deed(16, 1, Did::Paid { payer: BUYER, amount: amount() }));
    shows(again, Promise::P6, "a", &Fault::PaidTwice);
}
