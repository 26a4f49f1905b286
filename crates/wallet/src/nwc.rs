//! Nostr Wallet Connect (NIP-47): a wallet that is asked by encrypted events on relays.

pub(crate) mod protocol;
