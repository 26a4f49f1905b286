//! `rialto serve`: MCP servers offered on Nostr.

mod arguments;
mod greeting;
mod log;
mod prices;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use nostr::prelude::RelayUrl;
use rialto_hub::Hub;
use rialto_hub::event::Events;
use rialto_ledger::job::Stage;
use rialto_ledger::ledger::{self, Ledger};
use rialto_ledger::postgres::Postgres;
use rialto_ledger::sqlite::Sqlite;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::Purse;
use rialto_provider::plan::Plan;
use rialto_provider::provider::{self, Books, KeyInUse, watches};
use rialto_provider::till::Till;
use rialto_relay::clock::SystemClock;
use rialto_relay::embedded::{self, Relay};
use rialto_relay::pool::{Options, Pool};
use rialto_relay::status::State;
use rialto_wallet::reference::Opened;
use tokio::sync::watch;

pub(crate) use arguments::Arguments;
use prices::Sweep;

use crate::commands::gateway::{make_plan, new_guard, refuse_loops, tell};
use crate::commands::wait_for;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::identity::{self, Identity, Role};
use crate::signals::Stop;
use crate::talk::{Aside, Talk, Tone};
use crate::wallet;

/// How long a server may take to start before the rest is offered without it. A first `npx` fetches packages.
const SERVERS_START: Duration = Duration::from_secs(60);

/// How often money is sent on. Each time costs fees.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

pub(crate) fn run(arguments: Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    refuse_loops()?;
    let identity = identity::load(Role::Provider, arguments.key(), environment)?;
    let given = arguments.relays(environment)?;
    let record = identity::data_directory(environment)?.join("jobs").join(identity.keys.public_key().to_hex());
    let service = arguments.service(&identity, record, environment)?;
    let (settings, one, listen) = arguments.rest();
    let mut hub = make_plan("rialto serve", &one, settings, environment, talk)?;
    hub.startup_grace = hub.startup_grace.max(SERVERS_START);
    service.restrict(&mut hub)?;
    let (wallet, shared, sweep) = (service.wallet.clone(), service.ledger.clone(), service.sweep.clone());
    let plan = service.plan(&hub);
    wait_for(serve(Setup { identity, given, plan, hub, listen, wallet, shared, sweep }, environment, *talk))
}

struct Setup {
    identity: Identity,
    /// Relays that were asked for; none means our own.
    given: Vec<RelayUrl>,
    plan: Plan,
    hub: rialto_hub::plan::Plan,
    listen: std::net::SocketAddr,
    /// The address of the wallet that is paid.
    wallet: Option<Secret>,
    /// The address of a database that several workers share.
    shared: Option<Secret>,
    sweep: Option<Sweep>,
}

async fn serve(setup: Setup, environment: &Environment, talk: Talk) -> Outcome {
    let Setup { identity, given, mut plan, hub, listen, wallet, shared, sweep } = setup;
    let ledger = ledger(shared.as_ref(), &plan).await.map_err(|error| no_ledger(&error, &identity))?;
    greeting::key(&talk, &identity);
    let (built_in, relays) = relays(given, listen).await?;
    plan.relays = relays.iter().map(|url| url.as_str_without_trailing_slash().to_owned()).collect();
    greeting::relays(&talk, &plan.relays, built_in.is_some());
    let is_free = plan.prices.are_free();
    let till = match wallet {
        // A wallet that was connected to buy with is not asked for anything where nothing is sold, or was.
        Some(address) if !is_free || has_money(&*ledger).await => {
            match till(&address, &identity, is_free, environment, &talk).await {
                Ok(till) => Some(till),
                Err(_) if is_free => {
                    talk.warn("the wallet does not answer; what is owed to customers, or by them, stays as it is");
                    None
                }
                Err(failure) => return Err(failure),
            }
        }
        _ => None,
    };
    let (aside, last_words) = Aside::new(talk);
    let aside = Arc::new(aside);
    let hub_aside = aside.clone();
    let hub = Hub::start(hub, new_guard()?, Events::new(move |event| tell(&hub_aside, &event)));
    let options = Options { keys: Some(plan.keys.clone()), hears_itself: false, ..Options::default() };
    let (pool, arrivals) = Pool::start(&relays, watches(&plan), options);
    let mut signals = Stop::listen()?;
    let (ready, is_ready) = watch::channel(log::Ready::default());
    let observer = log::observer(talk, aside.clone(), ready);
    let greeted = tokio::spawn(greeting::ready(talk, plan.clone(), pool.clone(), is_ready));
    let watched = tokio::spawn(watch_relays(pool.clone(), aside.clone()));
    let clock = Arc::new(SystemClock);
    let purse = till.as_ref().and_then(|till| till.purse.clone());
    let swept = purse.zip(sweep).map(|(purse, sweep)| tokio::spawn(sweep_on(purse, sweep, aside.clone())));
    let books = Books { ledger, till };
    let served =
        Box::pin(provider::run(plan, books, hub.clone(), (pool, arrivals), clock, observer, signals.asked())).await;
    greeted.abort();
    watched.abort();
    if let Some(swept) = swept {
        swept.abort();
    }
    // If servers do not end in time, the guard ends them.
    signals.or(hub.stop()).await;
    drop(hub);
    if let Some(relay) = built_in {
        relay.stop().await;
    }
    drop(aside);
    last_words.wait();
    served.map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref::<KeyInUse>()) {
        Some(twin) => Failure::new(Exit::NotAllowed, "another provider runs with this key")
            .because(twin)
            .code("key_in_use")
            .hint("stop the other one; machines that serve together share a database:  --ledger env:NAME"),
        None => Failure::unexpected("the ledger cannot be used").because(&error).code("ledger"),
    })
}

