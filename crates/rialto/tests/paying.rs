//! Customers who pay, and everybody who would like to be paid for nothing: hundreds of calls by two real processes that share
//! a wallet and a budget, against a provider and strangers that lie about prices, invoices and results. What has become of the
//! money is read on the wallets' side.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]
#![allow(clippy::print_stdout, reason = "it tells what it has measured")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bitcoin::hashes::{Hash as _, sha256};
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use lightning_invoice::{Currency, InvoiceBuilder, PaymentSecret};
use nostr::key::Keys;
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::wallet::{Order, Wallet};
use rialto_wallet::nwc::{Nwc, Patience};
use rialto_wallet::testing::{Options, Stage, Style, TestWallet};
use serde_json::{Value, json};
use torture::nostr_side::event::Draft;
use torture::nostr_side::fake_provider::{Asked, FakeProvider, text_result};
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::host::Host;
use torture::nostr_side::process::Process;
use torture::nostr_side::world::World;
use torture::nostr_side::{PATIENCE, runtime};

/// What the tool says it costs, what the customer allows, and how many calls there are.
const PRICE: u64 = 5;
const PER_CALL: u64 = 20;
const PER_DAY: u64 = 600;
const CALLS: usize = 520;

/// Accounts of the wallet service.
const PROVIDER: usize = 0;
const CUSTOMER: usize = 1;
const STRANGER: usize = 2;

/// Calls that are open at once in each process.
const AT_ONCE: usize = 12;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Attack {
    /// None: five satoshis are asked for, and the result is given for them.
    None,
    /// The same demand again and again.
    Repeated,
    /// Once it is paid, another demand, and another.
    SecondDemand,
    /// Strangers ask for money; the provider does not.
    ForgedDemands,
    /// A stranger asks for money before the provider does.
    StrangerFirst,
    /// A stranger gives a result before the provider does.
    ForeignResult,
    /// One satoshi, it says; in the invoice is a million.
    Inflated,
    /// A satoshi more than was announced.
    AbovePrice,
    NoAmount,
    Expired,
    /// The invoice of another call that was paid.
    UsedInvoice,
    /// What was asked in private is demanded in public.
    Exposed,
    Nonsense,
}

impl Attack {
    const ALL: [Attack; 13] = [
        Attack::None,
        Attack::Repeated,
        Attack::SecondDemand,
        Attack::ForgedDemands,
        Attack::StrangerFirst,
        Attack::ForeignResult,
        Attack::Inflated,
        Attack::AbovePrice,
        Attack::NoAmount,
        Attack::Expired,
        Attack::UsedInvoice,
        Attack::Exposed,
        Attack::Nonsense,
    ];

    fn of(number: usize) -> Self {
        Self::ALL[number % Self::ALL.len()]
    }

    /// Whether the provider gives a result without being paid.
    fn is_free(self) -> bool {
        matches!(self, Attack::ForgedDemands | Attack::ForeignResult | Attack::Exposed)
    }

    /// Whether an honest price is asked for.
    fn may_be_paid(self) -> bool {
        matches!(self, Attack::None | Attack::Repeated | Attack::SecondDemand | Attack::StrangerFirst)
    }
}

/// The wallet service, and those who make invoices.
struct Bank {
    wallet: TestWallet,
    provider: Nwc,
    stranger: Nwc,
    _relay: Process,
}

impl Bank {
    fn open(world: &World) -> Self {
        let (relay, url) = world.relay();
        let options = Options { styles: vec![Style::default(); 3], ..Options::default() };
        let wallet = runtime().block_on(TestWallet::start(&url, options)).unwrap();
        let _inside = runtime().enter();
        let open = |account| Nwc::open(&wallet.uri(account).unwrap(), Patience::default()).unwrap();
        Self { provider: open(PROVIDER), stranger: open(STRANGER), wallet, _relay: relay }
    }

    fn invoice(&self, by: usize, sat: u64, expiry: u64) -> Invoice {
        let by = if by == PROVIDER { &self.provider } else { &self.stranger };
        let order = Order { amount: Msat::from_sat(sat).unwrap(), memo: "a call".into(), expiry };
        runtime().block_on(by.make(&order)).unwrap()
    }

