//! Everything beyond the provider's ports, as a queue of deeds in virtual time.

use super::books::Disk;
use super::customers::Job;
use super::faults::Faults;
use super::mistake::Mistake;
use super::relays::{COUNT, Relay, Said};
use super::trace::Trace;
use super::wallet::Vault;
use super::{Counts, rules};
use crate::nostr_side::random::Random;
use nostr::prelude::{Keys, Timestamp};
use rialto_relay::clock::Clock;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// When the world begins; seconds since 1970.
pub(super) const EPOCH: u64 = 1_800_000_000;

/// How long things go wrong, and how long afterwards everything may take to come to its end.
pub(super) const STORM: u64 = 240_000;
pub(super) const CALM: u64 = 900_000;

/// Something that happens later.
type Deed = Box<dyn FnOnce(&mut World) + Send>;

/// Why a life of the provider ended.
#[derive(Debug)]
pub(super) enum Ending {
    Crashed,
    Stopped,
    Over,
    /// A rule was broken.
    Broken(String),
}

pub(super) struct World {
    /// Milliseconds since the beginning.
    pub(super) now: u64,
    /// Tokio's time, and ours at the same instant, while the provider lives.
    clock: Option<(Instant, u64)>,
    queue: BTreeMap<(u64, u64), Deed>,
    next: u64,
    /// When the driver comes back by itself.
    due: u64,
    pub(super) chance: Random,
    pub(super) faults: Faults,
    pub(super) mistake: Option<Mistake>,
    pub(super) ending: Option<Ending>,
    pub(super) stop: Option<oneshot::Sender<()>>,
    starts: u64,
    pub(super) disk: Disk,
    pub(super) vault: Vault,
    pub(super) relays: [Relay; COUNT],
    pub(super) customers: Vec<Keys>,
    pub(super) jobs: Vec<Job>,
    /// Requests by their ids.
    pub(super) numbers: BTreeMap<[u8; 32], usize>,
    /// What the provider's events say, by their ids.
    pub(super) said: BTreeMap<String, Said>,
    /// Tools that run now, and the most that ever did at once since they are counted.
    pub(super) running: usize,
    pub(super) most_running: usize,
    pub(super) trace: Trace,
    pub(super) counts: Counts,
}

impl World {
    pub(super) fn new(seed: u64, mistake: Option<Mistake>) -> Self {
        let mut chance = Random::new(seed);
        // Neighbouring seeds begin alike.
        for _ in 0..8 {
            let _ = chance.next();
        }
        let faults = Faults::draw(&mut chance);
        let holds = chance.below(2) == 0;
        Self {
            now: 0,
            clock: None,
            queue: BTreeMap::new(),
            next: 0,
            due: 0,
            chance,
            faults,
            mistake,
            ending: None,
            stop: None,
            starts: 0,
            disk: Disk::default(),
            vault: Vault::new(holds),
            relays: std::array::from_fn(|_| Relay::default()),
            customers: Vec::new(),
            jobs: Vec::new(),
            numbers: BTreeMap::new(),
            said: BTreeMap::new(),
            running: 0,
            most_running: 0,
            trace: Trace::default(),
            counts: Counts::default(),
        }
    }

    pub(super) fn seconds(&self) -> u64 {
        EPOCH + self.now / 1000
    }

    pub(super) fn number(&self, id: &[u8; 32]) -> Option<usize> {
        self.numbers.get(id).copied()
    }

