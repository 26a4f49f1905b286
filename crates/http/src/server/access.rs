//! Who may speak: programs of this machine that know the token, and no web page that found the port.

use crate::server::Options;
use crate::server::response::Refusal;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::{StatusCode, Uri};
use rialto_mcp::error::Kind;
use std::net::{IpAddr, SocketAddr};

/// The name we are called by, and the page it comes from.
pub(super) fn check_place(
    options: &Options,
    address: SocketAddr,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let forbidden = |words: &str| Refusal::new(StatusCode::FORBIDDEN, Kind::AccessDenied, words);
    // A web page that has its own name lead to 127.0.0.1 gives itself away here.
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, _) => None,
        (Some(_), Some(_)) => return Err(Refusal::invalid(StatusCode::BAD_REQUEST, "`Host` is given twice")),
    };
    let is_known = |host: &str| is_own(host, address) || options.hosts.iter().any(|known| is_same_host(known, host));
    if !host.is_some_and(is_known) || uri.authority().is_some_and(|authority| !is_known(authority.as_str())) {
        return Err(forbidden("This name of the server is not allowed (Host)"));
    }
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let is_allowed = options.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
        if !is_allowed && !is_local_origin(origin) {
            return Err(forbidden("Pages from this origin are not allowed (Origin)"));
        }
    }
    Ok(())
}

/// The token, if one is needed.
pub(super) fn check_token(options: &Options, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(token) = &options.token else { return Ok(()) };
    let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.split_once(' '));
    let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
    match shown {
        Some(shown) if is_same(shown.as_bytes(), token.as_bytes()) => Ok(()),
        Some(_) => Err(Refusal::unauthorized("The bearer token is not the right one")),
        None => Err(Refusal::unauthorized("A bearer token is needed (Authorization)")),
    }
}

/// Compares in a time that does not depend on where they differ.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}

/// The name or address in `Host`, without the port; nothing where what follows is no port.
fn name(host: &str) -> &str {
    let (name, rest) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(parts) => parts,
        None => host.split_at(host.rfind(':').unwrap_or(host.len())),
    };
    let is_port =
        |rest: &str| rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if rest.is_empty() || is_port(rest) { name } else { "" }
}

/// Loopback, whatever the port (there may be a tunnel), and the very address that we listen on.
fn is_own(host: &str, address: SocketAddr) -> bool {
    let name = name(host);
    let ip = name.parse::<IpAddr>().ok();
    name.eq_ignore_ascii_case("localhost")
        || ip.is_some_and(|ip| ip.is_loopback() || (ip == address.ip() && !ip.is_unspecified()))
}

/// An allowed host without a port stands for every port.
fn is_same_host(known: &str, host: &str) -> bool {
    known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name(host))
}

fn is_local_origin(origin: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(|host| {
        let name = name(host);
        !host.contains(['/', '@', '?', '#'])
            && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()))
    })
}

#[cfg(test)]
mod tests {
    use super::{check_place, check_token, is_local_origin, is_own};
    use crate::server::Options;
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};
    use hyper::{StatusCode, Uri};
    use std::net::SocketAddr;

    fn status(options: &Options, headers: &[(&'static str, &str)]) -> Option<StatusCode> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let address = SocketAddr::from(([127, 0, 0, 1], 7400));
        let checked = check_place(options, address, &Uri::from_static("/mcp"), &map);
        checked.and_then(|()| check_token(options, &map)).err().map(|refusal| refusal.status())
    }

    #[test]
    fn names_that_are_ours() {
        let address = SocketAddr::from(([192, 168, 1, 5], 7400));
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:7400", "127.8.9.1", "[::1]:80", "[::1]", "192.168.1.5:7400"]
        {
            assert!(is_own(host, address), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "[::1]evil.example",
            "[::1",
            "localhost:evil.example",
            "",
            "192.168.1.6",
            "0.0.0.0",
        ] {
            assert!(!is_own(host, address), "{host}");
        }
    }

    #[test]
    fn pages_that_are_ours() {
        for origin in ["http://localhost", "https://localhost:3000", "http://127.0.0.1:6274", "http://[::1]:1"] {
            assert!(is_local_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "http://evil.example/localhost",
            "file://localhost",
            "http://localhost:80/x",
        ] {
            assert!(!is_local_origin(origin), "{origin}");
        }
    }

    #[test]
    fn what_is_refused() {
        let open = Options::default();
        assert_eq!(status(&open, &[("host", "localhost:7400")]), None);
        assert_eq!(status(&open, &[]), Some(StatusCode::FORBIDDEN));
        assert_eq!(status(&open, &[("host", "evil.example")]), Some(StatusCode::FORBIDDEN));
        assert_eq!(status(&open, &[("host", "localhost"), ("host", "localhost")]), Some(StatusCode::BAD_REQUEST));
        assert_eq!(
            status(&open, &[("host", "localhost"), ("origin", "http://evil.example")]),
            Some(StatusCode::FORBIDDEN)
        );
        let named = Options { hosts: vec!["box.lan".into()], origins: vec!["https://app.example".into()], ..open };
        assert_eq!(status(&named, &[("host", "box.lan:7400"), ("origin", "https://app.example")]), None);
        let locked = Options { token: Some("sesame".into()), ..Options::default() };
        let host = ("host", "localhost");
        assert_eq!(status(&locked, &[host, ("authorization", "Bearer sesame")]), None);
        assert_eq!(status(&locked, &[host, ("authorization", "bearer  sesame ")]), None);
        for wrong in ["Bearer sesam", "Bearer sesame2", "Bearer", "Basic sesame", "sesame", ""] {
            assert_eq!(status(&locked, &[host, ("authorization", wrong)]), Some(StatusCode::UNAUTHORIZED), "{wrong}");
        }
        assert_eq!(status(&locked, &[host]), Some(StatusCode::UNAUTHORIZED));
    }
}
