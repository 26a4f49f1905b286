//! Nobody pays twice, or more than they allowed, or anybody but the provider that was asked.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::{Keys, Tag};
use rialto_consumer::error::Error;
use rialto_consumer::ongoing::{Ongoing, Step};
use rialto_consumer::payment::{Approver, Bill, Decision, Later, Met, Nobody, Payer, Purchase, Question, Unpaid, Why};
use rialto_consumer::remote::{Remote, Terms};
use rialto_ledger::spending::{Approval, Budget, Denied, Rail, Spend, Spending, State};
use rialto_mcp::pending::Patience;
use rialto_payment::invoice::{Invoice, Network};
use rialto_payment::price::Rule;
use rialto_relay::embedded::Relay;
use rialto_relay::sign::sign;
use rialto_wire::dvmcp::answer::Progress;
use rialto_wire::dvmcp::content::Execute;
use rialto_wire::request::Body;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::wallet::{Act, Making, Scripted, invoice, making, now, sat, write};
use support::{Asked, Provider, SOON, customer, open, relay, soon, tool};

/// A person who answers as told, and remembers what was asked.
#[derive(Debug)]
struct Person {
    says: Decision,
    sees: bool,
    asked: Mutex<Vec<Question>>,
}

impl Approver for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> Later<'a, Decision> {
        self.asked.lock().unwrap().push(question.clone());
        Box::pin(std::future::ready(self.says))
    }

    fn show<'a>(&'a self, _bill: &'a Bill) -> Later<'a, bool> {
        Box::pin(std::future::ready(self.sees))
    }
}

struct World {
    _relay: Relay,
    _directory: tempfile::TempDir,
    provider: Provider,
    remote: Remote,
    wallet: Arc<Scripted>,
    spending: Spending,
    purchase: Purchase,
}

/// Waits long enough for everything that works, and not much longer for what does not.
const PATIENCE: Patience = Patience { silence: SOON, total: SOON };
const SHORT: Patience = Patience { silence: Duration::from_secs(2), total: Duration::from_secs(60) };

impl World {
    /// With a budget of so many satoshis for a call and for a day.
    async fn new(per_call: u64, per_day: u64) -> Self {
        let relay = relay().await;
        let provider = Provider::start(&relay, vec![tool("echo", "says it again")]).await;
        provider.announce("shop", false, 1000).await;
        let remote = open(&customer(&[&relay]), &provider, Terms::PLAIN).await;
        let directory = tempfile::tempdir().unwrap();
        let spending = Spending::open(directory.path()).unwrap();
        if per_day > 0 {
            spending.set(&Budget { service: None, per_call: sat(per_call), per_day: sat(per_day) }).unwrap();
        }
        let wallet = Arc::new(Scripted::default());
        let payer = Payer::new(Some(wallet.clone()), spending.clone(), Network::Regtest);
        let purchase = Purchase {
            payer: Arc::new(payer),
            service: "shop".into(),
            tool: "echo".into(),
            price: Some(Rule { base: 5, per_kb: 0, first_free: 0 }),
            input: 2,
            allowed: None,
            approver: Arc::new(Nobody),
        };
        Self { _relay: relay, _directory: directory, provider, remote, wallet, spending, purchase }
    }

    fn with_purse(mut self) -> Self {
        let payer = Payer::with_purse(self.wallet.clone(), self.spending.clone(), Network::Regtest);
        self.purchase.payer = Arc::new(payer);
        self
    }

    fn person(&mut self, says: Decision) -> Arc<Person> {
        let person = Arc::new(Person { says, sees: true, asked: Mutex::default() });
        self.purchase.approver = person.clone();
        person
    }

    async fn call(&self, patience: Patience) -> (Ongoing, Asked) {
        let execute = Execute { name: "echo", arguments: b"{}", timeout: None, progress: false, meta: None };
        let purchase = Some(Arc::new(self.purchase.clone()));
        let ongoing = self.remote.buy(&execute, patience, purchase).await.unwrap();
        (ongoing, self.next().await)
    }

    /// The next request that is no cancellation of one before.
    async fn next(&self) -> Asked {
        loop {
            let asked = self.provider.next().await;
            if !matches!(asked.request.body, Body::Cancel { .. }) {
                return asked;
            }
        }
    }

