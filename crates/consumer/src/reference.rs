//! Whom a person means: a key, a link, a name on the web, or the name of a service.

use crate::customer::Customer;
use crate::discovery;
use crate::error::Error;
use crate::pins::Pins;
use crate::remote::link;
use crate::text;
use nostr::nips::nip05::Nip05Address;
use nostr::nips::nip19::{FromBech32, Nip19};
use nostr::prelude::{PublicKey, RelayUrl};
use nostr::types::url::Url;
use rialto_relay::address::{Reach, is_loopback};
use rialto_relay::nip05;
use rialto_wire::service::{self, Service};
use std::collections::HashSet;

/// Relays of one link that are used; whoever made it could have put in any number.
const MAX_HINTS: usize = 5;

/// What was typed, understood as far as that is possible without asking anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    Key(Target),
    /// A name on the web (NIP-05).
    Address(Nip05Address),
    /// The name of a service.
    Name(String),
}

/// A provider, and where it may be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub provider: PublicKey,
    /// The service, of several by one provider.
    pub id: Option<String>,
    pub relays: Vec<RelayUrl>,
}

/// Why nobody is meant.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Unknown {
    #[error("no service was named")]
    Empty,
    #[error("that is a secret key, not a service; whoever has seen it can sign as its owner")]
    Secret,
    #[error("it does not lead to a service: {0}")]
    NoService(&'static str),
    #[error("it is damaged: a character is wrong or missing")]
    Damaged,
    #[error("{0}")]
    Address(#[from] nip05::Error),
    #[error("there is no service of that name")]
    NoSuchName {
        /// Names of services that there are.
        known: Vec<String>,
    },
    #[error("there are several services of that name")]
    Ambiguous(Vec<Candidate>),
    #[error(transparent)]
    Request(#[from] Error),
}

/// One of several services with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    pub about: String,
    pub link: String,
}

impl Reference {
    pub fn parse(text: &str) -> Result<Self, Unknown> {
        let text = text.trim();
        let bare = match text.get(..6) {
            Some(scheme) if scheme.eq_ignore_ascii_case("nostr:") => &text[6..],
            _ => text,
        };
        if bare.is_empty() {
            return Err(Unknown::Empty);
        }
        if bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let provider = PublicKey::from_hex(&bare.to_lowercase()).map_err(|_| Unknown::Damaged)?;
            return Ok(Self::Key(Target { provider, id: None, relays: Vec::new() }));
        }
        let lower = bare.to_lowercase();
        if lower.starts_with("nsec1") || lower.starts_with("ncryptsec1") {
            return Err(Unknown::Secret);
        }
        if ["npub1", "nprofile1", "naddr1", "note1", "nevent1"].iter().any(|prefix| lower.starts_with(prefix)) {
            return Self::link(&lower);
        }
        if bare.contains('@') || is_domain(bare) {
            let address = Nip05Address::parse(bare).map_err(|_| nip05::Error::Malformed)?;
            return Ok(Self::Address(address));
        }
        Ok(Self::Name(bare.to_owned()))
    }

    fn link(text: &str) -> Result<Self, Unknown> {
        let few = |relays: Vec<RelayUrl>| relays.into_iter().take(MAX_HINTS).collect();
        let target = match Nip19::from_bech32(text).map_err(|_| Unknown::Damaged)? {
            Nip19::Pubkey(provider) => Target { provider, id: None, relays: Vec::new() },
            Nip19::Profile(profile) => Target { provider: profile.public_key, id: None, relays: few(profile.relays) },
            Nip19::Coordinate(place) if service::is_description(place.coordinate.kind) => Target {
                provider: place.coordinate.public_key,
                id: Some(place.coordinate.identifier.clone()),
                relays: few(place.relays),
            },
            Nip19::Coordinate(_) => return Err(Unknown::NoService("it is a link to something else")),
            _ => return Err(Unknown::NoService("it is a link to a note")),
        };
        Ok(Self::Key(target))
    }

    /// Relays that were named with it.
    pub fn relays(&self) -> &[RelayUrl] {
        match self {
            Reference::Key(target) => &target.relays,
            _ => &[],
        }
    }

    /// Finds out who is meant; asks the web or the relays if need be.
    pub async fn resolve(&self, customer: &Customer, pins: &Pins) -> Result<Target, Unknown> {
        match self {
            Reference::Key(target) => Ok(target.clone()),
            Reference::Address(address) => {
                let found = nip05::look_up(address, &Reach::with_loopback()).await?;
                let relays = reachable(found.relays, &found.url).await;
                Ok(Target { provider: found.public_key, id: None, relays })
            }
            Reference::Name(name) => by_name(customer, pins, name).await,
        }
    }
}

/// The relays that a site names and may name: one of the open network does not send us into our own.
async fn reachable(relays: Vec<RelayUrl>, site: &Url) -> Vec<RelayUrl> {
    let relays = relays.into_iter().take(MAX_HINTS);
    if is_loopback(site) {
        return relays.collect();
    }
    let mut public = Vec::new();
    for relay in relays {
        let Ok(url) = Url::parse(relay.as_str()) else { continue };
        if Reach::default().addresses(&url).await.is_ok() {
            public.push(relay);
        }
    }
    public
}

