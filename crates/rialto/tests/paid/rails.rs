//! Rialto on both sides: `serve` with a price, `call` with a wallet and a budget, over each kind of wallet that can run here and
//! both wires. What was paid is checked on both sides.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::ecash::mint;
use crate::peers::Peers;
use torture::market::{BALANCE, CUSTOMER, Market, PROVIDER};
use torture::nostr_side::process::Process;
use torture::nostr_side::world::{Provider, World};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(over_nostr_wallet_connect_with_money_that_is_held),
    case!(over_nostr_wallet_connect_with_ordinary_invoices),
    case!(over_lnbits),
    case!(with_ecash_from_purse_to_purse),
    case!(from_a_lightning_wallet_to_a_purse),
];

/// Runs a command of the customer's, which must succeed; gives what it printed.
#[track_caller]
fn run(world: &World, arguments: &[&str]) -> String {
    let output = world.command("customer", arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "rialto {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Keeps the address of a wallet in a file, and gives the reference to it.
fn keep(world: &World, name: &str, address: &str) -> String {
    let path: PathBuf = world.path().join(name);
    fs::write(&path, address).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    format!("file:{}", path.display())
}

fn connect(world: &World, address: &str, network: &str) {
    run(world, &["wallet", "connect", &keep(world, "customer-wallet", address), "--network", network]);
    run(world, &["budget", "set", "--per-call", "30", "--per-day", "500"]);
}

/// What the customer's wallet holds.
fn balance(world: &World) -> u64 {
    let shown: Value = serde_json::from_str(&run(world, &["wallet", "show", "--json"])).unwrap();
    shown["balance_sat"].as_u64().unwrap()
}

/// Calls once over each wire; what each call says, and what the customer's history says of both.
fn call_twice(world: &World, relay: &str, provider: &Provider) -> Vec<Value> {
    let link = provider.ready["nprofile"].as_str().unwrap();
    for wire in ["dvmcp", "manifest"] {
        let tag = format!("tag={wire}");
        let said = run(world, &["call", link, "note", "text=paid for", &tag, "--wire", wire, "--relay", relay]);
        assert_eq!(said.trim(), "paid for");
        assert_eq!(world.times(&format!("note {wire}")), 1);
    }
    let history: Vec<Value> = serde_json::from_str(&run(world, &["wallet", "history", "--json"])).unwrap();
    assert_eq!(history.len(), 2, "{history:?}");
    for entry in &history {
        assert_eq!((entry["state"].as_str(), entry["amount_msat"].as_u64()), (Some("paid"), Some(5000)), "{entry}");
    }
    history
}

/// The provider's books are in order.
fn check(world: &World, provider: &mut Provider) {
    assert!(provider.process.stop().success());
    let output = world.command("provider", &["ledger", "check"]).output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn over_wallet_connect(market: &Market, expected_rail: &str) {
    let mut provider = market.serve(&["--price", "note=5"]);
    connect(&market.world, market.bank.uri(CUSTOMER).unwrap().reveal(), "regtest");
    let history = call_twice(&market.world, &market.relay, &provider);
    assert_eq!(history[0]["rail"], expected_rail);
    assert_eq!((market.sat(PROVIDER), market.sat(CUSTOMER)), (BALANCE + 10, BALANCE - 10));
    assert_eq!(balance(&market.world), BALANCE - 10);
    check(&market.world, &mut provider);
}

fn over_nostr_wallet_connect_with_money_that_is_held() {
    over_wallet_connect(&Market::holding(), "lightning");
}

fn over_nostr_wallet_connect_with_ordinary_invoices() {
    over_wallet_connect(&Market::plain(), "lightning");
}

fn over_lnbits() {
    let Some(peers) = Peers::installed() else { return };
    let command = peers.lnbits();
    let mut server = Process::start(Command::new(&command[0]).args(&command[1..]).stdin(Stdio::piped()));
    let ready = server.json_line("ready")["ready"].clone();
    let address = |wallet: &str, key: &str| {
        format!("lnbits+{}?key={}", ready["url"].as_str().unwrap(), ready[wallet][key].as_str().unwrap())
    };
    let world = World::new();
    let (_relay, relay) = world.relay();
    let wallet = keep(&world, "provider-wallet", &address("seller", "admin"));
    let mut provider = world.serve(&[&relay], &["--price", "note=5", "--wallet", &wallet]);
    connect(&world, &address("buyer", "admin"), "bitcoin");
    let before = balance(&world);
    call_twice(&world, &relay, &provider);
    assert_eq!(balance(&world), before - 10);
    let seller =
        rialto_wallet::reference::open(&rialto_payment::secret::Secret::new(address("seller", "admin"))).unwrap();
    let earned = torture::nostr_side::runtime().block_on(seller.wallet().balance()).unwrap();
    assert_eq!(earned.sat_rounded_down(), 10);
    check(&world, &mut provider);
    server.close_input();
}

fn with_ecash_from_purse_to_purse() {
    let Some(mint) = mint() else { return };
    let world = World::new();
    let (_relay, relay) = world.relay();
    let mut provider = world.serve(&[&relay], &["--price", "note=5", "--price", "broken=20", "--mint", &mint.url]);
    connect(&world, &format!("cashu+{}", mint.url), "bitcoin");
    // Two hundred satoshis from anywhere.
    let mut funding = world.rialto("customer", &["wallet", "fund", "200", "--json"]);
    mint.pay(funding.json_line("invoice")["invoice"].as_str().unwrap());
    assert!(funding.end().success());
    assert_eq!(balance(&world), 200);
    let history = call_twice(&world, &relay, &provider);
    assert_eq!(history[0]["rail"], "ecash");
    let left = balance(&world);
    assert!((180..=190).contains(&left), "ten, and what the mint keeps: {left}");
    // What is paid for a call that fails is the customer's, and comes back.
    let link = provider.ready["nprofile"].as_str().unwrap();
    let failed = world.command("customer", &["call", link, "broken", "--relay", &relay]).output().unwrap();
    assert!(!failed.status.success() && balance(&world) < left);
    let said = run(&world, &["wallet", "refund", link, "--relay", &relay]);
    assert!(said.starts_with("cashu"), "{said}");
    assert!(left - balance(&world) <= 5, "all but what the mint keeps: {left}, {}", balance(&world));
    check(&world, &mut provider);
}

fn from_a_lightning_wallet_to_a_purse() {
    let Some(mint) = mint() else { return };
    let world = World::new();
    let (_relay, relay) = world.relay();
    let provider = world.serve(&[&relay], &["--price", "note=5", "--mint", &mint.url]);
    let link = provider.ready["nprofile"].as_str().unwrap();
    // No wallet is connected, and nobody can be asked: the invoice is told, and somebody pays it.
    let output = world.command("customer", &["call", link, "note", "--json", "--relay", &relay]).output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    let mut lines = output.stderr.split(|byte| *byte == b'\n');
    let told: Value = serde_json::from_slice(lines.rfind(|line| line.starts_with(b"{\"error")).unwrap()).unwrap();
    let error = &told["error"];
    assert_eq!((error["code"].as_str(), error["amount_sat"].as_u64()), (Some("payment_required"), Some(5)), "{told}");
    assert!(error["invoice"].as_str().unwrap().starts_with("ln"), "{told}");
    assert_eq!(world.times("note"), 0);
}
