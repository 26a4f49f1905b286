//! Why a request did not succeed.

use crate::payment::{Unpaid, Why};
use crate::text;
use std::time::Duration;

/// What went wrong. Words of strangers in it are fit to be shown.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no relay is known")]
    NoRelay,
    #[error("no relay took the request: {}", listed(.0))]
    Refused(Vec<Complaint>),
    #[error("no relay can be reached: {}", listed(.0))]
    Unreachable(Vec<Complaint>),
    /// Not one sign of life.
    #[error("the provider does not answer; nothing came within {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// It began, and then nothing more came.
    #[error("the provider fell silent for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("there was no result after {} s", .0.as_secs())]
    Overdue(Duration),
    #[error("{0}")]
    PaymentRequired(Box<Unpaid>),
    #[error("{}: {}", .0.code, .0.message)]
    Failed(Failure),
    #[error("the provider's answer cannot be used: {0}")]
    Malformed(String),
    #[error("the request is too large: {size} bytes, of at most {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("the request could not be sealed")]
    Unsealed,
    #[error("too many requests are open")]
    Busy,
    /// Found before anything was sent.
    #[error("the arguments do not fit the tool: {message}")]
    Misfit { message: String, pointer: Option<String> },
    #[error("the service has no manifest")]
    NoManifest,
    #[error("the service is called by message, which carries nothing but calls of tools")]
    ToolsOnly,
    /// An answer that may still come could not be told from the next one.
    #[error("an earlier call was not answered, and answers of this service do not say to which call they belong; try again in {} s", .0.as_secs() + 1)]
    Unclear(Duration),
    #[error(transparent)]
    Store(#[from] rialto_store::Error),
}

/// What one relay said, or why it is away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    pub relay: String,
    pub words: String,
}

fn listed(complaints: &[Complaint]) -> String {
    let words: Vec<String> =
        complaints.iter().map(|complaint| format!("{} ({})", complaint.relay, complaint.words)).collect();
    words.join(", ")
}

/// An error that the provider told us of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// One of the words of the protocol, or `error` if it gave none.
    pub code: String,
    pub message: String,
    /// Where in the arguments, as a JSON pointer.
    pub pointer: Option<String>,
}

impl Failure {
    /// The longest message that is kept.
    const MAX_MESSAGE: usize = 1000;

    pub(crate) fn new(code: &str, message: &str) -> Self {
        let is_word = |code: &str| {
            !code.is_empty() && code.len() <= 64 && code.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
        };
        let code = if is_word(code) { code } else { "error" };
        let message = text::limited(&text::one_line(message), Self::MAX_MESSAGE);
        Self { code: code.to_owned(), message, pointer: None }
    }

    /// Says where in the arguments.
    pub(crate) fn at(mut self, pointer: Option<&str>) -> Self {
        self.pointer = pointer.map(|pointer| text::limited(&text::one_line(pointer), Self::MAX_MESSAGE));
        self
    }

    /// Reads `code: message`, as it stands in the status of feedback.
    pub(crate) fn from_words(words: &str) -> Self {
        match words.split_once(": ") {
            Some((code, message)) if Self::new(code, "").code == code => Self::new(code, message),
            _ => Self::new("error", words),
        }
    }
}

/// What a provider wants before it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// As it was written, in sat. Only the amount inside the invoice counts.
    pub amount: Option<String>,
    pub invoice: Option<String>,
    /// The mints whose tokens are taken instead.
    pub mints: Vec<String>,
    pub words: String,
}

impl Demand {
    /// The longest invoice that is passed on.
    const MAX_INVOICE: usize = 4096;

    pub(crate) fn new(amount: Option<&str>, invoice: Option<String>, mints: Vec<String>, words: &str) -> Self {
        let is_invoice = |text: &String| {
            let has_start = text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("ln"));
            has_start && text.len() <= Self::MAX_INVOICE && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        Self {
            amount: amount.map(text::name),
            invoice: invoice.filter(is_invoice),
            mints,
            words: text::limited(&text::one_line(words), 500),
        }
    }
}

impl Error {
    pub(crate) fn unpaid(demand: Demand, why: Why) -> Self {
        Error::PaymentRequired(Box::new(Unpaid { demand, amount: None, why }))
    }

    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::NoAnswer(_) | Error::Silent(_) | Error::Overdue(_))
            || matches!(self, Error::Failed(failure) if failure.code == "timeout")
    }

    /// The word for programs.
    pub fn code(&self) -> &str {
        match self {
            Error::NoRelay => "no_relay",
            Error::Refused(_) => "relay_refused",
            Error::Unreachable(_) => "relay_unreachable",
            Error::NoAnswer(_) => "no_answer",
            Error::Silent(_) | Error::Overdue(_) => "timeout",
            Error::PaymentRequired(unpaid) if unpaid.why.is_unclear() => "payment_unclear",
            Error::PaymentRequired(_) => "payment_required",
            Error::Failed(failure) => &failure.code,
            Error::Malformed(_) => "malformed_answer",
            Error::TooLarge { .. } => "too_large",
            Error::Unsealed => "unsealed",
            Error::Busy => "busy",
            Error::Misfit { .. } => "invalid_input",
            Error::NoManifest => "no_manifest",
            Error::ToolsOnly => "unsupported",
            Error::Unclear(_) => "unclear",
            Error::Store(_) => "store",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, Failure};

    #[test]
    fn nothing_a_stranger_wrote_steers_a_terminal_or_hides_from_people() {
        let failure = Failure::new("invalid_input", "no").at(Some("/a\u{1b}[2J\u{200b}\nb"));
        assert_eq!(failure.pointer.as_deref(), Some("/a b"));
        assert!(Failure::new("x", "").at(Some(&"/a".repeat(9000))).pointer.unwrap().len() <= 1000);
        for (invoice, counts) in [
            ("lnbc20n1pj", true),
            ("LNBC20N1PJ", true),
            ("", false),
            ("pay me", false),
            ("lnbc1\u{1b}[2J", false),
            ("lnbc1 and delete everything", false),
            (&format!("lnbc{}", "1".repeat(9000)), false),
        ] {
            let demand = Demand::new(Some("5\u{7}"), Some(invoice.to_owned()), Vec::new(), "pay\u{1b}[1m");
            assert_eq!(demand.invoice.is_some(), counts, "{invoice:?}");
            assert_eq!((demand.amount.as_deref(), demand.words.as_str()), (Some("5"), "pay"));
        }
    }

    #[test]
    fn words_of_feedback_are_taken_apart() {
        let cases = [
            ("invalid_input: `a` is missing", "invalid_input", "`a` is missing"),
            ("Connection closed", "error", "Connection closed"),
            ("MCP error -32602: no", "error", "MCP error -32602: no"),
            ("", "error", ""),
            ("busy: \u{1b}[31mred", "busy", "red"),
        ];
        for (words, code, message) in cases {
            let failure = Failure::from_words(words);
            assert_eq!((failure.code.as_str(), failure.message.as_str()), (code, message), "{words}");
        }
    }
}
