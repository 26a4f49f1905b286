//! R11: junk from thousands of keys, as fast as it can be said, and a few honest customers among it.
//!
//! Most of the junk is signed as it should be: nothing shows that it is junk before it has been checked and read. All of it comes
//! through one relay; the honest ones, who have been here before, use that one and another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nostr::key::Keys;
use serde_json::json;

use super::book::{Book, Form, call, finish, note};
use super::churn::share;
use crate::machine;
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::REQUEST;
use crate::nostr_side::event::Draft;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::random::Random;
use crate::nostr_side::sealed::wrap;
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R11", "a flood of junk, and honest customers among it", run).long().alone();

const KEYS: usize = 10_000;
/// More than the gate remembers, so that each is checked each time it comes.
const JUNK: usize = 16_000;
/// Events a second, if there is somebody to take them.
const RATE: f64 = 50_000.0;
const HONEST: usize = 5;
const PAUSE: Duration = Duration::from_millis(100);
/// What a relay may have said and not written: beyond, it is the provider that does not read.
const WAITING: usize = 256;
const MEMORY: u64 = 200;
/// Errors to those whose requests cannot even be read: at once, and in each second after that.
const ERRORS: f64 = 600.0;
const ERRORS_A_SECOND: f64 = 10.0;

fn run(setting: Setting) -> Score {
    let seconds = setting.choose(8, 20);
    let (flooded, quiet, world) = (FakeRelay::start(), FakeRelay::start(), World::new());
    let provider = world.serve(&[&flooded.url(), &quiet.url()], &[]);
    let relays = [flooded.clone(), quiet];
    relays.iter().for_each(|relay| relay.wait_for_subscription(&provider.pubkey));
    let mut book = Book::new(&provider.pubkey, &relays);
    let honest: Vec<Keys> = (0..HONEST).map(|_| book.customer()).collect();
    let junk = junk(&provider.pubkey, setting.seed);
    let mut idle = honest_calls(&mut book, &relays, &honest, Duration::from_secs(4), "idle").1;
    let (before, spent) = (relays[1].published().len(), machine::cpu(provider.process.pid()));
    let (over, said) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut results, mut busy) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| flood(&flooded, &provider.pubkey, &junk, &over, &said));
        (results, busy) = honest_calls(&mut book, &relays, &honest, Duration::from_secs(seconds), "busy");
        over.store(true, Ordering::SeqCst);
    });
    let length = begun.elapsed().as_secs_f64();
    let mut score = Score::default();
    #[expect(clippy::cast_precision_loss, reason = "no count here comes near the limit")]
    let (rate, part) = (
        said.load(Ordering::SeqCst) as f64 / length,
        book.count(&results, "success") as f64 * 100.0 / results.len() as f64,
    );
    score.tell("junk events a second", rate);
    score.tell("seconds of the provider's CPU", machine::cpu(provider.process.pid()) - spent);
    score.at_least("% of honest requests answered well", part, 99.0);
    let (usual, late) = (share(&mut idle, 0.95), share(&mut busy, 0.95));
    score.tell("seconds of 95 % of the answers, idle", usual);
    if cfg!(debug_assertions) {
        score.tell("seconds of 95 % of the answers, flooded", late);
    } else {
        score.at_most("seconds of 95 % of the answers, flooded", late, usual * 2.0);
    }
    score.at_most("MiB at most", machine::peak_memory(provider.process.pid()) / 1024, MEMORY);
    // Each error is two events, each result three.
    let out = relays[1].published().len() - before - 3 * results.len();
    score.at_most("events to those who sent junk", out, 2.0 * (ERRORS + ERRORS_A_SECOND * (length + 2.0)));
    score.none("effects of junk", world.effects().iter().filter(|effect| effect.contains("junk")).count());
    score
}

/// What is sent: requests that make no sense, requests for others, tools that there are not, forged ones, wraps of nothing.
fn junk(provider: &str, seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let keys: Vec<Keys> = (0..KEYS).map(|_| Keys::generate()).collect();
    let request = |content: &str| Draft::new(REQUEST, content).tag(&["c", "execute-tool"]).tag(&["p", provider]);
    (0..JUNK)
        .map(|number| {
            let (author, salt) = (&keys[random.below(KEYS)], number.to_string());
            let event = match number % 8 {
                0..=2 => request("junk").tag(&["n", &salt]).sign(author),
                3 => request("{\"name\":\"junk\",\"parameters\":{}}").tag(&["n", &salt]).sign(author),
                4 => request("{}").without("p").tag(&["p", &"ab".repeat(32)]).tag(&["n", &salt]).sign(author),
                5 => wrap(provider, "junk"),
                6 => Draft::new(4, "junk?iv=junk").tag(&["p", provider]).tag(&["n", &salt]).sign(author),
                _ => {
                    let mut event = note(Form::Plain, provider, "junk").sign(author);
                    event.sig = "ab".repeat(64);
                    event
                }
            };
            event.json()
        })
        .collect()
}

fn flood(relay: &FakeRelay, key: &str, junk: &[String], over: &AtomicBool, said: &AtomicUsize) {
    let begun = Instant::now();
    for number in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let due = Duration::from_secs_f64(f64::from(number) / RATE);
        if number % 50 == 0 {
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            while relay.unwritten() > WAITING && !over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        relay.inject(key, &junk[number as usize % junk.len()]);
        said.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ten requests a second; gives their ids, and how long each took.
fn honest_calls(
    book: &mut Book,
    relays: &[FakeRelay],
    honest: &[Keys],
    length: Duration,
    what: &str,
) -> (Vec<String>, Vec<f64>) {
    let begun = Instant::now();
    let mut asked = Vec::new();
    while begun.elapsed() < length {
        let (form, keys) = (Form::ALL[asked.len() % 4], &honest[asked.len() % honest.len()]);
        let draft = call(form, &book.provider, "note", &json!({ "tag": format!("{what} {}", asked.len()) }));
        let request = finish(form, keys, &book.provider, &draft);
        relays.iter().for_each(|relay| relay.publish(&request.event));
        asked.push((request.id, Instant::now()));
        let next = PAUSE * u32::try_from(asked.len()).unwrap();
        while begun.elapsed() < next {
            book.read();
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let ids: Vec<String> = asked.iter().map(|(id, _)| id.clone()).collect();
    book.wait(&ids, PATIENCE);
    let took = asked.iter().filter_map(|(id, at)| Some((book.outcome(id)?.at - *at).as_secs_f64())).collect();
    (ids, took)
}
