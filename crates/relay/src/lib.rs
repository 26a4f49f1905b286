//! Nostr relays.

pub mod embedded;
