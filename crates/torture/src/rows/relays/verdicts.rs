//! R16: everything that a relay can say to an event, or leave unsaid; what is done about it, and whether others get it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::book::{Book, Form, UNLIMITED};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::customer::{FEEDBACK, RESPONSE};
use crate::nostr_side::event::Event;
use crate::nostr_side::fake_relay::{FakeRelay, Verdict};
use crate::nostr_side::log::until;
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R16", "all that relays say to an event, and silence", run);

const CALLS: usize = 6;
/// Each call is answered by three events.
const EVENTS: usize = 3 * CALLS;
/// An event to which a relay says nothing is sent again after this.
const SILENCE: Duration = Duration::from_secs(10);
/// The longest that an answer may take on a relay that is good, with eleven others that are not.
const SLOWEST: Duration = Duration::from_secs(5);

/// What a relay has heard: when each answer came, by its id.
type Heard = BTreeMap<String, Vec<Instant>>;

struct Case {
    what: &'static str,
    behave: fn(&FakeRelay),
    /// Whether that was the right thing to do.
    is_right: fn(&Heard, &FakeRelay) -> bool,
}

const CASES: &[Case] = &[
    Case { what: "duplicate", behave: |relay| always(relay, "duplicate: have it"), is_right: |heard, _| all(heard, 1) },
    Case {
        what: "pow",
        behave: |relay| always(relay, "pow: difficulty 40 wanted"),
        is_right: |heard, _| all(heard, 1),
    },
    Case {
        what: "invalid",
        behave: |relay| always(relay, "invalid: I do not like it"),
        is_right: |heard, _| all(heard, 1),
    },
    Case { what: "no prefix", behave: |relay| always(relay, "no"), is_right: |heard, _| all(heard, 1) },
    Case { what: "blocked", behave: |relay| always(relay, "blocked: not you"), is_right: is_left_alone },
    Case { what: "restricted", behave: |relay| always(relay, "restricted: members only"), is_right: is_left_alone },
    Case { what: "mute", behave: |relay| always(relay, "mute: nobody listens"), is_right: is_left_alone },
    Case {
        what: "rate-limited",
        behave: |relay| first_of_all(relay, Verdict::Refuse("rate-limited: slow down")),
        is_right: |heard, relay| is_slower(relay) && has_all(heard, relay),
    },
    Case {
        what: "error",
        behave: |relay| first_of_each(relay, Verdict::Refuse("error: try again")),
        is_right: |heard, relay| has_all(heard, relay) && later(heard, Duration::from_secs(1)),
    },
    Case {
        what: "auth-required, with a challenge",
        behave: |relay| relay.rules(|rules| rules.wants_auth = true),
        is_right: |heard, relay| has_all(heard, relay) && is_known(relay),
    },
    Case {
        what: "auth-required, without one",
        behave: |relay| always(relay, "auth-required: who are you"),
        is_right: |heard, _| all(heard, 2),
    },
    Case {
        what: "silent",
        behave: |relay| first_of_each(relay, Verdict::Ignore),
        is_right: |heard, relay| has_all(heard, relay) && later(heard, SILENCE),
    },
    Case {
        what: "slow",
        behave: |relay| relay.rules(|rules| rules.thought = Duration::from_millis(200)),
        is_right: |heard, relay| all(heard, 1) && has_all(heard, relay),
    },
    Case {
        what: "cut off",
        behave: |relay| first_of_all(relay, Verdict::HangUp),
        is_right: |heard, relay| has_all(heard, relay),
    },
    Case {
        what: "small",
        behave: |relay| relay.rules(|rules| rules.longest = Some(300)),
        is_right: |heard, _| all(heard, 1),
    },
];

