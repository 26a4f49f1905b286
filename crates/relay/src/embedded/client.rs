//! What one client is allowed to do, has open and has proved; and what its messages lead to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use tokio::time::Instant;

use super::auth::Challenge;
use super::engine::{Engine, Verdict, now};
use super::event::{AUTHENTICATION, Bytes32, Event, Unverified, to_hex};
use super::filter::Filter;
use super::live::{Subscription, Ticket};
use super::message::{self, Request};
use super::outbox::Outbox;

/// How many keys one connection may prove to hold.
const MAX_IDENTITIES: usize = 64;

/// What a message leads to: stored events, and then a few words.
#[derive(Debug, Default)]
pub(super) struct Reply {
    opening: Arc<str>,
    events: Vec<Arc<Event>>,
    pub(super) last_words: Vec<String>,
}

impl Reply {
    fn words(text: String) -> Self {
        Self { last_words: vec![text], ..Self::default() }
    }

    /// Stored events with what each is sent after. They are turned into messages one by one, when the client takes
    /// them.
    pub(super) fn stored(&self) -> impl Iterator<Item = (&str, &Event)> {
        self.events.iter().map(|event| (&*self.opening, &**event))
    }
}

/// One side of a conversation, without the socket.
#[derive(Debug)]
pub(super) struct Client {
    engine: Arc<Engine>,
    outbox: Arc<Outbox>,
    challenge: Challenge,
    identities: HashSet<Bytes32>,
    subscriptions: HashMap<String, Open>,
    allowance: Option<Allowance>,
}

#[derive(Debug)]
struct Open {
    ticket: Ticket,
    opening: Arc<str>,
    size: usize,
}

impl Client {
    pub(super) fn new(engine: Arc<Engine>, outbox: Arc<Outbox>, challenge: Challenge) -> Self {
        let allowance = engine.options.limits.events_per_minute.map(Allowance::new);
        Self { engine, outbox, challenge, identities: HashSet::new(), subscriptions: HashMap::new(), allowance }
    }

    pub(super) fn greeting(&self) -> String {
        message::challenge(&self.challenge.text)
    }

    pub(super) async fn receive(&mut self, text: &str) -> Reply {
        match Request::parse(text) {
            Ok(Request::Event(event)) => Reply::words(self.publish(event)),
            Ok(Request::Authenticate(event)) => Reply::words(self.authenticate(event)),
            Ok(Request::Subscribe { name, filters }) => match self.subscribe(&name, &filters).await {
                Ok(reply) => reply,
                Err(why) => Reply::words(message::closed(&name, &why)),
            },
            Ok(Request::Count { name, filters }) => match self.count(&filters).await {
                Ok(count) => Reply::words(message::count(&name, count)),
                Err(why) => Reply::words(message::closed(&name, &why)),
            },
            Ok(Request::Close { name }) => {
                self.close(&name);
                Reply::default()
            }
            Err(why) => Reply::words(message::notice(&why)),
        }
    }

    /// The answer to a message that is too large to be looked at, but small enough to name its event.
    pub(super) fn refuse_large(&self, text: &str) -> String {
        let why = self.too_large_reason();
        match Request::parse(text) {
            Ok(Request::Event(event)) => refuse_by_id(event, &why),
            Ok(Request::Subscribe { name, .. } | Request::Count { name, .. }) => message::closed(&name, &why),
            _ => message::notice(&why),
        }
    }

    pub(super) fn too_large(&self) -> String {
        message::notice(&self.too_large_reason())
    }

    fn too_large_reason(&self) -> String {
        format!("invalid: the message is larger than {} bytes", self.engine.options.limits.max_message_bytes)
    }

    fn publish(&mut self, text: &str) -> String {
        let limit = self.engine.options.limits.max_event_bytes;
        if text.len() > limit {
            return refuse_by_id(text, &format!("invalid: the event is larger than {limit} bytes"));
        }
        let event = match Unverified::parse(text) {
            Ok(event) => event,
            Err(why) => return refuse_by_id(text, &format!("invalid: the event cannot be read: {why}")),
        };
        let id = to_hex(&event.id());
        let verdict = self.judge(event).unwrap_or_else(Verdict::refused);
        message::ok(&id, verdict.accepted, &verdict.why)
    }

    /// Everything that can be said about an event without the signature comes first, because it costs less.
    fn judge(&mut self, event: Unverified<'_>) -> Result<Verdict, String> {
        let limits = &self.engine.options.limits;
        if self.engine.options.require_auth && self.identities.is_empty() {
            return Err("auth-required: prove who you are before publishing".to_owned());
        }
        if !self.allowance.as_mut().is_none_or(Allowance::take) {
            return Err("rate-limited: too many events in a minute".to_owned());
        }
        if event.kind() == AUTHENTICATION {
            return Err("invalid: an authentication event is sent as AUTH".to_owned());
        }
        if event.tag_count() > limits.max_tags {
            return Err(format!("invalid: more than {} tags", limits.max_tags));
        }
        if event.created_at() > now().saturating_add(limits.created_at_future_secs) {
            return Err("invalid: created_at is too far in the future".to_owned());
        }
        if !event.has_difficulty(limits.min_pow_difficulty) {
            return Err(format!("pow: the id needs {} leading zero bits", limits.min_pow_difficulty));
        }
        if let Some(verdict) = self.engine.find_duplicate(&event) {
            return Ok(verdict);
        }
        let event = event.verify().map_err(|why| format!("invalid: {why}"))?;
        if event.is_expired(now()) {
            return Err("invalid: the event has expired".to_owned());
        }
        if event.is_protected && !self.identities.contains(&event.author) {
            let why = "only its author may publish a protected event";
            let prefix = if self.identities.is_empty() { "auth-required" } else { "restricted" };
            return Err(format!("{prefix}: {why}"));
        }
        Ok(self.engine.publish(event))
    }

