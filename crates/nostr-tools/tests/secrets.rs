//! A canary: a known key is planted, every tool is called in every way, and nothing but the key's own file holds it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::Keys;
use rialto_nostr_tools::{Activate, Entry, Keyring, Material, Passphrase, tools};
use serde_json::{Value, json};
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

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_key_is_in_its_own_file_only() {
    // Its example names a folder of this machine.
    let skipped = ["nostr_config_dir_set"];
    let canary = Keys::generate();
    let mut running = tokio::task::JoinSet::new();
    for version in VERSIONS {
        for tool in tools().into_iter().filter(|tool| !skipped.contains(&tool.about.name)) {
            let canary = canary.clone();
            running.spawn(async move { provoke(&tool, version, &canary).await });
        }
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}
