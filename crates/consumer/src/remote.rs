//! One service: what is known about it, and what can be asked of it.

use crate::customer::Customer;
use crate::error::Error;
use crate::ongoing::{Ongoing, Order, Privacy};
use crate::reference::Target;
use crate::text;
use nostr::nips::nip19::{Nip19Profile, ToBech32};
use nostr::prelude::{PublicKey, RelayUrl};
use rialto_mcp::pending::Patience;
use rialto_wire::dvmcp::content::{self, Execute};
use rialto_wire::request::Command;
use rialto_wire::service::{self, Service};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long relays have to bring an announcement.
const ANNOUNCEMENT_PATIENCE: Duration = Duration::from_secs(3);

/// How long the other relays have once one has brought it.
const OTHERS: Duration = Duration::from_millis(300);

/// Whether to seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealing {
    /// Unless the provider has announced that it cannot read sealed requests. One that has announced nothing gets them
    /// sealed: a relay that hides the announcement must not be able to make us speak in public.
    WherePossible,
    Never,
}

/// A service that was chosen.
#[derive(Debug, Clone)]
pub struct Remote {
    customer: Customer,
    pub provider: PublicKey,
    /// The service that was asked for, of several by one provider.
    id: Option<String>,
    sealing: Sealing,
    service: Arc<Mutex<Option<Service>>>,
}

impl Remote {
    /// Looks for the announcement of a service. That there is none is no error: it may be private.
    pub async fn open(customer: &Customer, target: &Target, sealing: Sealing) -> Result<Self, Error> {
        let remote = Self::unseen(customer, target, sealing);
        remote.look_up().await?;
        Ok(remote)
    }

    /// A service whose announcement nobody has looked for yet.
    pub fn unseen(customer: &Customer, target: &Target, sealing: Sealing) -> Self {
        for relay in &target.relays {
            customer.add_relay(relay);
        }
        Self {
            customer: customer.clone(),
            provider: target.provider,
            id: target.id.clone(),
            sealing,
            service: Arc::default(),
        }
    }

    /// Asks the relays for the announcement.
    pub async fn look_up(&self) -> Result<(), Error> {
        let filter = service::of(self.provider);
        let mut query = self.customer.0.pool.query(&[filter], ANNOUNCEMENT_PATIENCE);
        let mut patience = ANNOUNCEMENT_PATIENCE;
        while let Ok(Some(event)) = tokio::time::timeout(patience, query.next()).await {
            if let Some(service) = self.customer.announcements().take(&event, self.customer.0.clock.now()) {
                self.take(service);
                patience = OTHERS;
            }
        }
        Ok(self.customer.announcements().save()?)
    }

    /// Takes an announcement that may be of this service and newer; says whether it was.
    pub fn take(&self, service: Service) -> bool {
        let is_other = self.id.as_ref().is_some_and(|id| *id != service.id);
        let mut known = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        let is_older = known.as_ref().is_some_and(|known| {
            let order = |service: &Service| (service.announced, std::cmp::Reverse(service.event));
            order(known) >= order(&service)
        });
        if service.provider != self.provider || is_other || is_older {
            return false;
        }
        *known = Some(service);
        true
    }

    /// What it announced, if anything.
    pub fn service(&self) -> Option<Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its name, fit to be shown.
    pub fn name(&self) -> Option<String> {
        self.service().map(|service| text::name(&service.name)).filter(|name| !name.is_empty())
    }

    pub fn customer(&self) -> &Customer {
        &self.customer
    }

    /// How requests travel.
    pub fn privacy(&self) -> Privacy {
        match (self.sealing, self.service()) {
            (Sealing::Never, _) => Privacy::Plain,
            (Sealing::WherePossible, Some(service)) if !service.sealed => Privacy::Plain,
            (Sealing::WherePossible, _) => Privacy::Sealed,
        }
    }

    /// A link that leads others to it.
    pub fn link(&self) -> String {
        let relays = self.customer.relays().into_iter().filter_map(|status| RelayUrl::parse(&status.url).ok());
        link(self.provider, relays.take(3))
    }

    pub fn npub(&self) -> String {
        npub(&self.provider)
    }

    /// Sends a request.
    pub fn begin(&self, command: Command, content: String, patience: Patience) -> Result<Ongoing, Error> {
        let (provider, privacy) = (self.provider, self.privacy());
        self.customer.begin(Order { provider, command, content, privacy, patience })
    }

    pub fn execute(&self, call: &Execute<'_>, patience: Patience) -> Result<Ongoing, Error> {
        self.begin(Command::ExecuteTool, call.write(), patience)
    }

    pub fn read(&self, uri: &str, patience: Patience) -> Result<Ongoing, Error> {
        self.begin(Command::ReadResource, content::read(uri), patience)
    }

    pub fn prompt(&self, name: &str, arguments: Option<&[u8]>, patience: Patience) -> Result<Ongoing, Error> {
        self.begin(Command::ExecutePrompt, content::prompt(name, arguments), patience)
    }
}

/// A key as people know it.
pub fn npub(key: &PublicKey) -> String {
    key.to_bech32().unwrap_or_else(|_| key.to_hex())
}

/// A key with the relays where it can be found.
pub fn link(key: PublicKey, relays: impl IntoIterator<Item = RelayUrl>) -> String {
    Nip19Profile::new(key, relays).to_bech32().unwrap_or_else(|_| npub(&key))
}