/// The ledger of this key: a file of our own, or a database that several workers share.
async fn ledger(shared: Option<&Secret>, plan: &Plan) -> Result<Arc<dyn Ledger>, ledger::Error> {
    match shared {
        Some(address) => {
            // What was announced is still kept here; if that cannot be, it is only announced again.
            let _ = std::fs::create_dir_all(&plan.record);
            Ok(Arc::new(Postgres::open(address, &plan.keys.public_key().to_bytes()).await?))
        }
        None => Ok(Arc::new(Sqlite::open(&plan.record)?)),
    }
}

fn no_ledger(error: &ledger::Error, identity: &Identity) -> Failure {
    match error {
        ledger::Error::InUse => Failure::new(Exit::NotAllowed, "another `rialto serve` runs with this key")
            .code("key_in_use")
            .hint("serve several servers with --config, or give each its own key with --key FILE"),
        _ => {
            let words = format!("cannot open the ledger of the key in {}", identity.path.display());
            Failure::unexpected(words).because(error).code("ledger")
        }
    }
}

/// Whether there is money that a call was paid with, or that is owed.
async fn has_money(ledger: &dyn Ledger) -> bool {
    let Ok(status) = ledger.status().await else { return true };
    let is_open = |(stage, count): &(Stage, u64)| *count > 0 && !matches!(stage, Stage::Running | Stage::Done);
    !status.held.is_zero() || !status.owed.is_zero() || status.jobs.iter().any(is_open)
}

/// The wallet at work.
async fn till(
    address: &Secret,
    identity: &Identity,
    is_free: bool,
    environment: &Environment,
    talk: &Talk,
) -> Result<Till, Failure> {
    let opened = wallet::open(address, identity, environment).await?;
    let abilities = wallet::abilities(&opened).await?;
    let purse = match &opened {
        Opened::Purse(purse) => Some(purse.clone()),
        Opened::Lightning(_) => None,
    };
    if !is_free {
        greeting::wallet(talk, &opened.wallet().name(), abilities.hold);
    }
    Ok(Till { wallet: opened.wallet(), purse, holds: abilities.hold })
}

/// Sends on what is more than should stay, for as long as we serve.
async fn sweep_on(purse: Arc<dyn Purse>, sweep: Sweep, aside: Arc<Aside>) {
    let mut rounds = tokio::time::interval(SWEEP_EVERY);
    loop {
        rounds.tick().await;
        match purse.sweep(sweep.keep, &sweep.address).await {
            Ok(left) if left.is_zero() => {}
            Ok(left) => aside.say(Tone::Info, format!("{left} went to {}", sweep.address)),
            Err(error) => aside.say(Tone::Warn, format!("nothing could be sent to {}: {error}", sweep.address)),
        }
    }
}

/// The relays to use, and our own if it was started.
async fn relays(given: Vec<RelayUrl>, listen: std::net::SocketAddr) -> Result<(Option<Relay>, Vec<RelayUrl>), Failure> {
    if !given.is_empty() {
        return Ok((None, given));
    }
    let options = embedded::Options { listen, name: "rialto serve".to_owned(), ..embedded::Options::default() };
    match Relay::start(options).await {
        Ok(relay) => {
            let url = crate::relays::parse(&relay.url())?;
            Ok((Some(relay), vec![url]))
        }
        // Most likely `rialto relay`, or another `rialto serve` with its own: that one is as good.
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Ok((None, vec![crate::relays::parse(&format!("ws://{listen}"))?]))
        }
        Err(error) => Err(Failure::unexpected("the built-in relay cannot start")
            .because(&error)
            .hint("name a relay:  --relay wss://relay.example")),
    }
}

/// Says when a relay goes, and when it is back.
async fn watch_relays(pool: Pool, aside: Arc<Aside>) {
    let mut changes = pool.changes();
    let mut down: Vec<Arc<str>> = Vec::new();
    loop {
        for status in pool.status() {
            let was_down = down.contains(&status.url);
            match status.state {
                State::Down { reason, .. } if !was_down => {
                    aside.say(Tone::Warn, format!("relay {} cannot be reached: {reason}", status.url));
                    down.push(status.url);
                }
                State::Subscribed if was_down => {
                    aside.say(Tone::Info, format!("relay {} is back", status.url));
                    down.retain(|url| *url != status.url);
                }
                _ => {}
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}
