//! The life of one relay: connect, subscribe, send, read; and again.

use crate::backoff::Backoff;
use crate::frame::{self, Said};
use crate::gate::{self, Passed};
use crate::information::Limits;
use crate::outbox::Demand;
use crate::pool::{Arrival, Relay, Shared, lock};
use crate::sign::sign;
use crate::socket::{Duplex, Message};
use crate::status::{State, Status};
use crate::verdict::{Reaction, react};
use futures_util::{FutureExt, SinkExt, StreamExt};
use nostr::nips::nip42::Nip42Tag;
use nostr::prelude::{EventId, Kind, Tag, Timestamp, UnsignedEvent};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Bytes;

/// The one subscription of each connection. A relay replaces it when it is sent again.
const SUBSCRIPTION: &str = "rialto";

const DIAL_PATIENCE: Duration = Duration::from_secs(10);
/// A relay that takes longer to read what we send is as good as gone.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// A quiet connection is tried with a ping; without any answer it is taken for dead.
const PING_AFTER: Duration = Duration::from_secs(30);
const DEAD_AFTER: Duration = Duration::from_secs(60);
/// How long what is to be sent waits for the relay to take our word for who we are.
const AUTH_PATIENCE: Duration = Duration::from_secs(3);
/// How long somebody else may take to sign it. The relay is not listened to meanwhile.
const SIGN_PATIENCE: Duration = Duration::from_secs(20);
/// A refused subscription is tried again after this.
const RESUBSCRIBE: Duration = Duration::from_secs(10);
/// A connection that lasted this long was a good one: the next try comes quickly.
const GOOD: Duration = Duration::from_secs(5);
/// Frames that are read before what gathered to be sent is looked at.
const BURST: usize = 64;

/// Stays connected to one relay until the pool stops.
pub(crate) async fn live(relay: &Arc<Relay>, shared: &Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut backoff = Backoff::seeded(shared.options.seed, &relay.name);
    let mut heard = shared.started;
    // It has passed the gate, so no other copy of it would be taken for new: it must not be lost with its connection.
    let mut held = None;
    let information = tokio::spawn(inform(relay.clone(), shared.clone()));
    loop {
        let work = async {
            let dialled = tokio::time::timeout(DIAL_PATIENCE, shared.options.dial.dial(&relay.url)).await;
            match dialled {
                Ok(Ok(socket)) => {
                    let began = Instant::now();
                    let connection = Connection { held: held.take(), ..Connection::new(relay, shared, socket, heard) };
                    let why;
                    (why, heard, held) = Box::pin(connection.run()).await;
                    if began.elapsed() > GOOD {
                        backoff.reset();
                    } else if matches!(lock(&relay.status).state, State::Subscribed) {
                        backoff.ease();
                    }
                    why
                }
                Ok(Err(error)) => innermost(&error),
                Err(_) => "no answer".to_owned(),
            }
        };
        let reason = tokio::select! {
            reason = work => reason,
            () = ended(&mut stop, relay) => break,
        };
        lock(&relay.outbox).disconnected();
        // Whoever asks does not wait for a relay that is not there.
        lock(&relay.queries).clear();
        lock(&relay.unwanted).clear();
        let wait = backoff.next();
        set(relay, shared, |status| status.state = State::Down { reason, tries: backoff.tries() });
        let tick = async {
            // What waits may run out of time meanwhile.
            let end = Instant::now() + wait;
            loop {
                lock(&relay.outbox).tick(Instant::now());
                tokio::select! {
                    permit = shared.inbox.reserve(), if held.is_some() => {
                        // Without a receiver there is nobody to miss it.
                        if let (Ok(permit), Some(arrival)) = (permit, held.take()) {
                            permit.send(arrival);
                        }
                    }
                    () = relay.wake.notified() => lock(&relay.queries).clear(),
                    () = tokio::time::sleep_until(end) => break,
                }
            }
        };
        tokio::select! {
            () = tick => {}
            () = ended(&mut stop, relay) => break,
        }
    }
    information.abort();
    lock(&relay.outbox).close();
    lock(&relay.queries).clear();
}

/// Waits until the pool stops or gives up this relay.
async fn ended(stop: &mut watch::Receiver<bool>, relay: &Relay) {
    tokio::select! {
        _ = stop.changed() => {}
        () = relay.leave.notified() => {}
    }
}

fn set(relay: &Relay, shared: &Shared, change: impl FnOnce(&mut Status)) {
    change(&mut lock(&relay.status));
    shared.changed();
}

