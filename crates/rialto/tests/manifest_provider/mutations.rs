//! Thousands of messages that were damaged and then signed by their author: what still reads as a request is one, and
//! nothing else is.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use torture::nostr_side::desk::{Desk, key_of};
use torture::nostr_side::event::Draft;
use torture::nostr_side::message::{self, MESSAGE};
use torture::nostr_side::messenger::{Way, request};
use torture::nostr_side::random::Random;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[case!(of_thousands_of_damaged_messages_only_readable_requests_are_run)];

const COUNT: usize = 4000;

/// The content with one thing changed.
fn mutate(content: &str, other: &str, random: &mut Random) -> String {
    let (text, iv) = content.split_once("?iv=").unwrap();
    let mut bytes = STANDARD.decode(text).unwrap();
    let mut start = STANDARD.decode(iv).unwrap();
    let blocks = bytes.len() / 16;
    let bit = 1 << random.below(8);
    match random.below(16) {
        // One bit of the first block, which is chosen by the initialization vector.
        0..=3 => start[random.below(16)] ^= bit,
        // One bit of a block, which destroys it and changes the next.
        4 | 5 => {
            let place = random.below(bytes.len());
            bytes[place] ^= bit;
        }
        // The padding.
        6 => {
            let place = bytes.len().saturating_sub(17).min(bytes.len() - 1);
            bytes[place] ^= bit;
        }
        7 => bytes.truncate(16 * random.below(blocks)),
        8 => bytes.truncate(random.below(bytes.len())),
        9 => bytes.extend_from_slice(&start.clone()),
        10 => {
            let (one, two) = (random.below(16), 16 + random.below(bytes.len() - 16));
            bytes.swap(one, two);
        }
        11 => start = STANDARD.decode(other.split_once("?iv=").unwrap().1).unwrap(),
        12 => {
            // Another letter, which may be no base64.
            let mut letters = content.as_bytes().to_vec();
            let place = random.below(letters.len());
            letters[place] = b"Aa0+/=?-_ \n"[random.below(11)];
            return String::from_utf8(letters).unwrap();
        }
        13 => {
            let place = random.below(content.len());
            return format!("{}{}", &content[..place], &content[place + 1..]);
        }
        14 => return content.trim_end_matches('=').to_owned(),
        _ => {
            let place = random.below(content.len());
            return format!(
                "{}{}{}",
                &content[..place],
                ["=", "A", "?iv=", " ", "é"][random.below(5)],
                &content[place..]
            );
        }
    }
    format!("{}?iv={}", STANDARD.encode(bytes), STANDARD.encode(start))
}

/// What the actor would write down for this text, if it is a request for `note`.
fn effect(text: &str) -> Option<String> {
    let body: Value = serde_json::from_str(text).ok()?;
    if body["tool_name"] != "note" || !body["arguments"].is_object() {
        return None;
    }
    Some(body["arguments"]["tag"].as_str().map_or_else(|| "note".to_owned(), |tag| format!("note {tag}")))
}

fn of_thousands_of_damaged_messages_only_readable_requests_are_run() {
    let mut desk = Desk::unlimited();
    let customer = &desk.customer;
    let provider = key_of(&desk.world, "provider", &desk.provider.pubkey);
    let mut random = Random::new(400);
    let mut allowed: BTreeMap<String, usize> = BTreeMap::new();
    let mut unreadable = Vec::new();
    let mut readable = Vec::new();
    let originals: Vec<String> = (0..50)
        .map(|number| {
            // Of different lengths, so that the padding is of every length, too.
            let text = request("note", &json!({ "tag": format!("m{number}"), "text": "x".repeat(number) }));
            message::encrypt(&customer.keys, &customer.provider, &text)
        })
        .collect();
    for number in 0..COUNT {
        let content = mutate(&originals[number % 50], &originals[random.below(50)], &mut random);
        let event =
            Draft::new(MESSAGE, content.as_str()).tag(&["p", &customer.provider]).tag(&["n", &number.to_string()]);
        let event = event.sign(&customer.keys);
        // Read by somebody who is not particular about base64, as some are.
        match message::decrypt_leniently(&provider, &customer.pubkey(), &content) {
            Some(text) => {
                if let Some(effect) = effect(&text) {
                    *allowed.entry(effect).or_default() += 1;
                }
                let looks_like_one = text.trim_start().starts_with(['{', '[']);
                let strict = message::decrypt(&provider, &customer.pubkey(), &content).is_some();
                readable.push((event.id.clone(), looks_like_one, strict, text));
            }
            None => unreadable.push(event.id.clone()),
        }
        desk.inject(&event);
    }
    customer.barrier();
    // A last request behind each of them in the queue.
    assert_eq!(customer.call(Way::Message, "note", &json!({ "tag": "last" })).said(), "noted");
    assert!(readable.len() > 100 && unreadable.len() > 1000, "{} and {}", readable.len(), unreadable.len());
    for (id, looks_like_one, strict, text) in &readable {
        if *looks_like_one && *strict {
            let body = customer.answer(Way::Message, id).body();
            assert_eq!(body.get("content").is_some(), effect(text).is_some(), "{text:?}: {body}");
        } else if !looks_like_one {
            assert!(customer.answers(id).is_empty(), "{text:?} was answered");
        }
    }
    for id in &unreadable {
        assert!(customer.answers(id).is_empty(), "what cannot be read was answered");
    }
    for effect in desk.world.effects().iter().filter(|effect| *effect != "note last") {
        let left = allowed.get_mut(effect).unwrap_or_else(|| panic!("{effect:?} was never asked for"));
        *left = left.checked_sub(1).unwrap_or_else(|| panic!("{effect:?} was run too often"));
    }
    assert!(desk.provider.process.is_running());
    let told = desk.provider.process.stderr.look(|lines| lines.join("\n"));
    assert!(!told.contains("panicked"), "{told}");
}
