//! The mints whose coins are taken. A mint's coins are its promises, so only those that the user named are trusted.

use cdk::mint_url::MintUrl;
use std::net::IpAddr;
use std::str::FromStr;
use url::{Host, Url};

/// How a reference to an ecash wallet begins.
const SCHEME: &str = "cashu+";

/// More would only make each start slower.
const MOST: usize = 16;

/// The mints of a wallet, the preferred one first. Written as `cashu+https://mint.example`, several as
/// `cashu+https://a.example,https://b.example`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mints(Vec<MintUrl>);

/// Why a text names no mints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoMints {
    #[error("an ecash wallet is written as cashu+https://mint.example")]
    NotCashu,
    #[error("`{0}` is not the address of a mint")]
    NotAnAddress(String),
    #[error("the address of a mint holds no name, password, query or fragment")]
    Decorated,
    #[error("a mint must be reached by https, or be on this machine: `{0}`")]
    NotSafe(String),
    #[error("there may be at most {MOST} mints")]
    TooMany,
}

impl Mints {
    /// The mints with these addresses.
    pub fn new<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Result<Self, NoMints> {
        let mut mints = Vec::new();
        for address in addresses {
            let mint = one(address.trim())?;
            if !mints.contains(&mint) {
                mints.push(mint);
            }
        }
        match mints.len() {
            0 => Err(NoMints::NotCashu),
            1..=MOST => Ok(Self(mints)),
            _ => Err(NoMints::TooMany),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &MintUrl> {
        self.0.iter()
    }
}

impl FromStr for Mints {
    type Err = NoMints;

    fn from_str(text: &str) -> Result<Self, NoMints> {
        let addresses = text.trim().strip_prefix(SCHEME).ok_or(NoMints::NotCashu)?;
        Self::new(addresses.split(','))
    }
}

fn one(address: &str) -> Result<MintUrl, NoMints> {
    let unreadable = || NoMints::NotAnAddress(address.to_owned());
    let url: Url = address.parse().map_err(|_| unreadable())?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(NoMints::Decorated);
    }
    if !is_safe(&url) {
        return Err(NoMints::NotSafe(address.to_owned()));
    }
    url.as_str().parse().map_err(|_| unreadable())
}

/// Whether nobody on the way can read or change what is said.
pub(super) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_this_machine(url),
        _ => false,
    }
}

pub(super) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Mints, NoMints};

    #[test]
    fn mints_are_named_by_safe_addresses() {
        for (text, expected) in [
            ("cashu+https://mint.example", vec!["https://mint.example"]),
            ("cashu+https://Mint.Example/Bitcoin/", vec!["https://mint.example/Bitcoin"]),
            (
                "cashu+https://a.example, https://b.example,https://a.example/",
                vec!["https://a.example", "https://b.example"],
            ),
            ("cashu+http://127.0.0.1:3338", vec!["http://127.0.0.1:3338"]),
            ("cashu+http://[::1]:3338", vec!["http://[::1]:3338"]),
            ("cashu+http://localhost", vec!["http://localhost"]),
        ] {
            let mints: Mints = text.parse().unwrap();
            assert_eq!(mints.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        let unsafe_one = |text: &str| NoMints::NotSafe(text.into());
        let unreadable = |text: &str| NoMints::NotAnAddress(text.into());
        for (text, expected) in [
            ("https://mint.example", NoMints::NotCashu),
            ("cashu+", unreadable("")),
            ("cashu+mint.example", unreadable("mint.example")),
            ("cashu+http://mint.example", unsafe_one("http://mint.example")),
            ("cashu+http://127.0.0.1.example", unsafe_one("http://127.0.0.1.example")),
            ("cashu+ftp://127.0.0.1", unsafe_one("ftp://127.0.0.1")),
            ("cashu+https://me:secret@mint.example", NoMints::Decorated),
            ("cashu+https://mint.example?a=b", NoMints::Decorated),
        ] {
            assert_eq!(text.parse::<Mints>(), Err(expected), "{text}");
        }
        let many: Vec<String> = (0..17).map(|number| format!("https://{number}.example")).collect();
        assert_eq!(Mints::new(many.iter().map(String::as_str)), Err(NoMints::TooMany));
    }
}
