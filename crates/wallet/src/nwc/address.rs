//! `nostr+walletconnect://<wallet's key>?relay=…&secret=…`: whom to ask, where, and as whom.

use nostr::prelude::{Keys, PublicKey, RelayUrl, SecretKey};
use nostr::types::url::Url;
use rialto_payment::secret::Secret;

const SCHEME: &str = "nostr+walletconnect";

/// More relays than this are not asked.
const MAX_RELAYS: usize = 8;

/// Why a text is no address of a wallet. The text is not repeated: it may hold most of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("it is no address")]
    Malformed,
    #[error("the wallet's public key is not 64 hexadecimal digits")]
    Wallet,
    #[error("`relay=` with the address of a relay is missing")]
    NoRelay,
    #[error("`relay=` is not the address of a relay (ws:// or wss://)")]
    Relay,
    #[error("`secret=` with 64 hexadecimal digits is missing")]
    Secret,
}

#[derive(Clone)]
pub(super) struct Address {
    pub(super) wallet: PublicKey,
    pub(super) relays: Vec<RelayUrl>,
    pub(super) keys: Keys,
}

impl Address {
    pub(super) fn read(reference: &Secret) -> Result<Self, Invalid> {
        let url = Url::parse(reference.reveal().trim()).map_err(|_| Invalid::Malformed)?;
        if url.scheme() != SCHEME {
            return Err(Invalid::Malformed);
        }
        // Some write it without the two slashes.
        let wallet = url.host_str().unwrap_or_else(|| url.path());
        let wallet = PublicKey::from_hex(wallet).map_err(|_| Invalid::Wallet)?;
        let values = |name: &'static str| url.query_pairs().filter(move |(key, _)| key == name).map(|(_, value)| value);
        let relays: Result<Vec<RelayUrl>, _> =
            values("relay").take(MAX_RELAYS).map(|relay| RelayUrl::parse(relay.trim())).collect();
        let relays = relays.map_err(|_| Invalid::Relay)?;
        if relays.is_empty() {
            return Err(Invalid::NoRelay);
        }
        let secret = values("secret").next().and_then(|secret| SecretKey::from_hex(secret.trim()).ok());
        Ok(Self { wallet, relays, keys: Keys::new(secret.ok_or(Invalid::Secret)?) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, Invalid};
    use rialto_payment::secret::Secret;

    const KEY: &str = "b889ff5b1513b641e2a139f661a661364979c5beee91842f8f0ef42ab558e9d4";
    const OURS: &str = "71a8c14c1407c113601079c4302dab36460f0ccd0ad506f1f2dc73b5100e4f3c";

    #[test]
    fn an_address_is_read_in_the_forms_that_are_about() {
        for (text, relays) in [
            (format!("nostr+walletconnect://{KEY}?relay=wss%3A%2F%2Frelay.example&secret={OURS}"), 1),
            (
                format!(
                    "nostr+walletconnect:{KEY}?relay=wss://a.example&relay=ws://b.example/x&secret={OURS}&lud16=a@b"
                ),
                2,
            ),
            (format!(" nostr+walletconnect://{KEY}?secret={OURS}&relay=ws://127.0.0.1:7\n"), 1),
        ] {
            let address = Address::read(&Secret::new(text)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(address.wallet.to_hex(), KEY);
            assert_eq!((address.relays.len(), address.keys.secret_key().to_secret_hex().as_str()), (relays, OURS));
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_repeating_it() {
        let whole = format!("nostr+walletconnect://{KEY}?relay=ws://a.example&secret={OURS}");
        for (text, error) in [
            ("x", Invalid::Malformed),
            (&whole.replace("nostr+", ""), Invalid::Malformed),
            (&whole.replace(KEY, "abc"), Invalid::Wallet),
            (&whole.replace("relay=", "r="), Invalid::NoRelay),
            (&whole.replace("ws://", "http://"), Invalid::Relay),
            (&whole.replace(OURS, "71a8"), Invalid::Secret),
        ] {
            assert_eq!(Address::read(&Secret::new(text)).err(), Some(error), "{text}");
        }
    }
}
