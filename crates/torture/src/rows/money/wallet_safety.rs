//! R10: customers who pay, and everybody who would like to be paid for nothing: hundreds of calls by two real processes that
//! share a wallet and a budget, against a provider and strangers that lie about prices, invoices and results, and a wallet
//! with bad days. What has become of the money is read on the wallets' side.

mod attack;
mod market;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rialto_payment::amount::Msat;
use serde_json::{Value, json};

use attack::{Attack, demand, play};
use market::{Bank, CUSTOMER, Market, PRICE, PROVIDER, STRANGER};

use crate::nostr_side::PATIENCE;
use crate::nostr_side::event::now;
use crate::nostr_side::fake_provider::FakeProvider;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::host::Host;
use crate::nostr_side::log::until;
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R10", "a customer's wallet among liars", run);

/// What the customer allows for one call, in satoshis.
const PER_CALL: u64 = 20;

/// Calls that are open at once in each process.
const AT_ONCE: usize = 12;

/// What the customer allows for a day is less than what is asked for honestly, so that the limit is met.
fn per_day(calls: usize) -> u64 {
    let honest = calls * Attack::ALL.iter().filter(|attack| attack.may_be_paid()).count() / Attack::ALL.len();
    PRICE * (honest * 3 / 4) as u64
}

/// Serves until nobody asks any more.
fn serve(market: &Arc<Market>, mut provider: FakeProvider, relay: &FakeRelay, calls: usize) {
    let mut playing = Vec::new();
    while playing.len() < calls {
        let Some(asked) = provider.attend(|_| ()) else { break };
        if asked.event.tag("c") != "execute-tool" {
            continue;
        }
        let (market, provider, relay) = (market.clone(), provider.clone(), relay.clone());
        playing.push(std::thread::spawn(move || play(&market, &provider, &relay, &asked)));
    }
    for one in playing {
        one.join().unwrap_or_else(|panic| resume_unwind(panic));
    }
}

/// What a host was told about a call: a text, or an error.
type Told = (usize, Result<String, Value>);

/// Makes these calls, several at once.
fn shop(host: &mut Host, numbers: &[usize]) -> Vec<Told> {
    let mut told = Vec::new();
    for some in numbers.chunks(AT_ONCE) {
        let open: Vec<(usize, u64)> =
            some.iter().map(|number| (*number, host.call("say", &json!({ "text": number.to_string() })))).collect();
        for (number, id) in open {
            let answer = host.answer(id);
            let result = &answer["result"];
            let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{number}: {answer}"));
            let is_error = result["isError"] == true;
            let result = if is_error { Err(result["structuredContent"]["error"].clone()) } else { Ok(text.to_owned()) };
            told.push((number, result));
        }
    }
    told
}

/// A customer with a wallet and a budget.
fn customer(world: &World, bank: &Bank, per_day: u64) {
    let mut connect = world.rialto("customer", &["wallet", "connect", "-", "--network", "regtest"]);
    connect.write(bank.wallet.uri(CUSTOMER).unwrap().reveal());
    connect.close_input();
    assert!(connect.end().success(), "{}", connect.told());
    assert!(!connect.told().contains("walletconnect"), "{}", connect.told());
    let (per_call, per_day) = (PER_CALL.to_string(), per_day.to_string());
    let mut set =
        world.rialto("customer", &["budget", "set", "--per-call", &per_call, "--per-day", &per_day, "--json"]);
    assert!(set.end().success(), "{}", set.told());
}

fn history(world: &World) -> Vec<Value> {
    let mut shown = world.rialto("customer", &["wallet", "history", "--limit", "10000", "--json"]);
    let text = shown.output();
    assert!(!text.contains("walletconnect"), "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", shown.told()))
}

fn priced(relay: &FakeRelay) -> FakeProvider {
    let mut provider = FakeProvider::new(relay);
    provider.tools[0]["_meta"] = json!({ "rialto/price": { "sat": PRICE } });
    relay.forget();
    relay.publish(&provider.announcement().sign(&provider.keys));
    provider
}

fn run(setting: Setting) -> Score {
    let calls = setting.choose(104, 520);
    std::thread::scope(|scope| {
        let crash = scope.spawn(paid_again_after_a_crash);
        let mut score = among_liars(calls);
        score.none("msat paid again after a crash", crash.join().unwrap_or_else(|panic| resume_unwind(panic)));
        score
    })
}

fn among_liars(calls: usize) -> Score {
    let (relay, world) = (FakeRelay::start(), World::new());
    let bank = Bank::open(&world);
    customer(&world, &bank, per_day(calls));
    // Wallets have bad days: answers come late, twice, after those of strangers, or not at all.
    let few = calls / 50;
    for fault in ["delay:700", "twice", "stranger", "other-request", "lose"] {
        let fault = format!("account={CUSTOMER} method=pay_invoice times={few} {fault}");
        bank.wallet.faults().add(fault.parse().unwrap());
    }
    let (expired, used) = (bank.invoice(PROVIDER, PRICE, 1), bank.invoice(PROVIDER, PRICE, 600));
    until("an invoice has expired", PATIENCE, || now() > expired.expires.try_into().unwrap());
    let provider = priced(&relay);
    let npub = provider.npub();
    let before = [PROVIDER, CUSTOMER, STRANGER].map(|account| bank.balance(account));
    let market = Arc::new(Market::new(bank, expired, used));
    let url = relay.url();
    let arguments = [npub.as_str(), "--relay", &url, "--timeout-secs", "60"];
    let numbers: Vec<usize> = (Attack::ALL.len()..Attack::ALL.len() + calls).collect();
    let told = std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&market, provider, &relay, calls + 1));
        let start = || Host::start(&world, &arguments);
        let (mut one, mut other) = (start(), start());
        // The first call is honest, and its invoice turns up again.
        let first = one.call("say", &json!({ "text": "0" }));
        assert_ne!(one.answer(first)["result"]["isError"], true, "{}", one.process.told());
        let (half, rest) = numbers.split_at(calls / 2);
        let shopping = scope.spawn(move || shop(&mut other, rest));
        let mut told = shop(&mut one, half);
        told.extend(shopping.join().unwrap_or_else(|panic| resume_unwind(panic)));
        market.is_over.store(true, Ordering::Relaxed);
        serving.join().unwrap_or_else(|panic| resume_unwind(panic));
        told
    });
    judge(&market, &world, &before, &told)
}

