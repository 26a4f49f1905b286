//! R06: strangers who want to be taken for a friend, and wraps that hold something else than they should.

use nostr::key::Keys;

use super::book::{Asked, Book, Form, UNLIMITED, finish, note};
use crate::machine;
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::REQUEST;
use crate::nostr_side::event::{Draft, Event, hex_key, sign};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::message::{self, CHAT, MESSAGE};
use crate::nostr_side::sealed::{self, SEAL, WRAP, seal, wrap};
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R06", "borrowed names, forged seals, wraps in wraps", run);

/// As long as a text in a wrap can be.
const LONGEST: usize = 60_000;
/// Of what a relay has to say, no more waits in this process.
const WAITING: usize = 500;

fn run(setting: Setting) -> Score {
    let (relay, world, friend) = (FakeRelay::start(), World::new(), Keys::generate());
    let known = hex_key(&friend);
    let mut provider = world.serve(&[&relay.url()], &[&["--private", known.as_str()], &UNLIMITED[..]].concat());
    let to = provider.pubkey.clone();
    let mut book = Book::new(&to, std::slice::from_ref(&relay));
    book.add(&friend);
    relay.wait_for_subscription(&to);
    book.barrier_as(&friend, &relay);
    let mut score = Score::default();
    let (said, memory) = (relay.published().len(), machine::memory(provider.process.pid()));
    let genuine: Vec<Asked> = Form::ALL
        .into_iter()
        .map(|form| finish(form, &friend, &to, &note(form, &to, &format!("genuine {form:?}"))))
        .collect();
    let mut attacks = Vec::new();
    for _ in 0..setting.choose(5, 25) {
        attacks.extend(borrowed(&friend, &to, &genuine));
        attacks.extend([REQUEST, CHAT].into_iter().flat_map(|kind| misused(&friend, &to, kind)));
    }
    let nested = nested(&friend, &to, setting.choose(200, 1_000));
    score.tell("wraps in each other at most", nested.1);
    attacks.extend(nested.0);
    attacks.extend(bombs(&to));
    score.tell("attempts", attacks.len());
    for (number, event) in attacks.iter().enumerate() {
        if number % WAITING == 0 {
            until("it is read", PATIENCE, || relay.unwritten() < WAITING);
        }
        assert!(relay.inject(&to, &event.json()) > 0, "the provider has left");
    }
    book.barrier_as(&friend, &relay);
    score.none("attempts executed", world.effects().len());
    // The barrier itself is answered by feedback and a response.
    score.none("attempts answered", relay.published().len() - said - 2);
    score.tell("MiB more", machine::memory(provider.process.pid()).saturating_sub(memory) / 1024);
    // Nothing that was forged in their name has used them up.
    genuine.iter().for_each(|asked| relay.publish(&asked.event));
    let ids: Vec<String> = genuine.into_iter().map(|asked| asked.id).collect();
    book.wait(&ids, PATIENCE);
    score.exactly("genuine requests served after that", book.count(&ids, "success"), Form::ALL.len());
    claimed_ids(&mut book, &relay, &friend, &world, &mut score);
    score.none("ends of the provider", usize::from(!provider.process.is_running()));
    score
}

/// Events that say they are by the friend, and are not; or are by the friend, and for somebody else.
fn borrowed(friend: &Keys, to: &str, genuine: &[Asked]) -> Vec<Event> {
    let (stranger, other) = (Keys::generate(), hex_key(&Keys::generate()));
    let mut events = Vec::new();
    for kind in [REQUEST, CHAT] {
        let rumor = inner(kind, to).unsigned(&hex_key(friend));
        let by_stranger = seal(&stranger, to, SEAL, &rumor.json());
        let good = seal(friend, to, SEAL, &rumor.json());
        let mut renamed = by_stranger.clone();
        renamed.pubkey = hex_key(friend);
        let mut unsigned = good.clone();
        unsigned.sig = "0".repeat(128);
        let mut wrong_id = good.clone();
        wrong_id.id = "0".repeat(64);
        let signed = sign(renamed.clone(), &stranger);
        events.extend([by_stranger, renamed, signed, unsigned, wrong_id].map(|seal| wrap(to, &seal.json())));
        // Right in all, but not for us: what is inside names another, or only the other can open it.
        events.push(sealed::send(friend, to, &inner(kind, &other)).1);
        let hidden = sealed::encrypt(&stranger, &other, &seal(friend, &other, SEAL, &rumor.json()).json());
        events.push(Draft::new(WRAP, hidden).tag(&["p", to]).sign(&stranger));
    }
    let call = inner(REQUEST, to);
    events.push(sign(call.unsigned(&hex_key(friend)), &stranger));
    events.push(inner(REQUEST, &other).sign(friend));
    events.push(call.without("p").sign(friend));
    // Messages: the words of the friend under another key, and under none that fits.
    let words = &genuine[2].event.content;
    events.push(Draft::new(MESSAGE, words.clone()).tag(&["p", to]).sign(&stranger));
    events.push(sign(Draft::new(MESSAGE, words.clone()).tag(&["p", to]).unsigned(&hex_key(friend)), &stranger));
    let hidden = message::encrypt(friend, to, &inner(CHAT, to).unsigned("").content);
    events.push(Draft::new(MESSAGE, hidden).tag(&["p", &other]).sign(friend));
    events
}

