//! Paid with ecash of a real mint by others (Nutshell), and over Lightning through it, with the wallet that is built in.

use std::sync::OnceLock;

use nostr::key::Keys;
use rialto_http::client::{Agent, Options};
use rialto_payment::amount::Msat;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Lock, Order, Purse as _, Standing, Wallet as _};
use rialto_wallet::cashu::{Cashu, Mints, Settings};
use serde_json::json;

use crate::mint::Mint;
use crate::peers::Peers;
use torture::market::invoice;
use torture::nostr_side::customer::Customer;
use torture::nostr_side::event::now;
use torture::nostr_side::log::until;
use torture::nostr_side::process::Process;
use torture::nostr_side::world::{Provider, World};
use torture::nostr_side::{PATIENCE, runtime};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_token_inside_the_request_pays_for_it),
    case!(a_token_answers_the_demand),
    case!(an_invoice_of_the_mint_is_paid_by_anybody),
    case!(tokens_that_are_not_ours_alone_or_too_small_are_refused),
    case!(the_same_coins_pay_once),
    case!(what_is_credited_pays_the_next_call_or_comes_back_as_a_token),
];

/// The mint that all share; `None` without the peers.
pub(crate) fn mint() -> Option<&'static Mint> {
    static MINT: OnceLock<Option<Mint>> = OnceLock::new();
    MINT.get_or_init(|| Some(Mint::start(&Peers::installed()?.mint(), &["--manual"]))).as_ref()
}

/// A relay, a provider that takes ecash, and a customer who has some.
struct Bazaar {
    mint: &'static Mint,
    world: World,
    _relay: Process,
    provider: Provider,
    customer: Customer,
    purse: Cashu,
    _folder: tempfile::TempDir,
}

fn sat(amount: u64) -> Msat {
    Msat::from_sat(amount).unwrap()
}

impl Bazaar {
    fn open(flags: &[&str]) -> Option<Self> {
        let mint = mint()?;
        let world = World::new();
        let (relay, url) = world.relay();
        let mut all = vec!["--mint", mint.url.as_str()];
        all.extend_from_slice(flags);
        let provider = world.serve(&[&url], &all);
        let customer = Customer::new(&url, &provider.pubkey);
        let folder = tempfile::tempdir().unwrap();
        let purse = runtime().block_on(purse(mint, &customer.keys, &folder));
        Some(Self { mint, world, _relay: relay, provider, customer, purse, _folder: folder })
    }

    /// A token of the customer's for the provider, until so many seconds from now.
    fn token(&self, amount: u64, seconds: u64) -> Secret {
        let key = nostr::key::PublicKey::from_hex(&self.provider.pubkey).unwrap().to_bytes();
        let lock = Lock { key, until: Some(u64::try_from(now()).unwrap() + seconds) };
        runtime().block_on(self.purse.send(&self.mint.url, sat(amount), lock)).unwrap()
    }

    fn balance(&self) -> u64 {
        runtime().block_on(self.purse.balance()).unwrap().sat_rounded_down()
    }

    fn draft(&self, tag: &str) -> torture::nostr_side::event::Draft {
        let call = json!({ "name": "note", "parameters": { "tag": tag, "text": "done" } });
        self.customer.draft("execute-tool", &call)
    }

    fn pay(&self, id: &str, token: &Secret) -> torture::nostr_side::customer::Answers {
        self.customer.ask("pay-execution", &json!({ "request": id, "token": token.reveal() }))
    }
}

