//! R09: relays that go down and come back all the time, one by one and all together, while requests come.

use std::collections::BTreeMap;
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use super::book::{Asked, Book, Form, UNLIMITED};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::random::Random;
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R09", "relays come and go, one by one and all at once, while requests come", run);

const RELAYS: usize = 3;
/// How long a relay that is back may wait for the provider, and how much longer than the outage an answer may take.
const BACK: f64 = 2.0;
/// What a busy machine may add to both, in seconds: connecting takes several turns of both programs.
const SLACK: f64 = 1.0;
/// Calls on a quiet stage, to know how long one takes.
const QUIET: usize = 20;
/// An outage of one relay lasts up to this, and so does the time between two, in milliseconds.
const LONGEST_MS: u64 = 1_500;

fn run(setting: Setting) -> Score {
    let relays: Vec<FakeRelay> = (0..RELAYS).map(|_| FakeRelay::start()).collect();
    let urls: Vec<String> = relays.iter().map(FakeRelay::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let world = World::new();
    let provider = world.serve(&urls, &UNLIMITED);
    relays.iter().for_each(|relay| relay.wait_for_subscription(&provider.pubkey));
    let mut book = Book::new(&provider.pubkey, &relays);
    let idle = quiet(&mut book, &relays);
    let weather = Weather { relays: relays.clone(), key: provider.pubkey.clone(), ..Weather::default() };
    let jobs = setting.choose(100, 500);
    let mut random = Random::new(setting.seed);
    let mut asked: BTreeMap<String, Instant> = BTreeMap::new();
    std::thread::scope(|scope| {
        let storm = scope.spawn(|| weather.storm(setting));
        // The requests come as long as the storm lasts; all of them before its end would see little of it.
        let pause = Weather::expected(setting) / u32::try_from(jobs).unwrap();
        for number in 0..jobs {
            let request = book.note(Form::ALL[number % Form::ALL.len()], &number.to_string());
            asked.insert(request.id.clone(), Instant::now());
            publish(&request, &relays, &mut random);
            book.read();
            std::thread::sleep(pause);
        }
        while !storm.is_finished() {
            book.read();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let ids: Vec<String> = asked.keys().cloned().collect();
    book.wait(&ids, PATIENCE);
    let effects = world.effects();
    let Seen { outages, mut waits } = weather.seen.into_inner().unwrap();
    let mut added: Vec<f64> = asked
        .iter()
        .filter_map(|(id, at)| Some((book.outcome(id)?.at - *at).as_secs_f64() - idle))
        .map(|added| added.max(0.0))
        .collect();
    let mut score = Score::default();
    score.exactly("requests answered well", book.count(&ids, "success"), jobs);
    score.exactly("executions", effects.len() - QUIET, jobs);
    let each = (0..jobs).filter(|number| effects.iter().filter(|line| **line == format!("note {number}")).count() == 1);
    score.exactly("requests executed once", each.count(), jobs);
    score.at_least("outages", outages.len(), RELAYS * setting.choose(8, 50));
    let longest = outages.iter().copied().fold(0.0, f64::max);
    score.tell("seconds of the longest outage", longest);
    score.at_most("seconds that 95 % of the answers came later", share(&mut added, 0.95), longest + BACK + SLACK);
    score.tell("seconds that the last 1 % came later", share(&mut added, 0.99));
    score.at_most("seconds until a relay that is back is used, 99 %", share(&mut waits, 0.99), BACK + SLACK);
    score.tell("seconds, the median", share(&mut waits, 0.5));
    let open = || relays.iter().map(|relay| relay.subscriptions("").len()).collect::<Vec<_>>();
    until("old connections are gone", PATIENCE, || open().iter().all(|count| *count == 1));
    score.exactly("subscriptions at the end", open().iter().sum::<usize>(), RELAYS);
    score
}

/// Where one in so many is.
pub(super) fn share(all: &mut [f64], share: f64) -> f64 {
    all.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place")]
    let place = (all.len() as f64 * share) as usize;
    all.get(place.min(all.len().saturating_sub(1))).copied().unwrap_or(f64::INFINITY)
}

/// How long an answer takes when nothing happens, in the median.
fn quiet(book: &mut Book, relays: &[FakeRelay]) -> f64 {
    let mut times: Vec<f64> = (0..QUIET)
        .map(|number| {
            let request = book.note(Form::Plain, &format!("quiet {number}"));
            let begun = Instant::now();
            relays.iter().for_each(|relay| relay.publish(&request.event));
            book.wait(&[request.id], PATIENCE);
            begun.elapsed().as_secs_f64()
        })
        .collect();
    share(&mut times, 0.5)
}

/// A customer publishes where it can: to one relay that is there, and to others if they are; when none is, it waits.
fn publish(request: &Asked, relays: &[FakeRelay], random: &mut Random) {
    until("some relay is there", PATIENCE, || relays.iter().any(FakeRelay::is_up));
    let mut up: Vec<&FakeRelay> = relays.iter().filter(|relay| relay.is_up()).collect();
    if up.is_empty() {
        // It has just gone; what is published now it has when it is back.
        up.push(&relays[0]);
    }
    random.shuffle(&mut up);
    let count = 1 + random.below(up.len());
    up.iter().take(count).for_each(|relay| relay.publish(&request.event));
}

/// What happens to the relays.
#[derive(Default)]
struct Weather {
    relays: Vec<FakeRelay>,
    key: String,
    /// Held by each relay that is down, and by the night alone, so that neither disturbs the other.
    night: RwLock<()>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// How long each outage lasted, in seconds.
    outages: Vec<f64>,
    /// And how long after its end the provider was back.
    waits: Vec<f64>,
}

impl Weather {
    /// How often all are down at once, and how long.
    fn nights(setting: Setting) -> (u32, Duration) {
        (setting.choose(2, 5), Duration::from_secs(setting.choose(1, 10)))
    }

    /// About how long the storm lasts.
    fn expected(setting: Setting) -> Duration {
        let (nights, length) = Self::nights(setting);
        Duration::from_millis(LONGEST_MS) * setting.choose(8, 50) + length * nights
    }

    /// Each relay has its own bad luck; in between, all are down.
    fn storm(&self, setting: Setting) {
        let (nights, length) = Self::nights(setting);
        std::thread::scope(|scope| {
            for (number, relay) in (0..).zip(&self.relays) {
                let mut random = Random::new(setting.seed * 31 + number);
                scope.spawn(move || (0..setting.choose(8, 50)).for_each(|_| self.bounce(relay, &mut random)));
            }
            for _ in 0..nights {
                std::thread::sleep(Self::expected(setting) / (nights + 1) - length);
                let _all = self.night.write().unwrap();
                self.outage(&self.relays.iter().collect::<Vec<_>>(), length);
            }
        });
    }

    fn bounce(&self, relay: &FakeRelay, random: &mut Random) {
        let mut pause = || Duration::from_millis(random.next() % LONGEST_MS);
        std::thread::sleep(pause());
        let _one = self.night.read().unwrap();
        let length = pause();
        // Every now and then only the connection is lost.
        if length < Duration::from_millis(LONGEST_MS / 4) {
            relay.hang_up();
            return self.is_back(relay, Instant::now(), Instant::now());
        }
        self.outage(&[relay], length);
    }

    /// These are not there for a while.
    fn outage(&self, relays: &[&FakeRelay], length: Duration) {
        let begun = Instant::now();
        relays.iter().for_each(|relay| relay.stop());
        std::thread::sleep(length);
        relays.iter().for_each(|relay| relay.come_back());
        let back = Instant::now();
        relays.iter().for_each(|relay| self.is_back(relay, begun, back));
    }

    /// Waits until a relay is used again, and notes how long that took.
    fn is_back(&self, relay: &FakeRelay, begun: Instant, back: Instant) {
        until("the relay is used again", PATIENCE, || !relay.subscriptions(&self.key).is_empty());
        let mut seen = self.seen.lock().unwrap();
        seen.outages.push((back - begun).as_secs_f64());
        seen.waits.push(back.elapsed().as_secs_f64());
    }
}
