//! The usual scene: a relay, a provider in front of the actor, and a customer.

use super::customer::Customer;
use super::fake_relay::FakeRelay;
use super::process::Process;
use super::world::{Provider, World};

pub(crate) struct Scene {
    // In this order, so that the provider goes before its relay does.
    pub(crate) customer: Customer,
    pub(crate) provider: Provider,
    pub(crate) url: String,
    relay: Option<Process>,
    pub(crate) world: World,
}

impl Scene {
    /// With the relay that comes with the product.
    #[track_caller]
    pub(crate) fn new(flags: &[&str]) -> Self {
        Self::with_actor(flags, &[])
    }

    #[track_caller]
    pub(crate) fn with_actor(flags: &[&str], options: &[&str]) -> Self {
        let world = World::new();
        let (relay, url) = world.relay();
        let provider = world.serve_actor(&[&url], flags, options);
        let customer = Customer::new(&url, &provider.pubkey);
        Self { customer, provider, url, relay: Some(relay), world }
    }

    /// With a relay that lets everything through.
    #[track_caller]
    pub(crate) fn on(relay: &FakeRelay, flags: &[&str]) -> Self {
        let world = World::new();
        let url = relay.url();
        let provider = world.serve(&[&url], flags);
        let customer = Customer::new(&url, &provider.pubkey);
        Self { customer, provider, url, relay: None, world }
    }

    /// Another customer on the same relay.
    pub(crate) fn another_customer(&self) -> Customer {
        Customer::new(&self.url, &self.provider.pubkey)
    }
}
