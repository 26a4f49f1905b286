//! What `rialto serve` says first: who it is, where it is, and what to type elsewhere.

use nostr::nips::nip19::{Nip19Profile, ToBech32};
use nostr::prelude::RelayUrl;
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use rialto_provider::plan::Plan;
use rialto_relay::pool::Pool;
use rialto_relay::status::{State, Status};
use serde_json::json;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::sync::watch;

use super::log::Ready;
use crate::identity::Identity;
use crate::output;
use crate::talk::{Format, Talk};

/// How long the first relay may take before we say so.
const RELAY_WAIT: Duration = Duration::from_secs(10);

fn line(talk: &Talk, word: &str, text: &str) {
    talk.info(&format!("  {word:<8} {text}"));
}

pub(super) fn key(talk: &Talk, identity: &Identity) {
    let npub = identity.keys.public_key().to_bech32().unwrap_or_default();
    let path = identity.path.display();
    let place = if identity.is_new { format!("new, saved in {path}") } else { format!("{path}") };
    line(talk, "key", &format!("{npub}  ({place})"));
}

pub(super) fn relays(talk: &Talk, relays: &[String], built_in: bool) {
    for relay in relays {
        line(talk, "relay", &format!("{relay}{}", if built_in { "  (built in, for this machine only)" } else { "" }));
    }
}

pub(super) fn wallet(talk: &Talk, name: &str, holds: bool) {
    let way = if holds { "failed calls are never charged" } else { "failed calls are credited" };
    line(talk, "wallet", &format!("{name}  ({way})"));
}

/// Waits until the service can be called, and says how.
pub(super) async fn ready(talk: Talk, plan: Plan, pool: Pool, mut ready: watch::Receiver<Ready>) {
    let known = ready.wait_for(|ready| ready.tools.is_some()).await.map(|ready| ready.tools.clone());
    let Ok(Some(tools)) = known else { return };
    let is_subscribed = |statuses: &[Status]| statuses.iter().any(|status| status.state == State::Subscribed);
    if !pool.wait(RELAY_WAIT, is_subscribed).await {
        talk.warn("no relay can be reached yet; still trying");
        pool.wait(Duration::MAX, is_subscribed).await;
    }
    if !plan.access.is_private() {
        // Whoever reads the next lines should find the service by its name.
        let _ = tokio::time::timeout(RELAY_WAIT, ready.wait_for(|ready| ready.is_announced)).await;
    }
    let me = plan.keys.public_key();
    let hints: Vec<RelayUrl> = pool.urls().into_iter().take(3).collect();
    let npub = me.to_bech32().unwrap_or_default();
    let nprofile = Nip19Profile::new(me, hints).to_bech32().unwrap_or_default();
    if tools.is_empty() {
        talk.warn("the service has no tools as yet: its server is not running, or offers none");
    }
    let many = if tools.len() == 1 { "tool" } else { "tools" };
    let priced = tools.iter().filter(|tool| !plan.prices.rule(tool).is_free()).count();
    let price = match (priced, tools.as_slice()) {
        (0, _) => "all free".to_owned(),
        (_, [only]) => plan.prices.rule(only).to_string(),
        (all, tools) if all == tools.len() => "none of them free".to_owned(),
        (some, tools) => format!("{} of them free", tools.len() - some),
    };
    line(&talk, "service", &format!("{}: {} {many}, {price}", plan.name, tools.len()));
    for tool in tools.iter().filter(|tool| plan.prices.tools.get(*tool).is_some_and(|rule| !rule.is_free())) {
        line(&talk, "price", &format!("{tool}: {}", plan.prices.rule(tool)));
    }
    if talk.format == Format::Json {
        let ready = json!({
            "pubkey": me.to_hex(),
            "npub": npub,
            "nprofile": nprofile,
            "name": plan.name,
            "relays": plan.relays,
            "tools": tools,
        });
        // Nobody reads it; the service runs all the same.
        let _ = output::json(&json!({ "ready": ready }));
        return;
    }
    line(&talk, "share", &format!("nostr:{nprofile}"));
    if std::io::stderr().is_terminal()
        && let Ok(code) = QrCode::new(format!("nostr:{nprofile}"))
    {
        // Most terminals are dark: what is light in the code is what is drawn.
        let mut drawing = code.render::<Dense1x2>();
        let drawing = drawing.dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).quiet_zone(true);
        talk.info(&drawing.build());
    }
    if let Some(tool) = tools.first() {
        line(&talk, "try it", &format!("rialto call {nprofile} {tool}"));
    }
    line(&talk, "connect", &format!("rialto connect claude-code {nprofile}"));
    let whom = if plan.access.is_private() { "those you named" } else { "the first visitor" };
    talk.info(&format!("  waiting for {whom} …"));
}
