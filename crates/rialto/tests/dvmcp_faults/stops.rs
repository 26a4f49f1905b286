//! How a provider ends, what it leaves on the disk, and servers that do not even begin.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use torture::nostr_side::customer::Customer;
use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::scene::Scene;
use torture::nostr_side::world::World;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(an_interrupt_is_a_clean_stop_too),
    case!(a_stop_without_any_relay_does_not_hang),
    case!(a_stop_with_a_deaf_relay_does_not_hang),
    case!(a_record_with_a_torn_end_is_read),
    case!(the_key_is_for_its_owner_only_and_never_told),
    case!(a_server_that_cannot_be_started_is_explained),
    case!(a_server_that_keeps_dying_is_unavailable_at_once),
];

fn an_interrupt_is_a_clean_stop_too() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    relay.wait_for_event("the announcement", |event| event.kind == 31990);
    provider.process.signal(Signal::INT);
    assert!(provider.process.end().success());
    relay.wait_for_event("the withdrawal", |event| event.kind == 5);
}

fn a_stop_without_any_relay_does_not_hang() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    relay.stop();
    let begun = Instant::now();
    provider.process.stop();
    assert!(begun.elapsed() < Duration::from_secs(15), "it took {:?}", begun.elapsed());
}

fn a_stop_with_a_deaf_relay_does_not_hang() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    relay.rules(|rules| rules.deaf = true);
    let begun = Instant::now();
    provider.process.stop();
    assert!(begun.elapsed() < Duration::from_secs(15), "it took {:?}", begun.elapsed());
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

fn a_record_with_a_torn_end_is_read() {
    let relay = FakeRelay::start();
    let world = World::new();
    let mut provider = world.serve(&[&relay.url()], &[]);
    let customer = Customer::new(&relay.url(), &provider.pubkey);
    for number in 0..3 {
        customer.call("note", &json!({ "tag": number.to_string() }));
    }
    provider.process.kill();
    // The power went while a line was being written.
    let all = files(&world.home("provider").join("data"));
    let record = all.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let last = fs::read(record).unwrap();
    let half = &last[last.len() - 40..last.len() - 10];
    fs::OpenOptions::new().append(true).open(record).unwrap().write_all(half).unwrap();
    let _again = world.serve(&[&relay.url()], &[]);
    customer.barrier();
    assert_eq!(customer.call("note", &json!({ "text": "on" })).text(), "on");
    for number in 0..3 {
        assert_eq!(world.times(&format!("note {number}")), 1, "{number} was run again");
    }
}

fn the_key_is_for_its_owner_only_and_never_told() {
    let relay = FakeRelay::start();
    let scene = Scene::on(&relay, &["--verbose", "--verbose"]);
    scene.customer.call("note", &json!({}));
    let environment = fs::read(format!("/proc/{}/environ", scene.world.actor_pid())).unwrap();
    scene.customer.ask_sealed("execute-tool", &json!({ "name": "crash", "parameters": {} }));
    let data = scene.world.home("provider").join("data");
    let mut keys = Vec::new();
    for file in files(&data) {
        let is_private = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0;
        let shut = file.ancestors().take_while(|path| path.starts_with(&data)).any(is_private);
        assert!(shut, "{} can be read by others", file.display());
        let text = fs::read_to_string(&file).unwrap_or_default();
        if let Ok(found) = nostr::key::Keys::parse(text.trim())
            && found.public_key().to_hex() == scene.provider.pubkey
        {
            keys.extend([text.trim().to_owned(), found.secret_key().to_secret_hex()]);
        }
    }
    assert!(!keys.is_empty(), "no key in {:?}", files(&data));
    let told = |lines: &[String]| lines.join("\n");
    let mut said = scene.provider.process.stdout.look(told) + &scene.provider.process.stderr.look(told);
    relay.heard().iter().for_each(|heard| said.push_str(&heard.frame.to_string()));
    said.push_str(&String::from_utf8_lossy(&environment));
    for key in keys {
        assert!(!said.contains(&key), "the key was told");
    }
    assert!(!said.contains("nsec1"), "a key was told");
}

fn a_server_that_cannot_be_started_is_explained() {
    let relay = FakeRelay::start();
    let (world, url) = (World::new(), relay.url());
    for command in [&["no-such-program-anywhere"][..], &["false"]] {
        let arguments = [&["serve", "--json", "--relay", &url, "--"], command].concat();
        let mut process = world.rialto("provider", &arguments);
        process.says(command[0]);
        if process.is_running() {
            process.stop();
        }
    }
}

fn a_server_that_keeps_dying_is_unavailable_at_once() {
    let scene = Scene::new(&["--rate-per-key", "0"]);
    for _ in 0..6 {
        assert_eq!(scene.customer.call("crash", &json!({})).error(), "upstream_unavailable");
    }
    let begun = Instant::now();
    assert_eq!(scene.customer.call("note", &json!({})).error(), "upstream_unavailable");
    assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());
    assert_eq!(scene.world.times("note"), 0);
}
