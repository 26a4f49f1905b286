//! R02: requests that come again and again, over every relay, in every form, before and after the provider is killed.

use std::collections::BTreeSet;

use nostr::key::Keys;

use super::book::{Book, Form, UNLIMITED, finish, note};
use crate::machine;
use crate::nostr_side::PATIENCE;
use crate::nostr_side::event::Event;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::random::Random;
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R02", "every request is delivered a hundred times, in any order", run);

const REQUESTS: usize = 100;
const RELAYS: usize = 5;
/// Different wraps of each sealed request.
const WRAPS: usize = 20;
const ROUNDS: usize = 4;
/// What a copy may cost, in microseconds of a processor.
const COPY_MICROS: f64 = 100.0;
/// Of what a relay has to say, no more waits in this process.
const WAITING: usize = 500;

fn run(setting: Setting) -> Score {
    let relays: Vec<FakeRelay> = (0..RELAYS).map(|_| FakeRelay::start()).collect();
    let urls: Vec<String> = relays.iter().map(FakeRelay::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let world = World::new();
    let mut provider = world.serve(&urls, &UNLIMITED);
    let mut book = Book::new(&provider.pubkey, &relays);
    let keys = book.customer();
    let (ids, forms): (Vec<String>, Vec<Vec<Event>>) =
        (0..REQUESTS).map(|number| forms(number, &keys, &provider.pubkey)).unzip();
    relays.iter().for_each(|relay| {
        relay.rules(|rules| (rules.shuffled, rules.replays) = (8, true));
        relay.wait_for_subscription(&provider.pubkey);
    });
    let count = setting.choose(4_000, 10_000);
    let mut turns: Vec<usize> = (0..count).collect();
    Random::new(setting.seed).shuffle(&mut turns);
    let mut delivered = 0;
    for (round, part) in turns.chunks(count / ROUNDS).enumerate() {
        for turn in part {
            let forms = &forms[turn % REQUESTS];
            let (relay, event) = (&relays[turn % RELAYS], &forms[(turn / REQUESTS) % forms.len()]);
            // What the relay keeps comes once more with every new subscription.
            if round == 0 {
                relay.publish(event);
                delivered += 1;
            } else {
                delivered += relay.inject(&provider.pubkey, &event.json()).min(1);
            }
        }
        relays.iter().for_each(FakeRelay::let_go);
        match round {
            // Every subscription is made anew.
            0 => relays.iter().for_each(FakeRelay::hang_up),
            // The ledger is all that is left.
            1 => {
                book.wait(&ids, PATIENCE);
                provider.process.kill();
                provider = world.serve(&urls, &UNLIMITED);
            }
            _ => {}
        }
        relays.iter().for_each(|relay| relay.wait_for_subscription(&provider.pubkey));
    }
    book.wait(&ids, PATIENCE);
    relays.iter().for_each(|relay| book.barrier(relay));
    let effects = world.effects();
    let distinct: BTreeSet<&String> = effects.iter().collect();
    let results: usize = ids.iter().filter_map(|id| book.outcome(id)).map(|outcome| outcome.answers.len()).sum();
    let mut score = Score::default();
    score.at_least("deliveries", delivered, count - count / 20);
    score.exactly("executions", effects.len(), REQUESTS);
    score.exactly("requests executed", distinct.len(), REQUESTS);
    score.exactly("results", results, REQUESTS);
    score.exactly("successes", book.count(&ids, "success"), REQUESTS);
    let copies = setting.choose(3_000, 20_000);
    let micros = cost(&mut book, &relays[0], provider.process.pid(), &forms, copies);
    if cfg!(debug_assertions) {
        score.tell("µs of CPU for a copy", micros);
    } else {
        score.at_most("µs of CPU for a copy", micros, COPY_MICROS);
    }
    score.exactly("executions after the copies", world.effects().len(), REQUESTS);
    score
}

/// A request and all that it looks like on a relay: what is plain has one form, what is sealed many.
fn forms(number: usize, keys: &Keys, provider: &str) -> (String, Vec<Event>) {
    let form = Form::ALL[number % Form::ALL.len()];
    let draft = note(form, provider, &number.to_string());
    let first = finish(form, keys, provider, &draft);
    let more = if form.is_sealed() { WRAPS - 1 } else { 0 };
    let mut events = vec![first.event];
    events.extend((0..more).map(|_| finish(form, keys, provider, &draft).event));
    (first.id, events)
}

/// What a copy that is the same byte for byte costs the provider, in microseconds.
fn cost(book: &mut Book, relay: &FakeRelay, pid: i32, forms: &[Vec<Event>], copies: usize) -> f64 {
    let texts: Vec<String> = forms.iter().map(|forms| forms[0].json()).collect();
    // Each has been seen in this form before it is counted.
    for text in &texts {
        relay.inject(&book.provider, text);
    }
    book.barrier(relay);
    let before = machine::cpu(pid);
    for copy in 0..copies {
        if copy % WAITING == 0 {
            until("the provider reads", PATIENCE, || relay.unwritten() < WAITING);
        }
        relay.inject(&book.provider, &texts[copy % texts.len()]);
    }
    book.barrier(relay);
    #[expect(clippy::cast_precision_loss, reason = "no count here comes near the limit")]
    let copies = copies as f64;
    (machine::cpu(pid) - before).as_secs_f64() * 1e6 / copies
}
