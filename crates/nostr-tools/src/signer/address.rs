//! The addresses by which signers and clients find each other (NIP-46): `bunker://…` and `nostrconnect://…`.

use crate::failure::Failure;
use nostr::prelude::{PublicKey, RelayUrl};

/// No address names more relays that we would use.
const MAX_RELAYS: usize = 8;

/// What is in the address of a signer.
pub(super) struct Bunker {
    pub(super) signer: PublicKey,
    pub(super) relays: Vec<RelayUrl>,
    pub(super) secret: String,
}

impl Bunker {
    pub(super) fn read(address: &str) -> Result<Self, Failure> {
        let invalid = || Failure::invalid("a signer's address is bunker://PUBLIC-KEY?relay=wss://…&secret=…");
        let rest = address.trim().strip_prefix("bunker://").ok_or_else(invalid)?;
        let (key, query) = rest.split_once('?').ok_or_else(invalid)?;
        let signer = PublicKey::from_hex(key.trim_end_matches('/')).map_err(|_| invalid())?;
        let mut relays = Vec::new();
        let mut secret = String::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("relay", relay)) => relays.push(RelayUrl::parse(&decoded(relay)).map_err(|_| invalid())?),
                Some(("secret", given)) => secret = decoded(given),
                _ => {}
            }
        }
        if relays.is_empty() {
            return Err(invalid());
        }
        relays.truncate(MAX_RELAYS);
        Ok(Self { signer, relays, secret })
    }
}

/// Our own address, which a signer can join.
pub(super) fn invitation(client: &PublicKey, relays: &[RelayUrl], secret: &str, permissions: &str) -> String {
    let mut address = format!("nostrconnect://{}?", client.to_hex());
    for relay in relays {
        address.push_str(&format!("relay={}&", encoded(relay.as_str())));
    }
    address.push_str(&format!("secret={secret}&perms={}&name=Rialto", encoded(permissions)));
    address
}

/// The relays that a signer wants to be met on from now on. It may say that as JSON, or as JSON in a text; `None` if it is
/// content, or says something else.
pub(super) fn relays_of(answer: &str) -> Option<Vec<RelayUrl>> {
    let named: Vec<String> = serde_json::from_str(answer).ok()?;
    let mut relays: Vec<RelayUrl> = Vec::new();
    for relay in named.iter().filter_map(|relay| RelayUrl::parse(relay).ok()) {
        if !relays.contains(&relay) && relays.len() < MAX_RELAYS {
            relays.push(relay);
        }
    }
    (!relays.is_empty()).then_some(relays)
}

/// What stands for `%3A` and the like.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::{Bunker, decoded, encoded, relays_of};

    #[test]
    fn addresses_are_read() {
        let key = "a".repeat(64);
        let good = format!("bunker://{key}?relay=wss%3A%2F%2Frelay.example&secret=a%20b&other=1");
        let bunker = Bunker::read(&good).unwrap();
        assert_eq!((bunker.signer.to_hex(), bunker.relays.len(), bunker.secret.as_str()), (key.clone(), 1, "a b"));
        for bad in
            ["bunker://x?relay=wss://a", &format!("bunker://{key}"), &format!("bunker://{key}?secret=x"), "npub1x"]
        {
            assert!(Bunker::read(bad).is_err(), "{bad}");
        }
        assert_eq!(decoded(&encoded("wss://é?=&%")), "wss://é?=&%");
        assert_eq!(decoded("50%"), "50%");
    }

    #[test]
    fn a_signer_names_relays_or_is_content() {
        let names = |answer: &str| {
            relays_of(answer).map(|relays| relays.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names(r#"["wss://a.example","no relay","wss://a.example"]"#).as_deref(), Some("wss://a.example"));
        for content in ["null", "[]", "ack", "", r#"["no relay"]"#, r#"{"wss://a.example":{}}"#] {
            assert_eq!(names(content), None, "{content}");
        }
        let many: Vec<String> = (0..50).map(|number| format!("wss://r{number}.example")).collect();
        assert_eq!(relays_of(&serde_json::to_string(&many).unwrap()).unwrap().len(), 8);
    }
}
