//! The buying side: find a service on Nostr, trust it, call it, and offer its tools to an MCP host.
//!
//! [`customer::Customer`] sends requests and recognises their answers; everything else stands on it. [`reference`] finds
//! out whom a person means, [`remote`] is one service, [`discovery`] finds services, [`pins`] remembers what their tools
//! looked like, [`payment`] pays for them, and [`bridge`] is the MCP server in front of all that.

pub mod announcements;
pub mod bridge;
pub mod canonical;
pub mod catalogue;
mod catch_up;
pub mod customer;
mod directory;
pub mod discovery;
pub mod error;
mod exchange;
mod lane;
mod naming;
pub mod ongoing;
mod parts;
pub mod payment;
pub mod pins;
pub mod reference;
pub mod remote;
pub mod reply;
pub mod text;
