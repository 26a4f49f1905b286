//! R18: secrets that are known, everything that the product does with them as loud as it can be, and a search for them in all that
//! anybody else could see.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use super::super::{Row, Setting};
use crate::market::{CUSTOMER, Market, PROVIDER, invoice};
use crate::nostr_side::client::Client;
use crate::nostr_side::event::{Event, unhex};
use crate::nostr_side::harm;
use crate::nostr_side::host::Host;
use crate::nostr_side::log::Log;
use crate::nostr_side::process::Process;
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R18", "known secrets, searched for wherever others can look", run);

/// In the environment of everything that is started.
const API_KEY: &str = "sk-canary-5f1c0de5f1c0de5f1c0de5f1c0de";

/// Folders of the product that hold secrets by their purpose; nobody else may look into what is there.
const STORES: [&str; 5] = ["rialto/key", "rialto/customer-key", "wallet", "secrets", "jobs"];

/// Every form of every secret, with whose it is.
#[derive(Default)]
struct Canaries(BTreeMap<String, String>);

impl Canaries {
    /// A secret of 32 bytes, in hex.
    fn add(&mut self, whose: &str, hex: &str) {
        let bytes = unhex(hex).unwrap();
        let keys = Keys::parse(hex).ok();
        let bech32 = keys.map(|keys| keys.secret_key().to_bech32().unwrap());
        let forms = [hex.to_owned(), BASE64.encode(&bytes), BASE64.encode(hex)];
        for form in forms.into_iter().chain(bech32) {
            self.add_text(whose, form.trim_end_matches('='));
        }
        let decimal: Vec<String> = bytes.iter().map(ToString::to_string).collect();
        self.0.insert(decimal.join(", "), whose.to_owned());
    }

    /// Any text, forwards and backwards and in capitals.
    fn add_text(&mut self, whose: &str, text: &str) {
        for form in [text.to_owned(), text.chars().rev().collect(), text.to_uppercase()] {
            self.0.insert(form, whose.to_owned());
        }
    }

    /// Whose secrets stand in a text.
    fn within(&self, text: &str) -> Vec<&str> {
        self.0.iter().filter(|(form, _)| text.contains(form.as_str())).map(|(_, whose)| whose.as_str()).collect()
    }
}

/// All that was seen, by where.
#[derive(Default)]
struct Seen(Vec<(String, String)>);

impl Seen {
    fn add(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.0.push((place.into(), text.into()));
    }

    fn process(&mut self, name: &str, process: &Process) {
        self.add(format!("stdout of {name}"), process.stdout.look(|lines| lines.join("\n")));
        self.add(format!("stderr of {name}"), process.stderr.look(|lines| lines.join("\n")));
        let arguments = fs::read(format!("/proc/{}/cmdline", process.pid())).unwrap_or_default();
        self.add(format!("command line of {name}"), String::from_utf8_lossy(&arguments));
    }
}

