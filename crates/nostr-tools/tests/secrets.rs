//! A canary: a known key is planted, every tool is called in every way, and nothing but the key's own file holds it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::Keys;
use rialto_nostr_tools::{Activate, Entry, Keyring, Material, Passphrase, Session, join, tools};
use serde_json::{Value, json};
use support::bunker::{Bunker, Manner};
use support::{VERSIONS, World, files};

/// The forms in which a secret key could be found.
fn forms(keys: &Keys) -> [String; 2] {
    [keys.secret_key().to_secret_hex(), keys.secret_key().to_bech32().unwrap()]
}

/// Every way in which the canary could be given to a tool: for each of its texts once.
fn provocations(input: &Value, example: &Value, canary: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for (name, schema) in input["properties"].as_object().into_iter().flatten() {
        let mut arguments = example.clone();
        match schema["type"].as_str() {
            Some("string" | "integer" | "boolean") => arguments[name] = json!(canary),
            Some("array") if schema["items"]["type"] == "string" => arguments[name] = json!([canary]),
            Some("array" | "object") => arguments[name] = json!([{ canary: canary }]),
            _ => continue,
        }
        all.push(arguments);
    }
    all
}

/// Everything that is asked of one tool in one version. What holds no canary may go to relays that are not there, and is
/// asked once.
fn calls(tool: &Entry, version: &str, canary: &Keys) -> Vec<Value> {
    let example: Value = serde_json::from_str(tool.about.example).unwrap();
    let mut all: Vec<Value> = forms(canary).iter().flat_map(|form| provocations(&tool.input, &example, form)).collect();
    if version == VERSIONS[0] {
        let mut bold = example.clone();
        for (name, schema) in tool.input["properties"].as_object().into_iter().flatten() {
            if schema["type"] == "boolean" {
                bold[name] = json!(true);
            }
        }
        all.extend([example, bold]);
    }
    all
}

/// Calls one tool in every way, as the canary.
async fn provoke(tool: &Entry, version: &str, canary: &Keys) {
    let _permit = WORLDS.acquire().await.unwrap();
    let world = World::new().await;
    let ring = Keyring::open(world.directory(), Passphrase::none()).unwrap();
    let mut client = world.client(version).await;
    for arguments in calls(tool, version, canary) {
        // The call before may have renamed it or taken it away.
        let (known, _) = ring.list().unwrap();
        match known.iter().find(|identity| identity.public_key == canary.public_key()) {
            Some(identity) => drop(ring.rename(Some(&identity.label), "work").unwrap()),
            None => drop(ring.add("work", &Material::Secret(canary.clone()), 1, Activate::Yes).unwrap()),
        }
        ring.activate("work").unwrap();
        let response = client.call_raw(tool.about.name, &arguments).await.to_string();
        for form in forms(canary) {
            assert!(!response.contains(&form), "{} {arguments}: {response}", tool.about.name);
        }
    }
    let own = format!("secrets/{}", canary.public_key().to_hex());
    let aside = format!("secrets/removed/{}", canary.public_key().to_hex());
    for (path, text) in files(world.directory()) {
        let is_own = path.ends_with(&own) || path.ends_with(&aside);
        assert!(is_own || forms(canary).iter().all(|form| !text.contains(form)), "{}: {path}", tool.about.name);
    }
}

/// Worlds at once: each has a relay and writes to disk, and with all of them nobody would be answered in time.
static WORLDS: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(24);

/// The tools whose example names a folder of this machine.
const SKIPPED: [&str; 1] = ["nostr_config_dir_set"];

/// Calls one tool in every way, as somebody whose key is with a remote signer. What ties us to that signer is a secret as well:
/// with it, anybody could have things signed.
async fn provoke_from_afar(tool: &Entry) {
    let _permit = WORLDS.acquire().await.unwrap();
    let world = World::new().await;
    let bunker = Bunker::start(&world.url(), Manner::Honest).await;
    let ring = Keyring::open(world.directory(), Passphrase::none()).unwrap();
    let remote = Material::Remote(Box::new(join(&bunker.address()).await.unwrap()));
    ring.add("work", &remote, 1, Activate::Yes).unwrap();
    let own = format!("{}.signer", bunker.user.public_key().to_hex());
    let kept = std::fs::read_to_string(world.directory().join("secrets").join(&own)).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let tie = Keys::parse(kept["client"].as_str().unwrap()).unwrap();
    let canaries: Vec<String> = [&tie, &bunker.user, &bunker.signer]
        .iter()
        .flat_map(|keys| forms(keys))
        .chain([bunker.secret.clone()])
        .collect();
    let holds_none = |text: &str| canaries.iter().all(|canary| !text.contains(canary));
    assert!(holds_none(&format!("{remote:?} {ring:?} {:?}", Session::open(world.options()).unwrap())));
    let mut client = world.client(VERSIONS[0]).await;
    let example: Value = serde_json::from_str(tool.about.example).unwrap();
    let mut calls = provocations(&tool.input, &example, &tie.secret_key().to_bech32().unwrap());
    calls.extend(provocations(&tool.input, &example, "label:work"));
    calls.push(example);
    for arguments in calls {
        let response = client.call_raw(tool.about.name, &arguments).await.to_string();
        assert!(holds_none(&response), "{} {arguments}: {response}", tool.about.name);
    }
    for (path, text) in files(world.directory()) {
        assert!(path.ends_with(&own) || holds_none(&text), "{}: {path}", tool.about.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ties_us_to_a_signer_is_in_its_own_file_only() {
    let mut running = tokio::task::JoinSet::new();
    for tool in tools().into_iter().filter(|tool| !SKIPPED.contains(&tool.about.name)) {
        running.spawn(async move { provoke_from_afar(&tool).await });
    }
    running.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_key_is_in_its_own_file_only() {
    let canary = Keys::generate();
    let mut running = tokio::task::JoinSet::new();
    for version in VERSIONS {
        for tool in tools().into_iter().filter(|tool| !SKIPPED.contains(&tool.about.name)) {
            let canary = canary.clone();
            running.spawn(async move { provoke(&tool, version, &canary).await });
        }
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}