    fn balance(&self, account: usize) -> u64 {
        self.wallet.balance(account).unwrap().get()
    }

    fn is_paid(&self, invoice: &Invoice) -> bool {
        [PROVIDER, STRANGER].iter().any(|account| self.wallet.stage(*account, invoice.hash) == Some(Stage::Settled))
    }
}

/// An invoice whose payer chooses the amount.
fn without_amount(number: usize) -> String {
    let (secp, key) = (Secp256k1::new(), SecretKey::from_slice(&[0x42; 32]).unwrap());
    let mut hash = [0x33; 32];
    hash[..8].copy_from_slice(&number.to_be_bytes());
    let invoice = InvoiceBuilder::new(Currency::Regtest)
        .description("as you like".to_owned())
        .payment_hash(sha256::Hash::from_byte_array(hash))
        .payment_secret(PaymentSecret([7; 32]))
        .duration_since_epoch(SystemTime::now().duration_since(UNIX_EPOCH).unwrap())
        .min_final_cltv_expiry_delta(18)
        .build_signed(|message| secp.sign_ecdsa_recoverable(message, &key));
    invoice.unwrap().to_string()
}

/// The provider, with everything that it has asked for.
struct Market {
    bank: Bank,
    /// All invoices that were made for a call, by its number.
    invoices: std::sync::Mutex<BTreeMap<usize, Vec<Invoice>>>,
    expired: Invoice,
    used: Invoice,
}

impl Market {
    fn invoice(&self, number: usize, by: usize, sat: u64) -> String {
        let invoice = self.bank.invoice(by, sat, 600);
        let text = invoice.text.clone();
        self.invoices.lock().unwrap().entry(number).or_default().push(invoice);
        text
    }

