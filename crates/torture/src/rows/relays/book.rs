//! Customers without a connection: they put what they ask into relays, and read what the relays were told.
//!
//! So there may be thousands of them, no outage of a relay is theirs, and nothing that a provider ever said is missed.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nostr::key::Keys;
use serde_json::{Value, json};

use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::{FEEDBACK, REQUEST, RESPONSE};
use crate::nostr_side::event::{Draft, Event, hex_key, now};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::message::{self, CHAT, MESSAGE};
use crate::nostr_side::sealed::{self, WRAP};

/// Nothing is refused for being too much.
pub(super) const UNLIMITED: [&str; 6] = ["--rate-per-key", "0", "--max-running", "200", "--max-running-per-key", "200"];

/// Every form that a request can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Kind 5910.
    Plain,
    /// The same in a seal in a wrap.
    Sealed,
    /// Kind 4.
    Message,
    /// Kind 14 in a seal in a wrap.
    SealedMessage,
}

impl Form {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Sealed, Self::Message, Self::SealedMessage];

    pub(super) fn is_sealed(self) -> bool {
        matches!(self, Self::Sealed | Self::SealedMessage)
    }
}

/// A request: the id that its answer names, and what is published.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) event: Event,
}

/// What was said to a request.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// `success`, or the code of the error.
    pub(super) code: String,
    /// When it was first read.
    pub(super) at: Instant,
    /// The ids of the final answers; one that is sent again has the same.
    pub(super) answers: BTreeSet<String>,
    /// The forms in which anything was said.
    pub(super) sealed: BTreeSet<bool>,
}

pub(super) struct Book {
    pub(super) provider: String,
    relays: Vec<FakeRelay>,
    /// How much of each relay's log was read.
    read: Vec<usize>,
    customers: HashMap<String, Keys>,
    outcomes: HashMap<String, Outcome>,
    /// What was asked for in money: the invoices, by request.
    pub(super) invoices: HashMap<String, String>,
    /// What time it is.
    clock: Box<dyn Fn() -> i64>,
}

/// A call of a tool, as it is written inside.
pub(super) fn call(form: Form, provider: &str, tool: &str, arguments: &Value) -> Draft {
    // Equal requests of the same second would have the same id.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let salt = format!("torture {}", COUNT.fetch_add(1, Ordering::Relaxed));
    let draft = match form {
        Form::Plain | Form::Sealed => {
            let content = json!({ "name": tool, "parameters": arguments }).to_string();
            Draft::new(REQUEST, content).tag(&["c", "execute-tool"])
        }
        Form::Message | Form::SealedMessage => {
            let content = json!({ "tool_name": tool, "arguments": arguments }).to_string();
            Draft::new(if form == Form::Message { MESSAGE } else { CHAT }, content)
        }
    };
    draft.tag(&["p", provider]).tag(&["client", &salt])
}

/// A call of the tool that leaves `note <tag>` in the list of effects.
pub(super) fn note(form: Form, provider: &str, tag: &str) -> Draft {
    call(form, provider, "note", &json!({ "tag": tag }))
}

/// What this author publishes for a draft.
pub(super) fn finish(form: Form, author: &Keys, provider: &str, draft: &Draft) -> Asked {
    match form {
        Form::Plain => {
            let event = draft.sign(author);
            Asked { id: event.id.clone(), event }
        }
        Form::Message => {
            let text = draft.unsigned("").content;
            let event = draft.clone().with_content(&message::encrypt(author, provider, &text)).sign(author);
            Asked { id: event.id.clone(), event }
        }
        Form::Sealed | Form::SealedMessage => {
            let (rumor, event) = sealed::send(author, provider, draft);
            Asked { id: rumor.id, event }
        }
    }
}

impl Book {
    pub(super) fn new(provider: &str, relays: &[FakeRelay]) -> Self {
        let read = vec![0; relays.len()];
        Self {
            provider: provider.to_owned(),
            relays: relays.to_vec(),
            read,
            customers: HashMap::new(),
            outcomes: HashMap::new(),
            invoices: HashMap::new(),
            clock: Box::new(now),
        }
    }

