//! A remote MCP server reached over HTTP, in whichever of the five versions it speaks.
//!
//! An [`Endpoint`] says where it is, an [`Agent`] has the connections, and [`carry`] takes what a
//! [`rialto_mcp::client::Client`] writes there and brings back what the server says. What kind of HTTP a server speaks is
//! found out by the messages themselves: a request that carries its version in `_meta` is stateless, `initialize` begins a
//! session, and a server that does not take `initialize` by `POST` may be one of the oldest, which answer on a stream.

mod agent;
mod carrier;
mod connector;
mod endpoint;
mod events;
mod exchange;
mod mirror;
pub mod oauth;
mod oldest;
mod pinned;
mod question;
mod reach;

pub use agent::{Agent, Document, Options, Trouble};
pub use carrier::{End, carry};
pub use endpoint::{Endpoint, Invalid, Way};
pub use question::{Answer, Question};

use oauth::Authorizer;
use std::sync::Arc;

/// A remote server, and what is needed to speak with it.
#[derive(Debug, Clone)]
pub struct Remote {
    pub endpoint: Endpoint,
    pub agent: Agent,
    /// Who proves to the server who we are, where its headers do not.
    pub authorizer: Option<Arc<Authorizer>>,
}

impl Remote {
    /// A server that wants no login, or gets one by its headers.
    pub fn new(endpoint: Endpoint, agent: Agent) -> Self {
        Self { endpoint, agent, authorizer: None }
    }
}

impl PartialEq for Remote {
    /// Whether both lead to the same server as the same user.
    fn eq(&self, other: &Self) -> bool {
        let settings = |remote: &Self| remote.authorizer.as_ref().map(|authorizer| authorizer.settings().clone());
        self.endpoint == other.endpoint && settings(self) == settings(other)
    }
}

impl Eq for Remote {}
