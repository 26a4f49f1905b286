//! R05: events that are almost right, through the sockets of a provider and of a customer.

use std::time::Duration;

use nostr::key::Keys;
use serde_json::{Value, json};

use super::book::{Asked, Book, Form, UNLIMITED};
use crate::machine;
use crate::nostr_side::PATIENCE;
use crate::nostr_side::event::{Event, sign};
use crate::nostr_side::fake_provider::{Asked as Request, FakeProvider, text_result};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::host::Host;
use crate::nostr_side::log::until;
use crate::nostr_side::random::Random;
use crate::nostr_side::sealed;
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R05", "forged events, each of them twice, to a provider and to a customer", run);

/// Genuine events that are changed.
const ORIGINALS: usize = 40;
/// How many forged events a second of a processor must be enough for.
const RATE: f64 = 20_000.0;
/// Of what a relay has to say, no more waits in this process.
const WAITING: usize = 500;

fn run(setting: Setting) -> Score {
    let mut random = Random::new(setting.seed);
    let mut score = Score::default();
    let count = setting.choose(10_000, 100_000);
    to_a_provider(count * 4 / 5, &mut random, &mut score);
    to_a_customer(count / 5, &mut random, &mut score);
    score
}

fn to_a_provider(count: usize, random: &mut Random, score: &mut Score) {
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = world.serve(&[&relay.url()], &UNLIMITED);
    let mut book = Book::new(&provider.pubkey, std::slice::from_ref(&relay));
    relay.wait_for_subscription(&provider.pubkey);
    // Never sent before: whatever is changed in them, the provider does not know the original.
    let originals: Vec<Asked> =
        (0..ORIGINALS).map(|number| book.note(Form::ALL[number % 4], &number.to_string())).collect();
    let events: Vec<Event> = originals.iter().map(|asked| asked.event.clone()).collect();
    book.barrier(&relay);
    let said = relay.published().len();
    let before = machine::cpu(provider.process.pid());
    flood(&relay, &provider.pubkey, &events, count, random);
    book.barrier(&relay);
    let spent = machine::cpu(provider.process.pid()) - before;
    // The barrier itself is answered by feedback and a response.
    score.none("answers to forged requests", relay.published().len() - said - 2);
    score.none("forged requests executed", world.effects().len());
    // None of the lies has used up an original.
    events.iter().for_each(|event| relay.publish(event));
    let ids: Vec<String> = originals.iter().map(|asked| asked.id.clone()).collect();
    book.wait(&ids, PATIENCE);
    score.exactly("genuine requests executed after that", world.effects().len(), ORIGINALS);
    score.none("ends of the provider", usize::from(!provider.process.is_running()));
    rate("forged events for a second of the provider's CPU", count, spent, score);
}

/// Says forged events, each of them twice: some clients believe what they have seen before.
fn flood(relay: &FakeRelay, key: &str, originals: &[Event], count: usize, random: &mut Random) {
    let stranger = Keys::generate();
    for number in 0..count / 2 {
        if number % WAITING == 0 {
            until("it is read", PATIENCE, || relay.unwritten() < WAITING);
        }
        let forged = mutate(&originals[number % originals.len()], originals, &stranger, random);
        // To check them all would take longer here than it takes those who are tried.
        assert!(number % 100 != 0 || forged.problem().is_some(), "this one is right: {forged:?}");
        let text = forged.json();
        for _ in 0..2 {
            assert!(relay.inject(key, &text) > 0, "nobody listens any more");
        }
    }
}

fn rate(name: &'static str, count: usize, spent: Duration, score: &mut Score) {
    #[expect(clippy::cast_precision_loss, reason = "no count here comes near the limit")]
    let rate = count as f64 / spent.as_secs_f64().max(0.01);
    if cfg!(debug_assertions) {
        score.tell(name, rate);
    } else {
        score.at_least(name, rate, RATE);
    }
}

