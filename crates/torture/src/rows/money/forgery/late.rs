//! Payments that come too late, bring too little, or are for what is not wanted any more: nothing runs, and nothing is lost.

use std::panic::resume_unwind;

use rialto_payment::invoice::Invoice;
use rialto_payment::secret::PaymentHash;
use rialto_wallet::testing::Course;

use super::super::crowd::{CUSTOMERS, Count, Crowd, Job, PRICE, note};
use crate::market::{CUSTOMER, Market};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::log::until;
use crate::nostr_side::runtime;
use crate::several::several;
use serde_json::json;

fn fault(market: &Market, text: &str) {
    market.bank.faults().add(text.parse().unwrap());
}

fn hash(job: &Job) -> PaymentHash {
    job.invoice.parse::<Invoice>().unwrap().hash
}

/// Waits until a quote has run out.
fn expired(crowd: &Crowd, jobs: &[Job]) {
    crowd.each_of(jobs, |customer, job| assert_eq!(customer.answers(&job.id).error(), "payment_expired"));
}

/// Calls that are paid from credit, which is known by nobody being asked for money.
fn use_credit(crowd: &Crowd, calls: &[usize]) -> (Vec<Job>, usize) {
    let jobs: Vec<Vec<Job>> = crowd.each(CUSTOMERS, |index, _| {
        let customer = &crowd.customers[index];
        let call = |number: usize| {
            let tag = format!("credit-{index}-{number}");
            let id = customer.post(&customer.draft("execute-tool", &note(&tag)));
            assert_eq!(customer.answers(&id).statuses(), ["processing", "success"]);
            Job { customer: index, number, tag, id, invoice: String::new() }
        };
        (0..calls[index]).map(call).collect()
    });
    let unserved = calls.iter().sum::<usize>() - jobs.iter().map(Vec::len).sum::<usize>();
    (jobs.into_iter().flatten().collect(), unserved)
}

pub(super) fn an_expired_invoice(tries: usize) -> Count {
    let mut crowd = Crowd::new(Market::plain(), &["--quote-secs", "6"]);
    fault(&crowd.market, &format!("account=1 method=pay_invoice times={} stick", tries / 2));
    // Half of them are on their way when the quote runs out, unless they are refused for being late already.
    let jobs = crowd.each(tries, |customer, number| {
        let job = crowd.quote(customer, number, "unpaid");
        let paying = (number < tries / 2).then(|| {
            let paying = crowd.market.begin_to_pay(&job.invoice);
            let course = || crowd.market.bank.course(CUSTOMER, hash(&job));
            until("it is on its way", PATIENCE, || course() == Some(Course::Pending) || paying.is_finished());
            paying
        });
        (job, paying)
    });
    let (jobs, paying): (Vec<Job>, Vec<_>) = jobs.into_iter().unzip();
    expired(&crowd, &jobs);
    // That the wallet calls them expired when it is asked does not mean that nothing comes.
    crowd.restart();
    crowd.customers.iter().for_each(Customer::barrier);
    let mut late = vec![0; CUSTOMERS];
    for job in &jobs[..tries / 2] {
        crowd.market.bank.resolve(hash(job), true);
        late[job.customer] += usize::from(crowd.market.bank.course(CUSTOMER, hash(job)) == Some(Course::Paid));
    }
    crowd.market.bank.faults().clear();
    for paid in several(CUSTOMERS, &jobs[tries / 2..], |job| crowd.market.pay(&job.invoice).is_ok()) {
        assert_eq!(paid, Ok(false), "an invoice that has expired was paid");
    }
    paying.into_iter().flatten().for_each(|paying| paying.abort());
    let credit = PRICE * late.iter().sum::<usize>() as u64;
    crowd.market.wait_for_balances(credit, credit);
    crowd.restart();
    crowd.wait_for_credit(credit);
    let (paid, unserved) = use_credit(&crowd, &late);
    crowd.wait_for_credit(0);
    crowd.count(&paid, unserved)
}

pub(super) fn too_little(tries: usize) -> Count {
    both(tries, too_little_is_credited, too_little_goes_back)
}

