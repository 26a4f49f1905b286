//! Remote signers (NIP-46) as processes of their own: one written from the NIP with another implementation of Nostr, and one
//! by others from a registry. Joined in both directions by the real binary, and started again on both sides.
//!
//! The peers live in `interop/` and are installed by `interop/setup`. Where they are not installed these tests say what is
//! missing and pass; with `CI=true` they fail.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "interop/peers.rs"]
mod peers;

use std::fs;
use std::path::Path;
use std::process::Command;

use nostr::prelude::Event;
use peers::Peers;
use serde_json::{Value, json};
use torture::nostr_side::PATIENCE;
use torture::nostr_side::log::until;
use torture::nostr_side::process::Process;
use torture::nostr_side::world::World;

/// Which signer.
type Program = fn(&Peers) -> Vec<String>;

/// A signer and the user of one test.
struct Place {
    world: World,
    peers: Peers,
    program: Program,
}

impl Place {
    fn new(program: Program) -> Option<Self> {
        Some(Self { peers: Peers::installed()?, world: World::new(), program })
    }

    /// Starts the signer, with the state that it had. Gives what it said when it listened.
    fn signer(&self, manner: &str, relays: &[&str], address: Option<&str>) -> (Process, Value) {
        let command = (self.program)(&self.peers);
        let state = self.world.path().join("signer.json");
        let mut start = Command::new(&command[0]);
        start.args(&command[1..]).arg(state).args([manner, &relays.join(",")]).args(address);
        let process = Process::start(&mut start);
        let ready = process.json_line("ready")["ready"].clone();
        (process, ready)
    }

    /// Ties the user to the signer by the signer's address.
    fn connect(&self, ready: &Value) {
        let mut connecting = self.world.rialto("user", &["--json", "nostr", "keys", "connect", "me"]);
        connecting.write(ready["bunker"].as_str().unwrap());
        connecting.close_input();
        assert_eq!(connecting.json_line("pubkey")["pubkey"], ready["user"], "{}", connecting.told());
        assert!(connecting.end().success());
    }

    /// A server of the tools, which knows only what is on disk.
    fn server(&self, flags: &[&str]) -> Server {
        let mut process = self.world.rialto("user", &[&["mcp", "nostr", "-vv"], flags].concat());
        let about = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        process.write(&json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello }).to_string());
        Server { process, next: 0 }
    }

    /// What is kept of the signer.
    fn bond(&self, ready: &Value) -> String {
        let file = format!("data/rialto/nostr/secrets/{}.signer", ready["user"].as_str().unwrap());
        fs::read_to_string(self.world.home("user").join(file)).unwrap()
    }
}

struct Server {
    process: Process,
    next: u64,
}

impl Server {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": id } });
        self.process
            .write(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
        let answer = self.process.stdout.wait(PATIENCE, |lines| {
            let mut values = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            values.find(|value| value["id"] == id)
        });
        answer.unwrap_or_else(|| panic!("no answer\n{}", self.process.told()))
    }

    /// Has an event signed, and checks it.
    fn sign(&mut self, content: &str, ready: &Value) {
        let draft = json!({ "kind": 1, "content": content, "tags": [["t", "signed"]] }).to_string();
        let answer = self.call("nostr_events_sign", &json!({ "unsigned_event_json": draft }));
        let text = answer["result"]["structuredContent"]["event_json"].as_str();
        let event: Event = serde_json::from_str(text.unwrap_or_else(|| panic!("{answer}"))).unwrap();
        event.verify().unwrap();
        assert_eq!((event.content.as_str(), &json!(event.pubkey.to_hex())), (content, &ready["user"]));
    }

    /// Encrypts for somebody, and decrypts it again.
    fn whisper(&mut self, ready: &Value) {
        let sealed = json!({ "public_key": ready["user"], "plaintext": "psst" });
        let sealed = self.call("nostr_nip44_encrypt", &sealed)["result"]["structuredContent"]["ciphertext"].clone();
        let opened = json!({ "public_key": ready["user"], "ciphertext": sealed });
        let opened = self.call("nostr_nip44_decrypt", &opened);
        assert_eq!(opened["result"]["structuredContent"]["plaintext"], "psst", "{opened}");
    }
}

/// The keys that the signer keeps to itself.
fn canaries(world: &World) -> Vec<String> {
    let state: Value = serde_json::from_slice(&fs::read(world.path().join("signer.json")).unwrap()).unwrap();
    ["user", "signer", "secret"].iter().map(|name| state[*name].as_str().unwrap().to_owned()).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() { files(&path) } else { vec![String::from_utf8_lossy(&fs::read(path).unwrap()).into()] }
        })
        .collect()
}

