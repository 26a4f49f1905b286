//! Many customers at once, and a book of what each was told: whether a call was answered, how often, and with what money.
//!
//! All of them read from one connection to each relay. Whoever is asked for money pays, some at once and some a little later, so that a
//! provider dies with quotes in every condition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nostr::key::Keys;
use rialto_payment::invoice::Invoice;
use serde_json::json;

use crate::market::Market;
use crate::nostr_side::client::Client;
use crate::nostr_side::customer::{FEEDBACK, REQUEST, RESPONSE};
use crate::nostr_side::event::{Draft, Event, hex_key};
use crate::nostr_side::random::Random;
use crate::nostr_side::runtime;

/// Who pays late does so within this time.
const LATEST_MS: usize = 400;

/// One call, as its customer sees it.
#[derive(Debug, Default)]
pub struct Story {
    pub customer: usize,
    /// What stands in the list of effects if it ran.
    pub effect: String,
    pub invoices: BTreeSet<String>,
    /// The ids of final answers; one that is sent again has the same.
    pub answers: BTreeSet<String>,
    /// `success`, or the code of the error.
    pub outcome: Option<String>,
}

impl Story {
    pub fn succeeded(&self) -> bool {
        self.outcome.as_deref() == Some("success")
    }

    /// The only invoice that it was asked to pay.
    pub fn invoice(&self) -> Option<Invoice> {
        assert!(self.invoices.len() <= 1, "two invoices for one call: {self:?}");
        self.invoices.first().map(|text| text.parse().unwrap())
    }
}

/// How an answer says that it went: `success`, or the code of the error.
pub fn outcome_of(answer: &Event) -> String {
    let body = answer.body();
    match body["isError"].as_bool() {
        Some(true) => body["metadata"]["error"]["code"].as_str().unwrap_or("tool_error").to_owned(),
        _ => "success".to_owned(),
    }
}

#[derive(Default)]
struct Book {
    stories: HashMap<String, Story>,
    answered: usize,
}

#[derive(Default)]
struct Shared {
    book: Mutex<Book>,
    changed: Condvar,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Crowd {
    keys: Vec<Keys>,
    provider: String,
    /// One to each relay.
    links: Vec<Client>,
    shared: Arc<Shared>,
}

impl Crowd {
    pub fn new(market: &Market, provider: &str, customers: usize, seed: u64) -> Self {
        let shared: Arc<Shared> = Arc::default();
        let (kept, payer) = (shared.clone(), market.payer());
        let random = Arc::new(Mutex::new(Random::new(seed ^ 0x70a7)));
        let link = |relay: &String| {
            let (kept, payer, random) = (kept.clone(), payer.clone(), random.clone());
            let link = Client::connect(relay, move |_, event| {
                let Some(invoice) = kept.read(&event) else { return };
                let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
                let pause = if random.below(2) == 0 { 0 } else { random.below(LATEST_MS) };
                let payer = payer.clone();
                runtime().spawn(async move {
                    tokio::time::sleep(Duration::from_millis(pause.try_into().unwrap())).await;
                    // What has become of it is asked of the network, which is never wrong.
                    drop(payer.pay(&invoice, rialto_payment::amount::Msat::ZERO).await);
                });
            });
            link.subscribe("answers", &[json!({ "kinds": [RESPONSE, FEEDBACK], "authors": [provider] })]);
            link
        };
        let links = market.places.iter().map(link).collect();
        let keys = (0..customers).map(|_| Keys::generate()).collect();
        Self { keys, provider: provider.to_owned(), links, shared }
    }

    pub fn provider(&self) -> &str {
        &self.provider
    }

    pub fn pubkey(&self, customer: usize) -> String {
        hex_key(&self.keys[customer])
    }

    /// Asks for a call.
    pub fn post(&self, customer: usize, tool: &str, tag: &str, arguments: serde_json::Value) {
        let mut parameters = arguments;
        parameters["tag"] = json!(tag);
        let content = json!({ "name": tool, "parameters": parameters }).to_string();
        let draft = Draft::new(REQUEST, content).tag(&["c", "execute-tool"]).tag(&["p", &self.provider]);
        let event = draft.sign(&self.keys[customer]);
        let story = Story { customer, effect: format!("{tool} {tag}"), ..Story::default() };
        self.shared.book().stories.insert(event.id.clone(), story);
        for link in &self.links {
            let (taken, why) = link.publish(&event);
            assert!(taken, "the relay refused a request: {why}");
        }
    }

    /// Waits until no more than `open` calls are unanswered; says whether that came to be.
    pub fn wait(&self, open: usize, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        let mut book = self.shared.book();
        while book.stories.len() - book.answered > open {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            book = self.shared.changed.wait_timeout(book, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// What has become of all calls until now.
    pub fn look<R>(&self, with: impl FnOnce(&HashMap<String, Story>) -> R) -> R {
        with(&self.shared.book().stories)
    }

    /// How many calls ended how.
    pub fn outcomes(&self) -> BTreeMap<String, usize> {
        let mut outcomes = BTreeMap::new();
        self.look(|stories| {
            for story in stories.values() {
                *outcomes.entry(story.outcome.clone().unwrap_or_else(|| "LOST".to_owned())).or_default() += 1;
            }
        });
        outcomes
    }
}

impl Shared {
    /// Writes down what an event says; gives the invoice that is to be paid, the first time that it is seen.
    fn read(&self, event: &Event) -> Option<Invoice> {
        let id = event.tags("e").first()?.first()?.clone();
        let mut book = self.book();
        let story = book.stories.get_mut(&id)?;
        if event.kind == FEEDBACK {
            let invoice = event.has_tag("status", "payment-required").then(|| event.tag("invoice").to_owned())?;
            return story.invoices.insert(invoice.clone()).then(|| invoice.parse().unwrap());
        }
        if let Some(problem) = event.problem() {
            panic!("{problem}: {event:?}");
        }
        let is_first = story.answers.is_empty();
        if story.answers.insert(event.id.clone()) {
            story.outcome = Some(outcome_of(event));
        }
        book.answered += usize::from(is_first);
        drop(book);
        self.changed.notify_all();
        None
    }
}
