//! The parts of a call that can be done alone: the same events through the same crates, in a loop, in this process.
//!
//! Cryptography is the floor: whoever speaks this protocol has to verify the request and to sign the answers. The rest is
//! what the simplest program would need for the same work.

use std::{
    fs::File,
    hint::black_box,
    io::Write as _,
    process,
    time::{Duration, Instant},
};

use nostr::{
    event::{Event, Kind, UnsignedEvent},
    key::{Keys, PublicKey},
    nips::nip44::v2::{ConversationKey, decrypt_to_bytes, encrypt_to_bytes_with_nonce},
    types::Timestamp,
};
use serde_json::Value;

use super::wire::Privacy;
use crate::{Failure, process::cpu};

/// How long each loop runs.
const TIME: Duration = Duration::from_millis(300);

/// What an event of a call looks like, to be made and read again.
pub struct Sample {
    pub request: Event,
    pub answers: Vec<UnsignedEvent>,
}

/// CPU µs of this process for one turn of a loop.
fn loop_of(mut turn: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    turn()?;
    let (begin, before, mut turns) = (Instant::now(), cpu(process::id())?, 0_u32);
    while begin.elapsed() < TIME {
        for _ in 0..16 {
            turn()?;
        }
        turns += 16;
    }
    Ok((cpu(process::id())? - before).as_secs_f64() * 1e6 / f64::from(turns))
}

fn sign(keys: &Keys, unsigned: &UnsignedEvent) -> Event {
    let id = unsigned.compute_id();
    let signature = keys.sign_schnorr(id.as_bytes());
    let UnsignedEvent { created_at, kind, tags, content, .. } = unsigned.clone();
    Event::new(id, keys.public_key(), created_at, kind, tags, content, signature)
}

/// A wrap as NIP-59 has it, without the base64 of its contents; the texts are as long as they are with it.
struct Wrapped {
    wrap: Event,
    wrap_payload: Vec<u8>,
    seal: Event,
    seal_payload: Vec<u8>,
}

fn stand_in(payload: &[u8]) -> String {
    "A".repeat(payload.len().div_ceil(3) * 4)
}

fn wrap(keys: &Keys, shared: &ConversationKey, to: &PublicKey, inner: &str, count: u64) -> Result<Wrapped, Failure> {
    let mut nonce = [0; 32];
    nonce[..8].copy_from_slice(&count.to_le_bytes());
    let seal_payload = encrypt_to_bytes_with_nonce(shared, inner.as_bytes(), nonce)?;
    let content = stand_in(&seal_payload);
    let seal = sign(keys, &UnsignedEvent::new(keys.public_key(), Timestamp::from(1), Kind::Seal, [], content));
    let once = Keys::generate();
    let key = ConversationKey::derive(once.secret_key(), to)?;
    let wrap_payload = encrypt_to_bytes_with_nonce(&key, seal.as_json().as_bytes(), nonce)?;
    let content = stand_in(&wrap_payload);
    let unsigned = UnsignedEvent::new(once.public_key(), Timestamp::from(1), Kind::GiftWrap, [], content);
    Ok(Wrapped { wrap: sign(&once, &unsigned), wrap_payload, seal, seal_payload })
}

/// Verifying the request and signing the answers; sealed, also opening the one and closing the others.
pub fn cryptography(sample: &Sample, privacy: Privacy) -> Result<f64, Failure> {
    let (provider, customer) = (Keys::generate(), Keys::generate());
    let Sample { request, answers } = sample;
    if privacy == Privacy::Plain {
        return loop_of(|| {
            request.verify()?;
            for answer in answers {
                black_box(sign(&provider, answer));
            }
            Ok(())
        });
    }
    // The key shared with a customer who calls again is known.
    let shared = ConversationKey::derive(provider.secret_key(), &customer.public_key())?;
    let texts: Vec<_> = answers.iter().map(UnsignedEvent::as_json).collect();
    let theirs = wrap(&customer, &shared, &provider.public_key(), &request.as_json(), 1)?;
    let (to, mut count) = (customer.public_key(), 1);
    loop_of(|| {
        theirs.wrap.verify()?;
        let once = ConversationKey::derive(provider.secret_key(), &theirs.wrap.pubkey)?;
        black_box(decrypt_to_bytes(&once, &theirs.wrap_payload)?);
        theirs.seal.verify()?;
        black_box(decrypt_to_bytes(&shared, &theirs.seal_payload)?);
        for text in &texts {
            count += 1;
            black_box(wrap(&provider, &shared, &to, text, count)?);
        }
        Ok(())
    })
}

/// Reading the request and three times `OK`, and writing the answers; sealed, each event three times over.
pub fn json(sample: &Sample, privacy: Privacy) -> Result<f64, Failure> {
    let keys = Keys::generate();
    let request = sample.request.as_json();
    let ok = format!("[\"OK\",\"{}\",true,\"\"]", sample.request.id.to_hex());
    let answers: Vec<_> = sample.answers.iter().map(|answer| sign(&keys, answer)).collect();
    // The request also holds a message for the tool, and the result one from it.
    let message = sample.request.content.as_str();
    let layers = if privacy == Privacy::Plain { 1 } else { 3 };
    loop_of(|| {
        black_box(serde_json::from_str::<Value>(message)?);
        for _ in 0..layers {
            black_box(Event::from_json(&request)?);
        }
        for answer in &answers {
            black_box(serde_json::from_str::<Value>(&ok)?);
            for _ in 0..layers {
                black_box(answer.as_json());
            }
        }
        Ok(())
    })
}

/// The line in the operator's log.
pub fn log(folder: &std::path::Path) -> Result<f64, Failure> {
    let mut file = File::create(folder.join("log"))?;
    let line = "x".repeat(120) + "\n";
    loop_of(|| Ok(file.write_all(line.as_bytes())?))
}