fn run(_: Setting) -> Score {
    // What we start may leave core dumps, as far as we are concerned.
    let limit = getrlimit(Resource::Core);
    setrlimit(Resource::Core, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    let market = Market::holding();
    let events: Log<Event> = Log::default();
    let kept = events.clone();
    let witness = Client::connect(&market.relay, move |_, event| kept.push(event));
    witness.subscribe("all", &[json!({ "limit": 0 })]);
    let (mut canaries, mut seen) = (Canaries::default(), Seen::default());
    canaries.add_text("the API key", API_KEY);
    for (whose, account) in [("the provider's wallet", PROVIDER), ("the customer's wallet", CUSTOMER)] {
        let uri = market.bank.uri(account).unwrap();
        let secret = uri.reveal().split("secret=").nth(1).unwrap().split('&').next().unwrap().to_owned();
        canaries.add(whose, &secret);
    }
    let mut score = Score::default();
    let mut dumps = 0;
    selling_and_buying(&market, &mut canaries, &mut seen, &mut dumps);
    tools(&market, &mut canaries, &mut seen, &mut dumps);
    gateway(&market, &mut seen, &mut dumps);
    events.look(|events| {
        events.iter().for_each(|event| seen.add(format!("an event of kind {}", event.kind), event.json()));
    });
    own_keys(market.world.path(), &mut canaries);
    let exposed = files(market.world.path(), &mut seen);

    let hits: Vec<String> = (seen.0.iter())
        .flat_map(|(place, text)| canaries.within(text).into_iter().map(move |whose| format!("{whose} in {place}")))
        .collect();
    score.at_least("secrets", canaries.0.values().collect::<std::collections::BTreeSet<_>>().len(), 6_usize);
    score.tell("forms searched for", canaries.0.len());
    score.at_least("places searched", seen.0.len(), 40_usize);
    score.at_least("events on the relay", events.look(<[Event]>::len), 10_usize);
    score.none("hits", hits.len());
    score.none("stores that others can read", exposed.len());
    score.none("processes that would leave a core dump", dumps);
    hits.iter().chain(&exposed).take(10).for_each(|hit| score.note(hit));
    score
}

/// As loud as it gets, with a secret in the environment.
fn loud(command: &mut Command) -> &mut Command {
    command.env("RIALTO_LOG", "debug").env("SOME_API_KEY", API_KEY)
}

fn run_to_end(market: &Market, who: &str, arguments: &[&str], input: &str, seen: &mut Seen) {
    let mut process = Process::start(loud(&mut market.world.command(who, arguments)));
    if !input.is_empty() {
        process.write(input);
    }
    process.close_input();
    process.end();
    seen.process(&arguments[..2.min(arguments.len())].join(" "), &process);
}

/// Whether a crash of this process would be written down with all its memory.
fn would_dump(pid: i32) -> bool {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap_or_default();
    line.split_whitespace().next() != Some("0")
}

fn selling_and_buying(market: &Market, canaries: &mut Canaries, seen: &mut Seen, dumps: &mut usize) {
    let world = &market.world;
    let program = std::env::current_exe().unwrap();
    let wallet =
        format!("file:{}", market.keep("wallet-of-provider", market.bank.uri(PROVIDER).unwrap().reveal()).display());
    let arguments =
        ["serve", "--json", "-vv", "--relay", &market.relay, "--wallet", &wallet, "--price", "note=5", "--"];
    let server = [program.to_str().unwrap(), "actor", world.path().to_str().unwrap(), harm::HARM];
    let provider = Process::start(loud(&mut world.command("provider", &[&arguments[..], &server[..]].concat())));
    let ready = provider.json_line("ready")["ready"].clone();
    let pubkey = ready["pubkey"].as_str().unwrap().to_owned();
    *dumps += usize::from(would_dump(provider.pid()));

    // Paid by hand, so that the preimage is known.
    let customer = crate::nostr_side::customer::Customer::new(&market.relay, &pubkey);
    let id =
        customer.post(&customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "text": "paid" } })));
    let demand = customer.wait_for_status(&id, "payment-required");
    let receipt = market.pay(&invoice(&demand, 5)).unwrap();
    canaries.add("the preimage", &receipt.preimage.unwrap().reveal_hex());
    assert_eq!(customer.answers(&id).text(), "paid");
    // What the tool sees of its environment is told to the customer.
    seen.add("the environment of a tool", customer.call("surroundings", &json!({})).text());
    drop(customer.call("crash", &json!({})));

    // And by the product, from a wallet that it keeps.
    let uri = market.bank.uri(CUSTOMER).unwrap();
    run_to_end(market, "customer", &["wallet", "connect", "-vv", "-"], uri.reveal(), seen);
    run_to_end(market, "customer", &["wallet", "show", "-vv"], "", seen);
    let call = ["call", "-vv", "--relay", &market.relay, "--max-sat", "50", &pubkey, "note", "text=bought"];
    run_to_end(market, "customer", &call, "", seen);
    run_to_end(market, "customer", &[&["--json"], &call[..]].concat(), "", seen);
    run_to_end(market, "customer", &["wallet", "history", "--json"], "", seen);
    run_to_end(market, "customer", &["budget", "show", "--json"], "", seen);
    let mut command = world.command("customer", &["use", "-vv", "--relay", &market.relay, &pubkey]);
    let mut host = Host::over(Process::start(loud(&mut command)));
    host.begin();
    host.ask("tools/list", &json!({}));
    let call = host.call("note", &json!({ "text": "used" }));
    host.answer(call);
    *dumps += usize::from(would_dump(host.process.pid()));
    seen.process("use", &host.process);
    run_to_end(market, "provider", &["ledger", "status", "--json"], "", seen);
    seen.process("serve", &provider);
}