/// Whether this is meant as a place on the web: `example.com`, `localhost:8080`.
fn is_domain(text: &str) -> bool {
    let host = text.rsplit_once(':').map_or(text, |(host, port)| if port.parse::<u16>().is_ok() { host } else { text });
    if host == "localhost" || host.parse::<std::net::Ipv4Addr>().is_ok() {
        return true;
    }
    let labels: Vec<&str> = host.split('.').collect();
    let is_label =
        |label: &&str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    // Versions such as `weather.2` are no domains.
    let has_ending = labels.last().is_some_and(|last| last.len() > 1 && last.bytes().all(|b| b.is_ascii_alphabetic()));
    labels.len() > 1 && has_ending && labels.iter().all(is_label)
}

async fn by_name(customer: &Customer, pins: &Pins, name: &str) -> Result<Target, Unknown> {
    // Everybody can announce any name, and a relay can hide who had it first. Once it was used, it stays with that key.
    let used = pins.read().map_err(Error::from)?.named(name);
    if let [only] = used.as_slice() {
        return Ok(Target { provider: *only, id: None, relays: Vec::new() });
    }
    let services = discovery::announced(customer).await?;
    let is_meant = |text: &str| text.to_lowercase() == name.to_lowercase();
    let mut found: Vec<_> =
        services.iter().filter(|service| is_meant(&service.name) || is_meant(&service.id)).collect();
    found.sort_by_key(|service| (std::cmp::Reverse(service.announced), service.provider));
    // A provider describes itself once for each wire.
    let mut providers = HashSet::new();
    found.retain(|service| providers.insert(service.provider));
    match found.as_slice() {
        [] => {
            let known = services.iter().take(200).map(|service| text::name(&service.name)).collect();
            Err(Unknown::NoSuchName { known })
        }
        [only] if used.is_empty() => Ok(Target { provider: only.provider, id: None, relays: Vec::new() }),
        several => {
            let relays = customer.0.pool.urls();
            let candidate = |service: &&Service| Candidate {
                name: text::name(&service.name),
                about: text::limited(&text::one_line(&service.about), 100),
                link: link(service.provider, relays.iter().take(2).cloned()),
            };
            Err(Unknown::Ambiguous(several.iter().take(10).map(candidate).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reference, Target, Unknown, reachable};
    use nostr::nips::nip01::Coordinate;
    use nostr::nips::nip19::{Nip19Coordinate, Nip19Profile, ToBech32};
    use nostr::prelude::{Keys, Kind, RelayUrl};

    #[tokio::test]
    async fn a_site_of_the_open_network_names_no_relay_of_ours() {
        let url = |text: &str| RelayUrl::parse(text).unwrap();
        let all: Vec<RelayUrl> =
            ["ws://127.0.0.1:1", "wss://8.8.8.8", "ws://10.0.0.1", "ws://[::1]:2", "ws://169.254.169.254"]
                .map(url)
                .into();
        let from = |site: &str| site.parse().unwrap();
        assert_eq!(reachable(all.clone(), &from("https://example.com/x")).await, [url("wss://8.8.8.8")]);
        assert_eq!(reachable(all.clone(), &from("http://127.0.0.1:5/x")).await, all);
    }

    #[test]
    fn every_way_to_name_a_service() {
        let keys = Keys::generate();
        let provider = keys.public_key();
        let relay = RelayUrl::parse("wss://relay.example").unwrap();
        let plain = Target { provider, id: None, relays: vec![] };
        let hinted = Target { relays: vec![relay.clone()], ..plain.clone() };
        let profile = Nip19Profile::new(provider, [relay.clone()]).to_bech32().unwrap();
        let place = |kind: u16| {
            let coordinate = Coordinate::new(Kind::from(kind), provider).identifier("weather");
            Nip19Coordinate::new(coordinate, [relay.clone()]).to_bech32().unwrap()
        };
        let check = |text: &str, expected: &Target| match Reference::parse(text) {
            Ok(Reference::Key(target)) => assert_eq!(target, *expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        };
        check(&provider.to_hex(), &plain);
        check(&provider.to_hex().to_uppercase(), &plain);
        check(&provider.to_bech32().unwrap(), &plain);
        check(&format!("nostr:{}", provider.to_bech32().unwrap()), &plain);
        check(&format!(" {profile}\n"), &hinted);
        check(&format!("NOSTR:{}", profile.to_uppercase()), &hinted);
        check(&place(31990), &Target { id: Some("weather".into()), ..hinted.clone() });
        assert!(matches!(Reference::parse(&place(30023)), Err(Unknown::NoService(_))));
        assert!(matches!(Reference::parse(&profile[..profile.len() - 1]), Err(Unknown::Damaged)));
        let secret = keys.secret_key().to_bech32().unwrap();
        let error = Reference::parse(&secret).unwrap_err();
        assert!(matches!(error, Unknown::Secret));
        assert!(!format!("{error} {error:?}").contains(&secret[5..]));
    }

    #[test]
    fn domains_and_names() {
        for text in ["me@example.com", "example.com", "sub.example.co", "localhost:80", "x@127.0.0.1:80", "127.0.0.1"] {
            assert!(matches!(Reference::parse(text), Ok(Reference::Address(_))), "{text}");
        }
        for text in ["weather", "weather.2", "My Weather", "a.b c"] {
            assert_eq!(Reference::parse(text).unwrap(), Reference::Name(text.into()));
        }
        assert!(matches!(Reference::parse(" "), Err(Unknown::Empty)));
    }
}