    async fn demand(&self, asked: &Asked, invoice: &str, mints: &[&str]) {
        self.demand_by(&self.provider.keys, asked, invoice, mints).await;
    }

    /// A demand that somebody signs.
    async fn demand_by(&self, keys: &Keys, asked: &Asked, invoice: &str, mints: &[&str]) {
        let mut event = self.provider.writer().feedback(&asked.request.address, &Progress::Begun);
        let mut tags: Vec<Tag> = event.tags.to_vec().into_iter().filter(|tag| tag.kind() != "status").collect();
        tags.push(Tag::parse(["status", "payment-required", "pay me"]).unwrap());
        tags.push(Tag::parse(["amount", "1", invoice]).unwrap());
        tags.extend(mints.iter().map(|mint| Tag::parse(["mint", mint]).unwrap()));
        event.tags = nostr::prelude::Tags::from_list(tags);
        event.pubkey = keys.public_key();
        let report = soon(self.provider.pool.publish(&sign(keys, event)).finished()).await;
        assert_eq!(report.accepted, 1);
    }

    /// Calls, and is asked to pay this.
    async fn quoted(&self, invoice: &str) -> Result<(Asked, Ongoing, Met), Unpaid> {
        let (mut ongoing, asked) = self.call(PATIENCE).await;
        self.demand(&asked, invoice, &[]).await;
        match soon(ongoing.next()).await {
            Ok(Step::Paid(met)) => Ok((asked, ongoing, met)),
            Err(Error::PaymentRequired(unpaid)) => Err(*unpaid),
            other => panic!("{other:?}"),
        }
    }

    async fn refused(&self, invoice: &str) -> Why {
        self.quoted(invoice).await.map(|(_, _, met)| met).unwrap_err().why
    }

    fn states(&self) -> Vec<State> {
        self.spending.history(100).unwrap().iter().map(|entry| entry.state).collect()
    }
}

fn hash(invoice: &str) -> rialto_payment::secret::PaymentHash {
    invoice.parse::<Invoice>().unwrap().hash
}

#[tokio::test]
async fn a_call_inside_the_budget_is_paid_and_answered() {
    let world = World::new(20, 100).await;
    *world.wallet.fee.lock().unwrap() = sat(1);
    let bill = invoice(5);
    let (asked, ongoing, met) = world.quoted(&bill).await.unwrap();
    assert_eq!(met, Met::Paid { amount: sat(5), fee: sat(1), rail: Rail::Lightning });
    // The same demand again, and then another one.
    world.demand(&asked, &bill.to_uppercase(), &[]).await;
    world.demand(&asked, &invoice(5), &[]).await;
    world.provider.text(&asked, "here");
    assert!(soon(ongoing.finish()).await.unwrap().content.contains("here"));
    assert_eq!(world.wallet.moved(), [(hash(&bill), sat(5))]);
    let entry = &world.spending.history(10).unwrap()[0];
    assert_eq!((entry.state, entry.fee, entry.spend.approved), (State::Paid, sat(1), Approval::Budget));
    assert_eq!((entry.spend.service.as_str(), entry.spend.tool.as_str()), ("shop", "echo"));
    assert_eq!(world.spending.spent(None, now()).unwrap(), sat(6));
}

#[tokio::test]
async fn what_no_budget_allows_is_not_paid_without_a_person() {
    for (per_call, per_day, expected) in
        [(0, 0, Denied::NoBudget), (4, 100, Denied::PerCall { cap: sat(4) }), (20, 4, Denied::PerDay { left: sat(4) })]
    {
        let world = World::new(per_call, per_day).await;
        let unpaid = world.quoted(&invoice(5)).await.map(|(_, _, met)| met).unwrap_err();
        assert_eq!((unpaid.why.clone(), unpaid.amount), (Why::Denied(expected), Some(sat(5))));
        assert!(unpaid.demand.invoice.is_some() && unpaid.why.hint().unwrap().contains("rialto budget set"));
        assert_eq!(world.wallet.moved(), []);
        assert_eq!(world.spending.history(10).unwrap(), []);
    }
}

