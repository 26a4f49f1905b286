//! `rialto-lightning`: a private Lightning network of two wallets, spoken to over Nostr Wallet Connect.
//!
//! For demonstrations and tests: real nodes, real channels and real payments, with money that is worth nothing.

mod chain;
mod connection;
mod network;
mod node;
mod nwc;
mod stop;
mod wallet;

use clap::Parser;
use connection::Connection;
use network::Network;
use nostr::types::url::RelayUrl;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use wallet::Wallet;

/// Runs a private Lightning network of two wallets, "provider" and "customer", and lets Nostr Wallet Connect (NIP-47) clients
/// use them over a relay.
///
/// Starts a private Bitcoin chain and two Lightning nodes, funds them and opens a channel each way. Each wallet begins with
/// nearly 10 million satoshi that are worth nothing. When both can pay, one line is written to standard output:
///
///     {"provider":"nostr+walletconnect://…","customer":"nostr+walletconnect://…"}
///
/// Whoever has such an address can use that wallet. Serves until standard input is closed, or on SIGTERM or SIGINT, and leaves
/// nothing behind. Everything else is written to standard error.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLE)]
struct Arguments {
    /// The relay over which the wallets are reached
    #[arg(long, value_name = "WS_URL", value_parser = relay_url)]
    relay: RelayUrl,

    /// Keep the nodes' files and logs in this directory, which must be empty or not there yet
    ///
    /// To look at afterwards: the chain is gone when the program ends, so the files cannot be used again.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

const EXAMPLE: &str = "Example:
  rialto relay --listen 127.0.0.1:7447 &
  rialto-lightning --relay ws://127.0.0.1:7447";

fn relay_url(text: &str) -> Result<RelayUrl, String> {
    RelayUrl::parse(text).map_err(|_| "a relay's address begins with ws:// or wss://".to_owned())
}

/// The line on standard output: the addresses of both wallets.
#[derive(Serialize)]
struct Ready<'a> {
    provider: &'a str,
    customer: &'a str,
}

/// Why the program ends with an error.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot use `{0}`: {1}")]
    Data(PathBuf, io::Error),
    #[error(
        "`{0}` is not empty\n\nhint: name a directory that is empty or not there yet; old files cannot be used again"
    )]
    Occupied(PathBuf),
    #[error("{0}")]
    System(#[from] io::Error),
    #[error("{0}\n\nhint: run again with `--data DIR` and read the nodes' logs there")]
    Network(#[from] network::Error),
    #[error("{0}")]
    Wallet(#[from] wallet::Error),
}

fn main() -> ExitCode {
    match start(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Tells the person who watches. If nobody can be told, there is nobody to tell that either.
fn say(words: &str) {
    let _ = writeln!(io::stderr(), "{words}");
}

fn start(arguments: &Arguments) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Before there is anything to be left behind.
    let stop = runtime.block_on(async { stop::requested() })?;
    let temporary;
    let directory = match &arguments.data {
        Some(directory) => {
            prepare(directory)?;
            directory.as_path()
        }
        None => {
            temporary = tempfile::Builder::new().prefix("rialto-lightning-").tempdir()?;
            temporary.path()
        }
    };
    // In a task, not in this thread: the nodes wait for futures of their own wherever they are called, and in this thread they
    // would be woken in our place.
    let task = runtime.spawn(run(arguments.relay.clone(), directory.to_owned(), stop));
    let outcome = runtime.block_on(task).map_err(io::Error::other);
    // Nothing may still write into the directory when it is removed.
    drop(runtime);
    outcome?
}

fn prepare(directory: &Path) -> Result<(), Error> {
    let explain = |error| Error::Data(directory.to_owned(), error);
    std::fs::create_dir_all(directory).map_err(explain)?;
    match std::fs::read_dir(directory).map_err(explain)?.next() {
        Some(_) => Err(Error::Occupied(directory.to_owned())),
        None => Ok(()),
    }
}

async fn run(relay: RelayUrl, directory: PathBuf, stop: impl Future<Output = &'static str>) -> Result<(), Error> {
    say("starting a private chain and two Lightning nodes");
    let network = Network::start(&directory).await?;
    let outcome = tokio::select! {
        outcome = serve(&relay, &network) => outcome,
        why = stop => {
            say(why);
            Ok(())
        }
    };
    network.stop().await;
    outcome
}

/// Gets everything ready and serves both wallets; returns only if that cannot be begun.
async fn serve(relay: &RelayUrl, network: &Network) -> Result<(), Error> {
    network.prepare().await?;
    let (provider, provider_uri) = Connection::new(relay);
    let (customer, customer_uri) = Connection::new(relay);
    let (provider, customer) = tokio::try_join!(
        Wallet::open("provider", Arc::clone(&network.provider), provider, relay),
        Wallet::open("customer", Arc::clone(&network.customer), customer, relay),
    )?;
    let ready = Ready { provider: provider_uri.reveal(), customer: customer_uri.reveal() };
    let line = serde_json::to_string(&ready).map_err(io::Error::from)?;
    let mut output = io::stdout();
    writeln!(output, "{line}").and_then(|()| output.flush())?;
    say("ready; close standard input to end");
    tokio::join!(provider.serve(), customer.serve());
    Ok(())
}
