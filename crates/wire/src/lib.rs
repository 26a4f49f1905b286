//! How MCP travels in Nostr events.
