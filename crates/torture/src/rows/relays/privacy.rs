//! R26: whatever goes wrong with a sealed request, nothing of it is ever said in the open.

use std::time::Duration;

use nostr::key::Keys;
use serde_json::{Value, json};

use super::book::{Asked, Book, Form, call, finish};
use crate::market::Market;
use crate::nostr_side::PATIENCE;
use crate::nostr_side::event::{Draft, Event, hex_key, now};
use crate::nostr_side::fake_provider::FakeProvider;
use crate::nostr_side::fake_relay::{FakeRelay, Verdict};
use crate::nostr_side::log::until;
use crate::nostr_side::sealed::WRAP;
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R26", "sealed requests that fail in every way leave nothing in the open", run);

/// Stands in everything that is asked, and nowhere else.
const CANARY: &str = "yellow-bird";
/// A relay that takes no more than this.
const LONGEST: usize = 40_000;
const SEALED: [Form; 2] = [Form::Sealed, Form::SealedMessage];

/// What services say of themselves, and what wallets say in their own cipher.
const PUBLIC: [u32; 9] = [0, 5, 10002, 10050, 13194, 22242, 23194, 23195, 23196];

fn run(_: Setting) -> Score {
    let mut score = Score::default();
    by_a_provider(&mut score);
    by_a_customer(&mut score);
    score
}

struct Stage {
    book: Book,
    relay: FakeRelay,
    market: Market,
    asked: Vec<(Asked, &'static str)>,
}

impl Stage {
    /// Asks by a new customer, in both sealed forms; what it must end with.
    fn ask(&mut self, tool: &str, arguments: &Value, expected: &'static str) {
        self.ask_by(Keys::generate, expected, |form, to| call(form, to, tool, arguments));
    }

    fn ask_by(&mut self, who: impl Fn() -> Keys, expected: &'static str, draft: impl Fn(Form, &str) -> Draft) {
        for form in SEALED {
            let keys = who();
            self.book.add(&keys);
            let asked = finish(form, &keys, &self.book.provider, &draft(form, &self.book.provider));
            self.relay.publish(&asked.event);
            self.asked.push((asked, expected));
        }
    }