#[tokio::test]
async fn a_person_decides_what_the_budget_does_not() {
    for (says, is_paid) in [(Decision::Pay, true), (Decision::Decline, false), (Decision::NobodyThere, false)] {
        let mut world = World::new(3, 100).await;
        let person = world.person(says);
        let done = world.quoted(&invoice(5)).await;
        assert_eq!(done.is_ok(), is_paid);
        assert_eq!(world.wallet.moved().len(), usize::from(is_paid));
        let asked = person.asked.lock().unwrap();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].to_string(), "Pay 5 sat to shop for echo? (fees: up to 10 sat)");
        if is_paid {
            assert_eq!(world.spending.history(1).unwrap()[0].spend.approved, Approval::Person);
        }
    }
}

#[tokio::test]
async fn more_than_was_announced_needs_a_person_even_inside_the_budget() {
    let mut world = World::new(1000, 10_000).await;
    assert_eq!(world.refused(&invoice(6)).await, Why::AbovePrice { price: sat(5) });
    assert_eq!(world.wallet.moved(), []);
    let person = world.person(Decision::Pay);
    world.quoted(&invoice(6)).await.map(|_| ()).unwrap();
    assert_eq!(person.asked.lock().unwrap().len(), 1);
    // A tool that says nothing of its price is paid from the budget; one that says it is free is not.
    world.purchase.price = None;
    world.quoted(&invoice(600)).await.map(|_| ()).unwrap();
    assert_eq!(person.asked.lock().unwrap().len(), 1);
    world.purchase.price = Some(Rule::FREE);
    world.quoted(&invoice(1)).await.map(|_| ()).unwrap();
    assert_eq!(person.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn what_was_allowed_for_a_call_is_the_limit_whatever_the_budget() {
    let mut world = World::new(1000, 10_000).await;
    world.purchase.allowed = Some(sat(7));
    assert_eq!(world.refused(&invoice(8)).await, Why::AboveLimit(sat(7)));
    *world.wallet.fee.lock().unwrap() = sat(1);
    world.quoted(&invoice(6)).await.map(|_| ()).unwrap();
    assert_eq!(world.spending.history(1).unwrap()[0].spend.approved, Approval::Person);
}

#[tokio::test]
async fn invoices_that_must_not_be_paid_are_not() {
    let mut world = World::new(1_000_000, 10_000_000).await;
    world.person(Decision::Pay);
    let good = making(5);
    let wrong_network = write(Making { currency: lightning_invoice::Currency::Bitcoin, ..good.clone() });
    let changed = invoice(5).replacen("lnbcrt50n", "lnbcrt60n", 1);
    assert_eq!(world.refused(&write(Making { amount: None, ..good.clone() })).await, Why::NoAmount);
    assert_eq!(world.refused(&write(Making { made: now() - 700, ..good })).await, Why::Expired);
    assert_eq!(world.refused(&wrong_network).await, Why::Network(Network::Bitcoin));
    assert!(matches!(world.refused(&changed).await, Why::Invoice(_)));
    assert!(matches!(world.refused("lnbc1").await, Why::Invoice(_)));
    assert_eq!(world.refused("pay to my address").await, Why::NoInvoice);
    assert_eq!(world.wallet.moved(), []);
    assert_eq!(world.spending.history(10).unwrap(), []);
}

#[tokio::test]
async fn an_invoice_pays_for_one_call_only() {
    let world = World::new(20, 100).await;
    let bill = invoice(5);
    world.quoted(&bill).await.map(|_| ()).unwrap();
    assert_eq!(world.refused(&bill).await, Why::Denied(Denied::HashKnown(State::Paid)));
    assert_eq!(world.wallet.moved().len(), 1);
}

#[tokio::test]
async fn nobody_else_is_paid() {
    let world = World::new(20, 100).await;
    let (ongoing, asked) = world.call(PATIENCE).await;
    for _ in 0..5 {
        world.demand_by(&Keys::generate(), &asked, &invoice(5), &[]).await;
    }
    world.provider.text(&asked, "here");
    assert!(soon(ongoing.finish()).await.unwrap().content.contains("here"));
    assert_eq!(world.wallet.moved(), []);
}

#[tokio::test]
async fn a_wallet_that_says_no_has_not_paid() {
    for act in [Act::Refuse, Act::Insufficient, Act::Unreachable] {
        let world = World::new(20, 100).await;
        world.wallet.will([act.clone()]);
        assert!(matches!(world.refused(&invoice(5)).await, Why::Wallet(_)), "{act:?}");
        assert_eq!(world.states(), [State::Failed]);
        assert_eq!(world.spending.spent(None, now()).unwrap(), sat(0));
        world.quoted(&invoice(5)).await.map(|_| ()).unwrap();
    }
}

#[tokio::test]
async fn a_wallet_that_does_not_answer_is_asked_until_it_is_certain() {
    let world = World::new(20, 100).await;
    world.wallet.will([Act::Late(2)]);
    let (asked, ongoing, met) = world.quoted(&invoice(5)).await.unwrap();
    assert!(matches!(met, Met::Paid { .. }));
    assert_eq!(world.wallet.looked_up.load(Ordering::Relaxed), 3);
    world.provider.text(&asked, "here");
    soon(ongoing.finish()).await.unwrap();
    assert_eq!(world.states(), [State::Paid]);
    assert_eq!(world.wallet.moved().len(), 1);
}

#[tokio::test]
async fn what_stays_uncertain_counts_as_spent_and_is_not_paid_again() {
    let world = World::new(20, 100).await;
    world.wallet.will([Act::Ignore]);
    let (mut ongoing, asked) = world.call(SHORT).await;
    world.demand(&asked, &invoice(5), &[]).await;
    let Err(Error::PaymentRequired(unpaid)) = soon(ongoing.next()).await else { panic!() };
    assert!(unpaid.why.is_unclear(), "{unpaid}");
    assert_eq!(Error::PaymentRequired(unpaid).code(), "payment_unclear");
    assert_eq!(world.states(), [State::Unknown]);
    assert_eq!(world.spending.spent(None, now()).unwrap(), sat(15), "with what sending it may cost");
    // The next call is paid for itself.
    world.quoted(&invoice(5)).await.map(|_| ()).unwrap();
    assert_eq!(world.wallet.moved().len(), 1);
}

#[tokio::test]
async fn after_a_crash_the_wallet_is_asked() {
    let world = World::new(20, 100).await;
    let provider = *world.provider.key().as_bytes();
    let left = |number: u8, expires: u64| {
        let bill = invoice(5);
        let spend = Spend {
            request: [number; 32],
            provider,
            service: "shop".into(),
            tool: "echo".into(),
            amount: sat(5),
            max_fee: sat(1),
            hash: hash(&bill),
            invoice: bill,
            expires,
            approved: Approval::Budget,
            at: now(),
        };
        world.spending.reserve(&spend).unwrap();
        assert!(world.spending.begin(&spend.request, Rail::Lightning, None, now()).unwrap());
        spend
    };
    // One that the wallet has paid, one that never got there, and one that may still get there.
    let paid = left(1, now() + 600);
    let (_, _) = (left(2, now() - 600), left(3, now() + 600));
    world.wallet.will([]);
    let paid: Invoice = paid.invoice.parse().unwrap();
    rialto_payment::wallet::Wallet::pay(&*world.wallet, &paid, sat(1)).await.unwrap();
    world.purchase.payer.resolve(None).await;
    assert_eq!(world.states(), [State::Paying, State::Failed, State::Paid]);
}

#[tokio::test]
async fn without_a_wallet_a_person_can_pay_elsewhere() {
    let mut world = World::new(20, 100).await;
    world.purchase.payer = Arc::new(Payer::new(None, world.spending.clone(), Network::Regtest));
    assert_eq!(world.refused(&invoice(5)).await, Why::NoWallet);
    world.person(Decision::Pay);
    // Longer than the patience for anything else: a person needs time to pay.
    let (mut ongoing, asked) = world.call(Patience { silence: Duration::from_secs(1), total: SOON }).await;
    world.demand(&asked, &invoice(5), &[]).await;
    let waited = tokio::time::timeout(Duration::from_secs(3), ongoing.next()).await;
    assert!(waited.is_err(), "{waited:?}");
    world.provider.text(&asked, "here");
    assert!(matches!(soon(ongoing.next()).await, Ok(Step::Done(_))));
}

#[tokio::test]
async fn money_that_is_held_does_not_keep_the_answer_from_coming() {
    let world = World::new(20, 100).await;
    world.wallet.will([Act::Wait]);
    let (ongoing, asked) = world.call(PATIENCE).await;
    world.demand(&asked, &invoice(5), &[]).await;
    let finished = tokio::spawn(ongoing.finish());
    let deadline = tokio::time::Instant::now() + SOON;
    while world.states() != [State::Paying] {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.provider.text(&asked, "here");
    world.wallet.released.notify_one();
    assert!(soon(finished).await.unwrap().unwrap().content.contains("here"));
    assert_eq!(world.states(), [State::Paid]);
}

#[tokio::test]
async fn ecash_is_locked_to_the_provider_and_goes_to_nobody_else() {
    let world = World::new(20, 100).await.with_purse();
    *world.wallet.mints.lock().unwrap() = vec!["https://mint.example".into()];
    let (mut ongoing, asked) = world.call(PATIENCE).await;
    world.demand(&asked, &invoice(5), &["https://other.example", "https://mint.example/"]).await;
    let Ok(Step::Paid(Met::Paid { rail: Rail::Ecash, amount, .. })) = soon(ongoing.next()).await else { panic!() };
    assert_eq!(amount, sat(5));
    let paid = world.next().await;
    let Body::Pay { target, token } = paid.request.body else { panic!() };
    assert_eq!(target, asked.id());
    let (sent, lock) = {
        let sent = world.wallet.sent.lock().unwrap();
        (sent[0].0.clone(), sent[0].2)
    };
    assert_eq!(token.reveal(), sent);
    assert_eq!(lock.key, *world.provider.key().as_bytes());
    assert!(lock.until.unwrap() > now() + 3000);
    assert_eq!(world.states(), [State::Paying], "it is not sure that the provider has it");
    world.provider.text(&asked, "here");
    soon(ongoing.finish()).await.unwrap();
    assert_eq!(world.states(), [State::Paid]);
    assert_eq!(world.wallet.moved(), [], "nothing over Lightning");
    // Where there is not enough of it, or it costs too much, the invoice is paid.
    world.wallet.will([Act::Insufficient]);
    let (mut ongoing, asked) = world.call(PATIENCE).await;
    world.demand(&asked, &invoice(5), &["https://mint.example"]).await;
    let paid = soon(ongoing.next()).await;
    assert!(matches!(paid, Ok(Step::Paid(Met::Paid { rail: Rail::Lightning, .. }))), "{paid:?}");
}

#[tokio::test]
async fn ecash_of_which_nobody_knows_is_not_paid_a_second_time_over_lightning() {
    let world = World::new(20, 100).await.with_purse();
    *world.wallet.mints.lock().unwrap() = vec!["https://mint.example".into()];
    world.wallet.will([Act::Ignore]);
    let (mut ongoing, asked) = world.call(PATIENCE).await;
    world.demand(&asked, &invoice(5), &["https://mint.example"]).await;
    let Err(Error::PaymentRequired(unpaid)) = soon(ongoing.next()).await else { panic!() };
    assert!(unpaid.why.is_unclear());
    assert_eq!((world.wallet.moved().len(), world.states()), (0, vec![State::Unknown]));
}

#[tokio::test]
async fn many_calls_at_once_stay_inside_the_budget() {
    let world = Arc::new(World::new(20, 52).await);
    *world.wallet.fee.lock().unwrap() = sat(1);
    let refused = Arc::new(AtomicU64::new(0));
    let mut calls = Vec::new();
    for _ in 0..20 {
        let (mut ongoing, asked) = world.call(PATIENCE).await;
        world.demand(&asked, &invoice(5), &[]).await;
        let refused = refused.clone();
        calls.push(tokio::spawn(async move {
            match ongoing.next().await {
                Ok(Step::Paid(_)) => {}
                Err(Error::PaymentRequired(unpaid)) if matches!(unpaid.why, Why::Denied(Denied::PerDay { .. })) => {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                other => panic!("{other:?}"),
            }
        }));
    }
    for call in calls {
        soon(call).await.unwrap();
    }
    let paid = world.wallet.moved().len() as u64;
    assert_eq!(paid + refused.load(Ordering::Relaxed), 20);
    assert!(paid * 6 <= 52 && paid > 0, "{paid}");
}
