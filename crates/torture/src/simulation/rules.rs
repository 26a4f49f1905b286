//! What must be true, whatever happens: at every step, and in the end.
//!
//! 1. A tool runs at most once for a request; one that may be called again, three times.
//! 2. Nothing that costs something runs before its money was here, nor before that is on the disk.
//! 3. One payment, one request.
//! 4. One answer to a request, with one identity, noted before anybody sees it.
//! 5. No money is lost or made: what came in was earned by a success, or is owed, or has gone back.

use super::RUNNING;
use super::mistake::Mistake;
use super::relays::{QUORUM, Said};
use super::tools::{PRICE, TASTES};
use super::wallet::Money;
use super::world::{Ending, World};
use nostr::prelude::Keys;
use rialto_ledger::job::{Job, Money as Noted, Stage};

const MOST_RUNS: u32 = 3;

/// A tool is called for a request.
pub(super) fn started(world: &mut World, number: usize) {
    world.counts.runs += 1;
    world.trace.add(world.now, "the tool runs", Some(number), "");
    let Some(job) = world.jobs.get_mut(number) else { return world.broken(format!("nobody asked for run {number}")) };
    job.runs += 1;
    let most = if job.tool == Some("again") { MOST_RUNS } else { 1 };
    if job.runs > most {
        let runs = job.runs;
        return world.broken(format!("request {number} ran {runs} times"));
    }
    let Some(noted) = noted(world, number).filter(|noted| noted.stage == Stage::Running) else {
        return world.broken(format!("request {number} runs, and nothing says so on the disk"));
    };
    let Some(quote) = &noted.quote else {
        let (tool, customer) = (world.jobs[number].tool, world.jobs[number].customer);
        let is_same =
            |job: &&super::customers::Job| job.customer == customer && job.tool == Some("taste") && job.runs > 0;
        let is_unpaid = |job: &&super::customers::Job| {
            world.disk.kept().jobs.get(&job.id).is_some_and(|kept| kept.job.quote.is_none())
        };
        let tastes = world.jobs.iter().filter(is_same).filter(is_unpaid).count();
        let is_free = tool == Some("free") || (tool == Some("taste") && tastes <= TASTES as usize);
        if !is_free {
            world.broken(format!("request {number} costs something, and runs for nothing"));
        }
        return;
    };
    let bill = quote.hash.and_then(|hash| world.vault.bill(&hash)).map(|bill| &world.vault.bills[bill]);
    let came = bill.map_or(0, |bill| bill.most);
    let is_own = bill.is_none_or(|bill| bill.job == Some(number));
    if quote.price.get() != PRICE * 1000 || quote.credit.get() + came < quote.price.get() {
        let (credit, price) = (quote.credit, quote.price);
        world.broken(format!("request {number} costs {price} and runs with {credit} of credit and {came} msat paid"));
    } else if !is_own {
        world.broken(format!("request {number} runs with the money of another"));
    }
}

/// A response leaves the process for the first time.
pub(super) fn answered(world: &mut World, number: usize, succeeded: bool) {
    world.counts.answers += 1;
    world.trace.add(world.now, "is answered:", Some(number), if succeeded { "success" } else { "failure" });
    let job = &mut world.jobs[number];
    (job.answers, job.succeeded) = (job.answers + 1, succeeded);
    if world.disk.shaky.contains(&job.id) {
        return;
    }
    if job.answers > 1 {
        return world.broken(format!("request {number} has two different answers"));
    }
    let Some(noted) = noted(world, number).filter(|noted| matches!(noted.stage, Stage::Settling | Stage::Done)) else {
        return world.broken(format!("the answer to request {number} is seen before it is on the disk"));
    };
    let money = noted.quote.as_ref().map(|quote| quote.money);
    if succeeded && money.is_some_and(|money| money != Noted::Taken) {
        world.broken(format!("request {number} is answered with a success, and its money is {money:?}"));
    }
}

/// Money that was held for a bill is ours.
pub(super) fn taken(world: &mut World, bill: usize) {
    let Some(number) = world.vault.bills[bill].job else { return };
    let money = noted(world, number).and_then(|noted| noted.quote.as_ref()).map(|quote| quote.money);
    if !matches!(money, Some(Noted::Taking | Noted::Taken)) {
        world.broken(format!("money is taken for request {number} before it is done: {money:?}"));
    }
}

/// Money that was held for a bill has gone back.
pub(super) fn given_back(world: &mut World, bill: usize) {
    let Some(number) = world.vault.bills[bill].job else { return };
    let Some(quote) = noted(world, number).and_then(|noted| noted.quote.as_ref()) else { return };
    let is_used = quote.hash == Some(world.vault.bills[bill].hash);
    if is_used && matches!(quote.money, Noted::Held | Noted::Taking | Noted::Taken) {
        let money = quote.money;
        world.broken(format!("money for request {number} is given back, and is noted as {money:?}"));
    }
}