/// A purse with two hundred satoshis.
async fn purse(mint: &Mint, keys: &Keys, folder: &tempfile::TempDir) -> Cashu {
    let settings = Settings {
        directory: folder.path().join("purse"),
        mints: Mints::new([mint.url.as_str()]).unwrap(),
        cap: sat(100_000),
        key: keys.secret_key().to_secret_bytes(),
        agent: Agent::new(&Options::default()).unwrap(),
    };
    let purse = Cashu::open(settings).await.unwrap();
    let order = Order { amount: sat(200), memo: "a purse".to_owned(), expiry: 600 };
    let invoice = purse.make(&order).await.unwrap();
    mint.pay(&invoice.text);
    let begun = std::time::Instant::now();
    while !matches!(purse.look_up(invoice.hash).await, Ok(Standing::Settled { .. })) {
        assert!(begun.elapsed() < PATIENCE, "the mint gives no coins");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    purse
}

fn a_token_inside_the_request_pays_for_it() {
    let Some(bazaar) = Bazaar::open(&["--price", "note=5"]) else { return };
    let token = bazaar.token(5, 3600);
    let id = bazaar.customer.post(&bazaar.draft("inside").tag(&["cashu", token.reveal()]));
    let answers = bazaar.customer.answers(&id);
    assert_eq!(answers.text(), "done");
    assert_eq!(answers.statuses(), ["processing", "success"], "nothing was asked for");
    assert_eq!(bazaar.world.times("note inside"), 1);
    let spent = runtime().block_on(bazaar.purse.take_back(&token));
    assert!(spent.is_err(), "the provider has it");
    assert!((190..=195).contains(&bazaar.balance()), "five, and what the mint keeps: {}", bazaar.balance());
}

fn a_token_answers_the_demand() {
    let Some(bazaar) = Bazaar::open(&["--price", "note=5"]) else { return };
    let id = bazaar.customer.post(&bazaar.draft("after"));
    let demand = bazaar.customer.wait_for_status(&id, "payment-required");
    invoice_is_there(&demand);
    assert_eq!(demand.tag("mint"), bazaar.mint.url);
    let paid = bazaar.pay(&id, &bazaar.token(5, 3600));
    assert_eq!(paid.body()["accepted"], true);
    assert_eq!(bazaar.customer.answers(&id).text(), "done");
    assert_eq!(bazaar.pay(&id, &bazaar.token(5, 3600)).error(), "payment_refused", "it waits for nothing any more");
}

/// The invoice is of the main network, whose amounts need no other check here.
fn invoice_is_there(demand: &torture::nostr_side::event::Event) {
    invoice(demand, 5);
}

fn an_invoice_of_the_mint_is_paid_by_anybody() {
    let Some(bazaar) = Bazaar::open(&["--price", "note=5"]) else { return };
    let id = bazaar.customer.post(&bazaar.draft("lightning"));
    let demand = bazaar.customer.wait_for_status(&id, "payment-required");
    bazaar.customer.barrier();
    assert_eq!(bazaar.world.times("note lightning"), 0);
    bazaar.mint.pay(&invoice(&demand, 5));
    assert_eq!(bazaar.customer.answers(&id).text(), "done");
    assert_eq!(bazaar.world.times("note lightning"), 1);
}

fn tokens_that_are_not_ours_alone_or_too_small_are_refused() {
    let Some(bazaar) = Bazaar::open(&["--price", "note=5"]) else { return };
    let stranger = Keys::generate().public_key().to_bytes();
    let elsewhere = Lock { key: stranger, until: None };
    let foreign = runtime().block_on(bazaar.purse.send(&bazaar.mint.url, sat(5), elsewhere)).unwrap();
    for (token, why) in [
        (foreign.reveal().to_owned(), "locked to somebody else"),
        (bazaar.token(5, 60).reveal().to_owned(), "the customer's again too soon"),
        (bazaar.token(4, 3600).reveal().to_owned(), "too small"),
        ("cashuBo2FteBtodHRwczovL21pbnQ".to_owned(), "broken"),
    ] {
        let id = bazaar.customer.post(&bazaar.draft("refused").tag(&["cashu", &token]));
        assert_eq!(bazaar.customer.answers(&id).error(), "payment_refused", "{why}");
    }
    assert_eq!(bazaar.world.times("note refused"), 0);
}

fn the_same_coins_pay_once() {
    let Some(bazaar) = Bazaar::open(&["--price", "note=5"]) else { return };
    let token = bazaar.token(5, 3600);
    let ids: Vec<String> =
        (0..10).map(|_| bazaar.customer.post(&bazaar.draft("once").tag(&["cashu", token.reveal()]))).collect();
    let mut succeeded = 0;
    for id in &ids {
        let answers = bazaar.customer.answers(id);
        if answers.statuses().contains(&"success") {
            succeeded += 1;
        } else {
            assert_eq!(answers.error(), "payment_refused");
        }
    }
    assert_eq!((succeeded, bazaar.world.times("note once")), (1, 1));
    // Nor do they answer a demand; and what was demanded can still be paid.
    let id = bazaar.customer.post(&bazaar.draft("honest"));
    bazaar.customer.wait_for_status(&id, "payment-required");
    assert_eq!(bazaar.pay(&id, &token).error(), "payment_refused");
    assert_eq!(bazaar.pay(&id, &bazaar.token(5, 3600)).body()["accepted"], true);
    assert_eq!(bazaar.customer.answers(&id).text(), "done");
}

fn what_is_credited_pays_the_next_call_or_comes_back_as_a_token() {
    let Some(bazaar) = Bazaar::open(&["--price", "note=5", "--price", "broken=9"]) else { return };
    let call = json!({ "name": "broken", "parameters": {} });
    let token = bazaar.token(20, 3600);
    let id = bazaar.customer.post(&bazaar.customer.draft("execute-tool", &call).tag(&["cashu", token.reveal()]));
    assert_eq!(bazaar.customer.answers(&id).error(), "tool_error");
    let id = bazaar.customer.post(&bazaar.draft("credit"));
    assert_eq!(bazaar.customer.answers(&id).text(), "done", "paid with what is credited");
    let before = bazaar.balance();
    let refund = bazaar.customer.ask("refund", &json!({})).body();
    assert_eq!(refund["amount_sat"], 15, "twenty, less five: {refund}");
    let token = Secret::new(refund["token"].as_str().unwrap());
    let came = runtime().block_on(bazaar.purse.receive(&token)).unwrap();
    assert_eq!(came, sat(15));
    until("the coins are there", PATIENCE, || bazaar.balance() == before + 15);
    assert_eq!(bazaar.customer.ask("refund", &json!({})).error(), "payment_refused", "there is nothing left");
}
