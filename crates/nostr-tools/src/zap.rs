//! Zaps (NIP-57): what a receipt says, and whether it is true.
//!
//! Anybody can publish a receipt. It counts only if it is signed by the key that the recipient's own Lightning server names,
//! and if the invoice in it is for the amount and the request that it claims.

use crate::failure::Failure;
use crate::lightning::lnurl::{self, Service};
use crate::lightning::{Invoice, sha256};
use crate::network::{Route, patience};
use crate::profile;
use crate::result::quoted;
use crate::shape::{choice, record};
use crate::tool::Turn;
use futures_util::StreamExt;
use nostr::prelude::{Event, Filter, Kind, PublicKey, RelayUrl, Tag};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Recipients whose Lightning servers are asked on account of one call, and how many at once.
const MAX_RECIPIENTS: usize = 20;
const AT_ONCE: usize = 4;

choice! {
    enum Verdict {
        /// It passed every check.
        Valid = "valid",
        Invalid = "invalid",
        /// Nobody could tell whether the signer is the right one.
        Unchecked = "unchecked",
    }
}

choice! {
    enum Direction { Received = "received", Sent = "sent", Own = "self", }
}

record! {
    /// A zap, as its receipt tells of it.
    struct Zap {
        /// The receipt (hex)
        id: String,
        /// Seconds since 1970
        created_at: u64,
        /// To (hex)
        recipient: String,
        /// From (hex)
        sender: Option<String>,
        /// Satoshis
        amount_sats: u64,
        /// The sender's words
        comment: Option<String>,
        /// For this event (hex)
        event_id: Option<String>,
        /// For this address
        coordinate: Option<String>,
        /// As seen by the key that was asked for
        direction: Option<Direction>,
        /// unchecked: the recipient's server could not be asked
        verdict: Verdict,
        /// What is wrong with it
        problems: Vec<String>,
    }
}

record! {
    /// What zap lists take.
    struct Query {
        /// Whose (npub or hex; default the active key)
        pubkey: Option<String>,
        /// How many at most (default 20)
        limit: Option<u64>,
        /// Not older (seconds since 1970)
        since: Option<u64>,
        /// Not newer
        until: Option<u64>,
        /// Check the signers (default true)
        validate: Option<bool>,
        /// Seconds to wait
        timeout_secs: Option<u64>,
    }
}

record! {
    /// Zaps.
    struct Zaps {
        /// Whose (hex)
        pubkey: String,
        /// Newest first
        zaps: Vec<Zap>,
        /// How many
        count: u64,
        /// Satoshis of the valid ones
        total_sats: u64,
    }
}

/// Whom to trust with receipts for somebody, or why that is not known.
pub(crate) type Trusted = Result<Service, String>;

/// One receipt, and the request in it.
struct Reading<'a> {
    receipt: &'a Event,
    request: Option<Event>,
    problems: Vec<String>,
}

fn values<'a>(event: &'a Event, name: &'a str) -> impl Iterator<Item = &'a str> {
    event.tags.iter().filter(move |tag| tag.kind() == name).filter_map(|tag| tag.content())
}

/// Whom a receipt says that it is for.
pub(crate) fn recipient(receipt: &Event) -> Option<PublicKey> {
    values(receipt, "p").next().and_then(|key| PublicKey::from_hex(key).ok())
}

