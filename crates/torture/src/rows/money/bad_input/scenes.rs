//! Mistakes that need a provider of a certain kind, or one that is in trouble.

use nostr::key::Keys;
use serde_json::{Value, json};

use super::book::Book;
use super::{job_code, local, message_code};
use crate::market::Market;
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::desk::{Desk, UNLIMITED};
use crate::nostr_side::event::hex_key;
use crate::nostr_side::log::until;
use crate::nostr_side::messenger::{BOTH, Messenger, Way, request};
use crate::rows::Setting;

/// Calls a tool over every wire, and notes that each was refused with this code.
fn over_all(
    book: &Book,
    number: u8,
    what: &str,
    code: &str,
    tool: &str,
    arguments: &Value,
    people: (&Customer, &Messenger),
) {
    let (customer, messenger) = people;
    let content = json!({ "name": tool, "parameters": arguments });
    let open = [false, true].map(|is_sealed| {
        let draft = customer.draft("execute-tool", &content);
        (is_sealed, if is_sealed { customer.post_sealed(&draft) } else { customer.post(&draft) })
    });
    for (is_sealed, id) in open {
        let found = job_code(customer, &id, is_sealed).map(|(code, _)| code);
        book.equal(number, format!("{what}, job, sealed: {is_sealed}"), found, Ok(code.to_owned()));
    }
    for way in BOTH {
        let id = messenger.post(way, &request(tool, arguments));
        let found = message_code(messenger, way, &id).map(|(code, _)| code);
        book.equal(number, format!("{what}, {way:?}"), found, Ok(code.to_owned()));
    }
}

pub(super) fn private(book: &Book, _: Setting) {
    let desk = Desk::new(&["--private", &hex_key(&Keys::generate())]);
    let people = (&desk.dvmcp_customer(), &desk.customer);
    over_all(book, 14, "a tool of a private service", "unauthorized", "note", &json!({ "tag": "private" }), people);
    over_all(book, 14, "no tool of a private service", "unauthorized", "nothing", &json!({}), people);
    book.equal(14, "nothing has run", desk.world.effects(), Vec::new());
}

/// How often somebody was told this.
fn told(customer: &Customer, messenger: &Messenger, code: &str) -> (usize, usize) {
    let says = |text: &Value| text["metadata"]["error"]["code"] == code;
    let jobs = customer.everything().into_iter().filter(|received| received.event.kind == 6910);
    let jobs = jobs.filter(|received| says(&received.event.body())).count();
    let messages = messenger.everything().into_iter().filter(|answer| answer.body()["error"]["code"] == code).count();
    (jobs, messages)
}

pub(super) fn limits(book: &Book, _: Setting) {
    // Each wire by a customer of its own, whose requests are too many.
    let desk = Desk::new(&["--rate-per-key", "3"]);
    let (customer, messenger) = (desk.dvmcp_customer(), desk.another_customer());
    for _ in 0..12 {
        customer.post(&customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "job" } })));
        messenger.post(Way::Message, &request("note", &json!({ "tag": "message" })));
    }
    until("both are told", PATIENCE, || {
        let (jobs, messages) = told(&customer, &messenger, "rate_limited");
        jobs > 0 && messages > 0
    });
    desk.dvmcp_customer().barrier();
    let (jobs, messages) = told(&customer, &messenger, "rate_limited");
    book.equal(22, "few answers to many requests", jobs <= 2 && messages <= 2, true);
    for effect in ["note job", "note message"] {
        book.equal(22, effect, (3..=4).contains(&desk.world.times(effect)), true);
    }

    let desk = Desk::new(&["--max-running", "1", "--rate-per-key", "0"]);
    let (customer, messenger) = (desk.dvmcp_customer(), &desk.customer);
    let gate = json!({ "name": "gate", "parameters": { "name": "g" } });
    let first = customer.post(&customer.draft("execute-tool", &gate));
    desk.world.wait_for_effect("gate");
    for _ in 0..150 {
        customer.post(&customer.draft("execute-tool", &json!({ "name": "note", "parameters": {} })));
        messenger.post(Way::Message, &request("note", &json!({})));
    }
    until("both are told", PATIENCE, || {
        let (jobs, messages) = told(&customer, messenger, "busy");
        jobs > 0 && messages > 0
    });
    book.equal(23, "nothing but the first has begun", desk.world.times("note"), 0);
    desk.world.open_gate("g");
    book.equal(23, "the first is served", customer.answers(&first).text(), "through".to_owned());
}

