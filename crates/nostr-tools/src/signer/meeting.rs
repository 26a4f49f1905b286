//! Where signers may be met: on relays that the operator allows, and not inside the network that we are in unless it was
//! the operator who named them.

use crate::failure::Failure;
use crate::guard::Guard;
use nostr::prelude::RelayUrl;
use rialto_relay::address::Reach;
use rialto_relay::socket::{Dial, Guarded};
use std::sync::Arc;
use std::time::Duration;

/// How long a signer may take. Its owner may have to look at a screen first.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);

/// Who has named the relays of a signer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Giver {
    /// The operator, whose relays may be anywhere.
    Operator,
    /// A model.
    Model,
}

/// The conditions under which a signer is met.
#[derive(Debug, Clone)]
pub(crate) struct Meeting {
    guard: Guard,
    reach: Reach,
    giver: Giver,
    pub(super) patience: Duration,
}

impl Default for Meeting {
    /// What the operator types is used as it is.
    fn default() -> Self {
        Self { guard: Guard::default(), reach: Reach::default(), giver: Giver::Operator, patience: ANSWER }
    }
}

impl Meeting {
    /// What a model names, within what the operator allows.
    pub(crate) fn within(guard: &Guard, reach: &Reach, patience: Duration) -> Self {
        Self { guard: guard.clone(), reach: reach.clone(), giver: Giver::Model, patience }
    }

    /// The relays among these that may be used; an error if there is none.
    pub(super) fn admit(&self, named: &[RelayUrl]) -> Result<Vec<RelayUrl>, Failure> {
        let relays: Vec<RelayUrl> = named.iter().filter(|relay| self.guard.allows_relay(relay)).cloned().collect();
        if relays.is_empty() {
            let names: Vec<String> = named.iter().map(ToString::to_string).collect();
            let words = format!(
                "the signer is met on {}, which may not be used here; the operator chooses with --allow-relay",
                names.join(", ")
            );
            return Err(Failure::denied(words).with("relays", names));
        }
        Ok(relays)
    }

    /// The hosts that may be anywhere because of who named them.
    pub(super) fn trusted(&self, relays: &[RelayUrl]) -> Vec<String> {
        match self.giver {
            Giver::Operator => relays.iter().filter_map(|relay| relay.host()).map(|host| host.to_string()).collect(),
            Giver::Model => Vec::new(),
        }
    }

    /// How relays are connected to.
    pub(super) fn dial(&self, trusted: &[String]) -> Arc<dyn Dial> {
        Arc::new(Guarded(self.reach.and_hosts(trusted)))
    }
}
