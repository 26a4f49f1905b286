//! What `rialto serve` says while it works: a line for each request.

use std::sync::Arc;

use nostr::nips::nip19::ToBech32;
use rialto_provider::event::{Event, Observer};
use tokio::sync::watch;

use crate::talk::{Aside, Level, Talk, Tone};

/// How far the service has come.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// Its tools, once they can be called.
    pub(super) tools: Option<Vec<String>>,
    /// At least one relay has the announcement.
    pub(super) is_announced: bool,
}

/// Says what happens, and tells `ready` which tools there are once they can be called.
pub(super) fn observer(talk: Talk, aside: Arc<Aside>, ready: watch::Sender<Ready>) -> Observer {
    Observer::new(move |event| {
        // Nothing is put into words that nobody hears.
        if talk.level == Level::Quiet && !matches!(event, Event::Ready { .. } | Event::Announced { .. }) {
            return;
        }
        let (tone, line) = match event {
            Event::Ready { tools } => {
                ready.send_modify(|ready| ready.tools = Some(tools));
                return;
            }
            Event::Changed { tools } => (Tone::Info, format!("the servers' offer changed: {tools} tools")),
            Event::Announced { accepted, relays } => {
                ready.send_modify(|ready| ready.is_announced |= accepted > 0);
                let tone = if accepted == 0 { Tone::Warn } else { Tone::Verbose };
                (tone, format!("announced: {accepted} of {relays} relays took it so far"))
            }
            Event::Answered { customer, what, took, code, way, paid } => {
                let npub = customer.to_bech32().unwrap_or_default();
                let short: String = npub.chars().take(12).collect();
                let took = took.as_secs_f64() * 1000.0;
                let paid = paid.map(|paid| format!("  {paid}")).unwrap_or_default();
                (Tone::Info, format!("{short}…  {what}  {took:.1} ms  {}  {}{paid}", code.unwrap_or("ok"), way.name()))
            }
            Event::Warning(words) => (Tone::Warn, words),
            _ => return,
        };
        // Names come from strangers and servers; none of them may steer the terminal.
        let line = line.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
        aside.say(tone, line);
    })
}
