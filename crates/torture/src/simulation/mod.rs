//! The whole selling side in one thread, with time that nobody waits for.
//!
//! What runs is the product: `rialto_provider::provider::run` with its job machine, recovery, till and outboxes, over
//! `rialto_relay`'s pool. Only what lies beyond its ports is made up: relays, a wallet, a ledger on a disk, customers, and a
//! process that ends at any instant and is started again. All of that is one [`World`](world::World), a queue of deeds in
//! virtual time drawn from one seed; no socket, no thread and no clock is involved, so that a seed is a whole history, and the
//! same one each time.
//!
//! First everything goes wrong, and after each step the [`rules`] are looked at. Then nothing does any more, and within
//! bounded time everything must have come to its end. That the rules see anything is shown by [`mistake`]: with each classic
//! one made on purpose, some seed must find it.

mod books;
mod customers;
mod faults;
pub mod mistake;
mod relays;
mod rules;
mod tools;
mod trace;
mod wallet;
mod world;

#[cfg(test)]
mod tests;

use crate::nostr_side::random::Random;
use mistake::Mistake;
use rialto_payment::price::{Prices, Rule};
use rialto_provider::event::Observer;
use rialto_provider::limits::Limits;
use rialto_provider::plan::{Access, DEFAULT_WINDOW, Ending as Farewell, Plan};
use rialto_provider::provider::{self, Books};
use rialto_provider::till::Till;
use rialto_relay::pool::{Options, Pool};
use rialto_wire::dvmcp::request::OpenJobs;
use rialto_wire::service::Wire;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
pub use trace::Trace;
use world::{Ending, Shared, World};

/// What a world begins with.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub seed: u64,
    /// Requests of customers.
    pub jobs: usize,
    /// Made on purpose.
    pub mistake: Option<Mistake>,
}

/// What has become of it.
pub struct Outcome {
    /// The first rule that was broken, and how.
    pub complaint: Option<String>,
    pub trace: Trace,
    pub counts: Counts,
}

/// How much has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub crashes: u64,
    pub stops: u64,
    /// Faults of relays, the wallet and the disk.
    pub faults: u64,
    pub runs: u64,
    pub payments: u64,
    pub answers: u64,
}

/// Tools that run at once, for one customer and for all: few, so that some must wait.
const RUNNING_PER_KEY: usize = 2;
const RUNNING: usize = 4;

/// How long a quote can be paid, and a tool may run.
const QUOTE: Duration = Duration::from_secs(120);
const TIMEOUT: Duration = Duration::from_secs(60);

/// Lives through one history.
pub fn simulate(setup: Setup) -> Outcome {
    let mut world = World::new(setup.seed, setup.mistake);
    world.open(setup.jobs);
    play(world, setup)
}

/// Lives through what was prepared.
fn play(world: World, setup: Setup) -> Outcome {
    let shared = Arc::new(Shared::new(world));
    loop {
        let ending = live(&shared, setup);
        let mut world = shared.enter();
        match ending {
            Ending::Crashed | Ending::Stopped => world.be_away(),
            Ending::Over | Ending::Broken(_) => {
                let complaint = if let Ending::Broken(words) = ending { Some(words) } else { None };
                let (trace, counts) = (std::mem::take(&mut world.trace), world.counts);
                return Outcome { complaint, trace, counts };
            }
        }
        // One that ended while the provider was away.
        if let Some(Ending::Broken(words)) = world.ending.take() {
            let (trace, counts) = (std::mem::take(&mut world.trace), world.counts);
            return Outcome { complaint: Some(words), trace, counts };
        }
    }
}

/// One life of the provider, from its start to its end, whichever that is.
fn live(shared: &Arc<Shared>, setup: Setup) -> Ending {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let ending = runtime.block_on(async {
        let (stop, stopped) = oneshot::channel();
        let (holds, starts) = shared.start(stop);
        let plan = plan(setup.mistake);
        let options = Options {
            keys: Some(plan.keys.clone()),
            dial: Arc::new(relays::Dialler(shared.clone())),
            clock: shared.clone(),
            seed: Some(Random::new(setup.seed ^ starts).next()),
            ..Options::default()
        };
        let pool = Pool::start(&*relays::URLS, provider::watches(&plan), options);
        let till = Till { wallet: Arc::new(wallet::Port(shared.clone())), purse: None, holds };
        let books = Books { ledger: Arc::new(books::Port(shared.clone())), till: Some(till) };
        let tools = Arc::new(tools::Tools(shared.clone()));
        let observer = Observer::new(|_| {});
        let stopping = async { drop(stopped.await) };
        let run = Box::pin(provider::run(plan, books, tools, pool, shared.clone(), observer, stopping));
        let mut running = tokio::spawn(run);
        loop {
            let next = match shared.turn() {
                Ok(next) => next,
                Err(ending) => return ending,
            };
            tokio::select! {
                biased;
                ended = &mut running => return match ended {
                    Ok(_) => shared.enter().ending.take().unwrap_or(Ending::Stopped),
                    Err(error) => Ending::Broken(format!("the provider panicked: {error}")),
                },
                () = shared.wake.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    });
    // Everything that the process had in memory is gone.
    shared.end();
    drop(runtime);
    ending
}

/// What is offered: see [`tools`].
fn plan(mistake: Option<Mistake>) -> Plan {
    let rule = |first_free| Rule { base: tools::PRICE, per_kb: 0, first_free };
    let prices = [("paid", rule(0)), ("again", rule(0)), ("taste", rule(tools::TASTES))];
    let mut idempotent = BTreeSet::from(["again".to_owned()]);
    if mistake == Some(Mistake::RunsAgain) {
        idempotent.extend(tools::NAMES.map(str::to_owned));
    }
    let is_endless = mistake == Some(Mistake::WaitsForEver);
    Plan {
        keys: customers::provider(),
        id: "simulated".into(),
        name: "simulated".into(),
        about: String::new(),
        wires: BTreeSet::from([Wire::Dvmcp]),
        access: Access::default(),
        limits: Limits { rate_per_key: 0, running: RUNNING, running_per_key: RUNNING_PER_KEY, ..Limits::default() },
        window: DEFAULT_WINDOW,
        timeout: if is_endless { Duration::from_secs(86_400) } else { TIMEOUT },
        open_jobs: OpenJobs::Ignored,
        ending: Farewell::Stay,
        relays: Vec::new(),
        // There is no such folder, and none is made: what was announced is none of this.
        record: PathBuf::from("/nowhere/simulated"),
        prices: Prices { tools: prices.map(|(name, rule)| (name.to_owned(), rule)).into(), ..Prices::default() },
        idempotent,
        quote: QUOTE,
    }
}