/// An error's first cause says it best: "connection refused".
fn innermost(error: &std::io::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Asks the relay for its limits, now and then until it tells.
async fn inform(relay: Arc<Relay>, shared: Arc<Shared>) {
    for wait in [0, 5, 60, 600] {
        tokio::time::sleep(Duration::from_secs(wait)).await;
        if let Ok(limits) = Limits::ask_through(&*shared.options.dial, &relay.url).await {
            set(&relay, &shared, |status| status.limits = Some(limits));
            return;
        }
    }
}

/// Why a connection ended.
type Ended = String;

struct Connection<'a> {
    relay: &'a Relay,
    shared: &'a Shared,
    socket: Box<dyn Duplex>,
    /// Everything up to here has been heard: grows only while the relay has our subscription and has sent what it stored.
    last: Timestamp,
    heard: Instant,
    pinged: bool,
    /// An arrival that found the inbox full; nothing is read before it is taken.
    held: Option<Arrival>,
    /// The version of the subscription that the relay has.
    version: Option<u64>,
    resubscribe: Option<Instant>,
    has_stored: bool,
    challenge: Option<String>,
    /// Our answer to the challenge, until the relay has taken it.
    authentication: Option<(EventId, Instant)>,
    sent: HashMap<EventId, Instant>,
}

impl<'a> Connection<'a> {
    fn new(relay: &'a Relay, shared: &'a Shared, socket: Box<dyn Duplex>, before: Timestamp) -> Self {
        set(relay, shared, |status| {
            status.state = State::Connected;
            status.counts.connections += 1;
        });
        Self {
            relay,
            shared,
            socket,
            last: before,
            heard: Instant::now(),
            pinged: false,
            held: None,
            version: None,
            resubscribe: None,
            has_stored: false,
            challenge: None,
            authentication: None,
            sent: HashMap::new(),
        }
    }

    /// Runs until the connection ends; tells why, up to when everything was heard, and what nobody has taken yet.
    async fn run(mut self) -> (Ended, Timestamp, Option<Arrival>) {
        let why = loop {
            if let Err(why) = self.step().await {
                break why;
            }
        };
        (why, self.last, self.held)
    }

    async fn step(&mut self) -> Result<(), Ended> {
        self.send_due().await?;
        let due = lock(&self.relay.outbox).due();
        let quiet = self.heard + if self.pinged { DEAD_AFTER } else { PING_AFTER };
        let authenticated = self.authentication.map(|(_, end)| end);
        let next = [due, self.resubscribe, authenticated, Some(quiet)].into_iter().flatten().min().unwrap_or(quiet);
        tokio::select! {
            biased;
            permit = self.shared.inbox.reserve(), if self.held.is_some() => {
                let permit = permit.map_err(|_| "nobody listens any more".to_owned())?;
                if let Some(arrival) = self.held.take() {
                    permit.send(arrival);
                }
            }
            message = self.socket.next(), if self.held.is_none() => self.take(message).await?,
            () = self.relay.wake.notified() => {}
            () = tokio::time::sleep_until(next) => self.tick().await?,
        }
        Ok(())
    }

    async fn tick(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        lock(&self.relay.outbox).tick(now);
        if self.resubscribe.is_some_and(|due| due <= now) {
            self.resubscribe = None;
            self.version = None;
        }
        // Some relays do not answer it.
        self.authentication.take_if(|(_, end)| *end <= now);
        // As long as nobody takes what it brought, we do not listen to it: its silence is our doing.
        if self.held.is_some() {
            self.heard = now;
        }
        if now >= self.heard + DEAD_AFTER {
            return Err("it does not answer any more".to_owned());
        }
        if now >= self.heard + PING_AFTER && !self.pinged {
            self.pinged = true;
            self.send(Message::Ping(Bytes::new())).await?;
            self.flush().await?;
        }
        Ok(())
    }

    /// Takes one message and those that have come with it.
    async fn take(&mut self, first: Option<Result<Message, Error>>) -> Result<(), Ended> {
        let mut next = Some(first);
        let mut burst = 0;
        while let Some(message) = next {
            let message = message.ok_or("the relay closed the connection")?.map_err(|error| error.to_string())?;
            self.heard = Instant::now();
            self.pinged = false;
            if self.has_stored {
                self.last = self.shared.options.clock.now();
            }
            match message {
                Message::Text(text) => self.read(&text).await?,
                Message::Close(_) => return Err("the relay closed the connection".to_owned()),
                _ => {}
            }
            burst += 1;
            next = if self.held.is_none() && burst < BURST { self.socket.next().now_or_never() } else { None };
        }
        Ok(())
    }

