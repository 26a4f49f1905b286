//! One service: what is known about it, and what can be asked of it.

use crate::customer::Customer;
use crate::directory::Directory;
use crate::error::Error;
use crate::ongoing::{ByMessage, Ongoing, Order};
use crate::payment::Purchase;
use crate::reference::Target;
use crate::text;
use nostr::nips::nip19::{Nip19Profile, ToBech32};
use nostr::prelude::{PublicKey, RelayUrl};
use rialto_mcp::pending::Patience;
use rialto_wire::dvmcp::content::{self, Execute};
use rialto_wire::manifest;
use rialto_wire::request::Command;
use rialto_wire::service::{self, Service, Way, Wire};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long relays have to bring an announcement.
const ANNOUNCEMENT_PATIENCE: Duration = Duration::from_secs(3);

/// How long the other relays have once one has brought it.
const OTHERS: Duration = Duration::from_millis(300);

/// Things that are told about what cannot be used.
const MAX_FLAWS: usize = 100;

/// Services of one provider that are looked at; a key can describe any number.
const MAX_SERVICES: usize = 64;

/// Which ways a customer wants its requests to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Only this one; else the most private that there is.
    pub wire: Option<Wire>,
    /// Nothing is sealed.
    pub plain: bool,
}

impl Terms {
    pub const PRIVATE: Terms = Terms { wire: None, plain: false };
    pub const PLAIN: Terms = Terms { wire: None, plain: true };
}

/// A service that was chosen.
#[derive(Debug, Clone)]
pub struct Remote {
    customer: Customer,
    pub provider: PublicKey,
    /// The service that was asked for, of several by one provider.
    id: Option<String>,
    terms: Terms,
    known: Arc<Mutex<Known>>,
}

/// What its provider says of it: one announcement or manifest for each way to call it, or several.
#[derive(Debug, Default)]
struct Known {
    services: Vec<Service>,
    /// Wires over which it has said before that it reads what is sealed. If no relay brings that any more, this is no reason
    /// to speak less privately.
    sealed_before: Vec<Wire>,
    /// The tools of the manifests, once somebody wants to know.
    directory: Arc<OnceCell<Arc<Directory>>>,
}

impl Known {
    /// What describes the service for one wire, the newest first.
    fn of(&self, wire: Wire) -> Vec<&Service> {
        let mut services: Vec<&Service> = self.services.iter().filter(|service| service.wire == wire).collect();
        services.sort_by(|one, other| other.announced.cmp(&one.announced).then_with(|| one.id.cmp(&other.id)));
        services
    }

    /// The most private way that both sides can go. Of a provider that has said nothing it is assumed that it can read what
    /// is sealed: a relay that hides an announcement must not be able to make us speak in public.
    fn way(&self, terms: Terms) -> Way {
        let is_wanted = |wire: Wire| terms.wire.is_none_or(|wanted| wanted == wire);
        // A manifest without tools leads nowhere if there is another way.
        let is_empty = self.of(Wire::Manifest).iter().all(|manifest| manifest.tools.is_empty());
        let leads = |wire: Wire| wire == Wire::Dvmcp || !is_empty || self.of(Wire::Dvmcp).is_empty();
        let reads = |wire: Wire| {
            let service = self.of(wire).first().copied().filter(|_| is_wanted(wire) && leads(wire));
            service.map(|service| service.sealed)
        };
        let is_missing =
            |wire: &Wire| is_wanted(*wire) && self.sealed_before.contains(wire) && self.of(*wire).is_empty();
        let missing = Wire::ALL.into_iter().find(is_missing).map(|wire| Way { wire, sealed: true });
        match (terms.plain, reads(Wire::Dvmcp), reads(Wire::Manifest)) {
            (true, None, Some(_)) => Way::MESSAGE,
            (true, _, _) => {
                if terms.wire == Some(Wire::Manifest) {
                    Way::MESSAGE
                } else {
                    Way::PUBLIC
                }
            }
            (false, Some(true), _) => Way::SEALED,
            (false, _, Some(true)) => Way::SEALED_MESSAGE,
            (false, _, Some(false)) => missing.unwrap_or(Way::MESSAGE),
            (false, Some(false), None) => missing.unwrap_or(Way::PUBLIC),
            (false, None, None) if terms.wire == Some(Wire::Manifest) => Way::SEALED_MESSAGE,
            (false, None, None) => Way::SEALED,
        }
    }
}