fn run(_: Setting) -> Score {
    let good = FakeRelay::start();
    let bad: Vec<FakeRelay> = CASES.iter().map(|_| FakeRelay::start()).collect();
    let world = World::new();
    let urls: Vec<String> = [&good].into_iter().chain(&bad).map(FakeRelay::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    CASES.iter().zip(&bad).for_each(|(case, relay)| (case.behave)(relay));
    let provider = world.serve(&urls, &UNLIMITED);
    [&good].into_iter().chain(&bad).for_each(|relay| relay.wait_for_subscription(&provider.pubkey));
    let mut book = Book::new(&provider.pubkey, std::slice::from_ref(&good));
    let (mut slowest, mut delivered) = (Duration::ZERO, 0);
    for number in 0..CALLS {
        let asked = book.note(Form::Plain, &number.to_string());
        let begun = Instant::now();
        good.publish(&asked.event);
        delivered += book.wait(&[asked.id], PATIENCE);
        slowest = slowest.max(begun.elapsed());
    }
    let mut score = Score::default();
    score.exactly("answers through a good relay", delivered, CALLS);
    score.at_most("seconds of the slowest", slowest, SLOWEST);
    let is_right = |(case, relay): &(&Case, &FakeRelay)| (case.is_right)(&heard(relay), relay);
    // What is right in the end need not be so at once; what must not happen has had the same time to do so.
    let end = Instant::now() + SILENCE + Duration::from_secs(15);
    while Instant::now() < end && !CASES.iter().zip(&bad).all(|pair| is_right(&pair)) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let (right, wrong): (Vec<_>, Vec<_>) = CASES.iter().zip(&bad).partition(is_right);
    score.exactly("relays that were treated right", right.len(), CASES.len());
    for (case, relay) in wrong {
        let times: Vec<usize> = heard(relay).values().map(Vec::len).collect();
        score.note(format!("{}: {} events, sent {times:?} times", case.what, times.len()));
    }
    score.exactly("executions", world.effects().len(), CALLS);
    score.exactly("answers with the work that their only relay wants", worked(), 1_usize);
    score
}

fn is_answer(event: &Event) -> bool {
    [RESPONSE, FEEDBACK].contains(&event.kind)
}

/// Answers that a relay has heard, taken or not.
fn heard(relay: &FakeRelay) -> Heard {
    let mut answers = Heard::new();
    for heard in relay.heard().iter().filter(|heard| heard.frame[0] == "EVENT") {
        let event = Event::parse(&heard.frame[1]);
        if is_answer(&event) {
            answers.entry(event.id).or_default().push(heard.at);
        }
    }
    answers
}

fn always(relay: &FakeRelay, reason: &'static str) {
    relay.judge(move |event, _| if is_answer(event) { Verdict::Refuse(reason) } else { Verdict::Accept });
}

/// The first time that each answer comes.
fn first_of_each(relay: &FakeRelay, verdict: Verdict) {
    relay.judge(move |event, before| if is_answer(event) && before == 0 { verdict.clone() } else { Verdict::Accept });
}

/// The first two answers of all.
fn first_of_all(relay: &FakeRelay, verdict: Verdict) {
    let left = AtomicUsize::new(2);
    let is_first = move || left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok();
    relay.judge(move |event, _| if is_answer(event) && is_first() { verdict.clone() } else { Verdict::Accept });
}

/// Every answer came just so often.
fn all(heard: &Heard, times: usize) -> bool {
    heard.len() == EVENTS && heard.values().all(|sent| sent.len() == times)
}

/// Every answer has come, and was taken in the end.
fn has_all(heard: &Heard, relay: &FakeRelay) -> bool {
    let stored = relay.stored();
    heard.len() == EVENTS && heard.keys().all(|id| stored.iter().any(|event| event.id == *id))
}

/// What was sent again was not sent again before this time.
fn later(heard: &Heard, pause: Duration) -> bool {
    // Both ends are measured here, and not where the time is kept.
    let pause = pause.mul_f64(0.9);
    heard.values().all(|sent| sent.windows(2).all(|pair| pair[1] - pair[0] >= pause))
}

/// A relay that does not want us has said so three times, and what was on its way by then is refused as well.
fn is_left_alone(heard: &Heard, _: &FakeRelay) -> bool {
    heard.len() >= 3 && heard.len() < EVENTS / 2 && heard.values().all(|sent| sent.len() == 1)
}

/// After the first refusal there was a pause in which nothing was sent.
fn is_slower(relay: &FakeRelay) -> bool {
    let mut times: Vec<Instant> = heard(relay).into_values().flatten().collect();
    times.sort();
    times.windows(2).any(|pair| pair[1] - pair[0] >= Duration::from_millis(700))
}

/// It was told who we are, as NIP-42 wants it, and what was refused before was sent again once.
fn is_known(relay: &FakeRelay) -> bool {
    let heard = relay.heard();
    let mut words = heard.iter().filter(|heard| heard.frame[0] == "AUTH").map(|heard| Event::parse(&heard.frame[1]));
    words.any(|event| event.problem().is_none() && event.tag("relay").trim_end_matches('/') == relay.url())
}

/// The only relay wants work; gives how many responses it has that have it.
fn worked() -> usize {
    let (relay, world) = (FakeRelay::start(), World::new());
    let has_work = |event: &Event| event.id.starts_with("00");
    relay.judge(move |event, _| {
        if is_answer(event) && !has_work(event) { Verdict::Refuse("pow: 8 bits needed") } else { Verdict::Accept }
    });
    let provider = world.serve(&[&relay.url()], &UNLIMITED);
    relay.wait_for_subscription(&provider.pubkey);
    let asked = Book::new(&provider.pubkey, std::slice::from_ref(&relay)).note(Form::Plain, "work");
    relay.publish(&asked.event);
    let done = || {
        let stored = relay.stored();
        let responses = stored.iter().filter(|event| event.kind == RESPONSE && event.has_tag("e", &asked.id));
        responses.filter(|event| has_work(event) && event.problem().is_none()).count()
    };
    until("the work is done", PATIENCE, || done() > 0);
    done()
}