    fn authenticate(&mut self, text: &str) -> String {
        let event = match Unverified::parse(text) {
            Ok(event) => event,
            Err(why) => return refuse_by_id(text, &format!("invalid: the event cannot be read: {why}")),
        };
        let id = to_hex(&event.id());
        match self.challenge.check(event, now()) {
            Ok(_) if self.identities.len() >= MAX_IDENTITIES => {
                message::ok(&id, false, "restricted: too many keys on one connection")
            }
            Ok(author) => {
                self.identities.insert(author);
                message::ok(&id, true, "")
            }
            Err(why) => message::ok(&id, false, why),
        }
    }

    async fn subscribe(&mut self, name: &str, filters: &[&str]) -> Result<Reply, String> {
        // Whatever becomes of the new one, the old one under this name is over.
        let old = self.subscriptions.remove(name);
        let filters = match self.acceptable(filters) {
            Ok(filters) => filters,
            Err(words) => {
                self.end(old, |_| false);
                return Err(words);
            }
        };
        let limits = &self.engine.options.limits;
        let max_limit = limits.max_limit;
        let size = filters.iter().map(Filter::size).sum();
        let opening: Arc<str> = message::event_opening(name).into();
        let subscription = Arc::new(Subscription { opening: opening.clone(), outbox: self.outbox.clone(), filters });
        let (ticket, as_of) = self.engine.open(subscription.clone());
        self.subscriptions.insert(name.to_owned(), Open { ticket, opening: opening.clone(), size });
        // What is not kept has to come now or never; what is kept comes with everything else that is.
        let is_wanted =
            |event: &Event| !event.storage().is_stored() && subscription.filters.iter().any(|one| one.matches(event));
        self.end(old, is_wanted);
        let events = self.engine.query(&subscription.filters, as_of, max_limit).await;
        Ok(Reply { opening, events, last_words: vec![message::end_of_stored(name)] })
    }

    /// NIP-45 counts what is there, not what one query would return.
    async fn count(&self, filters: &[&str]) -> Result<usize, String> {
        let mut filters = self.parse_filters(filters)?;
        for filter in &mut filters {
            filter.limit = None;
        }
        Ok(self.engine.query(&filters, self.engine.serial(), usize::MAX).await.len())
    }

    fn parse_filters(&self, filters: &[&str]) -> Result<Vec<Filter>, String> {
        let limits = &self.engine.options.limits;
        if self.engine.options.require_auth && self.identities.is_empty() {
            return Err("auth-required: prove who you are before reading".to_owned());
        }
        if filters.len() > limits.max_filters {
            return Err(format!("invalid: more than {} filters", limits.max_filters));
        }
        let filters: Vec<Filter> = filters.iter().map(|text| Filter::parse(text)).collect::<Result<_, _>>()?;
        let held: usize = self.subscriptions.values().map(|open| open.size).sum();
        if held + filters.iter().map(Filter::size).sum::<usize>() > limits.max_filter_values {
            return Err(format!("restricted: more than {} values in all filters", limits.max_filter_values));
        }
        Ok(filters)
    }

    fn close(&mut self, name: &str) {
        let open = self.subscriptions.remove(name);
        self.end(open, |_| false);
    }

    /// Ends a subscription; of what waits for it, only some is still sent.
    fn end(&self, open: Option<Open>, is_wanted: impl Fn(&Event) -> bool) {
        if let Some(open) = open {
            self.engine.close(open.ticket);
            self.outbox.forget(&open.opening, is_wanted);
        }
    }

    /// The filters of a subscription that may be opened.
    fn acceptable(&self, filters: &[&str]) -> Result<Vec<Filter>, String> {
        let filters = self.parse_filters(filters)?;
        let limit = self.engine.options.limits.max_subscriptions;
        if self.subscriptions.len() >= limit {
            return Err(format!("restricted: more than {limit} subscriptions"));
        }
        Ok(filters)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        for open in self.subscriptions.values() {
            self.engine.close(open.ticket);
        }
    }
}

/// Refuses an event that is not read as a whole; without an id all we can send is a NOTICE.
fn refuse_by_id(text: &str, why: &str) -> String {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    match serde_json::from_str::<Named>(text) {
        Ok(named) if named.id.len() == 64 => message::ok(&named.id, false, why),
        _ => message::notice(why),
    }
}

/// A bucket that fills with the rate at which events are allowed, and holds a minute's worth.
#[derive(Debug)]
struct Allowance {
    per_minute: f64,
    left: f64,
    counted: Instant,
}

impl Allowance {
    fn new(per_minute: u32) -> Self {
        let per_minute = f64::from(per_minute);
        Self { per_minute, left: per_minute, counted: Instant::now() }
    }

    fn take(&mut self) -> bool {
        let now = Instant::now();
        let earned = (now - self.counted).as_secs_f64() / 60.0 * self.per_minute;
        self.counted = now;
        self.left = (self.left + earned).min(self.per_minute);
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}