/// The Nostr tools, with a key that they sign with, asked for it in many ways.
fn tools(market: &Market, canaries: &mut Canaries, seen: &mut Seen, dumps: &mut usize) {
    let keys = Keys::generate();
    let nsec = keys.secret_key().to_bech32().unwrap();
    canaries.add("the key of the Nostr tools", &keys.secret_key().to_secret_hex());
    run_to_end(market, "user", &["nostr", "keys", "import", "me", "-vv"], &nsec, seen);
    run_to_end(market, "user", &["nostr", "keys", "list", "--json"], "", seen);
    let mut command = market.world.command("user", &["mcp", "nostr", "-vv", "--relay", &market.relay]);
    let mut host = Host::over(Process::start(loud(&mut command)));
    host.begin();
    for (tool, arguments) in [
        ("nostr_keys_list", json!({})),
        ("nostr_keys_get_active", json!({})),
        ("nostr_keys_export", json!({ "include_private": true })),
        ("nostr_keys_export", json!({ "label": "me", "format": "nsec", "include_private": true })),
        ("nostr_keys_derive_public", json!({ "private_key": nsec })),
        ("nostr_keys_verify", json!({ "key": nsec })),
        ("nostr_keys_import", json!({ "key_material": nsec, "label": "again" })),
        ("nostr_nip19_convert", json!({ "input": nsec, "target": "hex" })),
        ("nostr_nip19_analyze", json!({ "input": nsec })),
        ("nostr_events_post_text", json!({ "content": format!("my key is {nsec}") })),
        ("nostr_events_post_text", json!({ "content": "hello" })),
        ("nostr_metadata_set", json!({ "about": keys.secret_key().to_secret_hex() })),
        ("nostr_events_sign", json!({ "unsigned_event_json": "{\"kind\":1,\"content\":\"x\"}" })),
        ("nostr_config_dir_get", json!({})),
    ] {
        let id = host.call(tool, &arguments);
        host.answer(id);
    }
    *dumps += usize::from(would_dump(host.process.pid()));
    seen.process("mcp nostr", &host.process);
    run_to_end(market, "user", &["nostr", "log", "--json"], "", seen);
}

/// A gateway that hands a secret to one of two servers.
fn gateway(market: &Market, seen: &mut Seen, dumps: &mut usize) {
    let program = std::env::current_exe().unwrap();
    let home = market.world.home("gateway");
    let server = |more: &str| {
        let folder = home.join("actor");
        fs::create_dir_all(&folder).unwrap();
        format!("command = {:?}\nargs = [\"actor\", {:?}, \"{}\"]\n{more}\n", program, folder, harm::HARM)
    };
    let config = format!(
        "[servers.trusted]\n{}[servers.other]\n{}",
        server("env = { TOKEN = \"${SOME_API_KEY}\" }"),
        server("")
    );
    fs::write(home.join("rialto.toml"), config).unwrap();
    let mut host =
        Host::over(Process::start(loud(&mut market.world.command("gateway", &["gateway", "--stdio", "-vv"]))));
    host.begin();
    for tool in ["other__surroundings", "other__crash", "trusted__crash", "other__broken", "trusted__hangs"] {
        let id = host.call(tool, &json!({}));
        host.answer(id);
    }
    *dumps += usize::from(would_dump(host.process.pid()));
    seen.process("gateway", &host.process);
    run_to_end(market, "gateway", &["config", "show"], "", seen);
    run_to_end(market, "gateway", &["config", "check", "-vv"], "", seen);
    run_to_end(market, "gateway", &["doctor", "-vv", "--json"], "", seen);
}

/// The keys that the product has made for itself.
fn own_keys(folder: &Path, canaries: &mut Canaries) {
    for path in all_files(folder) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(keys) = name.ends_with("key").then(|| Keys::parse(text.trim()).ok()).flatten() {
            canaries.add(&format!("the key in {name}"), &keys.secret_key().to_secret_hex());
        }
    }
}

/// Everything that was written to disk, but for the stores; gives those of them that others could read.
fn files(folder: &Path, seen: &mut Seen) -> Vec<String> {
    let mut exposed = Vec::new();
    for path in all_files(folder) {
        let below = path.strip_prefix(folder).unwrap().display().to_string();
        if STORES.iter().any(|store| below.contains(store)) {
            let mode = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
            let is_open = mode(&path) & 0o077 != 0 && path.parent().is_none_or(|parent| mode(parent) & 0o077 != 0);
            if is_open {
                exposed.push(below);
            }
            continue;
        }
        seen.add(format!("the file {below}"), String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()));
    }
    exposed
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => all_files(&entry.path()),
            Ok(kind) if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}
