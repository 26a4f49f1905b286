//! The five protocol versions and the two eras they belong to.

use std::fmt;

/// A released revision of the protocol. Ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Version; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest version that begins with `initialize`; the answer to a client that asks for one we do not know.
    pub const LATEST_LEGACY: Version = Self::V2025_11_25;

    /// The newest version of all.
    pub const LATEST: Version = Self::V2026_07_28;

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// Stateless: no handshake, every request carries version and capabilities in `_meta`.
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// What `initialize` is answered with when a client asks for `requested`.
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested).filter(|version| !version.is_modern()).unwrap_or(Self::LATEST_LEGACY)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Keys of `_meta` that the stateless era defines.
pub mod meta {
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn negotiation() {
        for (asked, answered) in [
            ("2024-11-05", Version::V2024_11_05),
            ("2025-03-26", Version::V2025_03_26),
            ("2025-06-18", Version::V2025_06_18),
            ("2025-11-25", Version::V2025_11_25),
            ("2026-07-28", Version::V2025_11_25),
            ("1999-01-01", Version::V2025_11_25),
            ("", Version::V2025_11_25),
        ] {
            assert_eq!(Version::negotiate(asked), answered, "{asked}");
        }
    }
}
