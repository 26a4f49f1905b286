//! Names on the web (NIP-05): `name@domain` leads to a key, because the domain says so.
//!
//! The name comes from a person, but often by way of a page or a message, so it may only lead where [`Reach`] allows.

use crate::address::{self, Reach};
use crate::http;
use nostr::nips::nip05::{Nip05Address, Nip05Profile};
use nostr::prelude::{PublicKey, RelayUrl};
use nostr::types::url::Url;

/// Why a name leads nowhere.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("it is no name on the web")]
    Malformed,
    #[error(transparent)]
    Address(#[from] address::Error),
    #[error("`{0}` does not tell: {1}")]
    NoDocument(String, String),
    #[error("`{1}` does not know the name `{0}`")]
    NoName(String, String),
}

/// What a domain says about a name.
#[derive(Debug, Clone)]
pub struct Found {
    pub url: Url,
    pub public_key: PublicKey,
    pub relays: Vec<RelayUrl>,
    /// Relays of whoever signs for that key (NIP-46).
    pub signer_relays: Vec<RelayUrl>,
}

/// Asks a domain whose name this is.
pub async fn look_up(address: &Nip05Address, reach: &Reach) -> Result<Found, Error> {
    let domain = address.domain().to_owned();
    let url = url_of(address.name(), &domain)?;
    let addresses = reach.addresses(&url).await?;
    let document = http::get_from(&url, "application/json", Some(&addresses))
        .await
        .map_err(|error| Error::NoDocument(domain.clone(), error.to_string()))?;
    let unreadable = |_| Error::NoDocument(domain.clone(), "what it sent is no JSON".to_owned());
    let document = serde_json::from_slice(&document.body).map_err(unreadable)?;
    let profile = Nip05Profile::from_json(address, &document);
    let profile = profile.map_err(|_| Error::NoName(address.name().to_owned(), domain))?;
    Ok(Found { url, public_key: profile.public_key, relays: profile.relays, signer_relays: profile.nip46 })
}

/// The address of the document.
pub fn url_of(name: &str, domain: &str) -> Result<Url, Error> {
    let mut url = Url::parse(&format!("https://{domain}/.well-known/nostr.json")).map_err(|_| Error::Malformed)?;
    let is_bare = url.username().is_empty() && url.password().is_none() && url.path() == "/.well-known/nostr.json";
    if !is_bare || url.query().is_some() || url.fragment().is_some() {
        return Err(Error::Malformed);
    }
    url.query_pairs_mut().append_pair("name", name);
    if address::is_loopback(&url) {
        // Nobody is in between, and nobody has a certificate for it.
        url.set_scheme("http").map_err(|()| Error::Malformed)?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::{Error, look_up, url_of};
    use crate::address::{self, Reach};
    use nostr::nips::nip05::Nip05Address;
    use nostr::prelude::Keys;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn names_cannot_change_what_is_asked_for() {
        for domain in
            ["a@b", "example.com/x?", "example.com/x", "u:p@example.com", "example.com?x", "example.com#x", ""]
        {
            assert!(matches!(url_of("me", domain), Err(Error::Malformed)), "{domain}");
        }
        let url = url_of("a&b=c", "127.0.0.1:1").unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:1/.well-known/nostr.json?name=a%26b%3Dc");
    }

    #[tokio::test]
    async fn a_typed_local_address_is_asked() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let key = Keys::generate().public_key();
        let body =
            serde_json::json!({ "names": { "me": key.to_hex() }, "relays": { key.to_hex(): ["wss://r.example"] } });
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut buffer = [0; 1024];
                let _ = stream.read(&mut buffer).await;
                let body = body.to_string();
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let known = Nip05Address::parse(&format!("me@{address}")).unwrap();
        let found = look_up(&known, &Reach::with_loopback()).await.unwrap();
        assert_eq!((found.public_key, found.relays[0].as_str_without_trailing_slash()), (key, "wss://r.example"));
        let unknown = Nip05Address::parse(&format!("you@{address}")).unwrap();
        assert!(matches!(look_up(&unknown, &Reach::with_loopback()).await, Err(Error::NoName(..))));
        let refused = look_up(&known, &Reach::default()).await;
        assert!(matches!(refused, Err(Error::Address(address::Error::Private(_)))), "{refused:?}");
    }
}
