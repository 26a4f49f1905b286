//! What the operator allows.

use crate::failure::Failure;
use crate::tool::About;
use nostr::prelude::{Kind, RelayUrl};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Limits on what tools may do. Empty lists limit nothing.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Nothing may be changed, signed or published.
    pub is_read_only: bool,
    /// A model may see and give secret keys.
    pub allows_secrets: bool,
    /// The only tools that are offered: names, in which `*` stands for anything and `nostr_` may be left out.
    pub allowed_tools: Vec<String>,
    /// Tools that are not offered, written in the same way.
    pub denied_tools: Vec<String>,
    /// The only kinds that may be signed.
    pub kinds: Vec<Kind>,
    /// The only relays that may be used.
    pub relays: Vec<RelayUrl>,
    /// How many calls that change, sign or publish something may be made in a minute.
    pub writes_per_minute: Option<u32>,
    /// The user is asked before anything is changed, signed or published.
    pub asks_before_writing: bool,
    /// Files below this folder may be read, in order to upload them.
    pub files: Option<PathBuf>,
}

impl Guard {
    /// Whether a tool is offered at all.
    pub fn offers(&self, about: &About) -> bool {
        let is_named = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, about.name));
        (!self.is_read_only || about.effect.is_reading())
            && (self.allowed_tools.is_empty() || is_named(&self.allowed_tools))
            && !is_named(&self.denied_tools)
    }

    /// Patterns that name no tool: most likely a slip of the pen.
    pub fn unknown_tools(&self) -> Vec<String> {
        let tools = crate::tools();
        let names_one = |pattern: &String| tools.iter().any(|tool| fits(pattern, tool.about.name));
        let patterns = self.allowed_tools.iter().chain(&self.denied_tools);
        patterns.filter(|pattern| !names_one(pattern)).cloned().collect()
    }

    /// Whether an event of this kind may be signed, and published to these relays: all of them, the default ones included.
    pub(crate) fn admit_event(&self, kind: Kind, relays: &[RelayUrl]) -> Result<(), Failure> {
        if self.is_read_only {
            return Err(Failure::denied("this server is read-only"));
        }
        if !self.kinds.is_empty() && !self.kinds.contains(&kind) {
            let kinds: Vec<String> = self.kinds.iter().map(|kind| kind.as_u16().to_string()).collect();
            let words = format!("events of kind {} may not be signed here, only {}", kind.as_u16(), kinds.join(", "));
            return Err(Failure::denied(words).with("kind", kind.as_u16()));
        }
        relays.iter().try_for_each(|relay| self.admit_relay(relay))
    }

    /// Whether a relay may be used.
    pub(crate) fn allows_relay(&self, relay: &RelayUrl) -> bool {
        let name = |relay: &RelayUrl| relay.as_str_without_trailing_slash().to_lowercase();
        self.relays.is_empty() || self.relays.iter().any(|allowed| name(allowed) == name(relay))
    }

    /// The same, with the reason why not.
    pub(crate) fn admit_relay(&self, relay: &RelayUrl) -> Result<(), Failure> {
        if self.allows_relay(relay) {
            return Ok(());
        }
        let words = format!("the relay {relay} may not be used here; the operator chooses with --allow-relay");
        Err(Failure::denied(words).with("relay", relay.to_string()))
    }

    /// Whether a secret may pass through the model.
    pub(crate) fn admit_secret(&self) -> Result<(), Failure> {
        if self.allows_secrets {
            return Ok(());
        }
        Err(Failure::denied(
            "secret keys do not pass through this server; its operator can allow it with --allow-secrets",
        ))
    }
}

/// Whether a name fits a pattern.
fn fits(pattern: &str, name: &str) -> bool {
    fits_whole(pattern, name) || name.strip_prefix("nostr_").is_some_and(|rest| fits_whole(pattern, rest))
}

fn fits_whole(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            // The star may stand for anything, which includes nothing.
            (0..=tail.len()).any(|skipped| tail.get(skipped..).is_some_and(|tail| fits_whole(rest, tail)))
        }),
    }
}