/// Whether a call ended in a way that it may end.
fn is_right(number: usize, result: &Result<String, Value>) -> bool {
    let attack = Attack::of(number);
    match result {
        Ok(_) => attack.is_free() || attack.may_be_paid(),
        Err(error) => !attack.is_free() && error["code"] == "payment_required",
    }
}

fn judge(market: &Market, world: &World, before: &[u64; 3], told: &[Told]) -> Score {
    let mut score = Score::default();
    let bank = &market.bank;
    let cap = per_day(told.len()) * 1000;
    let spent = before[CUSTOMER] - bank.balance(CUSTOMER);
    score.tell("calls", told.len());
    score.none("msat to strangers", bank.balance(STRANGER) - before[STRANGER]);
    score.none("msat over the cap", spent.saturating_sub(cap));
    score.at_least("msat spent", spent, cap - PER_CALL * 1000);
    // On the wallet's side: at most one payment for a call, and only where an honest price was asked for.
    let (mut paid, mut twice, mut wrong) = (0_usize, 0_usize, 0_usize);
    for (number, invoices) in market.invoices().iter() {
        let settled: Vec<_> = invoices.iter().filter(|invoice| bank.is_paid(invoice)).collect();
        let is_honest = Attack::of(*number).may_be_paid();
        let is_wrong = |amount: Option<Msat>| !is_honest || amount != Msat::from_sat(PRICE);
        twice += settled.len().saturating_sub(1);
        wrong += settled.iter().filter(|invoice| is_wrong(invoice.amount)).count();
        paid += settled.len();
    }
    score.tell("calls paid", paid);
    score.none("second payments for a call", twice);
    score.none("payments that nobody should make", wrong);
    score.none("msat that went elsewhere", spent.abs_diff(bank.balance(PROVIDER) - before[PROVIDER]));
    // On the customer's side: what could not be paid was said, and everything was noted.
    let foreign = |(number, result): &&Told| result.as_ref().is_ok_and(|text| *text != format!("result {number}"));
    score.none("results of somebody else", told.iter().filter(foreign).count());
    let otherwise: Vec<&Told> = told.iter().filter(|(number, result)| !is_right(*number, result)).collect();
    for (number, result) in otherwise.iter().take(3) {
        score.note(format!("{number} ({:?}): {result:?}", Attack::of(*number)));
    }
    score.none("calls that ended as they must not", otherwise.len());
    let noted = history(world);
    let total: u64 = noted.iter().map(|one| one["amount_msat"].as_u64().unwrap()).sum();
    let unsure = noted.iter().filter(|one| one["state"] != "paid" || one["approved_by"] != "budget").count();
    score.none("payments noted wrongly", unsure + noted.len().abs_diff(paid));
    score.none("msat noted wrongly", total.abs_diff(spent));
    score
}

/// The money leaves, and the customer's process ends before the wallet has said so. What became of it is found out, and nothing
/// is paid again.
fn paid_again_after_a_crash() -> u64 {
    let (relay, world) = (FakeRelay::start(), World::new());
    let bank = Bank::open(&world);
    customer(&world, &bank, 100);
    let provider = priced(&relay);
    let npub = provider.npub();
    let before = bank.balance(CUSTOMER);
    bank.wallet.faults().add(format!("account={CUSTOMER} method=pay_invoice times=3 lose").parse().unwrap());
    let used = bank.invoice(PROVIDER, PRICE, 600);
    let market = Market::new(bank, used.clone(), used);
    let url = relay.url();
    let all = Attack::ALL.len();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut provider = provider;
            for _ in 0..3 {
                let asked = provider.execute_request();
                let number: usize = asked.event.body()["parameters"]["text"].as_str().unwrap().parse().unwrap();
                let invoice = market.invoice(number, PROVIDER, PRICE);
                provider.send(&asked, &demand(&provider, &asked, PRICE, &invoice));
                assert!(market.is_paid_soon(number));
            }
        });
        let mut host = Host::start(&world, &[npub.as_str(), "--relay", &url, "--timeout-secs", "60"]);
        for number in [all, 2 * all, 3 * all] {
            host.call("say", &json!({ "text": number.to_string() }));
        }
        serving.join().unwrap_or_else(|panic| resume_unwind(panic));
        host.process.kill();
    });
    let noted = history(&world);
    assert_eq!(noted.len(), 3);
    assert!(noted.iter().all(|one| one["state"] == "paid"), "{noted:#?}");
    (before - market.bank.balance(CUSTOMER)).abs_diff(3 * PRICE * 1000)
}
