//! What the ledger keeps of how a request came: enough to answer it after a restart.

use nostr::prelude::{EventId, PublicKey};
use rialto_ledger::job::Job;
use rialto_wire::request::{Address, Command};
use rialto_wire::service::{Way, Wire};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    command: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sealed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    message: bool,
    pub(crate) relay: String,
    /// What it is called in the operator's log.
    pub(crate) what: String,
}

impl Origin {
    pub(crate) fn new(address: &Address, way: Way, relay: &str, what: &str) -> Self {
        Self {
            command: address.command.map(|command| command.name().to_owned()),
            sealed: way.sealed,
            message: way.wire == Wire::Manifest,
            relay: relay.to_owned(),
            what: what.to_owned(),
        }
    }

    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// `None` if it was written by somebody else.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn way(&self) -> Way {
        Way { wire: if self.message { Wire::Manifest } else { Wire::Dvmcp }, sealed: self.sealed }
    }

    /// Whom an answer is for.
    pub(crate) fn address(&self, job: &Job) -> Address {
        let command = Command::ALL.into_iter().find(|command| Some(command.name()) == self.command.as_deref());
        let request = EventId::from_byte_array(job.id);
        Address { request, customer: PublicKey::from_byte_array(job.customer), command }
    }
}
