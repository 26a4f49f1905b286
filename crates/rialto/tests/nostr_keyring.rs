//! Secret keys in the keyring of the system, with a real one: a session bus and gnome-keyring, in a home of their own.
//!
//! `interop/setup` installs both from Debian. Where they are not installed these tests say what is missing and pass; with
//! `CI=true` they fail.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nostr::nips::nip19::ToBech32;
use nostr::prelude::{Keys, PublicKey};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

/// A bus that starts nobody by itself, so that a service is there only when a test has started one.
const BUS: &str = r#"<busconfig><type>session</type><listen>unix:path=SOCKET</listen>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>"#;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A home with a session bus, and perhaps a keyring service on it.
struct Desktop {
    keyring: Option<Running>,
    _bus: Running,
    home: tempfile::TempDir,
}

/// Whether the keyring service is unlocked when it starts, as it is after a login.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Login {
    Done,
    Missing,
}

impl Desktop {
    /// `None` if what it needs is not installed.
    fn new() -> Option<Self> {
        let is_there = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(name).exists())
        };
        let missing: Vec<&str> =
            ["dbus-daemon", "dbus-send", "gnome-keyring-daemon"].into_iter().filter(|name| !is_there(name)).collect();
        if !missing.is_empty() {
            let words = format!("missing {}; hint: run `interop/setup`", missing.join(", "));
            assert!(std::env::var("CI").as_deref() != Ok("true"), "a keyring service is required in CI: {words}");
            // Written past the test harness, which would hide the message of a test that passes.
            let _ = writeln!(io::stderr(), "keyring tests skipped: {words}");
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        let configuration = home.path().join("bus.conf");
        fs::write(&configuration, BUS.replace("SOCKET", home.path().join("bus").to_str().unwrap())).unwrap();
        let mut bus = Command::new("dbus-daemon");
        bus.arg("--nofork").arg(format!("--config-file={}", configuration.display()));
        let bus = Running(bus.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let desktop = Self { keyring: None, _bus: bus, home };
        until("the bus answers", || desktop.has_owner("org.freedesktop.DBus"));
        Some(desktop)
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path())
            .env("XDG_RUNTIME_DIR", self.path())
            .env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", self.path().join("bus").display()));
        command
    }

    fn has_owner(&self, name: &str) -> bool {
        let asked = self
            .command("dbus-send")
            .args(["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/"])
            .args(["org.freedesktop.DBus.NameHasOwner", &format!("string:{name}")])
            .output()
            .unwrap();
        String::from_utf8_lossy(&asked.stdout).contains("boolean true")
    }

    /// Starts the keyring service, in the place of one that runs.
    fn log_in(&mut self, login: Login) {
        self.keyring = None;
        until("no keyring service is there", || !self.has_owner("org.freedesktop.secrets"));
        let mut keyring = self.command("gnome-keyring-daemon");
        keyring.args(["--foreground", "--components=secrets"]);
        if login == Login::Done {
            keyring.arg("--unlock");
        }
        let mut keyring = keyring.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        keyring.stdin.take().unwrap().write_all(b"correct horse").unwrap();
        self.keyring = Some(Running(keyring));
        until("the keyring service is there", || self.has_owner("org.freedesktop.secrets"));
    }

    /// Runs the binary at its most talkative.
    fn rialto(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(env!("CARGO_BIN_EXE_rialto"))
            .args(arguments)
            .arg("-vv")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses its arguments does not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs the binary and expects that it does what it is told.
    fn done(&self, arguments: &[&str], input: &str) -> String {
        let output = self.rialto(arguments, input);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout) + &text(&output.stderr)
    }

    /// Calls a tool of a server of its own: the whole answer.
    fn call(&self, flags: &[&str], tool: &str, arguments: &Value) -> Value {
        let about = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        let call = json!({ "name": tool, "arguments": arguments });
        let input = format!(
            "{}\n{}\n",
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }),
        );
        let served = self.rialto(&[&["mcp", "nostr"], flags].concat(), &input);
        let lines = text(&served.stdout);
        let mut answers = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        answers.find(|answer| answer["id"] == 1).expect("there is an answer")
    }

    /// Has an event signed through the tools.
    fn sign(&self) -> Value {
        let draft = json!({ "unsigned_event_json": r#"{"kind":1,"content":"hi"}"# });
        self.call(&[], "nostr_events_sign", &draft)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < end, "in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            found.push((path.clone(), text(&fs::read(&path).unwrap())));
        }
    }
    found
}

