//! Who may use a wallet: the keys of one Nostr Wallet Connect connection, and the address that hands it over.

use nostr::prelude::{Keys, PublicKey};
use nostr::types::url::RelayUrl;
use std::fmt;
use url::form_urlencoded;

/// Both ends of a connection, as the wallet knows them: its own keys, and who its client is.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) service: Keys,
    pub(crate) client: PublicKey,
}

/// The address of a wallet. Whoever has it can spend, so it is shown only to those who ask for exactly that.
pub(crate) struct Uri(String);

impl Connection {
    /// Draws the keys of both ends. The client's secret is in the address and nowhere else.
    pub(crate) fn new(relay: &RelayUrl) -> (Self, Uri) {
        let service = Keys::generate();
        let client = Keys::generate();
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("relay", relay.as_str_without_trailing_slash())
            .append_pair("secret", &client.secret_key().to_secret_hex())
            .finish();
        let uri = format!("nostr+walletconnect://{}?{query}", service.public_key().to_hex());
        (Self { service, client: client.public_key() }, Uri(uri))
    }
}

impl Uri {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Uri(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::Connection;
    use nostr::types::url::RelayUrl;

    #[test]
    fn an_address_names_both_ends_and_is_not_printed() {
        let relay = RelayUrl::parse("ws://127.0.0.1:7447").unwrap();
        let (connection, uri) = Connection::new(&relay);
        let start = format!(
            "nostr+walletconnect://{}?relay=ws%3A%2F%2F127.0.0.1%3A7447&secret=",
            connection.service.public_key()
        );
        assert!(uri.reveal().starts_with(&start));
        assert_eq!(uri.reveal().len(), start.len() + 64);
        let secret = &uri.reveal()[start.len()..];
        assert!(!format!("{uri:?} {connection:?}").contains(secret));
    }
}