    /// The same for a provider with another clock than the machine's.
    pub(super) fn with_clock(mut self, clock: impl Fn() -> i64 + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// A new customer.
    pub(super) fn customer(&mut self) -> Keys {
        let keys = Keys::generate();
        self.add(&keys);
        keys
    }

    /// Reads what is sent to this one, too.
    pub(super) fn add(&mut self, keys: &Keys) {
        self.customers.insert(hex_key(keys), keys.clone());
    }

    pub(super) fn customers(&self) -> impl Iterator<Item = &Keys> {
        self.customers.values()
    }

    /// Passes over what was said until now.
    pub(super) fn skip(&mut self) {
        for (read, relay) in self.read.iter_mut().zip(&self.relays) {
            *read += relay.published_from(*read).len();
        }
    }

    /// A request to note something, by a new customer.
    pub(super) fn note(&mut self, form: Form, tag: &str) -> Asked {
        let keys = self.customer();
        finish(form, &keys, &self.provider, &note(form, &self.provider, tag))
    }

    /// Reads what is new.
    pub(super) fn read(&mut self) {
        for index in 0..self.relays.len() {
            let new = self.relays[index].published_from(self.read[index]);
            self.read[index] += new.len();
            new.iter().for_each(|event| self.take(event));
        }
    }

    fn take(&mut self, event: &Event) {
        let Some(customer) = event.tags("p").first().and_then(|tag| self.customers.get(&tag[0])) else { return };
        let is_sealed = event.kind == WRAP;
        if !is_sealed && event.pubkey != self.provider {
            return;
        }
        assert_eq!(event.problem(), None, "{event:?}");
        let inner = if is_sealed { sealed::open(customer, event).rumor } else { event.clone() };
        assert_eq!(inner.pubkey, self.provider, "{inner:?}");
        let body = match inner.kind {
            FEEDBACK => {
                if let [invoice, ..] = inner.tags("invoice").as_slice() {
                    self.invoices.insert(inner.tag("e").to_owned(), invoice[0].clone());
                }
                return;
            }
            RESPONSE | CHAT => inner.body(),
            MESSAGE => {
                let text = message::decrypt(customer, &inner.pubkey, &inner.content);
                serde_json::from_str(&text.expect("the customer can read it")).unwrap()
            }
            _ => return,
        };
        // Over messages the demand is an answer of its own, and the result another.
        if let Some(invoice) = body["error"]["invoice"].as_str() {
            self.invoices.insert(inner.tag("e").to_owned(), invoice.to_owned());
            return;
        }
        let outcome = self.outcomes.entry(inner.tag("e").to_owned()).or_insert_with(|| Outcome {
            code: code(inner.kind, &body),
            at: Instant::now(),
            answers: BTreeSet::new(),
            sealed: BTreeSet::new(),
        });
        outcome.answers.insert(inner.id);
        outcome.sealed.insert(is_sealed);
    }

    pub(super) fn outcome(&self, id: &str) -> Option<&Outcome> {
        self.outcomes.get(id)
    }

    /// How the request ended: `success`, the code of an error, or `silence`.
    pub(super) fn code(&self, id: &str) -> &str {
        self.outcome(id).map_or("silence", |outcome| &outcome.code)
    }

    /// How many of these requests ended with this.
    pub(super) fn count<'a>(&self, ids: impl IntoIterator<Item = &'a String>, code: &str) -> usize {
        ids.into_iter().filter(|id| self.code(id) == code).count()
    }

    /// Waits until all of these are answered; gives how many are.
    pub(super) fn wait(&mut self, ids: &[String], patience: Duration) -> usize {
        let end = Instant::now() + patience;
        loop {
            self.read();
            let answered = ids.iter().filter(|id| self.outcomes.contains_key(*id)).count();
            if answered == ids.len() || Instant::now() >= end {
                return answered;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until everything that a relay said before has been dealt with: a provider reads in order, so the answer to a later
    /// request is the proof.
    #[track_caller]
    pub(super) fn barrier(&mut self, relay: &FakeRelay) {
        let keys = self.customer();
        self.barrier_as(&keys, relay);
    }

    /// The same, asked by somebody who may ask.
    #[track_caller]
    pub(super) fn barrier_as(&mut self, keys: &Keys, relay: &FakeRelay) {
        let draft = call(Form::Plain, &self.provider, "no such tool", &json!({})).at((self.clock)());
        let last = draft.sign(keys);
        assert!(relay.inject(&self.provider, &last.json()) > 0, "the provider has left");
        relay.let_go();
        // Much may stand before it.
        assert_eq!(self.wait(&[last.id], PATIENCE * 5), 1, "the last request was never answered");
    }
}

fn code(kind: u32, body: &Value) -> String {
    let error = if kind == RESPONSE { &body["metadata"]["error"] } else { &body["error"] };
    let is_error = if kind == RESPONSE { body["isError"] == true } else { error.is_object() };
    match error["code"].as_str() {
        Some(code) if is_error => code.to_owned(),
        _ if is_error => "tool_error".to_owned(),
        _ => "success".to_owned(),
    }
}