/// A request that must not run.
fn inner(kind: u32, to: &str) -> Draft {
    let form = if kind == REQUEST { Form::Plain } else { Form::SealedMessage };
    note(form, to, "forged")
}

/// The friend's own seals and wraps, around the wrong things.
fn misused(friend: &Keys, to: &str, kind: u32) -> Vec<Event> {
    let rumor = inner(kind, to).unsigned(&hex_key(friend));
    let around = |kind: u32| wrap(to, &seal(friend, to, kind, &rumor.json()).json());
    let mut events: Vec<Event> = [1, 4, 14, REQUEST, WRAP].map(around).into();
    let content = rumor.content.clone();
    let strange = |kind: u32| {
        let draft = Draft::new(kind, content.clone()).tag(&["c", "execute-tool"]).tag(&["p", to]);
        sealed::send(friend, to, &draft).1
    };
    events.extend([13, 15, 6910, 7000, 25910].map(strange));
    // Signed and in a wrap, without a seal.
    events.push(wrap(to, &inner(kind, to).sign(friend).json()));
    events
}

/// Wraps in wraps and wraps in seals, to any depth; and how deep that is.
fn nested(friend: &Keys, to: &str, count: usize) -> (Vec<Event>, usize) {
    let mut events = Vec::new();
    let (mut deepest, mut depth) = (0, 0);
    let genuine = |kind: u32| sealed::send(friend, to, &inner(kind, to)).1;
    let mut around = genuine(REQUEST);
    while events.len() < count {
        let next = match events.len() % 2 {
            0 => wrap(to, &around.json()),
            _ => wrap(to, &seal(friend, to, SEAL, &around.json()).json()),
        };
        depth += 1;
        deepest = deepest.max(depth);
        around = if next.content.len() < LONGEST / 2 {
            next.clone()
        } else {
            depth = 0;
            genuine(if events.len() % 3 == 0 { REQUEST } else { CHAT })
        };
        events.push(next);
    }
    (events, deepest)
}

/// Wraps that are larger than what they hold, or say so.
fn bombs(to: &str) -> Vec<Event> {
    let once = Keys::generate();
    let long = sealed::encrypt(&once, to, &"x".repeat(LONGEST));
    let contents = [long[..long.len() / 2].to_owned(), "A".repeat(200_000), format!("Ag{}", "/".repeat(100_000))];
    let mut events = vec![wrap(to, &"[".repeat(LONGEST)), wrap(to, &"{\"a\":".repeat(LONGEST / 5))];
    events.extend(contents.map(|content| Draft::new(WRAP, content).tag(&["p", to]).sign(&once)));
    events
}

/// What is inside of a seal may claim any id: it cannot take that of another request, nor run more than once.
fn claimed_ids(book: &mut Book, relay: &FakeRelay, friend: &Keys, world: &World, score: &mut Score) {
    let to = book.provider.clone();
    let wrapped = |event: &Event| wrap(&to, &seal(friend, &to, SEAL, &event.json()).json());
    let (mut stolen, mut victims, mut most) = (0, 0, 0);
    for form in [Form::Sealed, Form::SealedMessage] {
        let rumor = |tag: &str| note(form, &to, &format!("{tag} {form:?}")).unsigned(&hex_key(friend));
        let (victim, mut liar, mut many) = (rumor("victim"), rumor("liar"), rumor("many"));
        liar.id.clone_from(&victim.id);
        relay.publish(&wrapped(&liar));
        for number in 0..20 {
            many.id = format!("{number:064x}");
            relay.publish(&wrapped(&many));
        }
        book.barrier_as(friend, relay);
        stolen += usize::from(book.outcome(&victim.id).is_some());
        relay.publish(&wrapped(&victim));
        book.wait(std::slice::from_ref(&victim.id), PATIENCE);
        victims += world.times(&format!("note victim {form:?}"));
        let last = finish(form, friend, &to, &note(form, &to, "last"));
        relay.publish(&last.event);
        book.wait(&[last.id], PATIENCE);
        most = most.max(world.times(&format!("note many {form:?}")));
    }
    score.none("answers under an id that was only claimed", stolen);
    score.exactly("executions of requests whose id was claimed", victims, 2_usize);
    score.at_most("executions of one request under twenty ids", most, 1_usize);
}