    async fn read(&mut self, text: &str) -> Result<(), Ended> {
        match frame::read(text) {
            Some(Said::Event { subscription, text }) if subscription == SUBSCRIPTION => self.arrived(text),
            Some(Said::Event { subscription, text }) => self.found(&subscription, text).await?,
            Some(Said::Verdict { id, accepted, message }) => self.judged(&id, accepted, &message).await?,
            // Said twice, it means nothing.
            Some(Said::EndOfStored { subscription }) if subscription == SUBSCRIPTION && self.has_stored => {}
            Some(Said::EndOfStored { subscription }) if subscription == SUBSCRIPTION => {
                self.has_stored = true;
                self.last = self.shared.options.clock.now();
                set(self.relay, self.shared, |status| status.state = State::Subscribed);
                self.deliver(Arrival::Subscribed { relay: self.relay.name.clone() });
            }
            Some(Said::EndOfStored { subscription }) => {
                let query = lock(&self.relay.queries).remove(&subscription);
                if let Some(query) = query {
                    query.answered(&self.relay.name);
                    self.send(Message::text(frame::unsubscribe(&subscription))).await?;
                    self.flush().await?;
                }
            }
            Some(Said::Closed { subscription, message }) => self.closed(&subscription, &message).await?,
            Some(Said::Notice(words)) => self.complain(words),
            Some(Said::Challenge(challenge)) => {
                self.challenge = Some(challenge);
                self.authenticate().await?;
            }
            None => {}
        }
        Ok(())
    }

    fn complain(&self, words: String) {
        lock(&self.relay.status).complaint = Some(words);
    }

    fn arrived(&mut self, text: &str) {
        let passed = self.shared.gate.pass(text);
        let relay = self.relay.name.clone();
        let mut status = lock(&self.relay.status);
        let counts = &mut status.counts;
        let arrival = match passed {
            Ok(Passed::New(event)) => {
                counts.events += 1;
                Arrival::Event { event, relay, stored: !self.has_stored }
            }
            Ok(Passed::Repeat(id)) => {
                counts.repeats += 1;
                // What the relay had stored is no news, nor is what we said ourselves.
                if !self.has_stored || self.shared.is_unwanted(&id) {
                    return;
                }
                Arrival::Repeat { id, relay }
            }
            Err(forged) => {
                counts.forged += 1;
                status.complaint = Some(format!("it sent an event that did not pass: {forged}"));
                return;
            }
        };
        drop(status);
        self.deliver(arrival);
    }

    fn deliver(&mut self, arrival: Arrival) {
        if let Err(error) = self.shared.inbox.try_send(arrival) {
            self.held = Some(error.into_inner());
        }
    }

    async fn found(&mut self, subscription: &str, text: &str) -> Result<(), Ended> {
        let is_open = lock(&self.relay.queries).contains_key(subscription);
        let wants_more = is_open
            && match gate::check(text) {
                Ok(event) => {
                    let mut queries = lock(&self.relay.queries);
                    queries.get_mut(subscription).is_some_and(|query| query.take(event, text.len()))
                }
                Err(_) => {
                    lock(&self.relay.status).counts.forged += 1;
                    true
                }
            };
        // What was never asked for, or was told to stop already, is not worth an answer each time.
        if is_open && !wants_more {
            lock(&self.relay.queries).remove(subscription);
            self.send(Message::text(frame::unsubscribe(subscription))).await?;
            self.flush().await?;
        }
        Ok(())
    }

    async fn judged(&mut self, id: &EventId, accepted: bool, message: &str) -> Result<(), Ended> {
        if self.authentication.take_if(|(ours, _)| ours == id).is_some() {
            if accepted {
                // Whatever was refused before is worth another try.
                if self.resubscribe.take().is_some() {
                    self.version = None;
                }
            } else {
                self.complain(message.to_owned());
            }
            return Ok(());
        }
        if let Some(sent) = self.sent.remove(id) {
            lock(&self.relay.status).latency = Some(sent.elapsed());
        }
        let reaction = react(accepted, message);
        if !matches!(reaction, Reaction::Done) {
            self.complain(message.to_owned());
        }
        let demand = lock(&self.relay.outbox).answered(id, reaction, message, Instant::now());
        if demand == Demand::Authentication {
            self.authenticate().await?;
        }
        Ok(())
    }

