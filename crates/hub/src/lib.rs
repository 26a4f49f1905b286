//! Many MCP servers behind one catalogue.
//!
//! A [`plan`] says what to run; [`Hub::start`] runs it. Each server is a source that is started, watched and started
//! again; its lists are merged into one [`catalogue`]; requests are routed by name or URI and passed on as they are. The
//! hub answers to [`rialto_mcp::server::Service`], so whatever carries a session can carry it.

mod apart;
mod bridge;
pub mod catalogue;
mod child;
pub mod event;
pub mod guard;
mod hub;
mod link;
mod merge;
pub mod name;
pub mod plan;
pub mod sandbox;
pub mod schema;
mod source;
mod upstream;

pub use hub::{Hub, Reloaded};
pub use source::Figures;
