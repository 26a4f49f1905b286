//! What a relay's answer to an event means, and what we do about it.

use std::time::Duration;

/// How one relay took one event, in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// It will not take this event; the relay's own words.
    Refused(String),
    /// It wants proof of work (NIP-13) of this many bits, if it said how many.
    Work {
        bits: Option<u8>,
        message: String,
    },
    /// Longer than the relay's limit; it was not sent.
    TooLarge {
        limit: usize,
    },
    /// We stopped trying: the relay was not there, or did not answer.
    GaveUp(String),
    /// We ended before it was taken. It may be sent again by whoever comes after us.
    Stopped,
}

/// What to do about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing: the relay has it.
    Done,
    /// Send it again after a while, and send nothing else meanwhile.
    SlowDown,
    /// Send it again after a while.
    Again,
    /// Say who we are, then send it again.
    Authenticate,
    /// Leave this relay alone for a while.
    Shun,
    Work(Option<u8>),
    /// This event is not for this relay.
    Never,
}

/// How long a relay that does not want us is left alone.
pub(crate) const SHUNNED: Duration = Duration::from_secs(600);

/// Reads the machine-readable prefix of an `OK` or `CLOSED`.
pub(crate) fn react(accepted: bool, message: &str) -> Reaction {
    if accepted {
        return Reaction::Done;
    }
    let (prefix, words) = message.split_once(':').unwrap_or(("", message));
    match prefix.trim() {
        "duplicate" => Reaction::Done,
        "rate-limited" => Reaction::SlowDown,
        "auth-required" => Reaction::Authenticate,
        "restricted" | "blocked" | "mute" => Reaction::Shun,
        "pow" => Reaction::Work(bits(words)),
        "error" => Reaction::Again,
        _ => Reaction::Never,
    }
}

/// Relays say it in words: "difficulty 26 is less than 30", "28 bits needed". The largest number is what is wanted.
fn bits(words: &str) -> Option<u8> {
    words.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).filter(|bits| *bits > 0).max()
}

#[cfg(test)]
mod tests {
    use super::{Reaction, react};

    #[test]
    fn every_prefix_has_its_reaction() {
        let cases = [
            (true, "", Reaction::Done),
            (true, "duplicate: have it", Reaction::Done),
            (false, "duplicate: have it", Reaction::Done),
            (false, "rate-limited: slow down", Reaction::SlowDown),
            (false, "auth-required: who are you", Reaction::Authenticate),
            (false, "restricted: members only", Reaction::Shun),
            (false, "blocked: you", Reaction::Shun),
            (false, "mute: nobody listens", Reaction::Shun),
            (false, "pow: difficulty 25>=24 is required", Reaction::Work(Some(25))),
            (false, "pow: more", Reaction::Work(None)),
            (false, "error: disk full", Reaction::Again),
            (false, "invalid: too large", Reaction::Never),
            (false, "no prefix at all", Reaction::Never),
        ];
        for (accepted, message, expected) in cases {
            assert_eq!(react(accepted, message), expected, "{message}");
        }
    }
}