pub(super) fn expired_quotes(book: &Book, _: Setting) {
    let market = Market::holding();
    // Shorter, and on a busy machine the invoice would be expired before it is there.
    let provider = market.serve(&["--price", "*=5", "--quote-secs", "3"]);
    let customer = market.customer(&provider);
    let content = json!({ "name": "note", "parameters": { "tag": "unpaid" } });
    let plain = customer.post(&customer.draft("execute-tool", &content));
    let hidden = customer.post_sealed(&customer.draft("execute-tool", &content));
    let messenger = Messenger::new(&market.relay, &provider.pubkey);
    let letters = BOTH.map(|way| messenger.post(way, &request("note", &json!({ "tag": "unpaid" }))));
    for id in [plain, hidden] {
        let answers = customer.answers(&id);
        book.equal(
            24,
            "a job",
            (answers.error(), answers.statuses()),
            ("payment_expired".into(), vec!["payment-required", "error"]),
        );
    }
    for id in letters {
        until("a message is answered twice", PATIENCE, || messenger.answers(&id).len() == 2);
        let codes: Vec<String> = messenger
            .answers(&id)
            .iter()
            .map(|answer| answer.body()["error"]["code"].as_str().unwrap_or_default().to_owned())
            .collect();
        book.equal(24, "a message", codes, vec!["payment_required".to_owned(), "payment_expired".to_owned()]);
    }
    book.equal(24, "nothing has run", market.world.effects(), Vec::new());
}

pub(super) fn failing_tools(book: &Book, _: Setting) {
    let flags = [&UNLIMITED[..], &["--timeout-secs", "1"]].concat();
    let desk = Desk::new(&flags);
    let people = (&desk.dvmcp_customer(), &desk.customer);
    over_all(book, 25, "a tool that hangs", "timeout", "hang", &json!({}), people);
    over_all(book, 28, "a result that is too long", "result_too_large", "large", &json!({ "size": 200_000 }), people);
    let wrong = json!({ "city": "Wrongham" });
    for way in BOTH {
        let id = desk.customer.post(way, &request("get_forecast", &wrong));
        let found = message_code(&desk.customer, way, &id).map(|(code, _)| code);
        book.equal(28, format!("a result that does not fit, {way:?}"), found, Ok("internal_error".to_owned()));
    }
    let host = local::Local::open(&desk);
    host.fails(book, 25, "hang", &json!({}));
    host.fails(book, 28, "large", &json!({ "size": 2_000_000 }));
    over_all(book, 26, "a server that dies", "upstream_unavailable", "crash", &json!({}), people);
    host.fails(book, 26, "crash", &json!({}));
}

/// The provider ends as by a power cut while calls run; after its next start they are answered.
pub(super) fn crash(book: &Book, _: Setting) {
    let mut desk = Desk::new(&UNLIMITED);
    let customer = desk.dvmcp_customer();
    let gate = |tag: &str| json!({ "name": "never", "tag": tag });
    let content = |tag: &str| json!({ "name": "gate", "parameters": gate(tag) });
    let plain = customer.post(&customer.draft("execute-tool", &content("plain")));
    let hidden = customer.post_sealed(&customer.draft("execute-tool", &content("sealed")));
    let letters = BOTH.map(|way| (way, desk.customer.post(way, &request("gate", &gate(&format!("{way:?}"))))));
    for tag in ["plain", "sealed", "Message", "Sealed"] {
        desk.world.wait_for_effect(&format!("gate {tag}"));
    }
    desk.kill_and_restart(&UNLIMITED);
    for id in [plain, hidden] {
        book.equal(27, "a job", customer.answers(&id).error(), "outcome_unknown".to_owned());
    }
    for (way, id) in letters {
        let found = message_code(&desk.customer, way, &id).map(|(code, _)| code);
        book.equal(27, format!("{way:?}"), found, Ok("outcome_unknown".to_owned()));
    }
    book.equal(27, "nothing ran twice", desk.world.effects().len(), 4);
}