    /// Waits until one of the invoices of a call is paid; not for ever, because the budget may be used up.
    fn is_paid_soon(&self, number: usize) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let invoices = self.invoices.lock().unwrap().get(&number).cloned().unwrap_or_default();
            if invoices.iter().any(|invoice| self.bank.is_paid(invoice)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

fn demand(provider: &FakeProvider, asked: &Asked, amount: u64, invoice: &str) -> Draft {
    let demand = provider.feedback(asked, &["payment-required", "pay me"]);
    demand.tag(&["amount", &amount.to_string(), invoice]).tag(&["invoice", invoice])
}

/// Plays what happens to one call.
fn play(market: &Market, provider: &FakeProvider, relay: &FakeRelay, asked: &Asked) {
    let body = asked.event.body();
    let number: usize = body["parameters"]["text"].as_str().unwrap().parse().unwrap();
    let attack = Attack::of(number);
    let stranger = Keys::generate();
    let good = format!("result {number}");
    let ask = |sat: u64, invoice: &str| provider.send(asked, &demand(provider, asked, sat, invoice));
    let forge = |sat: u64| {
        let invoice = market.invoice(number, STRANGER, sat);
        provider.send_as(&stranger, asked, &demand(provider, asked, sat, &invoice));
    };
    match attack {
        // The first invoice turns up again.
        Attack::None if number == 0 => {
            market.invoices.lock().unwrap().insert(number, vec![market.used.clone()]);
            ask(PRICE, &market.used.text);
        }
        Attack::None => ask(PRICE, &market.invoice(number, PROVIDER, PRICE)),
        Attack::Repeated => {
            let invoice = market.invoice(number, PROVIDER, PRICE);
            (0..5).for_each(|_| ask(PRICE, &invoice));
            ask(PRICE, &invoice.to_uppercase());
        }
        Attack::SecondDemand => ask(PRICE, &market.invoice(number, PROVIDER, PRICE)),
        Attack::ForgedDemands => (0..3).for_each(|_| forge(PRICE)),
        Attack::StrangerFirst => {
            forge(PRICE);
            ask(PRICE, &market.invoice(number, PROVIDER, PRICE));
        }
        Attack::ForeignResult => {
            provider.send_as(&stranger, asked, &provider.response(asked, &text_result("stolen")));
        }
        Attack::Inflated => ask(1, &market.invoice(number, PROVIDER, 1_000_000)),
        Attack::AbovePrice => ask(PRICE, &market.invoice(number, PROVIDER, PRICE + 1)),
        Attack::NoAmount => ask(PRICE, &without_amount(number)),
        Attack::Expired => ask(PRICE, &market.expired.text),
        Attack::UsedInvoice => ask(PRICE, &market.used.text),
        Attack::Exposed => {
            let invoice = market.invoice(number, PROVIDER, PRICE);
            relay.publish(&demand(provider, asked, PRICE, &invoice).sign(&provider.keys));
        }
        Attack::Nonsense => ask(PRICE, "lnbcrt50n1nonsense"),
    }
    if attack.is_free() {
        provider.say(asked, &good);
    } else if attack.may_be_paid() && market.is_paid_soon(number) {
        if attack == Attack::SecondDemand {
            (0..2).for_each(|_| ask(PRICE, &market.invoice(number, PROVIDER, PRICE)));
        }
        provider.say(asked, &good);
    }
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
        one.join().unwrap();
    }
}

/// What a host was told.
#[derive(Debug, Default)]
struct Told {
    results: Vec<usize>,
    refused: Vec<(usize, Value)>,
}

/// Makes these calls, several at once.
fn shop(host: &mut Host, numbers: &[usize]) -> Told {
    let mut told = Told::default();
    for some in numbers.chunks(AT_ONCE) {
        let open: Vec<(usize, u64)> =
            some.iter().map(|number| (*number, host.call("say", &json!({ "text": number.to_string() })))).collect();
        for (number, id) in open {
            let answer = host.answer(id);
            let result = &answer["result"];
            let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{number}: {answer}"));
            if result["isError"] == true {
                told.refused.push((number, result["structuredContent"]["error"].clone()));
            } else {
                assert_eq!(text, format!("result {number}"), "a result of somebody else: {answer}");
                told.results.push(number);
            }
        }
    }
    told
}

/// A customer with a wallet and a budget.
fn customer(world: &World, bank: &Bank) {
    let mut connect = world.rialto("customer", &["wallet", "connect", "-", "--network", "regtest"]);
    connect.write(bank.wallet.uri(CUSTOMER).unwrap().reveal());
    connect.close_input();
    assert!(connect.end().success(), "{}", connect.told());
    assert!(!connect.told().contains("walletconnect"), "{}", connect.told());
    let (per_call, per_day) = (PER_CALL.to_string(), PER_DAY.to_string());
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

#[test]
fn nobody_pays_twice_or_too_much_or_the_wrong_one() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let bank = Bank::open(&world);
    customer(&world, &bank);
    // Wallets have bad days: answers come late, twice, or after those of strangers.
    for fault in ["times=15 delay:700", "times=10 twice", "times=10 stranger", "times=10 other-request"] {
        bank.wallet.faults().add(format!("account={CUSTOMER} method=pay_invoice {fault}").parse().unwrap());
    }
    let (expired, used) = (bank.invoice(PROVIDER, PRICE, 1), bank.invoice(PROVIDER, PRICE, 600));
    torture::nostr_side::log::until("an invoice has expired", PATIENCE, || {
        torture::nostr_side::event::now() > expired.expires as i64
    });
    let provider = priced(&relay);
    let npub = provider.npub();
    let before = [PROVIDER, CUSTOMER, STRANGER].map(|account| bank.balance(account));
    let market = Arc::new(Market { bank, invoices: std::sync::Mutex::default(), expired, used });
    let url = relay.url();
    let arguments = [npub.as_str(), "--relay", &url, "--timeout-secs", "60"];
    let numbers: Vec<usize> = (Attack::ALL.len()..Attack::ALL.len() + CALLS).collect();
    let (told, others) = std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&market, provider, &relay, CALLS + 1));
        let start = || Host::start(&world, &arguments);
        let (mut one, mut other) = (start(), start());
        // The first call is honest, and its invoice turns up again.
        let first = one.call("say", &json!({ "text": "0" }));
        assert_ne!(one.answer(first)["result"]["isError"], true, "{}", one.process.told());
        let (half, rest) = numbers.split_at(CALLS / 2);
        let shopping = scope.spawn(move || shop(&mut other, rest));
        let told = shop(&mut one, half);
        let others = shopping.join().unwrap();
        serving.join().unwrap();
        (told, others)
    });
    judge(&market, &world, &before, &[told, others]);
}

