//! Zaps: receipts that are true, receipts that are not, and an invoice from a server on this machine.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should panic")]

mod support;

use nostr::prelude::{Event, Keys, RelayUrl, Tag, Timestamp};
use rialto_relay::embedded::{self, Relay};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use support::World;
use support::other::{Other, call, tag, web};

const VERSION: &str = "2025-11-25";
const LETTERS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// Writes an invoice as a wallet would, but for the signature, which nobody here checks.
fn invoice(msats: u64, description: &str) -> String {
    let prefix = format!("lnbcrt{}n", msats / 100);
    let number = |mut value: u64, length: usize| {
        let mut groups = vec![0u8; length];
        for group in groups.iter_mut().rev() {
            *group = (value & 31) as u8;
            value >>= 5;
        }
        groups
    };
    let five = |bytes: &[u8]| {
        let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
        bits.chunks(5)
            .map(|chunk| (0..5).fold(0, |all, at| all << 1 | chunk.get(at).copied().unwrap_or(0)))
            .collect::<Vec<u8>>()
    };
    let hash = ring::digest::digest(&ring::digest::SHA256, description.as_bytes());
    let mut data = number(Timestamp::now().as_secs(), 7);
    for (kind, bytes) in [(1, &[7; 32][..]), (23, hash.as_ref())] {
        let groups = five(bytes);
        data.push(kind);
        data.extend(number(groups.len() as u64, 2));
        data.extend(groups);
    }
    data.extend([0; 104]);
    let sum = checksum(&prefix, &data);
    data.extend((0..6).map(|place| (sum >> (5 * (5 - place)) & 31) as u8));
    format!("{prefix}1{}", data.iter().map(|group| char::from(LETTERS[usize::from(*group)])).collect::<String>())
}

fn checksum(prefix: &str, data: &[u8]) -> u32 {
    let words = prefix.bytes().map(|byte| byte >> 5).chain([0]).chain(prefix.bytes().map(|byte| byte & 31));
    let sum = words.chain(data.iter().copied()).chain([0; 6]).fold(1u32, |sum, value| {
        let top = sum >> 25;
        let sum = ((sum & 0x01ff_ffff) << 5) ^ u32::from(value);
        let generator = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3u32];
        generator.iter().enumerate().fold(sum, |sum, (bit, word)| if top >> bit & 1 == 1 { sum ^ word } else { sum })
    });
    sum ^ 1
}

/// What a Lightning server does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trick {
    None,
    Amount,
    Hash,
    Error,
    NoZaps,
}

/// A Lightning server; the signer of its receipts is `wallet`. Gives its address.
async fn lightning(wallet: &Keys, trick: Arc<Mutex<Trick>>) -> String {
    let own = Arc::new(Mutex::new(String::new()));
    let (signer, place) = (wallet.public_key().to_hex(), own.clone());
    let address = web(move |target| {
        let trick = *trick.lock().unwrap();
        let url = nostr::types::url::Url::parse(&format!("http://x{target}")).unwrap();
        if url.path() == "/.well-known/lnurlp/bob" {
            let callback = format!("http://{}/pay", place.lock().unwrap());
            let zaps = trick != Trick::NoZaps;
            return (
                200,
                json!({
                    "tag": "payRequest", "callback": callback, "minSendable": 1000, "maxSendable": 1_000_000,
                    "metadata": "[]", "allowsNostr": zaps, "nostrPubkey": signer,
                })
                .to_string(),
            );
        }
        let asked = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        let (amount, request) = (asked("amount").unwrap().parse::<u64>().unwrap(), asked("nostr").unwrap());
        let event: Event = serde_json::from_str(&request).unwrap();
        event.verify().unwrap();
        let answer = match trick {
            Trick::Amount => json!({ "pr": invoice(amount * 2, &request) }),
            Trick::Hash => json!({ "pr": invoice(amount, "something else") }),
            Trick::Error => json!({ "status": "ERROR", "reason": "out of\u{202e} order" }),
            _ => json!({ "pr": invoice(amount, &request) }),
        };
        (200, answer.to_string())
    })
    .await;
    own.lock().unwrap().clone_from(&address);
    address
}

fn parts(event: &Event, name: &str) -> Vec<String> {
    event.tags.iter().find(|tag| tag.kind() == name).map(|tag| tag.as_slice().to_vec()).unwrap_or_default()
}