fn noted(world: &World, number: usize) -> Option<&Job> {
    world.disk.kept().jobs.get(&world.jobs[number].id).map(|kept| &kept.job)
}

/// Sums of one customer, in msat.
#[derive(Clone, Copy, Default)]
struct Sums {
    came: i64,
    earned: i64,
    owed: i64,
    /// Credit that calls have used which are not over.
    used: i64,
}

/// Of every customer.
fn sums(world: &World) -> Vec<Sums> {
    let signed = |msat: u64| i64::try_from(msat).unwrap();
    let kept = world.disk.kept();
    let owed = |keys: &Keys| Sums { owed: kept.credit(keys.public_key().as_bytes()), ..Sums::default() };
    let mut all: Vec<Sums> = world.customers.iter().map(owed).collect();
    for bill in &world.vault.bills {
        if let (Some(job), Money::Settled(msat)) = (bill.job, bill.money) {
            all[world.jobs[job].customer].came += signed(msat);
        }
    }
    for (id, kept) in &kept.jobs {
        let Some(quote) = &kept.job.quote else { continue };
        let sums = &mut all[world.jobs[world.numbers[id]].customer];
        match quote.money {
            Noted::Taken => sums.earned += signed(quote.price.get()),
            Noted::Open | Noted::Held | Noted::Ours | Noted::Taking => sums.used += signed(quote.credit.get()),
            // It is owed again.
            Noted::Returning | Noted::Returned | Noted::Credited | Noted::Lapsed | Noted::Closed => {}
        }
    }
    all
}

/// After every deed.
pub(super) fn always(world: &mut World) {
    if !std::mem::take(&mut world.disk.is_changed) {
        return;
    }
    for (customer, Sums { came, earned, owed, used }) in sums(world).into_iter().enumerate() {
        if earned + owed + used > came {
            let words =
                format!("{came} msat came from customer {customer}, and {earned} earned, {owed} owed and {used} used");
            return world.broken(words);
        }
    }
}

/// When nothing has gone wrong for long enough.
pub(super) fn finally(world: &mut World) {
    if world.ending.is_some() {
        return;
    }
    let complaint = (0..world.jobs.len()).find_map(|number| left_over(world, number)).or_else(|| unbalanced(world));
    match complaint {
        Some(words) => world.broken(words),
        None => world.ending = Some(Ending::Over),
    }
}

/// What is not over about a request.
fn left_over(world: &World, number: usize) -> Option<String> {
    let job = &world.jobs[number];
    if let Some(kept) = world.disk.kept().jobs.get(&job.id) {
        let stage = kept.job.stage;
        if stage != Stage::Done {
            return Some(format!("request {number} never ends: {}", stage.name()));
        }
        if !kept.is_sent {
            return Some(format!("the answer to request {number} is never sent"));
        }
        let is_earned = kept.job.quote.as_ref().is_some_and(|quote| quote.money == Noted::Taken);
        if is_earned != (job.succeeded && kept.job.quote.is_some()) && !world.disk.shaky.contains(&job.id) {
            return Some(format!("request {number} is paid for without a success, or has one for nothing"));
        }
    }
    let is_asked = world.relays.iter().any(|relay| relay.requests.contains(&number));
    let has_it = |relay: &&super::relays::Relay| {
        relay.events.iter().any(|id| matches!(world.said[id], Said::Response { job, .. } if job == number))
    };
    let relays = world.relays.iter().filter(has_it).count();
    if is_asked && relays < QUORUM && !world.disk.shaky.contains(&job.id) {
        return Some(format!("{relays} relays have the answer to request {number}"));
    }
    (is_asked && relays == 0).then(|| format!("request {number} has no answer"))
}

fn unbalanced(world: &World) -> Option<String> {
    if let Some(bill) = world.vault.bills.iter().find(|bill| matches!(bill.money, Money::Held(_))) {
        return Some(format!("money for request {:?} is held for ever", bill.job));
    }
    for (customer, Sums { came, earned, owed, used }) in sums(world).into_iter().enumerate() {
        if used != 0 || came != earned + owed {
            let words =
                format!("{came} msat came from customer {customer}; {earned} are earned, {owed} owed, {used} used");
            return Some(words);
        }
    }
    let is_blocked = world.mistake == Some(Mistake::WaitsForEver);
    (world.most_running < RUNNING && !is_blocked)
        .then(|| format!("only {} of {RUNNING} places to run are free in the end", world.most_running))
}