fn judge(market: &Market, world: &World, before: &[u64; 3], told: &[Told]) {
    let bank = &market.bank;
    let spent = before[CUSTOMER] - bank.balance(CUSTOMER);
    assert_eq!(bank.balance(STRANGER), before[STRANGER], "strangers were paid");
    assert_eq!(bank.balance(PROVIDER) - before[PROVIDER], spent);
    assert!(spent <= PER_DAY * 1000, "over the cap: {spent}");
    assert!(spent > (PER_DAY - PER_CALL) * 1000, "there was more than enough to spend it on: {spent}");
    // On the wallet's side: at most one payment for a call, and only where an honest price was asked for.
    let mut paid = 0;
    for (number, invoices) in market.invoices.lock().unwrap().iter() {
        let settled: Vec<_> = invoices.iter().filter(|invoice| bank.is_paid(invoice)).collect();
        assert!(settled.len() <= 1, "{number} was paid twice");
        assert!(settled.is_empty() || Attack::of(*number).may_be_paid(), "{number}: {:?}", Attack::of(*number));
        assert!(settled.iter().all(|invoice| invoice.amount == Msat::from_sat(PRICE)), "{number}");
        paid += settled.len();
    }
    assert_eq!(paid as u64 * PRICE * 1000, spent);
    // On the customer's side: what could not be paid was said, and everything was noted.
    let (mut results, mut refusals) = (BTreeMap::<Attack, usize>::new(), BTreeMap::<Attack, usize>::new());
    for told in told {
        told.results.iter().for_each(|number| *results.entry(Attack::of(*number)).or_default() += 1);
        for (number, error) in &told.refused {
            *refusals.entry(Attack::of(*number)).or_default() += 1;
            assert_eq!(error["code"], "payment_required", "{number}: {error}");
        }
    }
    assert_eq!(results.values().sum::<usize>() + refusals.values().sum::<usize>(), CALLS);
    for attack in Attack::ALL {
        let (given, refused) = (results.contains_key(&attack), refusals.contains_key(&attack));
        let expected = (attack.is_free() || attack.may_be_paid(), !attack.is_free());
        assert_eq!((given, refused), expected, "{attack:?}");
    }
    println!(
        "{CALLS} calls: {paid} paid ({spent} msat of {}); results {results:?}; refused {refusals:?}",
        PER_DAY * 1000
    );
    let noted = history(world);
    let total: u64 = noted.iter().map(|one| one["amount_msat"].as_u64().unwrap()).sum();
    assert!(noted.iter().all(|one| one["state"] == "paid" && one["approved_by"] == "budget"), "{noted:#?}");
    assert_eq!((noted.len(), total), (paid, spent));
}

#[test]
fn what_a_wallet_did_not_say_is_found_out_after_a_crash_and_not_paid_again() {
    let (relay, world) = (FakeRelay::start(), World::new());
    let bank = Bank::open(&world);
    customer(&world, &bank);
    let provider = priced(&relay);
    let npub = provider.npub();
    let before = bank.balance(CUSTOMER);
    bank.wallet.faults().add(format!("account={CUSTOMER} method=pay_invoice times=3 lose").parse().unwrap());
    let used = bank.invoice(PROVIDER, PRICE, 600);
    let market = Arc::new(Market { bank, invoices: std::sync::Mutex::default(), expired: used.clone(), used });
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
        serving.join().unwrap();
        // The money has left, and the wallet has not said so.
        host.process.kill();
    });
    let spent = before - market.bank.balance(CUSTOMER);
    assert_eq!(spent, 3 * PRICE * 1000);
    let noted = history(&world);
    assert_eq!(noted.len(), 3);
    assert!(noted.iter().all(|one| one["state"] == "paid"), "{noted:#?}");
    assert_eq!(before - market.bank.balance(CUSTOMER), spent, "nothing was paid again");
}
