//! What is to be sent to one relay, what was sent and is not acknowledged yet, and what is to be sent again later.
//!
//! Bounded: when a relay is away for long, the oldest events give up their place, and their publications say so.

use crate::backoff::Backoff;
use crate::information::Limits;
use crate::publication::Publication;
use crate::verdict::{Reaction, SHUNNED, Verdict};
use nostr::prelude::EventId;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How many events may wait for one relay, and how many bytes.
const MAX_WAITING: usize = 8192;
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// How long a relay may take to acknowledge.
const SILENCE: Duration = Duration::from_secs(10);

/// After "slow down", and between tries: this long, doubled each time, up to a minute.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A relay that refuses us this often in a row does not mean the events.
const REBUFFS: u32 = 3;

#[derive(Debug)]
struct Entry {
    publication: Arc<Publication>,
    /// The same event, published again before the relay has answered: it gets the same answer.
    others: Vec<Arc<Publication>>,
    tries: u32,
    authenticated: bool,
}

/// The events for one relay.
#[derive(Debug)]
pub(crate) struct Outbox {
    url: Arc<str>,
    ready: VecDeque<Entry>,
    sent: HashMap<EventId, Entry>,
    /// In the order of sending; entries that were answered meanwhile are skipped.
    silent: VecDeque<(EventId, Instant)>,
    later: Vec<(Instant, Entry)>,
    bytes: usize,
    /// Nothing is sent before.
    pause: Option<Instant>,
    pauses: u32,
    /// How many of those that wait first were refused since the pause began: they keep their order.
    returned: usize,
    /// Events are refused at once before, with these words.
    shunned: Option<(Instant, String)>,
    /// Times in a row that the relay said it does not want us.
    rebuffs: u32,
    is_closed: bool,
    backoff: Backoff,
}