impl Reading<'_> {
    fn complain(&mut self, words: impl Into<String>) {
        self.problems.push(words.into());
    }

    fn check_request(&mut self) {
        let text = values(self.receipt, "description").next().unwrap_or_default();
        let request = serde_json::from_str::<Event>(text).ok();
        let Some(request) = request.filter(|request| request.kind == Kind::ZapRequest && request.verify().is_ok())
        else {
            return self.complain("there is no signed zap request in it");
        };
        if values(&request, "p").count() != 1 || values(&request, "e").count() > 1 || values(&request, "a").count() > 1
        {
            self.complain("the zap request does not say clearly for whom or what it is");
        }
        for name in ["p", "e", "a"] {
            if values(&request, name).next() != values(self.receipt, name).next() {
                self.complain(format!("its `{name}` tag is not the one of the zap request"));
            }
        }
        if values(self.receipt, "P").next().is_some_and(|sender| sender != request.pubkey.to_hex()) {
            self.complain("it names another sender than the one who signed the zap request");
        }
        self.request = Some(request);
    }

    /// Checks the invoice; gives the amount.
    fn check_invoice(&mut self) -> u64 {
        let invoice = values(self.receipt, "bolt11").next().and_then(Invoice::parse);
        let Some(invoice) = invoice else {
            self.complain("there is no invoice in it that can be read");
            return 0;
        };
        let text = values(self.receipt, "description").next().unwrap_or_default();
        if invoice.description_hash != Some(sha256(text.as_bytes())) {
            self.complain("the invoice is not for this zap request: the description hash differs");
        }
        let preimage = values(self.receipt, "preimage").next().and_then(from_hex);
        if preimage.is_some_and(|preimage| invoice.payment_hash != Some(sha256(&preimage))) {
            self.complain("the preimage is not the one of the invoice");
        }
        let Some(amount) = invoice.amount else {
            self.complain("the invoice does not say how much");
            return 0;
        };
        let wanted = self.request.as_ref().and_then(|request| values(request, "amount").next());
        if wanted.is_some_and(|wanted| wanted.parse() != Ok(amount)) {
            self.complain("the invoice is over another amount than the zap request");
        }
        amount
    }

    /// Checks who signed it.
    fn check_signer(&mut self, service: &Service) {
        match service.signer {
            None => self.complain("the recipient's Lightning server does not know zaps"),
            Some(signer) if signer != self.receipt.pubkey => {
                self.complain("it is not signed by the key that the recipient's Lightning server names");
            }
            Some(_) => {}
        }
        let code = self.request.as_ref().and_then(|request| values(request, "lnurl").next());
        if code.is_some_and(|code| !code.eq_ignore_ascii_case(&lnurl::code(&service.url))) {
            self.complain("the zap request is for another Lightning address");
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// Reads a receipt and checks it, as far as somebody says whom to trust.
pub(crate) fn examine(receipt: &Event, trusted: Option<&Trusted>, whose: Option<&PublicKey>) -> Zap {
    let mut reading = Reading { receipt, request: None, problems: Vec::new() };
    if receipt.kind != Kind::ZapReceipt {
        reading.complain("it is no zap receipt (kind 9735)");
    }
    let recipient = recipient(receipt);
    if recipient.is_none() {
        reading.complain("it does not say for whom it is");
    }
    reading.check_request();
    let amount = reading.check_invoice();
    let mut verdict = Verdict::Valid;
    match trusted {
        Some(Ok(service)) => reading.check_signer(service),
        // What is wrong anyway stays wrong.
        Some(Err(words)) if reading.problems.is_empty() => {
            verdict = Verdict::Unchecked;
            reading.complain(format!("who signs for the recipient is not known: {}", quoted(words)));
        }
        None if reading.problems.is_empty() => verdict = Verdict::Unchecked,
        _ => {}
    }
    if verdict == Verdict::Valid && !reading.problems.is_empty() {
        verdict = Verdict::Invalid;
    }
    let Reading { request, problems, .. } = reading;
    let sender = request.as_ref().map(|request| request.pubkey);
    let direction = whose.map(|whose| match (recipient.as_ref() == Some(whose), sender.as_ref() == Some(whose)) {
        (true, true) => Direction::Own,
        (false, true) => Direction::Sent,
        _ => Direction::Received,
    });
    let comment = request.as_ref().map(|request| request.content.clone()).filter(|text| !text.is_empty());
    Zap {
        id: receipt.id.to_hex(),
        created_at: receipt.created_at.as_secs(),
        recipient: recipient.map(|key| key.to_hex()).unwrap_or_default(),
        sender: sender.map(|key| key.to_hex()),
        amount_sats: amount / 1000,
        comment,
        event_id: values(receipt, "e").next().map(ToOwned::to_owned),
        coordinate: values(receipt, "a").next().map(ToOwned::to_owned),
        direction,
        verdict,
        problems,
    }
}

/// Who gets how much of a zap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Share {
    pub(crate) who: PublicKey,
    /// A relay that has their profile.
    pub(crate) hint: Option<RelayUrl>,
    pub(crate) sats: u64,
}

/// An event could name any number of people, and each costs us a conversation with a server.
const MAX_SHARES: usize = 10;

/// How a zap of an event is divided: by its `zap` tags and their weights, or all to its author.
pub(crate) fn shares(event: &Event, sats: u64) -> Result<Vec<Share>, Failure> {
    let weight = |text: &String| text.parse::<f64>().ok().filter(|weight| weight.is_finite() && *weight > 0.0);
    let mut named = Vec::new();
    for tag in event.tags.iter().filter(|tag| tag.kind() == "zap").map(Tag::as_slice) {
        let Some(who) = tag.get(1).and_then(|key| PublicKey::from_hex(key).ok()).filter(|key| key.xonly().is_ok())
        else {
            continue;
        };
        let hint = tag.get(2).and_then(|relay| RelayUrl::parse(relay).ok());
        named.push((who, hint, tag.get(3)));
    }
    if named.is_empty() {
        return Ok(vec![Share { who: event.pubkey, hint: None, sats }]);
    }
    // Whoever has no weight gets nothing, unless nobody has one.
    let is_weighed = named.iter().any(|(_, _, text)| text.is_some());
    let weights: Vec<f64> =
        named.iter().map(|(_, _, text)| if is_weighed { text.and_then(weight).unwrap_or(0.0) } else { 1.0 }).collect();
    let sum: f64 = weights.iter().sum();
    let mut shares: Vec<Share> = Vec::new();
    for ((who, hint, _), weight) in named.into_iter().zip(weights).filter(|(_, weight)| *weight > 0.0) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "money is whole here, and there is less of it than a float counts"
        )]
        let part = (sats as f64 * weight / sum).floor() as u64;
        shares.push(Share { who, hint, sats: part.min(sats) });
    }
    if shares.is_empty() || shares.len() > MAX_SHARES {
        let words = format!("the event divides zaps between none or more than {MAX_SHARES} people; zap one of them");
        return Err(Failure::invalid(words).at("/target"));
    }
    // What cannot be divided goes to the first.
    let given: u64 = shares.iter().map(|share| share.sats).sum();
    shares[0].sats += sats.saturating_sub(given);
    shares.retain(|share| share.sats > 0);
    Ok(shares)
}

