//! NIP-42: a client proves that it holds a key by signing our challenge.
//!
//! The signed event also names the relay. Without that check, another relay could pass our challenge on to its own
//! users and act here in their name.

use std::net::SocketAddr;

use hyper::Uri;

use super::event::{AUTHENTICATION, Bytes32, Unverified};

/// How far the signature's time may be from ours; what NIP-42 suggests.
const MAX_AGE_SECONDS: u64 = 600;

/// What one connection must sign.
#[derive(Debug)]
pub(super) struct Challenge {
    pub(super) text: String,
    relays: Vec<Uri>,
}

impl Challenge {
    /// `local` is our end of the connection, which is also our name when no public one is configured.
    pub(super) fn new(public: Option<&str>, local: SocketAddr) -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        let text = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let port = local.port();
        let mut names: Vec<String> = public.map(str::to_owned).into_iter().collect();
        if local.ip().to_canonical().is_loopback() {
            // Whoever reaches us here is on this machine, where these names lead to nobody else.
            names.extend(["127.0.0.1", "localhost", "[::1]"].map(|host| format!("ws://{host}:{port}")));
        }
        if public.is_none() {
            names.push(format!("ws://{local}"));
        }
        Ok(Self { text, relays: names.iter().filter_map(|name| name.parse().ok()).collect() })
    }

    /// Returns who signed; the error is a reason for an OK message.
    pub(super) fn check(&self, event: Unverified<'_>, now: u64) -> Result<Bytes32, &'static str> {
        if event.kind() != AUTHENTICATION {
            return Err("invalid: an authentication event has kind 22242");
        }
        if event.created_at().abs_diff(now) > MAX_AGE_SECONDS {
            return Err("invalid: the authentication event is not from now");
        }
        if event.tag("challenge") != Some(&self.text) {
            return Err("invalid: that is not the challenge of this connection");
        }
        let relay: Option<Uri> = event.tag("relay").and_then(|relay| relay.parse().ok());
        if !relay.is_some_and(|relay| self.relays.iter().any(|own| is_same_relay(own, &relay))) {
            return Err("invalid: the authentication is for another relay");
        }
        event.verify().map(|event| event.author).map_err(|_| "invalid: the signature is wrong")
    }
}

/// Compares addresses apart from case, a default port and a slash at the end.
fn is_same_relay(one: &Uri, other: &Uri) -> bool {
    fn parts(uri: &Uri) -> (Option<String>, Option<u16>, &str) {
        let default = match uri.scheme_str() {
            Some("ws" | "http") => Some(80),
            Some("wss" | "https") => Some(443),
            _ => None,
        };
        (uri.host().map(str::to_ascii_lowercase), uri.port_u16().or(default), uri.path().trim_end_matches('/'))
    }
    one.scheme() == other.scheme() && parts(one) == parts(other)
}

#[cfg(test)]
mod tests {
    use super::is_same_relay;

    #[test]
    fn addresses_are_compared_as_addresses() {
        let cases = [
            ("ws://a.b", "ws://a.b/", true),
            ("ws://a.b", "WS://A.B:80", true),
            ("wss://a.b", "wss://a.b:443/", true),
            ("wss://a.b/path", "wss://a.b/path/", true),
            ("ws://a.b", "wss://a.b", false),
            ("ws://a.b", "ws://a.b.c", false),
            ("ws://a.b:1", "ws://a.b:2", false),
            ("ws://a.b/x", "ws://a.b/y", false),
        ];
        for (one, other, expected) in cases {
            let (one, other) = (one.parse().unwrap_or_default(), other.parse().unwrap_or_default());
            assert_eq!(is_same_relay(&one, &other), expected, "{one} {other}");
        }
    }
}
