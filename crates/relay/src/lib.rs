//! Nostr relays.