impl Remote {
    /// Looks for what describes a service. That there is nothing is no error: it may be private.
    pub async fn open(customer: &Customer, target: &Target, terms: Terms) -> Result<Self, Error> {
        let remote = Self::unseen(customer, target, terms);
        remote.look_up().await?;
        Ok(remote)
    }

    /// A service whose description nobody has looked for yet.
    pub fn unseen(customer: &Customer, target: &Target, terms: Terms) -> Self {
        for relay in &target.relays {
            customer.add_relay(relay);
        }
        let (provider, announcements) = (target.provider, customer.announcements());
        let sealed_before = Wire::ALL.into_iter().filter(|wire| announcements.were_sealed(&provider, *wire)).collect();
        let known = Arc::new(Mutex::new(Known { sealed_before, ..Known::default() }));
        Self { customer: customer.clone(), provider, id: target.id.clone(), terms, known }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the relays for announcements and manifests.
    pub async fn look_up(&self) -> Result<(), Error> {
        let filter = service::of(self.provider);
        let mut query = self.customer.0.pool.query(&[filter], ANNOUNCEMENT_PATIENCE);
        let mut patience = ANNOUNCEMENT_PATIENCE;
        while let Ok(Some(event)) = tokio::time::timeout(patience, query.next()).await {
            if let Some(service) = self.customer.announcements().take(&event, self.customer.0.clock.now()) {
                self.take(service);
                // The next description may tell of a way that is more private.
                let is_enough = self.terms.plain || self.known().services.iter().any(|service| service.sealed);
                patience = if is_enough { OTHERS } else { ANNOUNCEMENT_PATIENCE };
            }
        }
        Ok(self.customer.announcements().save()?)
    }

    /// Takes a description that may be of this service and newer; says whether it was.
    pub fn take(&self, service: Service) -> bool {
        let is_meant = self.id.as_ref().is_none_or(|id| {
            // What does not fit into one manifest goes on in others.
            let rest = service.id.strip_prefix(id.as_str());
            rest.is_some_and(|rest| rest.is_empty() || (service.wire == Wire::Manifest && rest.starts_with('#')))
        });
        if service.provider != self.provider || !is_meant {
            return false;
        }
        let mut known = self.known();
        let order = |service: &Service| (service.announced, std::cmp::Reverse(service.event));
        let place = known.services.iter().position(|one| one.wire == service.wire && one.id == service.id);
        match place {
            Some(place) if order(&known.services[place]) >= order(&service) => return false,
            Some(place) => known.services[place] = service,
            None if known.services.len() >= MAX_SERVICES => return false,
            None => known.services.push(service),
        }
        known.directory = Arc::default();
        true
    }

    /// What it says of itself, if anything.
    pub fn service(&self) -> Option<Service> {
        let known = self.known();
        let wire = known.way(self.terms).wire;
        let used = known.of(wire).first().copied().cloned();
        used.or_else(|| known.services.iter().max_by_key(|service| service.announced).cloned())
    }

    /// The ways in which it says it can be called.
    pub fn wires(&self) -> Vec<Wire> {
        let known = self.known();
        Wire::ALL.into_iter().filter(|wire| !known.of(*wire).is_empty()).collect()
    }

    /// The tools of its manifests.
    pub(crate) async fn directory(&self) -> Arc<Directory> {
        let (directory, manifests) = {
            let known = self.known();
            if let Some(directory) = known.directory.get() {
                return directory.clone();
            }
            let manifests: Vec<Service> = known.of(Wire::Manifest).into_iter().cloned().collect();
            (known.directory.clone(), manifests)
        };
        // Its schemas may take seconds to compile, and calls to other services go on meanwhile.
        let read = async move {
            let directory = tokio::task::spawn_blocking(move || Directory::new(&manifests)).await;
            Arc::new(directory.unwrap_or_default())
        };
        directory.get_or_init(|| read).await.clone()
    }

    /// What in its manifests cannot be used, fit to be shown.
    pub async fn flaws(&self) -> Vec<String> {
        let directory = self.directory().await;
        let shown = |flaw: &String| text::limited(&text::one_line(flaw), 300);
        directory.flaws.iter().take(MAX_FLAWS).map(shown).collect()
    }

    /// Its name, fit to be shown.
    pub fn name(&self) -> Option<String> {
        self.service().map(|service| text::name(&service.name)).filter(|name| !name.is_empty())
    }

    pub fn customer(&self) -> &Customer {
        &self.customer
    }

    /// How requests travel.
    pub fn way(&self) -> Way {
        self.known().way(self.terms)
    }

    /// A link that leads others to it.
    pub fn link(&self) -> String {
        let relays = self.customer.relays().into_iter().filter_map(|status| RelayUrl::parse(&status.url).ok());
        link(self.provider, relays.take(3))
    }

    pub fn npub(&self) -> String {
        npub(&self.provider)
    }

    /// Sends a request. By message only tools can be called.
    pub fn begin(&self, command: Command, content: String, patience: Patience) -> Result<Ongoing, Error> {
        let (provider, way) = (self.provider, self.way());
        if way.wire == Wire::Manifest {
            return Err(Error::ToolsOnly);
        }
        self.customer.begin(Order { provider, command, content, way, patience, purchase: None })
    }

    /// Calls a tool. By message it may have to wait for its turn, and arguments that do not fit are not sent.
    pub async fn execute(&self, call: &Execute<'_>, patience: Patience) -> Result<Ongoing, Error> {
        self.buy(call, patience, None).await
    }

    /// The same, and pays for it if the provider asks for that.
    pub async fn buy(
        &self,
        call: &Execute<'_>,
        patience: Patience,
        purchase: Option<Arc<Purchase>>,
    ) -> Result<Ongoing, Error> {
        let (provider, way, command) = (self.provider, self.way(), Command::ExecuteTool);
        if way.wire == Wire::Dvmcp {
            return self.customer.begin(Order { provider, command, content: call.write(), way, patience, purchase });
        }
        let promise = self.directory().await.admit(call.name, call.arguments)?;
        let turn = self.customer.0.lanes.enter(provider, patience.silence).await?;
        let content = manifest::request::text(call.name, call.arguments);
        let order = Order { provider, command, content, way, patience, purchase };
        self.customer.begin_message(order, ByMessage { promise, turn })
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

#[cfg(test)]
mod tests {
    use super::{Known, Remote, Terms};
    use crate::announcements::Announcements;
    use crate::customer::Customer;
    use crate::error::Error;
    use crate::ongoing::PATIENCE;
    use crate::reference::Target;
    use nostr::prelude::{EventId, Keys, PublicKey, Timestamp};
    use rialto_wire::request::Command;
    use rialto_wire::service::{Service, Way, Wire};

    fn service(provider: PublicKey, wire: Wire, sealed: bool) -> Service {
        Service {
            wire,
            provider,
            id: String::new(),
            name: String::new(),
            about: String::new(),
            tools: vec![r#"{"name":"t"}"#.into()],
            sealed,
            flaws: Vec::new(),
            announced: Timestamp::from(1),
            event: EventId::from_byte_array([0; 32]),
        }
    }

    #[test]
    fn the_most_private_way_that_both_can_go() {
        let provider = Keys::generate().public_key();
        let (dvmcp, manifest) =
            (|sealed| service(provider, Wire::Dvmcp, sealed), |sealed| service(provider, Wire::Manifest, sealed));
        let empty = Service { tools: Vec::new(), ..manifest(true) };
        let over = |wire: Wire, plain: bool| Terms { wire: Some(wire), plain };
        for (services, terms, expected) in [
            (vec![], Terms::PRIVATE, Way::SEALED),
            (vec![], Terms::PLAIN, Way::PUBLIC),
            (vec![], over(Wire::Manifest, false), Way::SEALED_MESSAGE),
            (vec![dvmcp(true), manifest(true)], Terms::PRIVATE, Way::SEALED),
            (vec![dvmcp(false), manifest(true)], Terms::PRIVATE, Way::SEALED_MESSAGE),
            (vec![dvmcp(false), manifest(false)], Terms::PRIVATE, Way::MESSAGE),
            (vec![dvmcp(false)], Terms::PRIVATE, Way::PUBLIC),
            (vec![manifest(false)], Terms::PRIVATE, Way::MESSAGE),
            (vec![dvmcp(true), manifest(true)], over(Wire::Manifest, false), Way::SEALED_MESSAGE),
            (vec![dvmcp(true), manifest(true)], over(Wire::Manifest, true), Way::MESSAGE),
            (vec![dvmcp(true), manifest(true)], Terms::PLAIN, Way::PUBLIC),
            (vec![manifest(true)], Terms::PLAIN, Way::MESSAGE),
            (vec![dvmcp(false), empty.clone()], Terms::PRIVATE, Way::PUBLIC),
            (vec![empty], Terms::PRIVATE, Way::SEALED_MESSAGE),
        ] {
            let known = Known { services, ..Known::default() };
            assert_eq!(known.way(terms), expected, "{terms:?} {:?}", known.services);
        }
    }

    #[test]
    fn what_was_sealed_before_is_not_spoken_in_public_because_a_relay_is_away() {
        let provider = Keys::generate().public_key();
        let (plain, dvmcp) = (Terms::PLAIN, Terms { wire: Some(Wire::Dvmcp), plain: false });
        let open = service(provider, Wire::Dvmcp, false);
        let by_message = service(provider, Wire::Manifest, false);
        for (before, services, terms, expected) in [
            (&[][..], vec![open.clone()], Terms::PRIVATE, Way::PUBLIC),
            (&[Wire::Manifest], vec![open.clone()], Terms::PRIVATE, Way::SEALED_MESSAGE),
            (&[Wire::Manifest], vec![open.clone()], dvmcp, Way::PUBLIC),
            (&[Wire::Manifest], vec![open.clone()], plain, Way::PUBLIC),
            (&[Wire::Dvmcp], vec![by_message.clone()], Terms::PRIVATE, Way::SEALED),
            (&[Wire::Dvmcp], vec![by_message.clone(), open], Terms::PRIVATE, Way::MESSAGE),
            (&[Wire::Dvmcp], vec![service(provider, Wire::Manifest, true)], Terms::PRIVATE, Way::SEALED_MESSAGE),
        ] {
            let known = Known { services, sealed_before: before.to_vec(), ..Known::default() };
            assert_eq!(known.way(terms), expected, "{known:?} {terms:?}");
        }
    }

    #[tokio::test]
    async fn by_message_nothing_is_asked_for_but_tools() {
        let provider = Keys::generate().public_key();
        let customer = Customer::start(Keys::generate(), &[], Announcements::in_memory());
        let target = Target { provider, id: None, relays: Vec::new() };
        let remote = Remote::unseen(&customer, &target, Terms::PRIVATE);
        assert!(remote.take(service(provider, Wire::Manifest, false)));
        // It would be no request, and an answer without an `e` to a call that is open could be taken for its answer.
        for begun in [
            remote.read("file:///etc/hosts", PATIENCE),
            remote.prompt("greet", None, PATIENCE),
            remote.begin(Command::Complete, "{}".to_owned(), PATIENCE),
        ] {
            assert!(matches!(begun, Err(Error::ToolsOnly)), "{begun:?}");
        }
    }
}