impl Outbox {
    pub(crate) fn new(url: Arc<str>, backoff: Backoff) -> Self {
        Self {
            url,
            ready: VecDeque::new(),
            sent: HashMap::new(),
            silent: VecDeque::new(),
            later: Vec::new(),
            bytes: 0,
            pause: None,
            pauses: 0,
            returned: 0,
            shunned: None,
            rebuffs: 0,
            is_closed: false,
            backoff,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ready.len() + self.sent.len() + self.later.len()
    }

    pub(crate) fn push(&mut self, publication: Arc<Publication>, now: Instant) {
        if self.is_closed {
            return publication.settle(&self.url, Verdict::Stopped);
        }
        if let Some((_, words)) = self.shunned.as_ref().filter(|(until, _)| *until > now) {
            return publication.settle(&self.url, Verdict::Refused(words.clone()));
        }
        self.bytes += publication.frame.len();
        self.ready.push_back(Entry { publication, others: Vec::new(), tries: 0, authenticated: false });
        while self.len() > MAX_WAITING || (self.bytes > MAX_BYTES && self.len() > 1) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let oldest_sent = self.silent.pop_front().and_then(|(id, _)| self.sent.remove(&id));
        let oldest_later = if self.later.is_empty() { None } else { Some(0) };
        let oldest = oldest_sent
            .or_else(|| oldest_later.map(|index| self.later.swap_remove(index).1))
            .or_else(|| self.ready.pop_front());
        if let Some(entry) = oldest {
            self.end(&entry, Verdict::GaveUp("too many events wait for this relay".into()));
        }
    }

    fn end(&mut self, entry: &Entry, verdict: Verdict) {
        for other in &entry.others {
            self.bytes = self.bytes.saturating_sub(other.frame.len());
            other.settle(&self.url, verdict.clone());
        }
        self.bytes = self.bytes.saturating_sub(entry.publication.frame.len());
        entry.publication.settle(&self.url, verdict);
    }

    /// The next event to send; it counts as sent.
    pub(crate) fn next(&mut self, now: Instant, limits: &Limits) -> Option<Arc<Publication>> {
        if self.pause.is_some_and(|until| until > now) {
            return None;
        }
        self.pause = None;
        loop {
            let mut entry = self.ready.pop_front()?;
            if entry.publication.end <= now {
                self.end(&entry, Verdict::GaveUp("no time left".into()));
                continue;
            }
            if let Some(limit) = entry.publication.excess(limits) {
                self.end(&entry, Verdict::TooLarge { limit });
                continue;
            }
            entry.tries += 1;
            let publication = entry.publication.clone();
            publication.set_sent();
            self.silent.push_back((publication.id, publication.end.min(now + SILENCE)));
            if let Some(previous) = self.sent.remove(&publication.id) {
                entry.others.extend(previous.others);
                entry.others.push(previous.publication);
            }
            self.sent.insert(publication.id, entry);
            return Some(publication);
        }
    }

    /// A relay's answer. Says whether it wants to know who we are.
    pub(crate) fn answered(&mut self, id: &EventId, reaction: Reaction, message: &str, now: Instant) -> Demand {
        let Some(mut entry) = self.sent.remove(id) else { return Demand::Nothing };
        while self.silent.front().is_some_and(|(id, _)| !self.sent.contains_key(id)) {
            self.silent.pop_front();
        }
        match reaction {
            Reaction::Done => {
                self.pauses = 0;
                self.rebuffs = 0;
                self.end(&entry, Verdict::Accepted);
            }
            Reaction::Never => self.end(&entry, Verdict::Refused(message.to_owned())),
            Reaction::Work(bits) => self.end(&entry, Verdict::Work { bits, message: message.to_owned() }),
            Reaction::Shun => {
                self.rebuffs += 1;
                // One event may have been the matter; who writes what stands in it must not cut off everybody else.
                if self.rebuffs >= REBUFFS {
                    self.rebuffs = 0;
                    self.shunned = Some((now + SHUNNED, message.to_owned()));
                }
                self.end(&entry, Verdict::Refused(message.to_owned()));
            }
            Reaction::SlowDown => {
                // All that was on its way is refused as well: that is still one refusal.
                if self.pause.is_none() {
                    let wait = self.backoff.jittered((PAUSE * 2u32.pow(self.pauses.min(6))).min(MAX_PAUSE));
                    self.pauses += 1;
                    self.pause = Some(now + wait);
                    self.returned = 0;
                }
                let place = self.returned.min(self.ready.len());
                self.ready.insert(place, entry);
                self.returned += 1;
            }
            Reaction::Again => self.again(entry, now),
            Reaction::Authenticate if entry.authenticated => {
                self.end(&entry, Verdict::Refused(message.to_owned()));
            }
            Reaction::Authenticate => {
                entry.authenticated = true;
                self.ready.push_back(entry);
                return Demand::Authentication;
            }
        }
        Demand::Nothing
    }

    fn again(&mut self, entry: Entry, now: Instant) {
        let wait = self.backoff.jittered((PAUSE * 2u32.pow(entry.tries.min(6))).min(MAX_PAUSE));
        self.later.push((now + wait, entry));
    }

    /// Moves what has become due; gives up what has run out of time.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.pause.take_if(|until| *until <= now);
        while let Some((id, deadline)) = self.silent.front().copied() {
            if !self.sent.contains_key(&id) {
                self.silent.pop_front();
                continue;
            }
            if deadline > now {
                break;
            }
            self.silent.pop_front();
            if let Some(entry) = self.sent.remove(&id) {
                self.again(entry, now);
            }
        }
        for index in (0..self.later.len()).rev() {
            if self.later[index].1.publication.end <= now {
                let (_, entry) = self.later.swap_remove(index);
                self.end(&entry, Verdict::GaveUp("the relay does not answer".into()));
            } else if self.later[index].0 <= now {
                let (_, entry) = self.later.swap_remove(index);
                self.ready.push_back(entry);
            }
        }
        while self.ready.front().is_some_and(|entry| entry.publication.end <= now) {
            let Some(entry) = self.ready.pop_front() else { break };
            self.end(&entry, Verdict::GaveUp("the relay was not there".into()));
        }
    }

    /// When to call [`tick`](Self::tick) or [`next`](Self::next) again, if nothing else happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        let silent = self.silent.front().map(|(_, deadline)| *deadline);
        let later = self.later.iter().map(|(due, _)| *due).min();
        let pause = self.pause.filter(|_| !self.ready.is_empty());
        [silent, later, pause].into_iter().flatten().min()
    }

    /// Nothing is sent any more, and whoever waits for an answer is told.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.disconnected();
        let later = std::mem::take(&mut self.later).into_iter().map(|(_, entry)| entry);
        for entry in std::mem::take(&mut self.ready).into_iter().chain(later) {
            self.end(&entry, Verdict::Stopped);
        }
    }

    /// The connection is gone: what was not acknowledged is sent again on the next one.
    pub(crate) fn disconnected(&mut self) {
        let silent = std::mem::take(&mut self.silent);
        for (id, _) in silent.into_iter().rev() {
            if let Some(mut entry) = self.sent.remove(&id) {
                entry.authenticated = false;
                self.ready.push_front(entry);
            }
        }
    }
}

