//! R07: tools that sleep past their time, money that comes a second before or after its quote runs out, and a wallet that cannot
//! be reached for a while. Each call ends with a result, or with its money given back or credited; and afterwards the provider
//! runs as many calls at once as it was told to, so no place was lost on the way.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rialto_payment::invoice::Invoice;
use rialto_payment::secret::PaymentHash;
use rialto_wallet::testing::Course;
use serde_json::json;

use super::crowd::{CUSTOMERS, Crowd, Job, PRICE, note};
use crate::market::{CUSTOMER, Market, PROVIDER};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::log::until;
use crate::rows::{Row, Setting};
use crate::score::Score;
use crate::several::several;

pub(super) const ROW: Row = Row::new("R07", "tools and money that come late", run);

/// Calls that the provider runs at once.
const PLACES: usize = 6;

/// How long a quote can be paid, where that matters.
const QUOTE_SECS: &str = "5";

/// What all scenes have found.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    calls: usize,
    unanswered: usize,
    /// Paid, and neither done nor given back nor credited.
    lost: usize,
    /// Done, and not paid.
    gifts: usize,
    /// Places that a burst of calls did not find free.
    missing_places: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    /// The wallet holds money until it is taken.
    Holding,
    Plain,
}

impl Kind {
    fn market(self) -> Market {
        match self {
            Kind::Holding => Market::holding(),
            Kind::Plain => Market::plain(),
        }
    }
}

