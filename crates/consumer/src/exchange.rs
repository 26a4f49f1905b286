//! One open request and what has come for it. Pure: the clock and the relays are elsewhere.

use crate::directory::Promise;
use crate::error::{Demand, Error, Failure};
use crate::parts::Parts;
use crate::reply::Reply;
use crate::text;
use nostr::prelude::{PublicKey, Timestamp};
use rialto_wire::dvmcp::answer::{Answer, Feedback, Status};
use rialto_wire::manifest::answer::Answer as Message;
use rialto_wire::service::Way;
use serde_json::Value;
use std::collections::VecDeque;

/// Reports of progress that wait to be looked at; of more, the oldest are dropped.
const MAX_PROGRESS: usize = 32;

/// Answers to a request to everybody that are kept, and how long they may be in all.
const MAX_ANSWERS: usize = 1000;
const MAX_ANSWERS_BYTES: usize = 16 * 1024 * 1024;

/// How far a provider has come.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    pub progress: Option<f64>,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// What there is to know next about an exchange.
#[derive(Debug)]
pub(crate) enum News {
    Progress(Progress),
    Payment(Demand),
    Ended(Result<Reply, Error>),
    Nothing,
}

/// A request to one provider.
#[derive(Debug)]
pub(crate) struct Exchange {
    provider: PublicKey,
    pub(crate) way: Way,
    /// What is known about the answer, if it comes by message.
    promise: Promise,
    /// When it was asked.
    made: Timestamp,
    parts: Option<Parts>,
    ended: Option<Result<Reply, Error>>,
    has_ended: bool,
    demand: Option<Demand>,
    progress: VecDeque<Progress>,
    /// What feedback said went wrong. The response that belongs to it says more, if it comes.
    pub(crate) complaint: Option<Failure>,
    /// Signs of life so far.
    pub(crate) signs: u64,
}

impl Exchange {
    pub(crate) fn new(provider: PublicKey, way: Way, promise: Promise, made: Timestamp) -> Self {
        Self {
            provider,
            way,
            promise,
            made,
            parts: None,
            ended: None,
            has_ended: false,
            demand: None,
            progress: VecDeque::new(),
            complaint: None,
            signs: 0,
        }
    }

    pub(crate) fn is_of(&self, provider: &PublicKey) -> bool {
        self.provider == *provider
    }

    /// Whether the answer is there.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Only what the addressed provider signed counts, and of several answers the first. What was asked in private is not
    /// heard in public, and what was asked one way is not answered another.
    fn listens(&self, author: PublicKey, way: Way) -> bool {
        let is_exposed = self.way.sealed && !way.sealed;
        author == self.provider && way.wire == self.way.wire && !is_exposed && !self.has_ended
    }

    /// Whether a message that does not say what it answers can be the answer.
    pub(crate) fn may_be_answered(&self, author: PublicKey, way: Way, made: Timestamp) -> bool {
        self.listens(author, way) && made >= self.made
    }

    /// Takes an answer by message; says whether it counted.
    pub(crate) fn take_message(&mut self, author: PublicKey, way: Way, text: &str) -> bool {
        if !self.listens(author, way) {
            return false;
        }
        self.signs += 1;
        let output = self.promise.output.as_deref();
        let failed = |code: &str, message: &str, pointer: Option<&str>| {
            let failure = Failure::new(code, message).at(pointer);
            Ok(Reply { content: text.to_owned(), failure: Some(failure) })
        };
        match Message::read(text, output.is_some()) {
            Message::Result(result) => {
                let reply = Reply::promised(result, output);
                let ended = match (&reply, Message::read(text, false)) {
                    // Some have errors of another form. They are told from a tool's own `error` by not fitting.
                    (Err(_), Message::Failed { code, message, pointer }) => failed(&code, &message, pointer.as_deref()),
                    _ => reply,
                };
                self.end(ended);
            }
            Message::Failed { code, message, pointer } => self.end(failed(&code, &message, pointer.as_deref())),
            Message::Payment { amount, invoice, mints, words } => {
                self.demand = Some(Demand::new(amount.as_deref(), invoice, mints, &words));
            }
            Message::Unusable(why) => self.end(Err(Error::Malformed(why))),
        }
        true
    }