/// A host waits for its answers, in the open and sealed, while others answer in the provider's name.
fn to_a_customer(count: usize, random: &mut Random, score: &mut Score) {
    let mut accepted = 0;
    let mut spent = Duration::ZERO;
    for flags in [&["--plain"][..], &[]] {
        let (relay, world) = (FakeRelay::start(), World::new());
        let mut provider = FakeProvider::new(&relay);
        let (npub, url) = (provider.npub(), relay.url());
        let mut host = Host::start(&world, &[&[npub.as_str(), "--relay", &url], flags].concat());
        let call = host.call("say", &json!({ "text": "hello" }));
        let asked = provider.execute_request();
        let lies = lies(&provider, &asked);
        let before = machine::cpu(host.process.pid());
        flood(&relay, &asked.event.pubkey, &lies, count / 2, random);
        // The relay itself forges, too: everybody gets two lies before each truth.
        let (seed, others) = (random.next(), lies.clone());
        relay.rules(|rules| rules.tamper = Some(std::sync::Arc::new(move |event, _| with_lies(event, &others, seed))));
        provider.say(&asked, "the truth");
        let answer = host.answer(call);
        spent += machine::cpu(host.process.pid()) - before;
        accepted += usize::from(!is_truth(&answer));
        // One more call, while the relay goes on forging.
        let call = host.call("say", &json!({ "text": "again" }));
        let asked = provider.execute_request();
        provider.say(&asked, "the truth");
        accepted += usize::from(!is_truth(&host.answer(call)));
        assert!(host.process.is_running());
    }
    score.none("forged answers believed", accepted);
    rate("forged events for a second of the customer's CPU", count, spent, score);
}

fn is_truth(answer: &Value) -> bool {
    let text = answer.to_string();
    text.contains("the truth") && !text.contains("a lie")
}

/// Answers that the provider itself would sign, and never did.
fn lies(provider: &FakeProvider, asked: &Request) -> Vec<Event> {
    let lie = |number: usize| {
        let draft = provider.response(asked, &text_result(&format!("a lie {number}")));
        if asked.sealed {
            sealed::send(&provider.keys, &asked.event.pubkey, &draft).1
        } else {
            draft.sign(&provider.keys)
        }
    };
    (0..ORIGINALS).map(lie).collect()
}

/// An event after two that are forged: another under its id, and itself with another's signature.
fn with_lies(event: &Event, others: &[Event], seed: u64) -> Vec<Event> {
    let other = &others[Random::new(seed ^ event.created_at.unsigned_abs()).below(others.len())];
    let (mut swapped, mut signed) = (other.clone(), event.clone());
    swapped.id.clone_from(&event.id);
    signed.sig.clone_from(&other.sig);
    vec![swapped, signed, event.clone()]
}

fn flip_digit(text: &str, random: &mut Random) -> String {
    let place = random.below(text.len());
    let mut bytes = text.as_bytes().to_vec();
    let old = bytes[place];
    while bytes[place] == old {
        bytes[place] = b"0123456789abcdef"[random.below(16)];
    }
    String::from_utf8(bytes).unwrap()
}

/// Flips a bit that leaves a letter a letter, so that the event can still be read.
fn flip_bit(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let letters: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place].is_ascii_alphabetic()).collect();
    bytes[letters[random.below(letters.len())]] ^= 0x20;
    String::from_utf8(bytes).unwrap()
}

/// The event with one thing changed, so that it is certainly wrong.
fn mutate(event: &Event, others: &[Event], stranger: &Keys, random: &mut Random) -> Event {
    let other = loop {
        let other = &others[random.below(others.len())];
        if other.id != event.id {
            break other;
        }
    };
    let mut forged = event.clone();
    match random.below(13) {
        0 => forged.sig = flip_digit(&event.sig, random),
        1 => forged.id = flip_digit(&event.id, random),
        2 => forged.pubkey = flip_digit(&event.pubkey, random),
        3 => forged.created_at += 1,
        4 => forged.content = flip_bit(&event.content, random),
        5 => forged.tags.push(vec!["x".to_owned()]),
        6 => forged.sig.clone_from(&other.sig),
        7 => forged.id.clone_from(&other.id),
        8 => forged.content.clone_from(&other.content),
        9 => forged.kind = if event.kind == 4 { 5910 } else { 4 },
        10 => std::mem::swap(&mut forged.id, &mut forged.pubkey),
        // Another content with the id that belongs to it, under the old signature.
        11 => {
            forged.content = format!("{} ", event.content);
            forged.id = forged.computed_id();
        }
        // Signed, but not by its author.
        _ => forged = sign(forged, stranger),
    }
    forged
}
