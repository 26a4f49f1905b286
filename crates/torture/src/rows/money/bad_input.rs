//! R28: the thirty mistakes of the table, over every wire that can carry them: jobs in the open and sealed, direct messages in both
//! forms, and MCP itself over standard input and HTTP. Each gets the answer that the protocol pages state, or none where that is
//! what they state, and nothing runs.

mod book;
mod http;
mod local;
mod scenes;
mod table;

use nostr::key::Keys;
use serde_json::{Value, json};

use book::Book;
use table::{Text, texts};

use crate::nostr_side::customer::Customer;
use crate::nostr_side::desk::{Desk, UNLIMITED};
use crate::nostr_side::event::{Draft, Event, hex_key, now};
use crate::nostr_side::message;
use crate::nostr_side::messenger::{BOTH, Messenger, Way, request};
use crate::nostr_side::sealed::{self, SEAL, WRAP, seal, wrap};
use crate::rows::{Row, Setting};
use crate::score::Score;
use crate::several::several;

pub(super) const ROW: Row = Row::new("R28", "thirty mistakes, over every wire", run);

type Scene = (&'static str, fn(&Book, Setting));

const SCENES: [Scene; 10] = [
    ("texts", wrong_texts),
    ("events", wrong_events),
    ("times", wrong_times),
    ("private", scenes::private),
    ("limits", scenes::limits),
    ("expired quotes", scenes::expired_quotes),
    ("tools that fail", scenes::failing_tools),
    ("a crash", scenes::crash),
    ("Nostr tools", local::nostr_tools),
    ("context", local::context),
];

fn run(setting: Setting) -> Score {
    let (book, mut score) = (Book::default(), Score::default());
    let results = several(3, &SCENES, |(_, play)| play(&book, setting));
    for ((name, _), result) in SCENES.iter().zip(results) {
        if let Err(why) = result {
            score.note(format!("{name}: {why}"));
            score.none("scenes that broke off", 1_usize);
        }
    }
    book.score(&mut score);
    for note in [
        "7, 13, 15: names and arguments in a host's line are read by the server behind the gateway",
        "8: a host's line may nest 127 deep; a deeper one is not read, so it is a parse error",
        "16-18: a host is told by a tool result, whatever the number in the table",
        "19: a whole number that is too large is no mistake, the provider's own limit wins",
        "22-24: a host has no such numbers; it gets a tool result with the code, or is silent with the provider",
        "28: results are checked against schemas on the message wire, where they are `internal_error`",
        "29, 30: the numbers and codes stand in a tool result, which is what a model can read",
    ] {
        score.note(note);
    }
    score
}

/// A job's text in the open or sealed.
fn job(customer: &Customer, text: &Text, content: &str, is_sealed: bool) -> (String, bool) {
    let draft = customer.draft(text.command.unwrap_or("x"), &json!(content));
    let draft = if text.command.is_some() { draft } else { draft.without("c") };
    (if is_sealed { customer.post_sealed(&draft) } else { customer.post(&draft) }, is_sealed)
}

/// The code that a job was answered with, which must stand in both of its answers, in the form that it was asked in.
fn job_code(customer: &Customer, id: &str, is_sealed: bool) -> Result<(String, Value), String> {
    let answers = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let answers = customer.answers(id);
        (answers.error(), answers.clone())
    }));
    let (code, answers) = answers.map_err(|panic| crate::several::words(&*panic))?;
    let is_late = ["timeout", "upstream_unavailable", "result_too_large"].contains(&code.as_str());
    if answers.statuses().first() != Some(&"error") && !is_late {
        return Err(format!("it was begun: {:?}", answers.statuses()));
    }
    if answers.0.iter().any(|received| received.sealed != is_sealed) {
        return Err("answered in another form than it was asked in".to_owned());
    }
    Ok((code, answers.body()["metadata"]["error"].clone()))
}

fn message_code(messenger: &Messenger, way: Way, id: &str) -> Result<(String, Value), String> {
    let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let failure = messenger.answer(way, id).failure();
        (failure["code"].as_str().unwrap_or_default().to_owned(), failure)
    }));
    answered.map_err(|panic| crate::several::words(&*panic))
}

fn judge(text: &Text, found: Result<(String, Value), String>) -> Result<(), String> {
    let (code, error) = found?;
    if code != text.code {
        return Err(format!("{code} instead of {}: {error}", text.code));
    }
    match text.pointer {
        Some(pointer) if !error["pointer"].as_str().is_some_and(|found| pointer.starts_with(found)) => {
            Err(format!("it does not lead to {pointer}: {error}"))
        }
        _ => Ok(()),
    }
}

fn wrong_texts(book: &Book, setting: Setting) {
    let desk = Desk::unlimited();
    let (jobs, messages) = (desk.dvmcp_customer(), &desk.customer);
    let local = local::Local::open(&desk);
    for text in texts(setting.choose(false, true)) {
        let named = |wire: &str| format!("{}, {wire}", text.what);
        if let Some(content) = &text.job {
            for is_sealed in [false, true].into_iter().filter(|sealed| text.fits_into_a_seal || !sealed) {
                let (id, _) = job(&jobs, &text, content, is_sealed);
                let found = judge(&text, job_code(&jobs, &id, is_sealed));
                book.note(text.number, named(if is_sealed { "sealed job" } else { "job" }), found);
            }
        }
        if let Some(content) = &text.message {
            for way in BOTH.into_iter().filter(|way| text.fits_into_a_seal || *way == Way::Message) {
                let id = messages.post(way, content);
                let found = judge(&text, message_code(messages, way, &id));
                book.note(text.number, named(&format!("{way:?}")), found);
            }
        }
        local.check(book, &text);
    }
    messages.barrier();
    book.equal(13, "what was wrong has not run", desk.world.effects(), Vec::new());
    // A number that is as large as can be is a number.
    let huge = json!({ "name": "note", "parameters": { "text": "in time" }, "timeout": u64::MAX });
    book.equal(19, "a very long time", jobs.ask("execute-tool", &huge).text(), "in time".to_owned());
}

