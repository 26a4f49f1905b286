//! Calls that cost something: two real Lightning nodes on a chain of their own, a provider with prices, a customer with a
//! budget. Every step is the command that you would type.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use rialto_relay::embedded::{Options, Relay};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use super::Teller;
use super::market::{PATIENCE, Stage, failed, make_private};
use crate::environment::{self, Environment};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::secret_file::{self, What};

/// The program with the two nodes, in a package of its own.
const PROGRAM: &str = "rialto-lightning";

pub(super) async fn show(teller: &Teller, environment: &Environment) -> Outcome {
    let program = program(environment).ok_or_else(|| {
        Failure::config("the demo's Lightning network is not built")
            .code("lightning_missing")
            .hint("cargo build --release --manifest-path lightning/Cargo.toml    takes a few minutes, once")
    })?;
    let home = std::env::temp_dir().join(format!("rialto-demo-{}", std::process::id()));
    make_private(&home).map_err(|error| failed("make a folder", &error))?;
    let begun = Instant::now();
    // Wallets are asked often.
    let relay = Relay::start(Options::default()).await.map_err(|error| failed("start a relay", &error))?;
    let url = relay.url();
    teller.say("relay", &format!("a Nostr relay is up at {url}"), begun, &json!({ "url": url }))?;
    let stage = Stage { teller, home: home.clone(), url };
    let played = Box::pin(play(&stage, &program)).await;
    relay.stop().await;
    // Left-over files in a temporary folder harm nobody.
    let _ = std::fs::remove_dir_all(&home);
    played
}

/// Where the program is: as the environment says, beside this one, or where cargo puts it.
fn program(environment: &Environment) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.join(PROGRAM)));
    let built = ["release", "debug"].map(|profile| PathBuf::from(format!("lightning/target/{profile}/{PROGRAM}")));
    let named = environment.raw(environment::LIGHTNING).map(PathBuf::from);
    named.into_iter().chain(beside).chain(built).find(|path| path.is_file())
}

async fn play(stage: &Stage<'_>, program: &PathBuf) -> Outcome {
    let (mut network, wallets) = lightning(stage, program).await?;
    let outcome = Box::pin(trade(stage, &wallets)).await;
    // It ends with its input.
    drop(network.stdin.take());
    let _ = tokio::time::timeout(PATIENCE, network.wait()).await;
    outcome
}

/// The addresses of the two wallets. They are shown to nobody.
struct Wallets {
    provider: String,
    customer: String,
}

async fn lightning(stage: &Stage<'_>, program: &PathBuf) -> Result<(Child, Wallets), Failure> {
    let begun = Instant::now();
    let mut network = Command::new(program)
        .args(["--relay", &stage.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed("start the Lightning network", &error))?;
    let Some(output) = network.stdout.take() else { return Err(Failure::unexpected("the network has no pipes")) };
    let mut line = String::new();
    let _ = tokio::time::timeout(PATIENCE, BufReader::new(output).read_line(&mut line)).await;
    let said: Value = serde_json::from_str(&line).unwrap_or_default();
    let wallet = |name: &str| said[name].as_str().map(ToOwned::to_owned);
    let (Some(provider), Some(customer)) = (wallet("provider"), wallet("customer")) else {
        return Err(Failure::new(Exit::Unreachable, "the Lightning network did not start"));
    };
    let words = "two Lightning nodes with channels between them, each with a wallet (Nostr Wallet Connect)";
    stage.teller.say("network", words, begun, &Value::Null)?;
    Ok((network, Wallets { provider, customer }))
}

async fn trade(stage: &Stage<'_>, wallets: &Wallets) -> Outcome {
    let file = stage.home.join("provider-wallet");
    secret_file::write(&file, What::Wallet, &wallets.provider)?;
    let wallet = format!("file:{}", file.display());
    let (service, link) = stage.serve(&["--price", "add=5", "--price", "fail=7", "--wallet", &wallet]).await?;
    let outcome = Box::pin(buy(stage, wallets, &link)).await;
    stage.end(service).await?;
    outcome
}

async fn buy(stage: &Stage<'_>, wallets: &Wallets, link: &str) -> Outcome {
    connect(stage, &wallets.customer).await?;
    let begun = Instant::now();
    stage.output(&["budget", "set", "--per-call", "20", "--per-day", "100"]).await?;
    stage.teller.say("budget", "rialto budget set --per-call 20 --per-day 100", begun, &Value::Null)?;
    stage.call(link, &["echo", "text=costs nothing"]).await?;
    stage.call(link, &["add", "a=19", "b=2.5"]).await?;
    stage.call(link, &["add", "a=1", "b=2", "--wire", "manifest"]).await?;
    let begun = Instant::now();
    let refused = stage.output(&["call", "--quiet", link, "fail"]).await;
    let words = if refused.is_err() { "failed, and is not charged" } else { "did not fail" };
    stage.teller.say("call", &format!("rialto call example fail {words}"), begun, &Value::Null)?;
    let begun = Instant::now();
    let history = stage.output(&["wallet", "history", "--json"]).await?;
    let history: Value = serde_json::from_str(&history).unwrap_or_default();
    let paid = |entry: &&Value| entry["state"] == "paid";
    let entries: Vec<&Value> = history.as_array().into_iter().flatten().filter(paid).collect();
    let msat: u64 = entries.iter().filter_map(|entry| entry["amount_msat"].as_u64()).sum();
    let words = format!("rialto wallet history: {} paid, {} sat in all", entries.len(), msat / 1000);
    stage.teller.say("history", &words, begun, &history)
}

async fn connect(stage: &Stage<'_>, address: &str) -> Outcome {
    let begun = Instant::now();
    let mut command = stage.command(&["wallet", "connect", "-", "--network", "regtest", "--quiet"])?;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed("start a command", &error))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(address.as_bytes()).await.map_err(|error| failed("give the wallet", &error))?;
    }
    let output = child.wait_with_output().await.map_err(|error| failed("connect the wallet", &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::new(Exit::Payment, "the wallet could not be connected").cause(said));
    }
    stage.teller.say("wallet", "rialto wallet connect -: the customer's wallet", begun, &Value::Null)
}