    /// Does something after so many milliseconds.
    pub(super) fn after(&mut self, wait: u64, deed: impl FnOnce(&mut World) + Send + 'static) {
        self.next += 1;
        self.queue.insert((self.now + wait, self.next), Box::new(deed));
    }

    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.chance.next() % (most - least + 1)
    }

    /// Whether something happens that does so many times in a thousand.
    pub(super) fn chances(&mut self, in_thousand: u64) -> bool {
        in_thousand > 0 && self.chance.next() % 1000 < in_thousand
    }

    /// The same, for a fault.
    pub(super) fn fails(&mut self, in_thousand: u64) -> bool {
        let fails = self.chances(in_thousand);
        self.counts.faults += u64::from(fails);
        fails
    }

    /// The process ends here and now, perhaps; says whether it has, now or before.
    pub(super) fn crashes(&mut self) -> bool {
        if self.ending.is_none()
            && self.clock.is_some()
            && self.faults.crash > 0
            && self.chance.next() % 10_000 < self.faults.crash
        {
            self.crash();
        }
        self.ending.is_some()
    }

    pub(super) fn crash(&mut self) {
        if self.ending.is_none() && self.clock.is_some() {
            self.trace.add(self.now, "the provider crashes", None, "");
            self.counts.crashes += 1;
            self.ending = Some(Ending::Crashed);
        }
    }

    pub(super) fn broken(&mut self, words: String) {
        if !matches!(self.ending, Some(Ending::Broken(_))) {
            self.trace.add(self.now, "a rule is broken", None, "");
            self.ending = Some(Ending::Broken(words));
        }
    }

    /// Does what is due, until something ends.
    fn run_due(&mut self, now: u64) {
        while let Some((&(at, number), _)) = self.queue.first_key_value() {
            if at > now || self.ending.is_some() {
                break;
            }
            let Some(deed) = self.queue.remove(&(at, number)) else { break };
            self.now = self.now.max(at);
            deed(self);
            rules::always(self);
        }
    }

    /// Lets time pass without a provider.
    pub(super) fn be_away(&mut self) {
        self.disk.lost();
        self.relays.iter_mut().for_each(Relay::hang_up);
        let until = self.now + self.between(50, 15_000);
        self.run_due(until);
        self.now = self.now.max(until);
    }

    /// Nothing goes wrong any more, and everybody is there.
    pub(super) fn calm_down(&mut self) {
        self.trace.add(self.now, "the storm is over", None, "");
        self.faults = Faults::none();
        for relay in 0..COUNT {
            self.settle_relay(relay);
        }
    }
}

/// What the ports and the driver share.
pub(super) struct Shared {
    world: Mutex<World>,
    /// There may be something to do sooner.
    pub(super) wake: Notify,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self { world: Mutex::new(world), wake: Notify::new() }
    }

    /// The world as it is now.
    fn look(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap();
        if let Some((start, base)) = world.clock {
            let elapsed = u64::try_from(start.elapsed().as_millis()).unwrap();
            world.now = world.now.max(base + elapsed);
        }
        world
    }

    /// The same, to change it.
    pub(super) fn enter(&self) -> Entered<'_> {
        Entered { world: self.look(), wake: &self.wake }
    }

    /// A tool does not run any more. The runtime, and its time, may be gone by then.
    pub(super) fn left(&self, job: usize) {
        self.world.lock().unwrap().left_place(job);
    }

    /// A provider begins; says whether its wallet holds money, and how many there were.
    pub(super) fn start(&self, stop: oneshot::Sender<()>) -> (bool, u64) {
        let mut world = self.world.lock().unwrap();
        world.clock = Some((Instant::now(), world.now));
        world.stop = Some(stop);
        world.starts += 1;
        let now = world.now;
        world.trace.add(now, "the provider starts", None, "");
        (world.vault.holds, world.starts)
    }

    pub(super) fn end(&self) {
        self.world.lock().unwrap().clock = None;
    }

    /// Does what is due; says when to come back, or how the provider ended.
    pub(super) fn turn(&self) -> Result<Instant, Ending> {
        let mut world = self.world.lock().unwrap();
        let (start, base) = world.clock.unwrap();
        let now = base + u64::try_from(start.elapsed().as_millis()).unwrap();
        if world.ending.is_none() {
            world.run_due(now);
            world.now = world.now.max(now);
        }
        if let Some(ending) = world.ending.take() {
            return Err(ending);
        }
        let next = world.queue.first_key_value().map_or(now + 60_000, |((at, _), _)| *at);
        world.due = next;
        Ok(start + Duration::from_millis(next - base))
    }

    /// Lets an answer come after a while, and never if the process ends before.
    pub(super) async fn answer<T: Send + 'static>(&self, answered: Option<(u64, T)>) -> T {
        if let Some((wait, value)) = answered {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            if self.enter().ending.is_none() {
                return value;
            }
        }
        std::future::pending().await
    }
}

/// The world while it is changed. Whoever leaves it wakes the driver, if that has something to do before it would come back.
pub(super) struct Entered<'a> {
    world: MutexGuard<'a, World>,
    wake: &'a Notify,
}

impl Deref for Entered<'_> {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Entered<'_> {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let next = self.world.queue.first_key_value().map(|((at, _), _)| *at);
        if self.world.ending.is_some() || next.is_some_and(|next| next < self.world.due) {
            self.wake.notify_one();
        }
    }
}

impl Clock for Shared {
    fn now(&self) -> Timestamp {
        Timestamp::from(self.look().seconds())
    }
}