/// Half of the tries with a wallet that takes money at once, half with one that holds it; at least one for each customer.
fn both(tries: usize, taken: fn(usize) -> Count, held: fn(usize) -> Count) -> Count {
    let half = (tries / 2).max(CUSTOMERS);
    std::thread::scope(|scope| {
        let taken = scope.spawn(move || taken(half));
        held(half) + taken.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn too_little_is_credited(tries: usize) -> Count {
    // What came for one customer's calls pays for another call, to the last satoshi.
    let bulk = format!("meta={}", (PRICE - 1) * (tries / CUSTOMERS) as u64);
    let mut crowd = Crowd::new(Market::plain(), &["--quote-secs", "6", "--price", &bulk]);
    fault(&crowd.market, &format!("account=1 method=pay_invoice times={tries} underpay"));
    // A busy machine may be too late with some, but not with all.
    let (jobs, brought): (Vec<Job>, Vec<bool>) = crowd
        .each(tries, |customer, number| {
            let job = crowd.quote(customer, number, "unpaid");
            let brought = crowd.market.pay(&job.invoice).is_ok();
            (job, brought)
        })
        .into_iter()
        .unzip();
    assert!(brought.contains(&true), "nothing was paid");
    expired(&crowd, &jobs);
    let credit = (PRICE - 1) * brought.iter().filter(|brought| **brought).count() as u64;
    crowd.market.wait_for_balances(credit, credit);
    let unpaid = crowd.unpaid_runs(&[]);
    crowd.restart();
    crowd.wait_for_credit(credit);
    let served = crowd.each(CUSTOMERS, |index, _| {
        let has_all = brought.iter().skip(index).step_by(CUSTOMERS).all(|brought| *brought);
        let customer = &crowd.customers[index];
        !has_all || customer.call("meta", &json!({})).statuses() == ["processing", "success"]
    });
    crowd.check();
    Count { unpaid, unserved: served.iter().filter(|served| !**served).count() }
}

fn too_little_goes_back(tries: usize) -> Count {
    let crowd = Crowd::new(Market::holding(), &["--quote-secs", "6"]);
    fault(&crowd.market, &format!("account=1 method=pay_invoice times={tries} underpay"));
    let (jobs, paying): (Vec<Job>, Vec<_>) = crowd
        .each(tries, |customer, number| {
            let job = crowd.quote(customer, number, "unpaid");
            let paying = crowd.market.begin_to_pay(&job.invoice);
            let course = || crowd.market.bank.course(CUSTOMER, hash(&job));
            until("it is held", PATIENCE, || course().is_some() || paying.is_finished());
            let was_held = course().is_some();
            (job, (paying, was_held))
        })
        .into_iter()
        .unzip();
    let (paying, was_held): (Vec<_>, Vec<bool>) = paying.into_iter().unzip();
    assert!(was_held.contains(&true), "nothing was paid");
    expired(&crowd, &jobs);
    let kept = paying.into_iter().map(|paying| runtime().block_on(paying).unwrap()).filter(Result::is_ok).count();
    crowd.market.wait_for_balances(0, 0);
    crowd.count(&[], kept)
}

fn cancel(crowd: &Crowd, job: &Job) -> bool {
    let customer = crowd.of(job);
    let id = customer.post(&customer.draft("cancel-execution", &json!("")).tag(&["e", &job.id]));
    customer.answers(&id).body()["cancelled"] == true
}

/// Whether it was done; it was cancelled otherwise.
fn is_done(crowd: &Crowd, job: &Job) -> bool {
    let answers = crowd.of(job).answers(&job.id);
    let is_done = answers.statuses().contains(&"success");
    assert!(is_done || answers.error() == "cancelled", "{answers:#?}");
    is_done
}

fn those(jobs: &[Job], outcomes: &[bool]) -> Vec<Job> {
    jobs.iter().zip(outcomes).filter(|(_, done)| **done).map(|(job, _)| job.clone()).collect()
}

/// It is done, or it costs nothing.
pub(super) fn cancelled(tries: usize) -> Count {
    both(tries, cancelled_while_paid, cancelled_while_held)
}

fn cancelled_while_held(tries: usize) -> Count {
    let crowd = Crowd::new(Market::holding(), &[]);
    let jobs = crowd.quotes("job", tries);
    let outcomes = crowd.each_of(&jobs, |_, job| {
        let paying = crowd.market.begin_to_pay(&job.invoice);
        let cancelled = cancel(&crowd, job);
        let done = is_done(&crowd, job);
        assert_ne!(cancelled, done, "{job:?}");
        (done, runtime().block_on(paying).unwrap().is_ok())
    });
    let unserved = outcomes.iter().filter(|(done, paid)| *paid && !*done).count();
    let outcomes: Vec<bool> = outcomes.into_iter().map(|(done, _)| done).collect();
    let done = those(&jobs, &outcomes);
    let earned = PRICE * done.len() as u64;
    crowd.market.wait_for_balances(earned, earned);
    crowd.count(&done, unserved)
}

/// Here the money is the provider's at once: what was not done for it is credited.
fn cancelled_while_paid(tries: usize) -> Count {
    let mut crowd = Crowd::new(Market::plain(), &[]);
    let jobs = crowd.quotes("job", tries);
    let outcomes = crowd.each_of(&jobs, |_, job| {
        crowd.market.pay(&job.invoice).unwrap();
        let cancelled = cancel(&crowd, job);
        let done = is_done(&crowd, job);
        assert_ne!(cancelled, done, "{job:?}");
        done
    });
    let mut due = vec![0; CUSTOMERS];
    jobs.iter().zip(&outcomes).for_each(|(job, done)| due[job.customer] += usize::from(!done));
    let mut done = those(&jobs, &outcomes);
    crowd.restart();
    crowd.wait_for_credit(PRICE * due.iter().sum::<usize>() as u64);
    let (more, unserved) = use_credit(&crowd, &due);
    done.extend(more);
    crowd.count(&done, unserved)
}
