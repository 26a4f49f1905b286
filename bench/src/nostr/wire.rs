//! The requests of both wires, plain and sealed, made before the clock starts; and the check of answers after it stopped.

use nostr::{
    event::{Event, EventBuilder, FinalizeEvent, FinalizeUnsignedEvent, Kind, Tag},
    key::{Keys, PublicKey},
    nips::{
        nip44,
        nip59::{GiftWrapBuilder, UnwrappedGift},
    },
};
use serde_json::{Value, json};

use crate::Failure;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Kinds 5910, 7000 and 6910.
    Dvmcp,
    /// Kind 25910 with a JSON-RPC message as its content.
    ContextVm,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    Plain,
    /// Kind 1059: NIP-59 for DVMCP, one wrap without a seal for ContextVM.
    Sealed,
}

#[derive(Clone, Copy)]
pub struct Dialect {
    pub wire: Wire,
    pub privacy: Privacy,
}

/// Who calls. Each call that waits belongs to another customer, so that a sealed answer is matched by its `p` alone.
pub struct Customer {
    keys: Keys,
    pub hex: String,
}

impl Customer {
    pub fn generate() -> Self {
        let keys = Keys::generate();
        let hex = keys.public_key().to_hex();
        Self { keys, hex }
    }
}

/// A signed request, as the text of its frame.
pub struct Request {
    /// The id that answers name in their `e`.
    pub id: String,
    pub frame: String,
    pub text: String,
}

impl Dialect {
    /// The kind that the provider must subscribe to in order to see requests.
    pub fn request_kind(self) -> u16 {
        match (self.privacy, self.wire) {
            (Privacy::Sealed, _) => 1059,
            (Privacy::Plain, Wire::Dvmcp) => 5910,
            (Privacy::Plain, Wire::ContextVm) => 25910,
        }
    }

    /// The kinds that a customer has to listen to.
    pub fn answer_kinds(self) -> &'static [u16] {
        match (self.privacy, self.wire) {
            (Privacy::Sealed, _) => &[1059],
            (Privacy::Plain, Wire::Dvmcp) => &[6910, 7000],
            (Privacy::Plain, Wire::ContextVm) => &[25910],
        }
    }

    /// The kind of the event that holds the result, before it is sealed.
    pub fn result_kind(self) -> u16 {
        if self.wire == Wire::Dvmcp { 6910 } else { 25910 }
    }

    /// How many events answer one call: `processing`, `success` and the result, or the result alone.
    pub fn answers(self) -> usize {
        if self.wire == Wire::Dvmcp { 3 } else { 1 }
    }

    /// A call of `echo` with a text of its own.
    pub fn call(self, customer: &Customer, provider: PublicKey, number: usize) -> Result<Request, Failure> {
        let text = format!("The quick brown fox jumps over the lazy dog, {number}.");
        let content = match self.wire {
            Wire::Dvmcp => json!({ "name": "echo", "parameters": { "text": text } }),
            Wire::ContextVm => {
                let params = json!({ "name": "echo", "arguments": { "text": text } });
                json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params })
            }
        };
        let (id, frame) = self.event(customer, provider, &content)?;
        Ok(Request { id, frame, text })
    }

    /// Any message to the provider, signed and, if need be, sealed: its id and its frame.
    pub fn event(self, customer: &Customer, provider: PublicKey, content: &Value) -> Result<(String, String), Failure> {
        let to = Tag::public_key(provider);
        let content = content.to_string();
        let builder = match self.wire {
            Wire::Dvmcp => EventBuilder::new(Kind::from(5910), content).tags([
                Tag::parse(["c", "execute-tool"])?,
                to.clone(),
                Tag::parse(["output", "application/json"])?,
            ]),
            Wire::ContextVm => EventBuilder::new(Kind::from(25910), content).tag(to.clone()),
        };
        let (id, outer) = match (self.privacy, self.wire) {
            (Privacy::Plain, _) => {
                let event = builder.finalize(&customer.keys)?;
                (event.id, event)
            }
            (Privacy::Sealed, Wire::Dvmcp) => {
                let mut rumor = builder.finalize_unsigned(customer.keys.public_key());
                (rumor.id(), GiftWrapBuilder::new(provider, rumor).finalize(&customer.keys)?)
            }
            (Privacy::Sealed, Wire::ContextVm) => {
                let inner = builder.finalize(&customer.keys)?;
                let once = Keys::generate();
                let content = nip44::encrypt(once.secret_key(), &provider, inner.as_json(), nip44::Version::default())?;
                (inner.id, EventBuilder::new(Kind::GiftWrap, content).tag(to).finalize(&once)?)
            }
        };
        Ok((id.to_hex(), format!("[\"EVENT\",{}]", outer.as_json())))
    }

    /// Whether one of these frames is the right result of the request: signed by the provider, for this request, with the
    /// text that was sent.
    pub fn check(
        self,
        customer: &Customer,
        provider: PublicKey,
        request: &Request,
        frames: &[impl AsRef<str>],
    ) -> Result<(), Failure> {
        for frame in frames {
            let answer = self.open(customer, frame.as_ref())?;
            if answer["pubkey"] != provider.to_hex() {
                return Err(format!("an answer by somebody else: {answer}").into());
            }
            let tags = answer["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
            if !tags.iter().any(|tag| tag[0] == "e" && tag[1] == *request.id) {
                return Err(format!("an answer to something else: {answer}").into());
            }
            if answer["kind"] == self.result_kind() {
                let content = answer["content"].as_str().unwrap_or_default();
                return if content.contains(&request.text) {
                    Ok(())
                } else {
                    Err(format!("not the text that was sent: {answer}").into())
                };
            }
        }
        Err("no result among the answers".into())
    }

    /// The event inside a frame, verified and unsealed.
    pub fn open(self, customer: &Customer, frame: &str) -> Result<Value, Failure> {
        let (_, _, event): (String, String, Value) = serde_json::from_str(frame)?;
        let event = Event::from_json(event.to_string())?;
        event.verify()?;
        let json = match (self.privacy, self.wire) {
            (Privacy::Plain, _) => event.as_json(),
            (Privacy::Sealed, Wire::Dvmcp) => UnwrappedGift::from_gift_wrap(&customer.keys, &event)?.rumor.as_json(),
            (Privacy::Sealed, Wire::ContextVm) => {
                let inner = nip44::decrypt(customer.keys.secret_key(), &event.pubkey, &event.content)?;
                Event::from_json(&inner)?.verify()?;
                inner
            }
        };
        Ok(serde_json::from_str(&json)?)
    }
}
