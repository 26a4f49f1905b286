//! Names on the web (NIP-05): `name@domain` leads to a key, because the domain says so.
//!
//! The name comes from a person, but often by way of a page or a message. So it must not lead into the network that we
//! are in: only who types an address of this machine gets one.

use nostr::nips::nip05::{Nip05Address, Nip05Profile};
use nostr::prelude::{PublicKey, RelayUrl};
use nostr::types::url::{Host, Url};
use rialto_relay::http;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Why a name leads nowhere.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("it is no name on the web")]
    Malformed,
    #[error("`{0}` cannot be found")]
    NoHost(String),
    #[error("`{0}` leads to an address inside a private network")]
    Private(String),
    #[error("`{0}` does not tell: {1}")]
    NoDocument(String, String),
    #[error("`{1}` does not know the name `{0}`")]
    NoName(String, String),
}

/// Asks a domain whose name this is.
pub async fn look_up(address: &Nip05Address) -> Result<(PublicKey, Vec<RelayUrl>), Error> {
    let domain = address.domain().to_owned();
    let (url, addresses) = address_of(address.name(), &domain).await?;
    // From the addresses that were checked: the name may lead elsewhere a moment later.
    let document = http::get_from(&url, "application/json", addresses.as_deref())
        .await
        .map_err(|error| Error::NoDocument(domain.clone(), error.to_string()))?;
    let unreadable = |_| Error::NoDocument(domain.clone(), "what it sent is no JSON".to_owned());
    let document = serde_json::from_slice(&document.body).map_err(unreadable)?;
    let profile = Nip05Profile::from_json(address, &document);
    let profile = profile.map_err(|_| Error::NoName(address.name().to_owned(), domain))?;
    Ok((profile.public_key, profile.relays))
}

/// The address of the document, once it is clear that it may be asked for, and where the domain's name leads.
async fn address_of(name: &str, domain: &str) -> Result<(Url, Option<Vec<SocketAddr>>), Error> {
    let mut url = Url::parse(&format!("https://{domain}/.well-known/nostr.json")).map_err(|_| Error::Malformed)?;
    let is_bare = url.username().is_empty() && url.password().is_none() && url.path() == "/.well-known/nostr.json";
    if !is_bare || url.query().is_some() || url.fragment().is_some() {
        return Err(Error::Malformed);
    }
    url.query_pairs_mut().append_pair("name", name);
    let mut addresses = None;
    let is_local = match url.host().ok_or(Error::Malformed)? {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain("localhost") => true,
        Host::Domain(host) => {
            let unknown = || Error::NoHost(domain.to_owned());
            let port = url.port().unwrap_or(443);
            let found = tokio::net::lookup_host((host, port)).await.map_err(|_| unknown())?;
            let found: Vec<SocketAddr> = found.collect();
            if found.is_empty() {
                return Err(unknown());
            }
            if found.iter().any(|address| !is_public(address.ip())) {
                return Err(Error::Private(domain.to_owned()));
            }
            addresses = Some(found);
            false
        }
    };
    if is_local {
        // Nobody is in between, and nobody has a certificate for it.
        url.set_scheme("http").map_err(|()| Error::Malformed)?;
    }
    Ok((url, addresses))
}

/// Whether an address belongs to the open network.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_reserved = first == 0 || first >= 240 || (first == 192 && second == 0 && third == 0);
    let is_benchmark = first == 198 && (18..20).contains(&second);
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || is_shared
        || is_reserved
        || is_benchmark)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let segments = address.segments();
    // Ways to write the older kind of address: translated, tunnelled, compatible.
    let inner = match segments {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] | [0, 0, 0, 0, 0, 0, high, low] => {
            Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        _ => None,
    };
    if inner.is_some_and(|inner| !is_public_v4(inner)) {
        return false;
    }
    !(address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || segments[0] & 0xffc0 == 0xfec0
        || (segments[0] == 0x2001 && segments[1] == 0xdb8))
}

#[cfg(test)]
mod tests {
    use super::{Error, address_of, is_public, look_up};
    use nostr::nips::nip05::Nip05Address;
    use nostr::prelude::Keys;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn private_addresses_are_told_from_public_ones() {
        for address in [
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "127.0.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "fec0::1",
            "::7f00:1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[tokio::test]
    async fn names_cannot_change_what_is_asked_for() {
        for domain in
            ["a@b", "example.com/x?", "example.com/x", "u:p@example.com", "example.com?x", "example.com#x", ""]
        {
            assert!(matches!(address_of("me", domain).await, Err(Error::Malformed)), "{domain}");
        }
        let url = address_of("a&b=c", "127.0.0.1:1").await.unwrap().0;
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
        let (found, relays) = look_up(&known).await.unwrap();
        assert_eq!((found, relays[0].as_str_without_trailing_slash()), (key, "wss://r.example"));
        let unknown = Nip05Address::parse(&format!("you@{address}")).unwrap();
        assert!(matches!(look_up(&unknown).await, Err(Error::NoName(..))));
    }
}
