//! R04: everything that looks like a payment and is none, a hundred times each, against a provider that is served as in earnest.
//!
//! Two things are counted. A run that nobody has paid for is one that the tool was talked into; a payment that was not served
//! is one whose call was neither done nor its money given back or credited. Both must be none, whatever is tried. Each case
//! ends with payments in earnest: a provider that had stopped to serve at all would otherwise pass.

mod claims;
mod late;
mod wallets;

use super::crowd::Count;

use crate::rows::{Row, Setting};
use crate::score::Score;
use crate::several::several;

pub(super) const ROW: Row = Row::new("R04", "what looks like a payment and is none", run);

type Forgery = (&'static str, fn(usize) -> Count);

const FORGERIES: [Forgery; 14] = [
    // Those that wait for a quote to run out begin first.
    ("an expired invoice that is paid", late::an_expired_invoice),
    ("a payment of too little", late::too_little),
    ("a zap receipt by the customer", claims::receipt_by_the_customer),
    ("a zap receipt by a stranger", claims::receipt_by_a_stranger),
    ("a zap receipt for another invoice", claims::receipt_for_another_invoice),
    ("another call's payment", claims::another_calls_payment),
    ("what a customer says", claims::what_a_customer_says),
    ("an invoice over nothing", wallets::an_invoice_over_nothing),
    ("an invoice in the wrong unit", wallets::an_invoice_in_the_wrong_unit),
    ("a payment that is told many times", wallets::a_payment_told_many_times),
    ("one invoice for two calls", wallets::one_invoice_for_two_calls),
    ("a wallet's answer by a stranger", wallets::a_wallets_answer_by_a_stranger),
    ("a payment that the wallet does not confirm", wallets::told_but_not_confirmed),
    ("a call that is cancelled while it is paid", late::cancelled),
];

/// Each has processes of its own, and most of them wait.
const AT_ONCE: usize = 4;

fn run(setting: Setting) -> Score {
    let tries = setting.choose(10, 100);
    let mut score = Score::default();
    let (mut held, mut sum) = (0_usize, Count::default());
    let results = several(AT_ONCE, &FORGERIES, |(_, forge)| forge(tries));
    for ((name, _), result) in FORGERIES.iter().zip(results) {
        match result {
            Ok(count) => {
                held += 1;
                sum = sum + count;
                if count != Count::default() {
                    score.note(format!("{name}: {} unpaid runs, {} paid and not served", count.unpaid, count.unserved));
                }
            }
            Err(why) => score.note(format!("{name}: {why}")),
        }
    }
    score.exactly("forgeries that came to their end", held, FORGERIES.len());
    score.tell("tries of each", tries);
    score.none("unpaid runs", sum.unpaid);
    score.none("paid and not served", sum.unserved);
    score
}