type Scene = (&'static str, Kind, fn(Kind, Setting) -> Count);

const SCENES: [Scene; 6] = [
    ("at the edge, held", Kind::Holding, at_the_edge),
    ("at the edge, paid", Kind::Plain, at_the_edge),
    ("no wallet, held", Kind::Holding, no_wallet),
    ("no wallet, paid", Kind::Plain, no_wallet),
    ("slow tools, held", Kind::Holding, slow_tools),
    ("slow tools, paid", Kind::Plain, slow_tools),
];

fn run(setting: Setting) -> Score {
    let mut score = Score::default();
    let results = several(SCENES.len(), &SCENES, |(_, kind, play)| play(*kind, setting));
    let (mut sum, mut ended) = (Count::default(), 0_usize);
    for ((name, _, _), result) in SCENES.iter().zip(results) {
        match result {
            Ok(count) => {
                ended += 1;
                sum.calls += count.calls;
                sum.unanswered += count.unanswered;
                sum.lost += count.lost;
                sum.gifts += count.gifts;
                sum.missing_places += count.missing_places;
                if count.unanswered + count.lost + count.gifts + count.missing_places > 0 {
                    score.note(format!("{name}: {count:?}"));
                }
            }
            Err(why) => score.note(format!("{name}: {why}")),
        }
    }
    score.exactly("scenes that came to their end", ended, SCENES.len());
    score.tell("paid calls", sum.calls);
    score.none("calls without an end", sum.unanswered);
    score.none("payments lost", sum.lost);
    score.none("results for nothing", sum.gifts);
    score.none("places lost", sum.missing_places);
    score
}

fn serve(kind: Kind, flags: &[&str]) -> Crowd {
    let places = PLACES.to_string();
    let mut all = vec!["--price", "gate=0", "--max-running", &places];
    all.extend_from_slice(flags);
    Crowd::new(kind.market(), &all)
}

fn hash(job: &Job) -> PaymentHash {
    job.invoice.parse::<Invoice>().unwrap().hash
}

/// How a call ended for its customer: whether it was done; nothing if it did not end in time.
fn ending(customer: &Customer, id: &str, patience: Duration) -> Option<bool> {
    let deadline = Instant::now() + patience;
    loop {
        let answers = customer.so_far(id);
        if let [response, ..] = answers.responses().as_slice() {
            return Some(response.has_tag("status", "success"));
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Compares what was done with what was paid; then looks whether all places are free.
fn judge(mut crowd: Crowd, jobs: &[Job], patience: Duration) -> Count {
    let endings = several(CUSTOMERS, jobs, |job| ending(crowd.of(job), &job.id, patience));
    let endings: Vec<Option<bool>> = endings.into_iter().map(Result::unwrap).collect();
    let missing_places = PLACES - burst(&crowd);
    // What comes late is looked for now and then, and at the start.
    crowd.restart();
    let course = |job: &Job| crowd.market.bank.course(CUSTOMER, hash(job));
    let is_done = |ending: &Option<bool>| *ending == Some(true);
    let missed = |job: &Job, ending: &Option<bool>| course(job) == Some(Course::Paid) && !is_done(ending);
    // Money that is given back is on its way for a moment.
    let _ = wait(|| jobs.iter().all(|job| course(job) != Some(Course::Pending)));
    let credited = || usize::try_from(crowd.credit() / PRICE).unwrap();
    let due = || jobs.iter().zip(&endings).filter(|(job, ending)| missed(job, ending)).count();
    let _ = wait(|| credited() == due());
    crowd.check();
    Count {
        calls: jobs.len(),
        unanswered: endings.iter().filter(|ending| ending.is_none()).count(),
        lost: due().saturating_sub(credited()),
        gifts: jobs.iter().zip(&endings).filter(|(job, end)| is_done(end) && course(job) != Some(Course::Paid)).count()
            + credited().saturating_sub(due()),
        missing_places,
    }
}

fn wait(holds: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// Exactly as many calls as may run at once, and one more: the first must all run, the last must wait. Gives how many ran.
fn burst(crowd: &Crowd) -> usize {
    let gate = json!({ "name": "gate", "parameters": { "name": "burst", "tag": "burst" } });
    let post = |customer: &Customer| customer.post(&customer.draft("execute-tool", &gate));
    let ids: Vec<String> = crowd.customers[..PLACES].iter().map(post).collect();
    let running = || crowd.market.world.times("gate burst");
    let _ = wait(|| running() >= PLACES);
    let ran = running();
    let last = &crowd.customers[PLACES];
    let waiting = post(last);
    last.barrier();
    assert!(running() <= PLACES, "more run at once than may");
    crowd.market.world.open_gate("burst");
    for (customer, id) in crowd.customers.iter().zip(ids.iter().chain([&waiting])) {
        assert_eq!(customer.answers(id).text(), "through");
    }
    ran
}

/// Sleeps until a moment, counted from the second in which an invoice expires.
fn sleep_until(expires: u64, offset: Duration, is_before: bool) {
    let expires = UNIX_EPOCH + Duration::from_secs(expires);
    let then = if is_before { expires - offset } else { expires + offset };
    std::thread::sleep(then.duration_since(SystemTime::now()).unwrap_or_default());
}

/// Money is on its way, and arrives a second before or after the quote runs out.
fn at_the_edge(kind: Kind, setting: Setting) -> Count {
    let crowd = serve(kind, &["--quote-secs", QUOTE_SECS]);
    crowd
        .market
        .bank
        .faults()
        .add(format!("account={CUSTOMER} method=pay_invoice times=1000000 stick").parse().unwrap());
    let jobs = crowd.each(setting.choose(CUSTOMERS, 100), |customer, number| {
        let job = crowd.quote(customer, number, "edge");
        let paying = crowd.market.begin_to_pay(&job.invoice);
        let course = || crowd.market.bank.course(CUSTOMER, hash(&job));
        until("it is on its way", PATIENCE, || course().is_some() || paying.is_finished());
        let invoice: Invoice = job.invoice.parse().unwrap();
        sleep_until(invoice.expires, Duration::from_secs(1), number % 2 == 0);
        crowd.market.bank.resolve(invoice.hash, true);
        paying.abort();
        job
    });
    crowd.market.bank.faults().clear();
    judge(crowd, &jobs, PATIENCE)
}

/// Paid calls of tools that do not answer in time.
fn slow_tools(kind: Kind, setting: Setting) -> Count {
    let crowd = serve(kind, &[]);
    // What a plain wallet has taken is credited, and would pay for a customer's next call.
    let count = match kind {
        Kind::Holding => setting.choose(CUSTOMERS, 40),
        Kind::Plain => CUSTOMERS,
    };
    let jobs = crowd.each(count, |customer, number| {
        let (tool, tag) = (if number % 2 == 0 { "nap" } else { "hang" }, format!("slow-{number}"));
        let content = json!({ "name": tool, "parameters": { "ms": 3000, "tag": tag }, "timeout": 500 });
        let asker = &crowd.customers[customer];
        let job = crowd.quote_of(customer, number, tag, &asker.draft("execute-tool", &content));
        // Held money comes back, so nobody waits for the end of this payment.
        drop(crowd.market.begin_to_pay(&job.invoice));
        // One customer's calls would otherwise wait for each other, which takes time and shows nothing.
        ending(asker, &job.id, PATIENCE);
        job
    });
    let timeouts = crowd.each_of(&jobs, |customer, job| customer.answers(&job.id).error() == "timeout");
    assert!(timeouts.iter().all(|timeout| *timeout), "another end than a timeout");
    judge(crowd, &jobs, PATIENCE)
}

/// The provider's wallet hears nothing for a while: what was paid meanwhile is served afterwards.
fn no_wallet(kind: Kind, setting: Setting) -> Count {
    let outage = Duration::from_secs(setting.choose(5, 60));
    let patience = outage + 2 * PATIENCE;
    let crowd = serve(kind, &[]);
    let mut jobs = crowd.quotes("before", setting.choose(CUSTOMERS, 40));
    let nothing = format!("account={PROVIDER} times=1000000 ignore");
    crowd.market.bank.faults().add(nothing.parse().unwrap());
    let begun = Instant::now();
    for job in &jobs {
        drop(crowd.market.begin_to_pay(&job.invoice));
    }
    let course = |job: &Job| crowd.market.bank.course(CUSTOMER, hash(job));
    until("all is paid or held", PATIENCE, || jobs.iter().all(|job| course(job).is_some()));
    let asked: Vec<(usize, String)> = (0..CUSTOMERS)
        .map(|index| {
            let customer = &crowd.customers[index];
            (index, customer.post(&customer.draft("execute-tool", &note(&format!("during-{index}")))))
        })
        .collect();
    std::thread::sleep(outage.saturating_sub(begun.elapsed()));
    crowd.market.bank.faults().clear();
    // Who asked meanwhile is asked for money now, or was told to come back.
    for (index, id) in asked {
        let customer = &crowd.customers[index];
        let is_told = || !customer.so_far(&id).0.is_empty();
        let deadline = Instant::now() + patience;
        while !is_told() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        let answers = customer.so_far(&id);
        match answers.statuses().first() {
            Some(&"payment-required") => {
                let invoice = crate::market::invoice(answers.feedback()[0], PRICE);
                drop(crowd.market.begin_to_pay(&invoice));
                jobs.push(Job { customer: index, number: jobs.len(), tag: format!("during-{index}"), id, invoice });
            }
            Some(&"error") => assert_eq!(customer.answers(&id).error(), "busy"),
            other => panic!("{other:?} for what was asked meanwhile"),
        }
    }
    judge(crowd, &jobs, patience)
}
