//! R15: requests from another time, in every form; and clocks that are put forward and back.
//!
//! The first table is for the program, with the clock of the machine. The program has no other, so the second table, of times
//! that must be exact, and the clocks that jump are for the same provider in this process, which can be given a clock.

mod clockwork;

use super::book::{Book, Form, UNLIMITED, finish, note};
use crate::nostr_side::PATIENCE;
use crate::nostr_side::event::{Draft, now};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R15", "requests from another time, clocks that jump", run);

const SERVED: &str = "success";
const STALE: &str = "stale_request";
const SILENCE: &str = "silence";

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 86_400;
/// How old a request may be, and how far ahead it may be dated.
const PAST: i64 = 15 * 60;
const AHEAD: i64 = 60;

/// When a request was made, or ends.
#[derive(Clone, Copy)]
enum When {
    /// Seconds from now.
    Off(i64),
    /// At a time of its own.
    At(i64),
    /// Only as an end: something that is no time.
    Words(&'static str),
}

use When::{At, Off, Words};

struct Case {
    what: &'static str,
    made: When,
    ends: Option<When>,
    expected: &'static str,
}

const fn made(what: &'static str, made: When, expected: &'static str) -> Case {
    Case { what, made, ends: None, expected }
}

const fn ends(what: &'static str, ends: When, expected: &'static str) -> Case {
    Case { what, made: Off(0), ends: Some(ends), expected }
}

/// Where the clock goes on meanwhile, a few seconds are left.
const RUNNING_CLOCK: &[Case] = &[
    made("now", Off(0), SERVED),
    made("an hour ago", Off(-HOUR), STALE),
    made("in an hour", Off(HOUR), STALE),
    made("ten years ago", Off(-10 * YEAR), STALE),
    made("in ten years", Off(10 * YEAR), STALE),
    made("just young enough", Off(-PAST + 25), SERVED),
    made("just too old", Off(-PAST - 1), STALE),
    made("just near enough", Off(AHEAD), SERVED),
    made("too far ahead", Off(AHEAD + 35), STALE),
    made("a clock that has had its leap second already", Off(1), SERVED),
    made("in a leap second, 2016-12-31T23:59:60", At(1_483_228_800), STALE),
    made("at the beginning of all time", At(0), STALE),
    made("at the end of all numbers", At(i64::MAX), STALE),
    ends("ended a second ago", Off(-1), SILENCE),
    ends("ends now", Off(0), SILENCE),
    ends("ends in ten minutes", Off(600), SERVED),
    ends("ends at the end of all numbers", At(i64::MAX), SERVED),
    ends("ends at no time", Words("soon"), SERVED),
    Case { what: "too old, and ended", made: Off(-HOUR), ends: Some(Off(-60)), expected: SILENCE },
];

/// The clock stands still, so that the very second can be tried.
const STANDING_CLOCK: &[Case] = &[
    made("the last second in which it is young enough", Off(-PAST), SERVED),
    made("the first in which it is too old", Off(-PAST - 1), STALE),
    made("the last second that is near enough", Off(AHEAD), SERVED),
    made("the first that is too far ahead", Off(AHEAD + 1), STALE),
    ends("ends in this second", Off(0), SILENCE),
    ends("ends in the next", Off(1), SERVED),
];

fn run(_: Setting) -> Score {
    let mut score = Score::default();
    let (relay, world) = (FakeRelay::start(), World::new());
    let provider = world.serve(&[&relay.url()], &UNLIMITED);
    relay.wait_for_subscription(&provider.pubkey);
    let mut book = Book::new(&provider.pubkey, std::slice::from_ref(&relay));
    let met = met(RUNNING_CLOCK, now(), &mut book, &relay, &mut score);
    score.exactly("expectations met by the program", met, RUNNING_CLOCK.len() * Form::ALL.len());
    let served = RUNNING_CLOCK.iter().filter(|case| case.expected == SERVED).count() * Form::ALL.len();
    score.exactly("executions", world.effects().len(), served);
    clockwork::run(&mut score);
    score
}

impl Case {
    fn draft(&self, form: Form, provider: &str, now: i64) -> Draft {
        let at = |when: When| match when {
            Off(offset) => now + offset,
            At(at) => at,
            Words(_) => now,
        };
        let draft = note(form, provider, self.what).at(at(self.made));
        match self.ends {
            None => draft,
            Some(Words(words)) => draft.tag(&["expiration", words]),
            Some(end) => draft.tag(&["expiration", &at(end).to_string()]),
        }
    }
}

/// Sends every case in every form; gives how many ended as expected, and notes the others.
fn met(cases: &[Case], now: i64, book: &mut Book, relay: &FakeRelay, score: &mut Score) -> usize {
    let provider = book.provider.clone();
    let mut sent = Vec::new();
    for case in cases {
        for form in Form::ALL {
            // Each by somebody else, as one customer is told only once in a while.
            let keys = book.customer();
            let asked = finish(form, &keys, &provider, &case.draft(form, &provider, now));
            // Whatever was subscribed to: a hostile relay sends it anyway.
            assert!(relay.inject(&provider, &asked.event.json()) > 0, "the provider has left");
            sent.push((case, form, asked.id));
        }
    }
    let answered = |(case, _, _): &&(&Case, Form, String)| case.expected != SILENCE;
    let ids: Vec<String> = sent.iter().filter(answered).map(|(_, _, id)| id.clone()).collect();
    book.wait(&ids, PATIENCE);
    book.barrier(relay);
    let mut met = 0;
    for (case, form, id) in &sent {
        let code = book.code(id);
        if code == case.expected {
            met += 1;
        } else {
            score.note(format!("{} ({form:?}): {code}, and not {}", case.what, case.expected));
        }
    }
    met
}