    async fn closed(&mut self, subscription: &str, message: &str) -> Result<(), Ended> {
        self.complain(message.to_owned());
        let wants_authentication = react(false, message) == Reaction::Authenticate;
        if subscription == SUBSCRIPTION {
            self.has_stored = false;
            self.resubscribe = Some(Instant::now() + RESUBSCRIBE);
        } else {
            let mut queries = lock(&self.relay.queries);
            // Asked once more when the relay knows who asks.
            match queries.get_mut(subscription) {
                Some(query) if wants_authentication && !query.is_repeated => {
                    (query.is_sent, query.is_repeated) = (false, true);
                }
                _ => drop(queries.remove(subscription)),
            }
        }
        if wants_authentication { self.authenticate().await } else { Ok(()) }
    }

    /// Says who we are, to the relay that we dialled and no other.
    async fn authenticate(&mut self) -> Result<(), Ended> {
        let Some(challenge) = self.challenge.take() else { return Ok(()) };
        let tags: [Tag; 2] = [Nip42Tag::Challenge(challenge).into(), Nip42Tag::Relay(self.relay.url.clone()).into()];
        let now = self.shared.options.clock.now();
        let draft = |author| UnsignedEvent::new(author, now, Kind::Authentication, tags, "");
        let event = match (&self.shared.options.keys, &self.shared.options.signer) {
            (Some(keys), _) => sign(keys, draft(keys.public_key())),
            (None, Some(signer)) => {
                let signing = signer.sign(draft(signer.public_key()));
                match tokio::time::timeout(SIGN_PATIENCE, signing).await {
                    Ok(Some(event)) => event,
                    _ => return Ok(()),
                }
            }
            (None, None) => return Ok(()),
        };
        self.authentication = Some((event.id, Instant::now() + AUTH_PATIENCE));
        self.send(Message::text(frame::authenticate(&event))).await?;
        self.flush().await
    }

    /// Sends the subscription if it has changed, new queries, and every event that is due.
    async fn send_due(&mut self) -> Result<(), Ended> {
        let mut has_sent = false;
        let version = self.relay.version.load(Ordering::Relaxed);
        if self.version != Some(version) && self.resubscribe.is_none() {
            self.version = Some(version);
            self.has_stored = false;
            // What has been heard on this connection is not asked for again. A clock that was put back would have us ask
            // for the future only.
            let filters = self.shared.filters(self.last.min(self.shared.options.clock.now()));
            if !filters.is_empty() {
                self.send(Message::text(frame::subscribe(SUBSCRIPTION, &filters))).await?;
                has_sent = true;
            }
        }
        let mut asked: Vec<String> =
            lock(&self.relay.unwanted).drain(..).map(|name| frame::unsubscribe(&name)).collect();
        if self.authentication.is_none() {
            asked.extend(lock(&self.relay.queries).iter_mut().filter_map(|(name, query)| {
                let is_new = !std::mem::replace(&mut query.is_sent, true);
                is_new.then(|| frame::subscribe(name, &query.filters))
            }));
        }
        for text in asked {
            self.send(Message::text(text)).await?;
            has_sent = true;
        }
        // Until the relay has heard who we are it would refuse the same again.
        if self.authentication.is_none() {
            let limits = lock(&self.relay.status).limits.unwrap_or_default();
            let now = Instant::now();
            for sent in 0.. {
                // The relay's answers are read in between: it may not read on before.
                if sent == BURST {
                    self.relay.wake.notify_one();
                    break;
                }
                let publication = lock(&self.relay.outbox).next(now, &limits);
                let Some(publication) = publication else { break };
                if self.sent.len() < BURST {
                    self.sent.insert(publication.id, now);
                }
                self.send(Message::Text(publication.frame.clone())).await?;
                has_sent = true;
            }
        }
        if has_sent { self.flush().await } else { Ok(()) }
    }

    async fn send(&mut self, message: Message) -> Result<(), Ended> {
        within(self.socket.feed(message)).await
    }

    async fn flush(&mut self) -> Result<(), Ended> {
        within(self.socket.flush()).await
    }
}

type Error = tokio_tungstenite::tungstenite::Error;

async fn within(work: impl Future<Output = Result<(), Error>>) -> Result<(), Ended> {
    match tokio::time::timeout(WRITE_PATIENCE, work).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it does not read what we send".to_owned()),
    }
}