/// Counts writes.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: Option<u32>,
    recent: Mutex<VecDeque<Instant>>,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Limiter {
    pub(crate) fn new(limit: Option<u32>) -> Self {
        Self { limit, recent: Mutex::default() }
    }

    /// Whether one more is within the limit.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Some(limit) = self.limit else { return Ok(()) };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while recent.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            recent.pop_front();
        }
        if recent.len() < limit as usize {
            return Ok(());
        }
        let wait = recent.front().map_or(MINUTE, |at| MINUTE.saturating_sub(now.duration_since(*at)));
        let seconds = wait.as_secs() + 1;
        let words = format!("at most {limit} writes a minute are allowed here; try again in {seconds} seconds");
        Err(Failure::limited(words).with("retry_after_secs", seconds))
    }

    /// Counts one.
    pub(crate) fn take(&self) -> Result<(), Failure> {
        self.check()?;
        if self.limit.is_some() {
            self.recent.lock().unwrap_or_else(PoisonError::into_inner).push_back(Instant::now());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Guard, Limiter, MINUTE, fits};
    use nostr::prelude::{Kind, RelayUrl};

    #[test]
    fn patterns_name_tools() {
        let cases = [
            ("nostr_keys_list", true),
            ("keys_list", true),
            ("keys_*", true),
            ("nostr_*_list", true),
            ("*", true),
            ("keys", false),
            ("keys_l", false),
            ("*_get", false),
        ];
        for (pattern, expected) in cases {
            assert_eq!(fits(pattern, "nostr_keys_list"), expected, "{pattern}");
        }
    }

    #[test]
    fn tools_are_offered_as_the_operator_says() {
        let names = |guard: &Guard| {
            let tools = crate::tools().into_iter().filter(|tool| guard.offers(&tool.about));
            tools.map(|tool| tool.about.name).collect::<Vec<_>>()
        };
        let chosen =
            Guard { allowed_tools: vec!["keys_*".into()], denied_tools: vec!["*_remove".into()], ..Guard::default() };
        assert!(names(&chosen).contains(&"nostr_keys_list"));
        assert!(!names(&chosen).contains(&"nostr_keys_remove"));
        assert!(!names(&chosen).contains(&"nostr_events_query"));
        assert!(chosen.unknown_tools().is_empty());
        assert_eq!(Guard { denied_tools: vec!["kyes_*".into()], ..chosen }.unknown_tools(), ["kyes_*"]);
        let reading = names(&Guard { is_read_only: true, ..Guard::default() });
        assert!(reading.contains(&"nostr_events_query") && reading.contains(&"nostr_keys_list"));
        for writing in ["nostr_keys_generate", "nostr_events_post_text", "nostr_events_sign", "nostr_config_dir_set"] {
            assert!(!reading.contains(&writing), "{writing}");
        }
    }

    #[test]
    fn kinds_and_relays_are_limited() {
        let relay = |text: &str| RelayUrl::parse(text).unwrap();
        let guard = Guard { kinds: vec![Kind::TextNote], relays: vec![relay("wss://one.example")], ..Guard::default() };
        assert!(guard.admit_event(Kind::TextNote, &[]).is_ok());
        assert!(guard.admit_event(Kind::TextNote, &[relay("wss://one.example/")]).is_ok());
        assert!(guard.admit_event(Kind::Metadata, &[]).is_err());
        let other = [relay("wss://one.example"), relay("wss://two.example")];
        assert_eq!(guard.admit_event(Kind::TextNote, &other).unwrap_err().reason, "not_allowed");
    }

    #[tokio::test(start_paused = true)]
    async fn writes_are_counted_by_the_minute() {
        let limiter = Limiter::new(Some(2));
        limiter.take().unwrap();
        limiter.take().unwrap();
        assert_eq!(limiter.take().unwrap_err().reason, "rate_limited");
        tokio::time::advance(MINUTE).await;
        limiter.take().unwrap();
        Limiter::new(None).take().unwrap();
    }
}
