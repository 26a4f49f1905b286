//! R03: requests that come again when the ledger has forgotten them.
//!
//! The program has no clock that could be put forward, so the requests are made to be old: they are dated so that they are
//! just inside of the window when they are run, and have left it, by the clock of the machine, when they are replayed. The
//! ledger is purged through its own interface, first with the horizon that the provider uses now, and then with the one that it
//! will use when all of them have left the window. One request that is younger shows that the ledger has really forgotten:
//! it runs a second time, and only the window keeps the others from doing so.

use std::time::Duration;

use rialto_ledger::ledger::{Horizon, Ledger};
use rialto_ledger::sqlite::Sqlite;

use super::book::{Asked, Book, Form, UNLIMITED, finish, note};
use crate::nostr_side::event::now;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::world::World;
use crate::nostr_side::{PATIENCE, runtime};
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R03", "finished requests are replayed when the ledger has forgotten them", run);

/// How old a request may be, and how far ahead it may be dated, in seconds.
const WINDOW: i64 = 15 * 60;
const AHEAD: i64 = 60;
/// And how much longer a job that is done is known, for clocks that are put back.
const LONGER: i64 = 60 * 60;
/// As many as a provider takes without being too busy.
const AT_ONCE: usize = 200;
/// Errors that a provider sends at once to strangers, and later in each second.
const COMPLAINTS: usize = 500;
const COMPLAINTS_LATER: u64 = 10;

fn run(setting: Setting) -> Score {
    let count = setting.choose(200, 1_000);
    // The time in which all of them must have run.
    let lead = setting.choose(15, 90);
    let (relay, world) = (FakeRelay::start(), World::new());
    let mut provider = world.serve(&[&relay.url()], &UNLIMITED);
    let mut book = Book::new(&provider.pubkey, std::slice::from_ref(&relay));
    relay.wait_for_subscription(&provider.pubkey);
    let made = now() - WINDOW + lead;
    let requests: Vec<Asked> = (0..count)
        .map(|number| {
            // Each by somebody else, as one customer is told only once in a while.
            let (keys, form) = (book.customer(), Form::ALL[number % Form::ALL.len()]);
            let draft = note(form, &provider.pubkey, &number.to_string()).at(made);
            finish(form, &keys, &provider.pubkey, &draft)
        })
        .collect();
    let young = book.note(Form::Plain, "young");
    let ids: Vec<String> = requests.iter().chain([&young]).map(|asked| asked.id.clone()).collect();
    let all: Vec<&Asked> = requests.iter().chain([&young]).collect();
    for (asked, ids) in all.chunks(AT_ONCE).zip(ids.chunks(AT_ONCE)) {
        for asked in asked {
            relay.inject(&provider.pubkey, &asked.event.json());
        }
        book.wait(ids, PATIENCE);
    }
    let mut score = Score::default();
    score.exactly("finished", book.count(&ids, "success"), count + 1);
    provider.process.stop();
    let folder = world.home("provider").join("data/rialto/jobs").join(&provider.pubkey);
    let (kept, left) = purge(&folder);
    score.exactly("kept while they would be taken", kept, count + 1);
    score.none("kept after that", left);
    provider = world.serve(&[&relay.url()], &UNLIMITED);
    relay.wait_for_subscription(&provider.pubkey);
    until("all of them are too old", PATIENCE * 3, || now() > made + WINDOW);
    let mut again = Book::new(&provider.pubkey, std::slice::from_ref(&relay));
    again.skip();
    book.customers().for_each(|keys| again.add(keys));
    relay.inject(&provider.pubkey, &young.event.json());
    for (number, asked) in requests.iter().enumerate() {
        if number >= COMPLAINTS {
            std::thread::sleep(Duration::from_secs(1) / u32::try_from(COMPLAINTS_LATER).unwrap());
        }
        relay.inject(&provider.pubkey, &asked.event.json());
    }
    again.wait(&ids, PATIENCE);
    again.barrier(&relay);
    score.exactly("executions", world.effects().len().saturating_sub(count + 1), 1_usize);
    score.exactly("executions of the young one", world.times("note young"), 2_usize);
    score.exactly("dropped as stale", again.count(&ids, "stale_request"), count);
    score
}

/// Purges with the horizon of now, and then with that of when all requests have left the window; gives how many jobs were left
/// each time.
fn purge(folder: &std::path::Path) -> (usize, usize) {
    runtime().block_on(async {
        let ledger = Sqlite::open(folder).unwrap();
        let mut left = Vec::new();
        // Seconds later.
        for later in [0, WINDOW + AHEAD + LONGER + 60] {
            let before = (now() + later - WINDOW - AHEAD - LONGER).unsigned_abs();
            while ledger.purge(Horizon { free: before, paid: before }).await.unwrap() {}
            left.push(ledger.recent(0).await.unwrap().len());
        }
        (left[0], left[1])
    })
}
