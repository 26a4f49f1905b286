//! The usual scene: a relay, a provider in front of the actor, and a customer.

use super::customer::Customer;
use super::fake_relay::FakeRelay;
use super::process::Process;
use super::world::{Provider, World};

pub struct Scene {
    // In this order, so that the provider goes before its relay does.
    pub customer: Customer,
    pub provider: Provider,
    pub url: String,
    _relay: Option<Process>,
    pub world: World,
}

impl Scene {
    /// With the relay that comes with the product.
    #[track_caller]
    pub fn new(flags: &[&str]) -> Self {
        Self::with_actor(flags, &[])
    }

    #[track_caller]
    pub fn with_actor(flags: &[&str], options: &[&str]) -> Self {
        let world = World::new();
        let (relay, url) = world.relay();
        let provider = world.serve_actor(&[&url], flags, options);
        let customer = Customer::new(&url, &provider.pubkey);
        Self { customer, provider, url, _relay: Some(relay), world }
    }

    /// With a relay that lets everything through.
    #[track_caller]
    pub fn on(relay: &FakeRelay, flags: &[&str]) -> Self {
        let world = World::new();
        let url = relay.url();
        let provider = world.serve(&[&url], flags);
        let customer = Customer::new(&url, &provider.pubkey);
        Self { customer, provider, url, _relay: None, world }
    }

    /// Another customer on the same relay.
    pub fn another_customer(&self) -> Customer {
        Customer::new(&self.url, &self.provider.pubkey)
    }
}