/// What a relay wants of us before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    Nothing,
    Authentication,
}

#[cfg(test)]
mod tests {
    use super::{Demand, MAX_WAITING, Outbox};
    use crate::backoff::Backoff;
    use crate::information::Limits;
    use crate::publication::Publication;
    use crate::sign::sign;
    use crate::verdict::{Verdict, react};
    use nostr::prelude::{Keys, Kind, Timestamp, UnsignedEvent};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::Instant;

    const URL: &str = "ws://a";

    fn publication(keys: &Keys, content: &str, now: Instant) -> Arc<Publication> {
        let unsigned = UnsignedEvent::new(keys.public_key(), Timestamp::from(1), Kind::TextNote, [], content);
        Arc::new(Publication::new(&sign(keys, unsigned), vec![URL.into()], 1, now + Duration::from_secs(600)))
    }

    fn verdict(publication: &Publication) -> Option<Verdict> {
        publication.report().verdicts.into_iter().next().map(|(_, verdict)| verdict)
    }

    /// Sends one event, lets the relay answer `message`, and tells the verdict and after how long it is sent again.
    fn check(message: &str, expected: Option<&Verdict>, again_within: Option<(f32, f32)>) {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let publication = publication(&keys, "x", now);
        outbox.push(publication.clone(), now);
        outbox.next(now, &Limits::default()).unwrap();
        outbox.answered(&publication.id, react(false, message), message, now);
        assert_eq!(verdict(&publication).as_ref(), expected, "{message}");
        let again = (0..1200).map(|tenth| now + Duration::from_millis(100 * tenth)).find(|time| {
            outbox.tick(*time);
            outbox.next(*time, &Limits::default()).is_some()
        });
        match (again, again_within) {
            (None, None) => {}
            (Some(time), Some((from, to))) => {
                let seconds = (time - now).as_secs_f32();
                assert!(seconds >= from && seconds <= to, "{message}: sent again after {seconds} s");
            }
            (again, _) => panic!("{message}: sent again: {:?}", again.map(|time| time - now)),
        }
    }

    #[test]
    fn each_refusal_is_acted_on() {
        let refused = |words: &str| Verdict::Refused(words.into());
        check("duplicate: have it", Some(&Verdict::Accepted), None);
        check("rate-limited: slow", None, Some((0.7, 1.4)));
        check("error: disk", None, Some((1.4, 2.7)));
        check("invalid: no", Some(&refused("invalid: no")), None);
        check("blocked: you", Some(&refused("blocked: you")), None);
        check("auth-required: who", None, Some((0.0, 0.0)));
        check("pow: 20", Some(&Verdict::Work { bits: Some(20), message: "pow: 20".into() }), None);
    }

