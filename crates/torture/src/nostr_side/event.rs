//! Events as NIP-01 describes them.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use bitcoin_hashes::Sha256;
use nostr::key::Keys;
use secp256k1::schnorr::Signature;
use secp256k1::{Secp256k1, VerifyOnly, XOnlyPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A signed event, or with an empty `sig` one that is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub id: String,
    pub pubkey: String,
    pub created_at: i64,
    pub kind: u32,
    pub tags: Vec<Vec<String>>,
    pub content: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sig: String,
}

impl Event {
    pub fn parse(value: &Value) -> Self {
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("no event ({error}): {value}"))
    }

    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap()
    }

    /// The id that it should have.
    pub fn computed_id(&self) -> String {
        let list = json!([0, self.pubkey, self.created_at, self.kind, self.tags, self.content]);
        hash(&list.to_string())
    }

    /// What is wrong with its id or signature.
    pub fn problem(&self) -> Option<&'static str> {
        if self.computed_id() != self.id {
            return Some("the id is wrong");
        }
        let key = unhex(&self.pubkey).and_then(|bytes| XOnlyPublicKey::from_slice(&bytes).ok());
        let sig = unhex(&self.sig).and_then(|bytes| Signature::from_slice(&bytes).ok());
        let (Some(key), Some(sig), Some(id)) = (key, sig, unhex(&self.id)) else { return Some("no key or signature") };
        static CURVE: OnceLock<Secp256k1<VerifyOnly>> = OnceLock::new();
        let curve = CURVE.get_or_init(Secp256k1::verification_only);
        curve.verify_schnorr(&sig, &id, &key).is_err().then_some("the signature is wrong")
    }

    /// The tags with this name, without the name.
    pub fn tags(&self, name: &str) -> Vec<&[String]> {
        self.tags.iter().filter(|tag| tag.first().is_some_and(|first| first == name)).map(|tag| &tag[1..]).collect()
    }

    /// The first value of the only tag with this name.
    #[track_caller]
    pub fn tag(&self, name: &str) -> &str {
        let tags = self.tags(name);
        assert_eq!(tags.len(), 1, "tags `{name}` in {self:?}");
        &tags[0][0]
    }

    pub fn has_tag(&self, name: &str, value: &str) -> bool {
        self.tags(name).iter().any(|tag| tag.first().is_some_and(|first| first == value))
    }

    /// The content, which must be JSON.
    #[track_caller]
    pub fn body(&self) -> Value {
        serde_json::from_str(&self.content).unwrap_or_else(|error| panic!("content is no JSON ({error}): {self:?}"))
    }
}

/// An event that is being written.
#[derive(Clone, Debug)]
pub struct Draft {
    kind: u32,
    created_at: i64,
    tags: Vec<Vec<String>>,
    content: String,
}

impl Draft {
    pub fn new(kind: u32, content: impl Into<String>) -> Self {
        Self { kind, created_at: now(), tags: Vec::new(), content: content.into() }
    }

    pub fn tag(mut self, tag: &[&str]) -> Self {
        self.tags.push(tag.iter().map(|&part| part.to_owned()).collect());
        self
    }

    pub fn with_content(mut self, content: &str) -> Self {
        content.clone_into(&mut self.content);
        self
    }

    /// Takes away all tags with this name.
    pub fn without(mut self, name: &str) -> Self {
        self.tags.retain(|tag| tag[0] != name);
        self
    }

    pub fn at(mut self, created_at: i64) -> Self {
        self.created_at = created_at;
        self
    }

    /// The event by this author, without a signature.
    pub fn unsigned(&self, pubkey: &str) -> Event {
        let mut event = Event {
            id: String::new(),
            pubkey: pubkey.to_owned(),
            created_at: self.created_at,
            kind: self.kind,
            tags: self.tags.clone(),
            content: self.content.clone(),
            sig: String::new(),
        };
        event.id = event.computed_id();
        event
    }

    pub fn sign(&self, keys: &Keys) -> Event {
        sign(self.unsigned(&hex_key(keys)), keys)
    }
}

/// Gives an event the id and the signature of these keys, whoever it says its author is.
pub fn sign(mut event: Event, keys: &Keys) -> Event {
    event.id = event.computed_id();
    event.sig = keys.sign_schnorr(unhex(&event.id).unwrap()).to_hex();
    event
}

pub fn hex_key(keys: &Keys) -> String {
    keys.public_key().to_hex()
}

pub fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// SHA-256 in hex.
pub fn hash(text: &str) -> String {
    Sha256::hash(text.as_bytes()).to_byte_array().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits?;
    (digits.len() % 2 == 0)
        .then(|| digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect())
}