    fn wait(&mut self) {
        let ids: Vec<String> = self.asked.iter().map(|(asked, _)| asked.id.clone()).collect();
        self.book.wait(&ids, PATIENCE);
    }
}

fn by_a_provider(score: &mut Score) {
    let (relay, stranger) = (FakeRelay::start(), Keys::generate());
    relay.rules(|rules| rules.longest = Some(LONGEST));
    let market = Market::on(&relay);
    let denied = hex_key(&stranger);
    let flags =
        ["--price", "note=5", "--quote-secs", "3", "--timeout-secs", "4", "--rate-per-key", "0", "--deny", &denied];
    let mut provider = market.serve(&flags);
    relay.wait_for_subscription(&provider.pubkey);
    let book = Book::new(&provider.pubkey, std::slice::from_ref(&relay));
    let mut stage = Stage { book, relay: relay.clone(), market, asked: Vec::new() };
    let secret = json!({ "text": CANARY, "tag": CANARY });
    // Tools that fail.
    for (tool, code) in
        [("sulk", "tool_error"), ("broken", "tool_error"), ("hang", "timeout"), ("crash", "upstream_unavailable")]
    {
        stage.ask(tool, &secret, code);
        stage.wait();
    }
    // What cannot be asked, and who may not ask.
    stage.ask("no such tool", &secret, "unknown_tool");
    stage.ask("nap", &json!({ "ms": CANARY }), "invalid_input");
    stage.ask("large", &json!({ "size": 300_000, "tag": CANARY }), "result_too_large");
    stage.ask_by(|| stranger.clone(), "unauthorized", |form, to| call(form, to, "meta", &secret));
    let old = |form: Form, to: &str| call(form, to, "meta", &secret).at(now() - 4_000);
    stage.ask_by(Keys::generate, "stale_request", old);
    stage.ask_by(Keys::generate, "invalid_request", |form, to| {
        call(form, to, "meta", &json!({})).with_content(&format!("{{\"name\":\"{CANARY}\""))
    });
    // Money: one that is not paid, and one that is.
    stage.ask("note", &secret, "payment_expired");
    stage.ask("note", &secret, "success");
    pay(&mut stage);
    stage.wait();
    // A call that runs when the provider is killed.
    stage.ask("gate", &json!({ "name": CANARY, "tag": CANARY }), "outcome_unknown");
    until("both run", PATIENCE, || stage.market.world.times(&format!("gate {CANARY}")) == 2);
    provider.process.kill();
    provider = stage.market.serve(&flags);
    relay.wait_for_subscription(&provider.pubkey);
    stage.wait();
    // Relays that take nothing sealed; the last leaves the provider in no doubt, and is left alone. Nobody hears of these calls; they must not be heard of in another way either.
    for reason in ["invalid: kind 1059", "pow: difficulty 8 wanted", "auth-required: who", "blocked: no wraps"] {
        relay.judge(move |event, _| if event.kind == WRAP { Verdict::Refuse(reason) } else { Verdict::Accept });
        let heard = relay.published().len();
        stage.ask("meta", &secret, "success");
        let is_tried = || relay.published_from(heard).iter().filter(|event| event.kind == WRAP).count() > 2;
        until("it was tried", PATIENCE, is_tried);
        if !reason.starts_with("blocked") {
            stage.wait();
        }
    }
    // What the last one did not even hear ended somehow.
    stage.asked.truncate(stage.asked.len() - SEALED.len());
    // A refusal is acted on within this time, if at all.
    std::thread::sleep(Duration::from_secs(4));
    stage.book.read();
    finish_up(&stage, score);
}

/// Pays every second demand of each form.
fn pay(stage: &mut Stage) {
    let paid: Vec<String> = stage.asked.iter().rev().take(2).map(|(asked, _)| asked.id.clone()).collect();
    until("there are invoices", PATIENCE, || {
        stage.book.read();
        paid.iter().all(|id| stage.book.invoices.contains_key(id))
    });
    for id in &paid {
        stage.market.pay(&stage.book.invoices[id]).unwrap();
    }
}

fn finish_up(stage: &Stage, score: &mut Score) {
    let book = &stage.book;
    let is_expected = |(asked, expected): &&(Asked, &str)| book.code(&asked.id) == *expected;
    score.exactly(
        "requests that ended as they should",
        stage.asked.iter().filter(is_expected).count(),
        stage.asked.len(),
    );
    for (asked, expected) in stage.asked.iter().filter(|pair| !is_expected(pair)) {
        score.note(format!("a request ended with {}, and not {expected}", book.code(&asked.id)));
    }
    score.exactly("invoices", book.invoices.len(), 4_usize);
    let published = stage.relay.published();
    let open = |event: &&Event| event.pubkey == book.provider && !is_public(event.kind);
    score.none("events of the provider in the open", published.iter().filter(open).count());
    let secrets: Vec<&str> = book.invoices.values().map(String::as_str).chain([CANARY, "execute-tool"]).collect();
    let said: Vec<String> = stage.relay.heard().iter().map(|heard| heard.frame.to_string()).collect();
    let leaks = said.iter().filter(|frame| secrets.iter().any(|secret| frame.contains(secret)));
    score.none("messages on the relay with anything of a request or an invoice", leaks.count());
    let sealed = published.iter().filter(|event| event.kind == WRAP && !event.has_tag("p", &book.provider)).count();
    score.at_least("sealed answers", sealed, stage.asked.len() - 2);
}

fn is_public(kind: u32) -> bool {
    PUBLIC.contains(&kind) || (30_000..40_000).contains(&kind)
}

/// A customer whose sealed request cannot be sent, is not answered, or has to be paid.
fn by_a_customer(score: &mut Score) {
    let mut leaks = 0;
    let mut wraps = 0;
    for way in ["refused", "unanswered", "priced"] {
        let (relay, world) = (FakeRelay::start(), World::new());
        let mut provider = FakeProvider::new(&relay);
        if way == "refused" {
            relay.judge(
                |event, _| if event.kind == WRAP { Verdict::Refuse("blocked: no wraps") } else { Verdict::Accept },
            );
        }
        let (npub, url, text) = (provider.npub(), relay.url(), format!("text={CANARY}"));
        let fixed = ["call", &npub, "say", &text, "--relay", &url, "--timeout-secs", "4"];
        let mut process = world.rialto("customer", &fixed);
        let asked = (way != "refused").then(|| provider.execute_request());
        if let Some(asked) = asked.filter(|_| way == "priced") {
            let demand =
                provider.feedback(&asked, &["payment-required", "21 sat"]).tag(&["amount", "21", "lnbc210n1invalid"]);
            provider.send(&asked, &demand);
        }
        assert!(!process.end().success(), "{way}: {}", process.told());
        wraps += relay.published().iter().filter(|event| event.kind == WRAP).count();
        leaks += relay.published().iter().filter(|event| [4, 14, 5910].contains(&event.kind)).count();
        leaks += relay.heard().iter().filter(|heard| heard.frame.to_string().contains(CANARY)).count();
    }
    score.none("requests of a customer in the open", leaks);
    score.at_least("sealed requests of a customer", wraps, 3_usize);
}