    /// Takes an answer; says whether it counted.
    pub(crate) fn take(&mut self, author: PublicKey, way: Way, answer: Answer) -> bool {
        if !self.listens(author, way) {
            return false;
        }
        self.signs += 1;
        match answer {
            Answer::Feedback(feedback) => self.take_feedback(feedback),
            Answer::Response { content, .. } => self.end(Reply::read(content)),
            Answer::Part { number, of, digest, content } => {
                let parts = self.parts.get_or_insert_with(|| Parts::new(of, digest.clone()));
                match parts.take(number, of, &digest, content) {
                    Ok(None) => {}
                    Ok(Some(whole)) => self.end(Reply::read(whole)),
                    Err(broken) => self.end(Err(Error::Malformed(broken.to_string()))),
                }
            }
        }
        true
    }

    fn end(&mut self, outcome: Result<Reply, Error>) {
        self.has_ended = true;
        self.parts = None;
        self.ended = Some(outcome);
    }

    fn take_feedback(&mut self, feedback: Feedback) {
        match feedback.status {
            Status::Error => {
                // Some put the words into the content.
                let words = if feedback.words.is_empty() { &feedback.content } else { &feedback.words };
                self.complaint.get_or_insert_with(|| Failure::from_words(words));
            }
            Status::PaymentRequired => {
                self.demand =
                    Some(Demand::new(feedback.amount.as_deref(), feedback.invoice, feedback.mints, &feedback.words));
            }
            Status::Processing => {
                if let Some(progress) = read_progress(&feedback) {
                    if self.progress.len() == MAX_PROGRESS {
                        self.progress.pop_front();
                    }
                    self.progress.push_back(progress);
                }
            }
            Status::Success | Status::Partial | Status::Other => {}
        }
    }

    /// What has come since it was asked last.
    pub(crate) fn news(&mut self) -> News {
        if let Some(progress) = self.progress.pop_front() {
            return News::Progress(progress);
        }
        if let Some(ended) = self.ended.take() {
            return News::Ended(ended);
        }
        self.demand.take().map_or(News::Nothing, News::Payment)
    }
}

/// `None` if it says only that the work goes on.
fn read_progress(feedback: &Feedback) -> Option<Progress> {
    let params: Value = serde_json::from_str(&feedback.content).unwrap_or_default();
    let number = |key: &str| params.get(key).and_then(Value::as_f64);
    let message = params.get("message").and_then(Value::as_str).unwrap_or(&feedback.words);
    let message = text::limited(&text::one_line(message), 500);
    let progress = Progress {
        progress: number("progress"),
        total: number("total"),
        message: (!message.is_empty()).then_some(message),
    };
    (progress != Progress::default()).then_some(progress)
}

/// A request to everybody: every author's first response counts.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    pub(crate) answers: Vec<(PublicKey, Reply)>,
    bytes: usize,
}

impl Collection {
    pub(crate) fn take(&mut self, author: PublicKey, answer: Answer) -> bool {
        let Answer::Response { content, .. } = answer else { return false };
        let is_known = self.answers.iter().any(|(known, _)| *known == author);
        self.bytes = self.bytes.saturating_add(content.len());
        if is_known || self.answers.len() >= MAX_ANSWERS || self.bytes > MAX_ANSWERS_BYTES {
            return false;
        }
        let Ok(reply) = Reply::read(content) else { return false };
        self.answers.push((author, reply));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Collection, Exchange, News, Progress};
    use crate::directory::Promise;
    use nostr::prelude::{Keys, PublicKey, Timestamp};
    use rialto_wire::dvmcp::answer::{Answer, Feedback, Status};
    use rialto_wire::service::Way;

    fn key() -> PublicKey {
        Keys::generate().public_key()
    }

    fn asked(provider: PublicKey, way: Way) -> Exchange {
        Exchange::new(provider, way, Promise::default(), Timestamp::from(100))
    }

