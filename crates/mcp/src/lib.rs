//! The Model Context Protocol as Rialto speaks it: lossless, strict about envelopes, in five versions.
//!
//! From the wire inwards: [`line`] cuts bytes into lines, [`message`] reads envelopes (with [`json`] and [`id`]),
//! [`server`] and [`client`] keep the two roles of a session, [`outlet`] writes what they say. [`error`] is the one list
//! of errors; [`version`] knows what differs between the five revisions of the protocol.

mod batch;
pub mod call;
pub mod client;
pub mod error;
pub mod id;
pub mod json;
pub mod line;
pub mod local;
pub mod message;
pub mod mirror;
pub mod outlet;
pub mod peer;
pub mod pending;
pub mod reply;
pub mod serve;
pub mod server;
pub mod stdio;
pub mod version;