#[tokio::test]
async fn an_anonymous_zap_is_prepared_down_to_the_invoice() {
    let world = World::new().await;
    let wallet = Keys::generate();
    let trick = Arc::new(Mutex::new(Trick::None));
    let address = lightning(&wallet, trick.clone()).await;
    let bob = Other::new(Keys::generate(), &[world.url()]);
    bob.post(0, Vec::new(), &json!({ "name": "bob", "lud16": format!("bob@{address}") }).to_string()).await;
    let note = bob.post(1, Vec::new(), "zap me").await;
    let article = bob.post(30023, vec![tag(&["d", "x"])], "long").await;
    let mut client = world.client(VERSION).await;
    let target = |event: &Event| nostr::nips::nip19::ToBech32::to_bech32(&event.id).unwrap();
    for (target, event) in
        [(bob.keys.public_key().to_hex(), None), (target(&note), Some(&note)), (target(&article), Some(&article))]
    {
        let zap = json!({ "target": target, "amount_sats": 21, "comment": "thanks" });
        let output = call(&mut client, "nostr_zaps_prepare_anonymous", zap).await.unwrap();
        let request: Event = serde_json::from_str(output["zap_request"].as_str().unwrap()).unwrap();
        request.verify().unwrap();
        assert_eq!((request.kind.as_u16(), request.content.as_str()), (9734, "thanks"));
        assert_eq!(parts(&request, "p"), ["p".to_owned(), bob.keys.public_key().to_hex()]);
        assert_eq!(parts(&request, "e").get(1), event.map(|event| event.id.to_hex()).as_ref());
        assert_eq!(parts(&request, "a").is_empty(), event.is_none_or(|event| event.id != article.id));
        assert_eq!(parts(&request, "amount"), ["amount", "21000"]);
        assert_eq!(parts(&request, "relays"), ["relays".to_owned(), world.relay.url()]);
        assert_eq!(
            (&output["amount_sats"], &output["recipient"]),
            (&json!(21), &json!(bob.keys.public_key().to_hex()))
        );
        assert!(output["expires_at"].as_u64().unwrap() > Timestamp::now().as_secs());
    }
    let zap = |sats: u64| json!({ "target": bob.keys.public_key().to_hex(), "amount_sats": sats });
    let error = client.call("nostr_zaps_prepare_anonymous", zap(5000)).await.unwrap_err();
    assert_eq!(error["data"]["pointer"], "/amount_sats", "{error}");
    for (wrong, words) in [
        (Trick::Amount, "another amount"),
        (Trick::Hash, "not for this zap"),
        (Trick::Error, "out of  order"),
        (Trick::NoZaps, "takes no zaps"),
    ] {
        *trick.lock().unwrap() = wrong;
        let error = client.call("nostr_zaps_prepare_anonymous", zap(21)).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains(words), "{wrong:?}: {error}");
    }
    let nobody = json!({ "target": Keys::generate().public_key().to_hex(), "amount_sats": 1 });
    let error = client.call("nostr_zaps_prepare_anonymous", nobody).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "not_found");
}

#[tokio::test]
async fn a_zap_is_divided_as_the_event_says() {
    let world = World::new().await;
    let address = lightning(&Keys::generate(), Arc::new(Mutex::new(Trick::None))).await;
    let elsewhere = Relay::start(embedded::Options::default()).await.unwrap();
    let there = [RelayUrl::parse(&elsewhere.url()).unwrap()];
    let author = Other::new(Keys::generate(), &[world.url()]);
    let (bob, carol) = (Other::new(Keys::generate(), &[world.url()]), Other::new(Keys::generate(), &there));
    for person in [&bob, &carol] {
        person.post(0, Vec::new(), &json!({ "lud16": format!("bob@{address}") }).to_string()).await;
    }
    let key = |person: &Other| person.keys.public_key().to_hex();
    // Carol's profile is only where the tag says.
    let zap_tags =
        [tag(&["zap", &key(&bob), &world.relay.url(), "3"]), tag(&["zap", &key(&carol), &elsewhere.url(), "1"])];
    let note = author.post(1, zap_tags.to_vec(), "we wrote this").await;
    let mut client = world.client(VERSION).await;
    let zap = json!({ "target": nostr::nips::nip19::ToBech32::to_bech32(&note.id).unwrap(), "amount_sats": 101 });
    let output = call(&mut client, "nostr_zaps_prepare_anonymous", zap.clone()).await.unwrap();
    let more = output["more"].as_array().unwrap();
    let mut senders = Vec::new();
    for (part, who, sats) in [(&output, &bob, 76), (&more[0], &carol, 25)] {
        assert_eq!((&part["recipient"], &part["amount_sats"]), (&json!(key(who)), &json!(sats)), "{output}");
        let request: Event = serde_json::from_str(part["zap_request"].as_str().unwrap()).unwrap();
        assert_eq!(parts(&request, "p"), ["p".to_owned(), key(who)]);
        assert_eq!(parts(&request, "e"), ["e".to_owned(), note.id.to_hex()]);
        assert_eq!(parts(&request, "amount"), ["amount".to_owned(), (sats * 1000).to_string()]);
        senders.push(request.pubkey);
    }
    assert!(more.len() == 1 && senders[0] != senders[1], "nothing shows that they belong together");
    // If one of them cannot be paid, nobody is asked to pay the others without knowing.
    elsewhere.stop().await;
    let mut newcomer = world.client(VERSION).await;
    let error = newcomer.call("nostr_zaps_prepare_anonymous", zap).await.unwrap_err();
    assert_eq!((&error["data"]["reason"], &error["data"]["recipient"]), (&json!("not_found"), &json!(key(&carol))));
}