#[test]
fn a_key_in_the_keyring_of_the_system_signs_and_is_in_no_file() {
    let Some(mut desktop) = Desktop::new() else { return };
    desktop.log_in(Login::Done);
    let keys = Keys::generate();
    let (nsec, hex) = (keys.secret_key().to_bech32().unwrap(), keys.secret_key().to_secret_hex());
    let mut said = desktop.done(&["nostr", "keys", "import", "me", "--keyring"], &nsec);
    let listed = desktop.done(&["nostr", "keys"], "");
    assert!(listed.contains("system keyring"), "{listed}");
    said.push_str(&listed);
    for round in ["as it was kept", "after both were started again"] {
        let answer = desktop.sign();
        assert_eq!(answer["result"]["structuredContent"]["pubkey"], keys.public_key().to_hex(), "{round}: {answer}");
        said.push_str(&answer.to_string());
        desktop.log_in(Login::Done);
    }
    assert!(desktop.done(&["nostr", "keys", "show", "me", "--secret"], "").contains(&nsec));
    assert!(!said.contains(&nsec) && !said.contains(&hex), "{said}");
    for (path, text) in files(desktop.path()) {
        assert!(!text.contains(&nsec) && !text.contains(&hex), "{}", path.display());
    }
}

#[test]
fn a_key_that_is_forgotten_stays_in_the_keyring_until_it_is_erased() {
    let Some(mut desktop) = Desktop::new() else { return };
    desktop.log_in(Login::Done);
    let made: Value =
        serde_json::from_slice(&desktop.rialto(&["--json", "nostr", "keys", "add", "me", "--keyring"], "").stdout)
            .unwrap();
    let reference = format!("keyring:{}", made["npub"].as_str().unwrap());
    assert!(desktop.done(&["nostr", "keys", "remove", "me"], "").contains("stays in the keyring"));
    desktop.done(&["nostr", "keys", "import", "back", &reference], "");
    assert_eq!(desktop.sign()["result"]["structuredContent"]["pubkey"], made["pubkey"]);
    // A label that is taken leaves nothing behind in the keyring.
    let other = Keys::generate();
    let twice =
        desktop.rialto(&["nostr", "keys", "import", "back", "--keyring"], &other.secret_key().to_bech32().unwrap());
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice.stderr));
    let other = format!("keyring:{}", other.public_key().to_bech32().unwrap());
    let unknown = desktop.rialto(&["nostr", "keys", "import", "other", &other], "");
    assert!(text(&unknown.stderr).contains("does not hold that key"), "{}", text(&unknown.stderr));
    desktop.done(&["nostr", "keys", "remove", "back", "--erase"], "");
    let gone = desktop.rialto(&["nostr", "keys", "import", "again", &reference], "");
    assert!(text(&gone.stderr).contains("does not hold that key"), "{}", text(&gone.stderr));
}

#[test]
fn a_key_that_a_tool_makes_goes_to_the_keyring_if_the_operator_says_so() {
    let Some(mut desktop) = Desktop::new() else { return };
    let make = json!({ "label": "made" });
    let away = desktop.call(&["--keyring"], "nostr_keys_generate", &make);
    assert_eq!(away["error"]["data"]["reason"], "no_keyring", "{away}");
    desktop.log_in(Login::Done);
    let made = desktop.call(&["--keyring"], "nostr_keys_generate", &make);
    let npub = made["result"]["structuredContent"]["public_key"].as_str().unwrap_or_else(|| panic!("{made}"));
    assert!(desktop.done(&["nostr", "keys", "show", "made"], "").contains("system keyring"));
    let signed = desktop.sign();
    let pubkey = signed["result"]["structuredContent"]["pubkey"].as_str().unwrap_or_else(|| panic!("{signed}"));
    assert_eq!(PublicKey::from_hex(pubkey).unwrap().to_bech32().unwrap(), npub);
    let secrets = desktop.path().join(".local/share/rialto/nostr/secrets");
    assert_eq!(fs::read_dir(secrets).unwrap().count(), 0, "there is no file of it");
}

#[test]
fn a_keyring_that_is_away_or_locked_is_told_with_what_to_do_instead() {
    let Some(mut desktop) = Desktop::new() else { return };
    let add = ["nostr", "keys", "add", "me", "--keyring"];
    let away = desktop.rialto(&add, "");
    let words = text(&away.stderr);
    assert!(words.contains("no keyring service runs") && words.contains("--sealed"), "{words}");
    assert!(!away.status.success() && desktop.done(&["nostr", "keys"], "").contains("there are no keys yet"));
    desktop.log_in(Login::Done);
    desktop.done(&add, "");
    desktop.log_in(Login::Missing);
    let locked = desktop.sign();
    assert_eq!(locked["error"]["data"]["reason"], "no_keyring", "{locked}");
    assert!(locked["error"]["message"].as_str().unwrap().contains("locked"), "{locked}");
    let kept = desktop.rialto(&["nostr", "keys", "remove", "me", "--erase"], "");
    assert!(!kept.status.success());
    assert!(desktop.done(&["nostr", "keys"], "").contains("system keyring"), "its name is still there");
}