/// Both sides are started again in between, in every order.
fn works_and_lasts(place: &Place, url: &str, mut signer: Process, ready: &Value) {
    let mut server = place.server(&["--relay", url]);
    server.sign("at once", ready);
    server.whisper(ready);
    signer.kill();
    let (mut signer, _) = place.signer("honest", &[url], None);
    server.sign("after the signer was started again", ready);
    server.process.kill();
    let mut server = place.server(&["--relay", url]);
    server.sign("after we were started again", ready);
    signer.kill();
    server.process.kill();
    let (_signer, _) = place.signer("honest", &[url], None);
    let mut server = place.server(&["--relay", url]);
    server.sign("after both were started again", ready);
    // What is the signer's own was never here; what ties us to it is in no output.
    let bond: Value = serde_json::from_str(&place.bond(ready)).unwrap();
    let mut said = server.process.told();
    assert!(!said.contains(bond["client"].as_str().unwrap()));
    said.push_str(&files(&place.world.home("user")).concat());
    for canary in canaries(&place.world) {
        assert!(!said.contains(&canary), "{said}");
    }
}

fn bunker(program: Program) {
    let Some(place) = Place::new(program) else { return };
    let (_relay, url) = place.world.relay();
    let (signer, ready) = place.signer("honest", &[&url], None);
    place.connect(&ready);
    works_and_lasts(&place, &url, signer, &ready);
}

fn invitation(program: Program) {
    let Some(place) = Place::new(program) else { return };
    let (_relay, url) = place.world.relay();
    let mut inviting = place.world.rialto("user", &["--json", "nostr", "keys", "connect", "me", "--relay", &url]);
    let address = inviting.json_line("address")["address"].as_str().unwrap().to_owned();
    let (signer, ready) = place.signer("honest", &[&url], Some(&address));
    assert_eq!(inviting.json_line("pubkey")["pubkey"], ready["user"]);
    assert!(inviting.end().success());
    works_and_lasts(&place, &url, signer, &ready);
}

fn refusal(program: Program, words: &str) {
    let Some(place) = Place::new(program) else { return };
    let (_relay, url) = place.world.relay();
    let (_signer, ready) = place.signer("refuses", &[&url], None);
    place.connect(&ready);
    let answer = place.server(&["--relay", &url]).call("nostr_events_post_text", &json!({ "content": "x" }));
    assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "no_signer");
}

fn moving(program: Program) {
    let Some(place) = Place::new(program) else { return };
    let (first, first_url) = place.world.relay();
    let (_second, second_url) = place.world.relay();
    let (mut signer, ready) = place.signer("honest", &[&first_url, &second_url], None);
    place.connect(&ready);
    let bond = place.bond(&ready);
    assert!(bond.contains(&second_url) && !bond.contains(&first_url), "{bond}");
    drop(first);
    let mut server = place.server(&["--relay", &second_url]);
    server.sign("where the signer wanted to be met", &ready);
    // It moves once more, while we are connected to it.
    let (_third, third_url) = place.world.relay();
    signer.kill();
    let (_signer, _) = place.signer("honest", &[&second_url, &third_url], None);
    server.process.kill();
    let mut server = place.server(&["--relay", &third_url]);
    server.sign("while it moves", &ready);
    until("the signer was followed", PATIENCE, || place.bond(&ready).contains(&third_url));
    // A server that may not go there does not start.
    let mut limited = place.world.rialto("user", &["mcp", "nostr", "--allow-relay", &first_url]);
    assert_eq!(limited.end().code(), Some(3), "{}", limited.told());
    limited.says("--allow-relay");
}

#[test]
fn our_own_signer_is_joined_and_lasts() {
    bunker(Peers::own_signer);
}

#[test]
fn our_own_signer_joins_us_and_lasts() {
    invitation(Peers::own_signer);
}

#[test]
fn our_own_signer_may_refuse() {
    refusal(Peers::own_signer, "the owner said no");
}

#[test]
fn our_own_signer_may_move() {
    moving(Peers::own_signer);
}

#[test]
fn a_signer_by_others_is_joined_and_lasts() {
    bunker(Peers::applesauce_signer);
}

#[test]
fn a_signer_by_others_joins_us_and_lasts() {
    invitation(Peers::applesauce_signer);
}

#[test]
fn a_signer_by_others_may_refuse() {
    refusal(Peers::applesauce_signer, "denied");
}

#[test]
fn a_signer_by_others_may_move() {
    moving(Peers::applesauce_signer);
}

#[test]
fn a_signer_that_says_nothing_is_given_up() {
    let Some(place) = Place::new(Peers::own_signer) else { return };
    let (_relay, url) = place.world.relay();
    let (_signer, ready) = place.signer("silent", &[&url], None);
    place.connect(&ready);
    let mut server = place.server(&["--relay", &url, "--signer-timeout", "1"]);
    let answer = server.call("nostr_events_post_text", &json!({ "content": "x" }));
    assert_eq!(answer["error"]["data"]["reason"], "timeout", "{answer}");
}

#[test]
fn a_signer_may_want_its_owner_to_look_first() {
    let Some(place) = Place::new(Peers::own_signer) else { return };
    let (_relay, url) = place.world.relay();
    let (_signer, ready) = place.signer("asks", &[&url], None);
    place.connect(&ready);
    let mut server = place.server(&["--relay", &url]);
    server.sign("after the owner looked", &ready);
    let shown = server.process.stdout.look(|lines| {
        lines
            .iter()
            .any(|line| line.contains("notifications/progress") && line.contains("https://signer.example/allow"))
    });
    assert!(shown, "{}", server.process.told());
}