impl Turn<'_> {
    /// The Lightning server that somebody's profile names; `hint` is a relay that may have it.
    pub(crate) async fn service_of(
        &self,
        who: PublicKey,
        hint: Option<&RelayUrl>,
        patience: Duration,
    ) -> Result<Service, Failure> {
        let network = &self.session.network;
        let mut places = network.indexers();
        places.extend(hint.cloned());
        let filter = Filter::new().author(who).kind(Kind::Metadata).limit(1);
        let found = self.fetch(&[filter], Route::Also(&places), patience).await?;
        let profile = found.first().and_then(profile::content);
        let profile =
            profile.ok_or_else(|| Failure::not_found("they have no profile, so nobody knows how to pay them"))?;
        Service::ask(lnurl::address_in(&profile)?, &network.reach).await
    }

    /// The same for several people, a few at a time.
    pub(crate) async fn trusted(&self, people: BTreeSet<PublicKey>, patience: Duration) -> HashMap<PublicKey, Trusted> {
        let ask = |who: PublicKey| async move {
            (who, self.service_of(who, None, patience).await.map_err(|failure| failure.message))
        };
        let asked: Vec<_> = people.into_iter().take(MAX_RECIPIENTS).map(ask).collect();
        futures_util::stream::iter(asked).buffer_unordered(AT_ONCE).collect().await
    }

    /// Finds and checks zaps.
    pub(crate) async fn zaps(
        &self,
        query: &Query,
        filters: impl Fn(PublicKey) -> Vec<Filter>,
    ) -> Result<Zaps, Failure> {
        let who = match &query.pubkey {
            Some(text) => crate::argument::public_key(text, "/pubkey")?,
            None => self.me()?,
        };
        let limit = crate::argument::limit(query.limit, 20)?;
        let patience = patience(query.timeout_secs);
        let filters: Result<Vec<Filter>, Failure> = filters(who)
            .into_iter()
            .map(|filter| crate::argument::window(filter.kind(Kind::ZapReceipt), query.since, query.until, limit))
            .collect();
        let mut receipts = self.fetch(&filters?, Route::Usual, patience).await?;
        receipts.truncate(limit);
        let trusted = match query.validate.unwrap_or(true) {
            true => self.trusted(receipts.iter().filter_map(recipient).collect(), patience).await,
            false => HashMap::new(),
        };
        let examine = |receipt: &Event| {
            let trusted = recipient(receipt).and_then(|recipient| trusted.get(&recipient));
            examine(receipt, trusted, Some(&who))
        };
        let zaps: Vec<Zap> = receipts.iter().map(examine).collect();
        let valid = zaps.iter().filter(|zap| zap.verdict == Verdict::Valid);
        let total = valid.map(|zap| zap.amount_sats).fold(0, u64::saturating_add);
        Ok(Zaps { pubkey: who.to_hex(), count: zaps.len() as u64, zaps, total_sats: total })
    }
}

#[cfg(test)]
mod tests {
    use super::shares;
    use nostr::prelude::{Keys, Kind, Tag, Timestamp, UnsignedEvent};
    use rialto_relay::sign::sign;

    /// Divides 100 satoshis by these weights; `-` is a tag without one.
    fn check(weights: &[&str], expected: &[u64]) {
        let keys = Keys::generate();
        let tags = weights.iter().map(|weight| {
            let key = Keys::generate().public_key().to_hex();
            let whole = ["zap", &key, "wss://relay.example", weight];
            Tag::parse(whole.into_iter().take(if *weight == "-" { 3 } else { 4 })).unwrap()
        });
        let draft = UnsignedEvent::new(keys.public_key(), Timestamp::from(1), Kind::TextNote, tags, "");
        let found = shares(&sign(&keys, draft), 100).unwrap_or_default();
        let found: Vec<u64> = found.iter().map(|share| share.sats).collect();
        assert_eq!(found, expected, "{weights:?}");
    }

    #[test]
    fn zaps_are_divided_by_weight() {
        check(&[], &[100]);
        check(&["1", "1", "2"], &[25, 25, 50]);
        check(&["-", "-", "-"], &[34, 33, 33]);
        check(&["1", "-", "3"], &[25, 75]);
        check(&["0.5", "0.5"], &[50, 50]);
        check(&["1", "1000000"], &[1, 99]);
        check(&["x", "-1", "inf", "NaN"], &[]);
        check(&["1"; 11], &[]);
    }
}
