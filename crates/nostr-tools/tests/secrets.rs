//! A canary: a known key is planted, every tool is called in every way, and nothing but the key's own file holds it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::nips::nip19::ToBech32;
use nostr::prelude::Keys;
use rialto_nostr_tools::{Activate, Keyring, Material, Passphrase, tools};
use serde_json::{Value, json};
use support::{VERSIONS, World, files};

/// The forms in which a secret key could be found.
fn forms(keys: &Keys) -> [String; 2] {
    [keys.secret_key().to_secret_hex(), keys.secret_key().to_bech32().unwrap()]
}

/// Every way in which the canary could be given to a tool, for each of its texts.
fn provocations(input: &Value, example: &Value, canary: &str) -> Vec<Value> {
    let mut all = vec![example.clone()];
    for (name, schema) in input["properties"].as_object().into_iter().flatten() {
        let mut arguments = example.clone();
        match schema["type"].as_str() {
            Some("string") if schema["enum"].is_null() => arguments[name] = json!(canary),
            Some("array") if schema["items"]["type"] == "string" => arguments[name] = json!([canary]),
            Some("boolean") => arguments[name] = json!(true),
            Some("integer") => arguments[name] = json!(canary),
            _ => continue,
        }
        all.push(arguments);
    }
    all
}

#[tokio::test]
async fn a_secret_key_is_in_its_own_file_only() {
    let world = World::new().await;
    let canary = Keys::generate();
    let ring = Keyring::open(world.directory(), Passphrase::none()).unwrap();
    let plant = || {
        if ring.find("canary").is_err() {
            ring.add("canary", &Material::Secret(canary.clone()), 1, Activate::Yes).unwrap();
        }
        ring.activate("canary").unwrap();
    };
    let skipped = ["nostr_config_dir_set"];
    for version in VERSIONS {
        let mut client = world.client(version).await;
        for tool in tools().iter().filter(|tool| !skipped.contains(&tool.about.name)) {
            let example: Value = serde_json::from_str(tool.about.example).unwrap();
            for form in forms(&canary) {
                for arguments in provocations(&tool.input, &example, &form) {
                    plant();
                    let response = client.call_raw(tool.about.name, &arguments).await.to_string();
                    for form in forms(&canary) {
                        assert!(!response.contains(&form), "{} {arguments}: {response}", tool.about.name);
                    }
                }
            }
        }
    }
    let own = format!("secrets/{}", canary.public_key().to_hex());
    let aside = format!("secrets/removed/{}", canary.public_key().to_hex());
    for (path, text) in files(world.directory()) {
        if path.ends_with(&own) || path.ends_with(&aside) {
            continue;
        }
        for form in forms(&canary) {
            assert!(!text.contains(&form), "{path}");
        }
    }
}
