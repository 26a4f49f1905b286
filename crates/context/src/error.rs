//! Every error of the context tools, in one list, with the words and exit codes that version 0 froze.
//!
//! What a client is told has a code and a fixed sentence and nothing else: no path, no hash, no word of the operating
//! system. The detail is for whoever runs us, on the command line.

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    InvalidQuery,
    InvalidBudget,
    CacheMissing,
    CacheInvalid,
    Io,
    Internal,
}

impl Kind {
    /// Every kind, in the order of their exit codes.
    pub const ALL: [Kind; 6] =
        [Kind::InvalidQuery, Kind::InvalidBudget, Kind::CacheMissing, Kind::CacheInvalid, Kind::Io, Kind::Internal];

    /// The stable name.
    pub fn code(self) -> &'static str {
        match self {
            Kind::InvalidQuery => "invalid_query",
            Kind::InvalidBudget => "invalid_budget",
            Kind::CacheMissing => "cache_missing",
            Kind::CacheInvalid => "cache_invalid",
            Kind::Io => "io_error",
            Kind::Internal => "internal_error",
        }
    }

    /// The sentence that goes with it.
    pub fn message(self) -> &'static str {
        match self {
            Kind::InvalidQuery => "Query is invalid",
            Kind::InvalidBudget => "Budget is invalid",
            Kind::CacheMissing => "Cache does not exist",
            Kind::CacheInvalid => "Cache exists but is invalid",
            Kind::Io => "I/O error occurred",
            Kind::Internal => "Internal error",
        }
    }

    /// What a command ends with. 0 is success and 1 wrong usage.
    pub fn exit(self) -> u8 {
        match self {
            Kind::InvalidQuery => 2,
            Kind::InvalidBudget => 3,
            Kind::CacheMissing => 4,
            Kind::CacheInvalid => 5,
            Kind::Io => 6,
            Kind::Internal => 7,
        }
    }
}

/// One error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", kind.message())]
pub struct Error {
    pub kind: Kind,
    /// What exactly happened to what; never sent to a client.
    pub detail: Option<String>,
}

impl Error {
    pub fn new(kind: Kind) -> Self {
        Self { kind, detail: None }
    }

    pub(crate) fn because(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: Some(detail.into()) }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::because(Kind::CacheInvalid, detail)
    }

    pub(crate) fn io(what: impl std::fmt::Display, error: &dyn std::error::Error) -> Self {
        Self::because(Kind::Io, format!("{what}: {error}"))
    }

    /// The text of a tool result that says no.
    pub fn text(&self) -> String {
        format!("{{\"error\":{{\"code\":\"{}\",\"message\":\"{}\"}}}}\n", self.kind.code(), self.kind.message())
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self::new(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Kind};

    #[test]
    fn exit_codes_follow_the_order_of_the_list() {
        for (position, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(kind.exit()), position + 2);
        }
    }

    #[test]
    fn the_text_has_two_fields_and_no_detail() {
        assert_eq!(
            Error::invalid("guide.md").text(),
            "{\"error\":{\"code\":\"cache_invalid\",\"message\":\"Cache exists but is invalid\"}}\n"
        );
    }
}
