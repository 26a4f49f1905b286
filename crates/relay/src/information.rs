//! What a relay says about its limits (NIP-11).

use crate::http;
use crate::socket::Dial;
use nostr::prelude::RelayUrl;
use nostr::types::url::Url;
use serde::Deserialize;

/// What a relay is asked for.
pub const MEDIA_TYPE: &str = "application/nostr+json";

/// The limits that matter to us. A relay that says nothing has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// The longest message, in bytes.
    pub message: Option<usize>,
    /// The longest content, in characters.
    pub content: Option<usize>,
    /// Most tags in an event.
    pub tags: Option<usize>,
    /// Bits of proof of work that every event needs.
    pub work: Option<u8>,
}

/// As much of the document as we read. Numbers that make no sense are no reason to give up the rest.
#[derive(Debug, Default, Deserialize)]
struct Document {
    #[serde(default)]
    limitation: serde_json::Map<String, serde_json::Value>,
}

impl Limits {
    /// Asks a relay.
    pub async fn ask(relay: &RelayUrl) -> std::io::Result<Self> {
        Ok(Self::ask_with_date(relay).await?.0)
    }

    /// The same, with the relay's time in seconds since 1970, if it tells.
    pub async fn ask_with_date(relay: &RelayUrl) -> std::io::Result<(Self, Option<u64>)> {
        let document = http::get(&address(relay)?, MEDIA_TYPE).await?;
        Ok((Self::read(&document.body), document.date))
    }

    /// Asks a relay where `dial` allows it.
    pub(crate) async fn ask_through(dial: &dyn Dial, relay: &RelayUrl) -> std::io::Result<Self> {
        let url = address(relay)?;
        let addresses = dial.addresses(&url).await?;
        let document = http::get_from(&url, MEDIA_TYPE, addresses.as_deref()).await?;
        Ok(Self::read(&document.body))
    }

    fn read(body: &[u8]) -> Self {
        let document: Document = serde_json::from_slice(body).unwrap_or_default();
        let number = |name: &str| {
            let number = document.limitation.get(name).and_then(serde_json::Value::as_u64).filter(|number| *number > 0);
            number.and_then(|number| usize::try_from(number).ok())
        };
        Self {
            message: number("max_message_length"),
            content: number("max_content_length"),
            tags: number("max_event_tags"),
            work: number("min_pow_difficulty").and_then(|bits| u8::try_from(bits).ok()),
        }
    }
}

/// Where a relay tells about itself.
pub fn address(relay: &RelayUrl) -> std::io::Result<Url> {
    let mut url = Url::parse(relay.as_str()).map_err(std::io::Error::other)?;
    let scheme = if url.scheme() == "wss" { "https" } else { "http" };
    // Only changes that keep the URL valid can fail here, and this one does.
    url.set_scheme(scheme).map_err(|()| std::io::Error::other("no web address"))?;
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::Limits;

    #[test]
    fn reads_what_makes_sense() {
        let body =
            br#"{"name":"x","limitation":{"max_message_length":65536,"max_content_length":-1,"min_pow_difficulty":0,
            "max_event_tags":"many"}}"#;
        assert_eq!(Limits::read(body), Limits { message: Some(65536), ..Limits::default() });
        assert_eq!(Limits::read(b"<html>"), Limits::default());
        assert_eq!(Limits::read(b"{\"limitation\":[]}"), Limits::default());
    }
}
