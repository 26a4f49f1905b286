//! Where a remote server is, and what is said to it with every request.

use hyper::Uri;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

/// Headers that are ours to write.
const RESERVED: [HeaderName; 9] = [
    header::ACCEPT,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TRANSFER_ENCODING,
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-session-id"),
];

/// The address of a server, with headers of the user's own. Both may hold secrets and are never printed as a whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: Url,
    uri: Uri,
    headers: HeaderMap,
    way: Way,
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// By `POST`; servers that do not know that are spoken to as below.
    #[default]
    Streamable,
    /// As the oldest version does: answers come on a stream that is opened first.
    Sse,
}

/// What is wrong with an address or a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    #[error("not an address: {0}")]
    Address(String),
    #[error("the address must begin with http:// or https://")]
    Scheme,
    #[error("the address must not hold a user or password; write a header instead")]
    Credentials,
    #[error("`{0}` cannot be the name of a header")]
    Name(String),
    #[error("the value of header `{0}` holds characters that a header cannot have")]
    Value(String),
    #[error("header `{0}` is written by the protocol itself")]
    Reserved(String),
}

impl Endpoint {
    pub fn new(address: &str, way: Way) -> Result<Self, Invalid> {
        let mut url = Url::parse(address.trim()).map_err(|error| Invalid::Address(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Invalid::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Invalid::Credentials);
        }
        url.set_fragment(None);
        let uri = to_uri(&url).ok_or_else(|| Invalid::Address("it holds characters that it cannot".to_owned()))?;
        Ok(Self { url, uri, headers: HeaderMap::new(), way })
    }

    /// The same with a header of the user's.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, Invalid> {
        let key =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| Invalid::Name(name.escape_debug().to_string()))?;
        let is_mirror = key.as_str().starts_with("mcp-param-") || matches!(key.as_str(), "mcp-method" | "mcp-name");
        if RESERVED.contains(&key) || is_mirror {
            return Err(Invalid::Reserved(name.to_owned()));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| Invalid::Value(name.to_owned()))?;
        value.set_sensitive(true);
        self.headers.append(key, value);
        Ok(self)
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    pub fn way(&self) -> Way {
        self.way
    }

    /// Whether the user's own headers say who asks.
    pub fn has_authorization(&self) -> bool {
        self.headers.contains_key(header::AUTHORIZATION)
    }

    /// The names of the user's headers.
    pub fn header_names(&self) -> impl Iterator<Item = &str> {
        self.headers.keys().map(HeaderName::as_str)
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

impl std::fmt::Display for Endpoint {
    /// The address without its query, which may hold a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut url = self.url.clone();
        url.set_query(None);
        f.write_str(url.as_str())
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.to_string())
            .field("headers", &self.header_names().collect::<Vec<_>>())
            .field("way", &self.way)
            .finish()
    }
}

pub(super) fn to_uri(url: &Url) -> Option<Uri> {
    url.as_str().parse().ok()
}

/// Whether two addresses lead to the same program: scheme, host and port are equal.
pub(super) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, Invalid, Way};

    fn endpoint(address: &str) -> Result<Endpoint, Invalid> {
        Endpoint::new(address, Way::Streamable)
    }

    #[test]
    fn addresses_are_checked() {
        assert_eq!(endpoint("ftp://a/b").unwrap_err(), Invalid::Scheme);
        assert_eq!(endpoint("https://me:secret@a/b").unwrap_err(), Invalid::Credentials);
        assert!(matches!(endpoint("a/b").unwrap_err(), Invalid::Address(_)));
        assert!(matches!(endpoint("http://").unwrap_err(), Invalid::Address(_)));
        assert_eq!(
            endpoint(" https://EXAMPLE.com/é?x=1#part ").unwrap().url().as_str(),
            "https://example.com/%C3%A9?x=1"
        );
    }

    #[test]
    fn headers_are_checked() {
        let with = |name: &str, value: &str| endpoint("http://a/").unwrap().with_header(name, value).map(|_| ());
        assert_eq!(with("X-Key", "a b"), Ok(()));
        assert_eq!(with("a b", "x"), Err(Invalid::Name("a b".into())));
        assert_eq!(with("a", "x\r\nb: y"), Err(Invalid::Value("a".into())));
        for name in ["Host", "mcp-session-id", "Mcp-Param-X", "content-TYPE"] {
            assert_eq!(with(name, "x"), Err(Invalid::Reserved(name.into())));
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let endpoint =
            endpoint("https://a/mcp?token=hunter2").unwrap().with_header("Authorization", "hunter2").unwrap();
        let shown = format!("{endpoint:?} {endpoint}");
        assert!(shown.contains("https://a/mcp") && shown.contains("authorization"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