    #[test]
    fn silence_is_followed_by_another_try_and_in_the_end_by_giving_up() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let publication = publication(&keys, "x", now);
        outbox.push(publication.clone(), now);
        let mut tries = 0;
        for second in 0..700 {
            let time = now + Duration::from_secs(second);
            outbox.tick(time);
            tries += u32::from(outbox.next(time, &Limits::default()).is_some());
        }
        assert!((8..30).contains(&tries), "{tries} tries");
        assert!(matches!(verdict(&publication), Some(Verdict::GaveUp(_))));
        assert_eq!(outbox.len(), 0);
    }

    #[test]
    fn a_second_demand_to_authenticate_is_a_refusal() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let publication = publication(&keys, "x", now);
        outbox.push(publication.clone(), now);
        let message = "auth-required: who";
        outbox.next(now, &Limits::default()).unwrap();
        assert_eq!(outbox.answered(&publication.id, react(false, message), message, now), Demand::Authentication);
        outbox.next(now, &Limits::default()).unwrap();
        assert_eq!(outbox.answered(&publication.id, react(false, message), message, now), Demand::Nothing);
        assert_eq!(verdict(&publication), Some(Verdict::Refused(message.into())));
    }

    #[test]
    fn what_was_not_acknowledged_is_sent_again_in_order_after_a_reconnect() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let all: Vec<_> = ["a", "b", "c"].iter().map(|word| publication(&keys, word, now)).collect();
        for publication in &all {
            outbox.push(publication.clone(), now);
        }
        outbox.next(now, &Limits::default()).unwrap();
        outbox.next(now, &Limits::default()).unwrap();
        outbox.disconnected();
        let order: Vec<_> = std::iter::from_fn(|| outbox.next(now, &Limits::default())).map(|one| one.id).collect();
        assert_eq!(order, all.iter().map(|one| one.id).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_too_long_for_a_relay_is_not_sent() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let publication = publication(&keys, &"x".repeat(100), now);
        outbox.push(publication.clone(), now);
        assert!(outbox.next(now, &Limits { content: Some(99), ..Limits::default() }).is_none());
        assert_eq!(verdict(&publication), Some(Verdict::TooLarge { limit: 99 }));
    }

    #[test]
    fn the_same_event_published_twice_gets_one_answer_for_both() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let first = publication(&keys, "x", now);
        let second = publication(&keys, "x", now);
        outbox.push(first.clone(), now);
        outbox.next(now, &Limits::default()).unwrap();
        outbox.push(second.clone(), now);
        outbox.next(now, &Limits::default()).unwrap();
        assert_eq!(verdict(&first), None);
        outbox.answered(&first.id, react(true, ""), "", now);
        assert_eq!((verdict(&first), verdict(&second)), (Some(Verdict::Accepted), Some(Verdict::Accepted)));
        assert_eq!((outbox.len(), outbox.bytes), (0, 0));
    }

    #[test]
    fn one_blocked_event_does_not_cut_off_the_rest_but_three_do() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let message = "blocked: spam";
        let refuse = |outbox: &mut Outbox, word: &str| {
            let publication = publication(&keys, word, now);
            outbox.push(publication.clone(), now);
            let is_sent = outbox.next(now, &Limits::default()).is_some();
            outbox.answered(&publication.id, react(false, message), message, now);
            assert_eq!(verdict(&publication), Some(Verdict::Refused(message.into())));
            is_sent
        };
        assert_eq!(["a", "b", "c", "d"].map(|word| refuse(&mut outbox, word)), [true, true, true, false]);
    }

    #[test]
    fn what_waits_when_we_stop_is_given_up_and_so_is_what_comes_later() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let all: Vec<_> = ["a", "b", "c"].iter().map(|word| publication(&keys, word, now)).collect();
        outbox.push(all[0].clone(), now);
        outbox.next(now, &Limits::default()).unwrap();
        outbox.push(all[1].clone(), now);
        outbox.close();
        outbox.push(all[2].clone(), now);
        assert!(all.iter().all(|one| verdict(one) == Some(Verdict::Stopped)));
        assert_eq!((outbox.len(), outbox.bytes), (0, 0));
    }

    #[test]
    fn a_burst_that_is_refused_is_one_refusal_and_keeps_its_order() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let all: Vec<_> = (0..20).map(|number| publication(&keys, &number.to_string(), now)).collect();
        all.iter().for_each(|publication| outbox.push(publication.clone(), now));
        (0..15).for_each(|_| drop(outbox.next(now, &Limits::default()).unwrap()));
        for publication in &all[..15] {
            outbox.answered(&publication.id, react(false, "rate-limited: x"), "", now);
        }
        let later = now + Duration::from_secs(2);
        outbox.tick(later);
        let order: Vec<_> = std::iter::from_fn(|| outbox.next(later, &Limits::default())).map(|one| one.id).collect();
        assert_eq!(order, all.iter().map(|one| one.id).collect::<Vec<_>>());
    }

    #[test]
    fn a_pause_that_is_over_is_nothing_to_wake_up_for() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let publication = publication(&keys, "x", now);
        outbox.push(publication.clone(), now);
        outbox.next(now, &Limits::default()).unwrap();
        outbox.answered(&publication.id, react(false, "rate-limited: x"), "", now);
        // The connection does not send while it says who it is; it must not turn in circles meanwhile.
        let later = now + Duration::from_secs(2);
        outbox.tick(later);
        assert!(outbox.due().is_none_or(|due| due > later));
    }

    #[test]
    fn a_full_outbox_gives_up_the_oldest() {
        let (keys, now) = (Keys::generate(), Instant::now());
        let mut outbox = Outbox::new(URL.into(), Backoff::new());
        let first = publication(&keys, "first", now);
        outbox.push(first.clone(), now);
        let other = publication(&keys, "other", now);
        for _ in 0..MAX_WAITING {
            outbox.push(other.clone(), now);
        }
        assert!(matches!(verdict(&first), Some(Verdict::GaveUp(_))));
        assert_eq!(outbox.len(), MAX_WAITING);
    }
}
