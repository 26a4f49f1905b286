//! How MCP travels in Nostr events. Pure mappings: no sockets, no clock, no randomness. One module per protocol; the only
//! place that knows event kinds and tags.

pub mod charge;
pub mod dvmcp;
pub mod failure;
pub mod manifest;
pub mod request;
pub mod service;
pub mod size;
pub mod strict;
mod tags;
