//! Where strangers may send us: addresses on the open network, and those that the operator has named.
//!
//! A name that somebody writes into an event or a message must not lead into the network that we are in. Names are looked
//! up once, and whoever connects uses the addresses that were checked: the name may lead elsewhere a moment later.

use nostr::types::url::{Host, Url};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Why an address is not connected to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("the address has no host")]
    Malformed,
    #[error("`{0}` cannot be found")]
    NoHost(String),
    #[error("`{0}` leads to an address inside a private network")]
    Private(String),
}

/// Which hosts may be connected to.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// These may be anywhere.
    hosts: Arc<[String]>,
    loopback: bool,
}

impl Reach {
    /// The open network, and these hosts wherever they are.
    pub fn with_hosts(hosts: impl IntoIterator<Item = String>) -> Self {
        Self { hosts: hosts.into_iter().collect(), loopback: false }
    }

    /// The open network, and this machine by an address that says so: for names that a person types.
    pub fn with_loopback() -> Self {
        Self { hosts: Arc::default(), loopback: true }
    }

    /// The same, and these hosts as well.
    #[must_use]
    pub fn and_hosts(&self, hosts: &[String]) -> Self {
        Self { hosts: self.hosts.iter().chain(hosts).cloned().collect(), loopback: self.loopback }
    }

    fn names(&self, host: &str) -> bool {
        self.hosts.iter().any(|one| one.eq_ignore_ascii_case(host))
    }

    /// The addresses behind a URL, all of which may be connected to.
    pub async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, Error> {
        let name = url.host_str().ok_or(Error::Malformed)?;
        let port = url.port().unwrap_or(if matches!(url.scheme(), "wss" | "https") { 443 } else { 80 });
        let is_named = self.names(name);
        let found: Vec<SocketAddr> = match url.host().ok_or(Error::Malformed)? {
            Host::Ipv4(address) => vec![(address, port).into()],
            Host::Ipv6(address) => vec![(address, port).into()],
            Host::Domain(host) => {
                let found = tokio::net::lookup_host((host, port)).await;
                found.map_err(|_| Error::NoHost(name.to_owned()))?.collect()
            }
        };
        if found.is_empty() {
            return Err(Error::NoHost(name.to_owned()));
        }
        let is_local = self.loopback && is_loopback(url);
        if !is_named && !is_local && found.iter().any(|address| !is_public(address.ip())) {
            return Err(Error::Private(name.to_owned()));
        }
        Ok(found)
    }
}

/// Whether a URL says itself that it leads to this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(host)) => host == "localhost",
        None => false,
    }
}

/// Whether an address belongs to the open network.
pub fn is_public(address: IpAddr) -> bool {
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
    use super::{Error, Reach, is_public};
    use nostr::types::url::Url;

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
    async fn only_named_hosts_may_be_private() {
        let url = |text: &str| Url::parse(text).unwrap();
        for private in
            ["http://127.0.0.1/", "http://10.0.0.1:80/", "ws://[::1]:7/", "http://localhost/x", "http://2130706433/"]
        {
            let found = Reach::default().addresses(&url(private)).await;
            assert!(matches!(found, Err(Error::Private(_) | Error::NoHost(_))), "{private}: {found:?}");
        }
        let home = Reach::with_hosts(["127.0.0.1".to_owned()]);
        assert!(home.addresses(&url("ws://127.0.0.1:7000")).await.is_ok());
        assert!(home.addresses(&url("ws://127.0.0.2:7000")).await.is_err());
        assert!(Reach::with_loopback().addresses(&url("http://127.0.0.1:1/")).await.is_ok());
        assert!(Reach::with_loopback().addresses(&url("http://10.0.0.1/")).await.is_err());
        assert!(Reach::default().addresses(&url("https://1.1.1.1/")).await.is_ok());
    }
}
