//! A customer of one provider, on one relay, who keeps everything that is sent to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nostr::key::Keys;
use serde_json::{Value, json};

use super::PATIENCE;
use super::client::Client;
use super::event::{Draft, Event, hex_key};
use super::log::Log;
use super::sealed;

pub const REQUEST: u32 = 5910;
pub const RESPONSE: u32 = 6910;
pub const FEEDBACK: u32 = 7000;

/// One event to the customer, and whether it came sealed.
#[derive(Clone, Debug)]
pub struct Received {
    pub event: Event,
    pub sealed: bool,
}

pub struct Customer {
    pub keys: Keys,
    pub provider: String,
    pub link: Client,
    received: Log<Received>,
}

/// Everything that came for one request, in order.
#[derive(Clone, Debug)]
pub struct Answers(pub Vec<Received>);

impl Customer {
    pub fn new(relay: &str, provider: &str) -> Self {
        Self::with_keys(relay, provider, Keys::generate())
    }

    pub fn with_keys(relay: &str, provider: &str, keys: Keys) -> Self {
        // Plain answers are asked for by author, so that one without our `p` is seen as well.
        Self::hearing(relay, provider, keys, json!({ "kinds": [RESPONSE, FEEDBACK], "authors": [provider] }))
    }

    /// One of many, who hears only what is addressed to it: what all hear of all grows with the square of their number.
    pub fn one_of_many(relay: &str, provider: &str) -> Self {
        let keys = Keys::generate();
        let own = json!({ "kinds": [RESPONSE, FEEDBACK], "authors": [provider], "#p": [hex_key(&keys)] });
        Self::hearing(relay, provider, keys, own)
    }

    fn hearing(relay: &str, provider: &str, keys: Keys, plain: Value) -> Self {
        let received: Log<Received> = Log::default();
        let (kept, reader) = (received.clone(), keys.clone());
        let link = Client::connect(relay, move |_, event| {
            if let Some(problem) = event.problem() {
                panic!("{problem}: {event:?}");
            }
            let sealed = event.kind == sealed::WRAP;
            let event = if sealed { sealed::open(&reader, &event).rumor } else { event };
            kept.push(Received { event, sealed });
        });
        let me = hex_key(&keys);
        link.subscribe("answers", &[plain, json!({ "kinds": [sealed::WRAP], "#p": [me] })]);
        Self { keys, provider: provider.to_owned(), link, received }
    }

    pub fn pubkey(&self) -> String {
        hex_key(&self.keys)
    }

    /// A request with all its tags. An object is written as the text that it is on the wire. One more tag makes its id
    /// different from that of the same request in the same second.
    pub fn draft(&self, command: &str, content: &Value) -> Draft {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        Draft::new(REQUEST, content)
            .tag(&["c", command])
            .tag(&["p", &self.provider])
            .tag(&["output", "application/json"])
            .tag(&["client", &format!("test {}", COUNT.fetch_add(1, Ordering::Relaxed))])
    }

    /// Publishes a plain request, which the relay must take; gives its id.
    pub fn post(&self, draft: &Draft) -> String {
        let event = draft.sign(&self.keys);
        let (taken, why) = self.link.publish(&event);
        assert!(taken, "the relay refused a request: {why}");
        event.id
    }

    /// Publishes a sealed request; gives the id of what is inside.
    pub fn post_sealed(&self, draft: &Draft) -> String {
        let (rumor, wrap) = sealed::send(&self.keys, &self.provider, draft);
        let (taken, why) = self.link.publish(&wrap);
        assert!(taken, "the relay refused a wrap: {why}");
        rumor.id
    }

    /// Asks in the open, and waits for the whole answer.
    pub fn ask(&self, command: &str, content: &Value) -> Answers {
        let id = self.post(&self.draft(command, content));
        self.answers(&id)
    }

    pub fn ask_sealed(&self, command: &str, content: &Value) -> Answers {
        let id = self.post_sealed(&self.draft(command, content));
        self.answers(&id)
    }

    pub fn call(&self, tool: &str, parameters: &Value) -> Answers {
        self.ask("execute-tool", &json!({ "name": tool, "parameters": parameters }))
    }

    /// Waits for the whole answer to a request: all parts, and for an error the feedback too.
    #[track_caller]
    pub fn answers(&self, id: &str) -> Answers {
        self.answers_within(id, PATIENCE)
    }

    #[track_caller]
    pub fn answers_within(&self, id: &str, patience: Duration) -> Answers {
        let found = self.received.wait(patience, |all| {
            let answers = Answers::of(all, id);
            answers.are_complete().then_some(answers)
        });
        found.unwrap_or_else(|| panic!("no whole answer to {id} in {patience:?}, but {:#?}", self.so_far(id)))
    }

