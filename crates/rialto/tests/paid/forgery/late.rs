//! Payments that come too late, bring too little, or are for what is not wanted any more: nothing runs, and nothing is lost.

use rialto_payment::invoice::Invoice;
use rialto_wallet::testing::Course;

use super::crowd::{CUSTOMERS, Crowd, Job, PRICE, TRIES, note};
use crate::market::{CUSTOMER, Market};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::log::until;
use crate::nostr_side::runtime;
use crate::stage::runner::{Case, case};
use serde_json::json;

pub(super) const CASES: &[Case] = &[
    case!(what_comes_too_late_runs_nothing_and_is_credited),
    case!(too_little_runs_nothing_and_is_credited_or_goes_back),
    case!(a_call_that_is_cancelled_while_it_is_paid_is_done_or_costs_nothing),
];

fn fault(market: &Market, text: &str) {
    market.bank.faults().add(text.parse().unwrap());
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

fn what_comes_too_late_runs_nothing_and_is_credited() {
    let mut crowd = Crowd::new(Market::plain(), &["--quote-secs", "6"]);
    fault(&crowd.market, "account=1 method=pay_invoice times=50 stick");
    let hash = |job: &Job| job.invoice.parse::<Invoice>().unwrap().hash;
    // Half of them are on their way when the quote runs out, unless they are refused for being late already.
    let jobs = crowd.each(TRIES, |customer, number| {
        let job = crowd.quote(customer, number, "unpaid");
        let paying = (number < TRIES / 2).then(|| {
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
    for job in &jobs[..TRIES / 2] {
        crowd.market.bank.resolve(hash(job), true);
        late[job.customer] += usize::from(crowd.market.bank.course(CUSTOMER, hash(job)) == Some(Course::Paid));
    }
    crowd.market.bank.faults().clear();
    crowd.each_of(&jobs[TRIES / 2..], |_, job| assert!(crowd.market.pay(&job.invoice).is_err(), "{job:?}"));
    paying.into_iter().flatten().for_each(|paying| paying.abort());
    let credit = PRICE * late.iter().sum::<usize>() as u64;
    crowd.market.wait_for_balances(credit, credit);
    crowd.restart();
    crowd.wait_for_credit(credit);
    let (paid, unserved) = use_credit(&crowd, &late);
    crowd.report("expired invoice", TRIES, &paid, unserved);
    assert_eq!(crowd.credit(), 0);
}

fn too_little_runs_nothing_and_is_credited_or_goes_back() {
    // What was paid is there; it pays for calls of the same sum.
    let bulk = format!("meta={}", (PRICE - 1) * (TRIES / 2 / CUSTOMERS) as u64);
    let mut crowd = Crowd::new(Market::plain(), &["--quote-secs", "6", "--price", &bulk]);
    fault(&crowd.market, "account=1 method=pay_invoice times=50 underpay");
    let jobs = crowd.quotes("unpaid", TRIES / 2);
    let brought: Vec<bool> = crowd.each_of(&jobs, |_, job| crowd.market.pay(&job.invoice).is_ok());
    expired(&crowd, &jobs);
    let credit = (PRICE - 1) * brought.iter().filter(|brought| **brought).count() as u64;
    crowd.market.wait_for_balances(credit, credit);
    crowd.restart();
    crowd.wait_for_credit(credit);
    let served = crowd.each(CUSTOMERS, |index, _| {
        let all = brought.iter().skip(index).step_by(CUSTOMERS).all(|brought| *brought);
        let customer = &crowd.customers[index];
        !all || customer.call("meta", &json!({})).statuses() == ["processing", "success"]
    });
    let mut unserved = served.iter().filter(|served| !**served).count();
    // What is held goes back by itself.
    let holding = Crowd::new(Market::holding(), &["--quote-secs", "6"]);
    fault(&holding.market, "account=1 method=pay_invoice times=50 underpay");
    let held = holding.quotes("unpaid", TRIES / 2);
    let paying: Vec<_> = held.iter().map(|job| holding.market.begin_to_pay(&job.invoice)).collect();
    expired(&holding, &held);
    unserved += paying.into_iter().map(|paying| runtime().block_on(paying).unwrap()).filter(Result::is_ok).count();
    holding.market.wait_for_balances(0, 0);
    let runs = |crowd: &Crowd| crowd.market.world.effects().iter().filter(|effect| effect.starts_with("note")).count();
    assert_eq!(runs(&holding) + runs(&crowd), 0);
    holding.report("underpaid", TRIES, &[], unserved);
}

fn a_call_that_is_cancelled_while_it_is_paid_is_done_or_costs_nothing() {
    let cancel = |crowd: &Crowd, job: &Job| {
        let customer = crowd.of(job);
        let id = customer.post(&customer.draft("cancel-execution", &json!("")).tag(&["e", &job.id]));
        customer.answers(&id).body()["cancelled"] == true
    };
    let is_done = |crowd: &Crowd, job: &Job| {
        let answers = crowd.of(job).answers(&job.id);
        let is_done = answers.statuses().contains(&"success");
        assert!(is_done || answers.error() == "cancelled", "{answers:#?}");
        is_done
    };
    let holding = Crowd::new(Market::holding(), &[]);
    let jobs = holding.quotes("job", TRIES / 2);
    let outcomes = holding.each_of(&jobs, |_, job| {
        let paying = holding.market.begin_to_pay(&job.invoice);
        let cancelled = cancel(&holding, job);
        let done = is_done(&holding, job);
        assert_ne!(cancelled, done, "{job:?}");
        (done, runtime().block_on(paying).unwrap().is_ok())
    });
    let mut unserved = outcomes.iter().filter(|(done, paid)| *paid && !*done).count();
    let done: Vec<Job> =
        jobs.iter().zip(&outcomes).filter(|(_, (done, _))| *done).map(|(job, _)| job.clone()).collect();
    let earned = PRICE * done.len() as u64;
    holding.market.wait_for_balances(earned, earned);
    holding.report("cancelled while held", TRIES / 2, &done, 0);
    // Here the money is the provider's at once: what was not done for it is credited.
    let mut plain = Crowd::new(Market::plain(), &[]);
    let jobs = plain.quotes("job", TRIES / 2);
    let outcomes = plain.each_of(&jobs, |_, job| {
        plain.market.pay(&job.invoice).unwrap();
        let cancelled = cancel(&plain, job);
        let done = is_done(&plain, job);
        assert_ne!(cancelled, done, "{job:?}");
        done
    });
    let mut due = vec![0; CUSTOMERS];
    jobs.iter().zip(&outcomes).for_each(|(job, done)| due[job.customer] += usize::from(!done));
    let mut done: Vec<Job> = jobs.iter().zip(outcomes).filter(|(_, done)| *done).map(|(job, _)| job.clone()).collect();
    plain.restart();
    plain.wait_for_credit(PRICE * due.iter().sum::<usize>() as u64);
    let (more, missing) = use_credit(&plain, &due);
    done.extend(more);
    unserved += missing;
    plain.report("cancelled while paid", TRIES / 2, &done, unserved);
}