/// A zap from `sender` to `recipient`, with the receipt by `wallet`.
fn receipt(wallet: &Other, sender: &Other, recipient: &Other, msats: u64, twist: &str) -> Event {
    let now = Timestamp::now().as_secs();
    let to = recipient.keys.public_key().to_hex();
    let tags = vec![tag(&["p", &to]), tag(&["amount", &msats.to_string()]), tag(&["relays", "wss://r.example"])];
    let request = serde_json::to_string(&sender.event(9734, tags, "well done", now)).unwrap();
    let paid = if twist == "amount" { msats * 10 } else { msats };
    let described = if twist == "hash" { "else" } else { &request };
    let mut tags: Vec<Tag> = vec![
        tag(&["p", if twist == "recipient" { "00" } else { &to }]),
        tag(&["P", &sender.keys.public_key().to_hex()]),
        tag(&["bolt11", &invoice(paid, described)]),
    ];
    if twist != "request" {
        tags.push(tag(&["description", &request]));
    }
    if twist == "preimage" {
        tags.push(tag(&["preimage", &"ab".repeat(32)]));
    }
    let signer = if twist == "signer" { sender } else { wallet };
    signer.event(9735, tags, "", now)
}

#[tokio::test]
async fn receipts_count_only_if_they_are_true() {
    let world = World::new().await;
    let person = || Other::new(Keys::generate(), &[world.url()]);
    let (wallet, alice, bob, carol) = (person(), person(), person(), person());
    let address = lightning(&wallet.keys, Arc::new(Mutex::new(Trick::None))).await;
    bob.post(0, Vec::new(), &json!({ "lud16": format!("bob@{address}") }).to_string()).await;
    let mut client = world.client(VERSION).await;
    for twist in ["", "amount", "hash", "recipient", "request", "preimage", "signer"] {
        let receipt = receipt(&wallet, &alice, &bob, 21_000, twist);
        let text = serde_json::to_string(&receipt).unwrap();
        let output = call(&mut client, "nostr_zaps_validate_receipt", json!({ "receipt": text })).await.unwrap();
        assert_eq!(output["valid"], twist.is_empty(), "{twist}: {output}");
        assert_eq!(output["zap"]["problems"].as_array().unwrap().is_empty(), twist.is_empty(), "{twist}: {output}");
    }
    // Carol's profile names no server, so nobody can tell.
    let events = [
        receipt(&wallet, &alice, &bob, 21_000, ""),
        receipt(&wallet, &alice, &bob, 1_000_000, "signer"),
        receipt(&wallet, &bob, &carol, 7_000, ""),
    ];
    for event in &events {
        assert!(wallet.publish(event).await);
    }
    let id = json!({ "receipt": events[0].id.to_hex() });
    assert_eq!(call(&mut client, "nostr_zaps_validate_receipt", id).await.unwrap()["valid"], true);
    let of = json!({ "pubkey": bob.keys.public_key().to_hex() });
    let received = call(&mut client, "nostr_zaps_get_received", of.clone()).await.unwrap();
    assert_eq!((&received["count"], &received["total_sats"]), (&json!(2), &json!(21)), "{received}");
    let sent = call(&mut client, "nostr_zaps_get_sent", of.clone()).await.unwrap();
    let zap = &sent["zaps"][0];
    assert_eq!((&sent["count"], &zap["verdict"], &zap["direction"]), (&json!(1), &json!("unchecked"), &json!("sent")));
    assert_eq!((&zap["amount_sats"], &zap["comment"]), (&json!(7), &json!("well done")));
    let all = call(&mut client, "nostr_zaps_get_all", of).await.unwrap();
    assert_eq!(all["count"], 3);
    let error = client.call("nostr_zaps_get_received", json!({})).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "no_signer");
    let lookup: Value = json!({ "receipt": "x" });
    assert_eq!(client.call("nostr_zaps_validate_receipt", lookup).await.unwrap_err()["code"], -32602);
}