    fn response(content: &str) -> Answer {
        Answer::Response { content: content.into(), outcome: None }
    }

    fn feedback(status: Status, words: &str, content: &str) -> Answer {
        let (words, content) = (words.into(), content.into());
        Answer::Feedback(Feedback { status, words, content, amount: None, invoice: None, mints: Vec::new() })
    }

    #[test]
    fn only_the_addressed_provider_is_heard_and_only_once() {
        let provider = key();
        let mut exchange = asked(provider, Way::PUBLIC);
        assert!(!exchange.take(key(), Way::PUBLIC, response("{\"forged\":1}")));
        assert!(exchange.take(provider, Way::PUBLIC, response("{\"n\":1}")));
        assert!(!exchange.take(provider, Way::PUBLIC, response("{\"n\":2}")));
        let News::Ended(Ok(reply)) = exchange.news() else { panic!() };
        assert_eq!(reply.content, "{\"n\":1}");
        assert!(matches!(exchange.news(), News::Nothing));
    }

    #[test]
    fn what_was_asked_in_private_is_not_heard_in_public() {
        let provider = key();
        let mut exchange = asked(provider, Way::SEALED);
        assert!(!exchange.take(provider, Way::PUBLIC, response("{}")));
        assert!(exchange.take(provider, Way::SEALED, response("{}")));
    }

    #[test]
    fn a_message_counts_if_it_came_the_way_it_was_asked() {
        let provider = key();
        let text = r#"{"content":[{"type":"text","text":"x"}]}"#;
        for (asked_way, way, counts) in [
            (Way::MESSAGE, Way::MESSAGE, true),
            (Way::MESSAGE, Way::SEALED_MESSAGE, true),
            (Way::SEALED_MESSAGE, Way::MESSAGE, false),
            (Way::SEALED_MESSAGE, Way::SEALED_MESSAGE, true),
            (Way::PUBLIC, Way::MESSAGE, false),
            (Way::SEALED, Way::SEALED_MESSAGE, false),
        ] {
            let mut exchange = asked(provider, asked_way);
            assert!(!exchange.take_message(key(), way, text), "a stranger");
            assert!(!exchange.may_be_answered(provider, way, Timestamp::from(99)), "older than the question");
            assert_eq!(exchange.may_be_answered(provider, way, Timestamp::from(100)), counts);
            assert_eq!(exchange.take_message(provider, way, text), counts, "{asked_way:?} {way:?}");
            assert!(
                !exchange.take(provider, Way::SEALED, response("{}"))
                    || asked_way == Way::SEALED
                    || asked_way == Way::PUBLIC
            );
        }
    }

    #[test]
    fn progress_comes_before_the_end_and_is_bounded() {
        let provider = key();
        let mut exchange = asked(provider, Way::PUBLIC);
        assert!(exchange.take(provider, Way::PUBLIC, feedback(Status::Processing, "", "")));
        assert!(matches!(exchange.news(), News::Nothing), "that the work began is no progress");
        for step in 0..100 {
            let params = format!("{{\"progress\":{step},\"total\":100,\"message\":\"\\u001b[1mstep\"}}");
            exchange.take(provider, Way::PUBLIC, feedback(Status::Processing, "", &params));
        }
        exchange.take(provider, Way::PUBLIC, response("{}"));
        let mut steps = Vec::new();
        while let News::Progress(progress) = exchange.news() {
            steps.push(progress);
        }
        assert_eq!(steps.len(), 32);
        let last = Progress { progress: Some(99.0), total: Some(100.0), message: Some("step".into()) };
        assert_eq!(steps.last(), Some(&last));
        assert_eq!(exchange.signs, 102);
    }

    #[test]
    fn a_request_to_everybody_hears_each_once() {
        let (one, other) = (key(), key());
        let mut collection = Collection::default();
        assert!(collection.take(one, response("{}")));
        assert!(!collection.take(one, response("{}")));
        assert!(collection.take(other, response("{}")));
        assert!(!collection.take(key(), response("no json")));
        assert_eq!(collection.answers.len(), 2);
    }
}