    /// Waits until something that came for a request fits.
    #[track_caller]
    pub fn wait(&self, id: &str, what: &str, fits: impl Fn(&Event) -> bool) -> Event {
        let found = self.received.wait(PATIENCE, |all| {
            Answers::of(all, id).0.into_iter().map(|received| received.event).find(|event| fits(event))
        });
        found.unwrap_or_else(|| panic!("no {what} for {id}, but {:#?}", self.so_far(id)))
    }

    pub fn wait_for_status(&self, id: &str, status: &str) -> Event {
        self.wait(id, status, |event| event.kind == FEEDBACK && event.has_tag("status", status))
    }

    /// Waits until one of these requests has failed.
    #[track_caller]
    pub fn wait_for_error(&self, ids: &[String]) -> Answers {
        let found = self.received.wait(PATIENCE, |all| {
            let mut answers = ids.iter().map(|id| Answers::of(all, id));
            answers.find(|answers| answers.are_complete() && answers.statuses().contains(&"error"))
        });
        found.unwrap_or_else(|| panic!("none of these failed: {ids:#?}"))
    }

    /// What has come for a request until now.
    pub fn so_far(&self, id: &str) -> Answers {
        self.received.look(|all| Answers::of(all, id))
    }

    /// Everything that has come until now.
    pub fn everything(&self) -> Vec<Received> {
        self.received.look(<[Received]>::to_vec)
    }

    /// Waits until everything that was sent before has been dealt with: the provider reads in order, so the answer to a
    /// later request is the proof.
    #[track_caller]
    pub fn barrier(&self) {
        let answers = self.ask("list-tools", &json!(""));
        assert!(answers.body()["tools"].is_array(), "{answers:?}");
    }
}

impl Answers {
    fn of(all: &[Received], id: &str) -> Self {
        let belongs = |received: &&Received| received.event.has_tag("e", id);
        Self(all.iter().filter(belongs).cloned().collect())
    }

    fn kind(&self, kind: u32) -> Vec<&Event> {
        self.0.iter().map(|received| &received.event).filter(|event| event.kind == kind).collect()
    }

    pub fn feedback(&self) -> Vec<&Event> {
        self.kind(FEEDBACK)
    }

    pub fn responses(&self) -> Vec<&Event> {
        self.kind(RESPONSE)
    }

    /// The words of all feedback.
    pub fn statuses(&self) -> Vec<&str> {
        self.feedback().iter().map(|event| event.tag("status")).collect()
    }

    /// The only response.
    #[track_caller]
    pub fn response(&self) -> &Event {
        let responses = self.responses();
        assert_eq!(responses.len(), 1, "responses in {self:#?}");
        responses[0]
    }

    #[track_caller]
    pub fn body(&self) -> Value {
        self.response().body()
    }

    /// The text of the first item of the result.
    #[track_caller]
    pub fn text(&self) -> String {
        let body = self.body();
        body["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {body:#}")).to_owned()
    }

    /// The code of the error, which must stand in the feedback and in the response.
    #[track_caller]
    pub fn error(&self) -> String {
        let (response, body) = (self.response(), self.body());
        assert_eq!(body["isError"], true, "{body:#}");
        assert_eq!(response.tag("status"), "error", "{response:?}");
        let feedback = self.feedback();
        let errors: Vec<_> = feedback.iter().filter(|event| event.tag("status") == "error").collect();
        assert_eq!(errors.len(), 1, "feedback with an error in {self:#?}");
        assert_eq!(errors[0].tags("status")[0].len(), 2, "{:?}", errors[0]);
        let told = &errors[0].tags("status")[0][1];
        let (code, words) = told.split_once(": ").unwrap_or_else(|| panic!("no code in `{told}`"));
        assert!(!words.is_empty(), "`{told}`");
        let error = &body["metadata"]["error"];
        // The answer of a tool that failed is given as it is.
        if code != "tool_error" || error.is_object() {
            assert_eq!((error["code"].as_str(), error["message"].is_string()), (Some(code), true), "{told}: {body:#}");
            assert_eq!(body["content"][0]["type"], "text", "{body:#}");
        }
        assert!(!self.statuses().contains(&"success"), "{self:#?}");
        code.to_owned()
    }

    fn are_complete(&self) -> bool {
        let responses = self.responses();
        let Some(first) = responses.first() else { return false };
        if let [part] = first.tags("part").as_slice() {
            return part.get(1).and_then(|count| count.parse().ok()) == Some(responses.len());
        }
        first.tags("status").first().is_none_or(|status| status[0] != "error") || self.statuses().contains(&"error")
    }
}