fn note() -> Value {
    json!({ "name": "note", "parameters": { "tag": "wrong" } })
}

/// Notes that nothing came of an event.
fn silent(book: &Book, desk: &Desk, number: u8, events: &[(&str, Event)]) {
    let names: Vec<&str> = events.iter().map(|(what, _)| *what).collect();
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| desk.is_silent_about(events)));
    book.note(number, names.join(", "), found.map_err(|panic| crate::several::words(&*panic)));
}

fn wrong_events(book: &Book, _: Setting) {
    let desk = Desk::new(&UNLIMITED);
    let (customer, provider) = (desk.dvmcp_customer(), desk.provider.pubkey.clone());
    let stranger = hex_key(&Keys::generate());
    let plain = customer.draft("execute-tool", &note());
    let text = request("note", &json!({ "tag": "wrong" }));
    let letter = || message::draft(&customer.keys, &provider, &text);
    let chat = Draft::new(message::CHAT, text.clone()).tag(&["p", &provider]);

    let mut other_content = plain.sign(&customer.keys);
    other_content.content = json!({ "name": "note", "parameters": {} }).to_string();
    let mut no_signature = plain.sign(&customer.keys);
    no_signature.sig = "0".repeat(128);
    let mut wrong_id = letter().sign(&customer.keys);
    wrong_id.id = "0".repeat(64);
    let mut wrapped = sealed::send(&customer.keys, &provider, &plain).1;
    wrapped.sig = "0".repeat(128);
    silent(
        book,
        &desk,
        1,
        &[
            ("other content", other_content),
            ("no signature", no_signature),
            ("a wrong id", wrong_id),
            ("a wrap", wrapped),
        ],
    );
    let elsewhere = plain.clone().without("p").tag(&["p", &stranger]).sign(&customer.keys);
    let letter_elsewhere = message::draft(&customer.keys, &stranger, &text).sign(&customer.keys);
    let sealed_elsewhere = sealed::send(&customer.keys, &stranger, &plain).1;
    silent(book, &desk, 2, &[("a job", elsewhere), ("a message", letter_elsewhere), ("a wrap", sealed_elsewhere)]);
    let past = (now() - 10).to_string();
    let late = |draft: Draft| draft.tag(&["expiration", &past]);
    silent(
        book,
        &desk,
        4,
        &[
            ("a job", late(plain.clone()).sign(&customer.keys)),
            ("a sealed job", sealed::send(&customer.keys, &provider, &late(plain.clone())).1),
            ("a message", late(letter()).sign(&customer.keys)),
            ("a sealed message", sealed::send(&customer.keys, &provider, &late(chat.clone())).1),
        ],
    );
    let for_another = message::encrypt(&customer.keys, &stranger, &text);
    silent(
        book,
        &desk,
        20,
        &[
            ("no ciphertext in a wrap", Draft::new(WRAP, "nothing").tag(&["p", &provider]).sign(&Keys::generate())),
            ("no seal", wrap(&provider, "nothing")),
            (
                "a message for another",
                Draft::new(message::MESSAGE, for_another).tag(&["p", &provider]).sign(&customer.keys),
            ),
        ],
    );
    let victim = hex_key(&Keys::generate());
    let forged = |draft: &Draft| {
        let rumor = draft.unsigned(&victim);
        wrap(&provider, &seal(&customer.keys, &provider, SEAL, &rumor.json()).json())
    };
    silent(book, &desk, 21, &[("a job", forged(&plain)), ("a message", forged(&chat))]);
}

fn wrong_times(book: &Book, _: Setting) {
    let desk = Desk::new(&UNLIMITED);
    for offset in [-15 * 60 - 30, -86_400, 120, 86_400] {
        let at = now() + offset;
        // Each by somebody else: a customer is told only once in a while.
        for is_sealed in [false, true] {
            let customer = desk.dvmcp_customer();
            let draft = customer.draft("execute-tool", &note()).at(at);
            let (id, event) = if is_sealed {
                let (rumor, wrap) = sealed::send(&customer.keys, &customer.provider, &draft);
                (rumor.id, wrap)
            } else {
                let event = draft.sign(&customer.keys);
                (event.id.clone(), event)
            };
            desk.inject(&event);
            let found = job_code(&customer, &id, is_sealed).map(|(code, _)| code);
            book.equal(3, format!("a job, {offset} s"), found, Ok("stale_request".to_owned()));
        }
        for way in BOTH {
            let customer = desk.another_customer();
            let text = request("note", &json!({ "tag": "wrong" }));
            let (id, event) = customer.finish(way, &customer.draft(way, &text).at(at));
            desk.inject(&event);
            let found = message_code(&customer, way, &id).map(|(code, _)| code);
            book.equal(3, format!("{way:?}, {offset} s"), found, Ok("stale_request".to_owned()));
        }
    }
    let customer = desk.dvmcp_customer();
    let ids: Vec<String> = (0..10)
        .map(|number| {
            let event = customer.draft("execute-tool", &note()).at(now() - 4000 - number).sign(&customer.keys);
            desk.inject(&event);
            event.id
        })
        .collect();
    customer.barrier();
    let told = ids.iter().filter(|id| !customer.so_far(id).0.is_empty()).count();
    book.equal(3, "many of one key are told once or twice", (1..=2).contains(&told), true);
    book.equal(3, "what is too old has not run", desk.world.effects(), Vec::new());
}
