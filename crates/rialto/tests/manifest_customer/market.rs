//! One relay, one shop, one customer.

use serde_json::Value;

use torture::nostr_side::fake_relay::FakeRelay;
use torture::nostr_side::host::Host;
use torture::nostr_side::process::Process;
use torture::nostr_side::shop::{Order, Shop};
use torture::nostr_side::world::World;

pub(crate) struct Market {
    pub(crate) shop: Shop,
    pub(crate) relay: FakeRelay,
    pub(crate) world: World,
}

/// What the manifest says of a shop that reads both forms.
pub(crate) const SEALED: &str = "nip04 nip59";

impl Market {
    /// With a shop that says it reads this.
    pub(crate) fn new(encryption: &str) -> Self {
        let relay = FakeRelay::start();
        Self { shop: Shop::new(&relay, encryption), relay, world: World::new() }
    }

    /// With a shop of which nothing is known yet.
    pub(crate) fn closed() -> Self {
        let relay = FakeRelay::start();
        Self { shop: Shop::closed(&relay), relay, world: World::new() }
    }

    /// `rialto COMMAND …` on this relay.
    pub(crate) fn run(&self, arguments: &[&str]) -> Process {
        let url = self.relay.url();
        self.world.rialto("customer", &[arguments, &["--relay", &url]].concat())
    }

    /// The same for commands that ask no relay.
    pub(crate) fn run_alone(&self, arguments: &[&str]) -> Process {
        self.world.rialto("customer", arguments)
    }

    /// Begins to call a tool of the shop.
    pub(crate) fn call(&self, tool: &str, rest: &[&str]) -> Process {
        let npub = self.shop.npub();
        let patience: &[&str] = if rest.contains(&"--timeout-secs") { &[] } else { &["--timeout-secs", "30"] };
        self.run(&[&["call", npub.as_str(), tool], rest, patience].concat())
    }

    /// Begins to ask for the weather in Venice, and waits for the request.
    #[track_caller]
    pub(crate) fn ask(&mut self, flags: &[&str]) -> (Process, Order) {
        let call = self.call("forecast", &[&["city=Venice"], flags].concat());
        (call, self.shop.order())
    }

    /// A host that uses the shop, before it shakes hands.
    pub(crate) fn host(&self, flags: &[&str]) -> Host {
        let (npub, url) = (self.shop.npub(), self.relay.url());
        Host::start_silent(&self.world, &[&[npub.as_str(), "--relay", &url, "--prefix", "never"][..], flags].concat())
    }

    /// What `rialto show` says as JSON.
    #[track_caller]
    pub(crate) fn shown(&self) -> Value {
        let npub = self.shop.npub();
        let text = output(self.run(&["show", &npub, "--json"]));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("no JSON ({error}): {text}"))
    }
}

/// What it printed, once it has ended well.
#[track_caller]
pub(crate) fn output(mut process: Process) -> String {
    let status = process.end();
    assert!(status.success(), "{status}\n{}", process.told());
    process.output()
}

/// The call must end well, with this text and nothing of the lie.
#[track_caller]
pub(crate) fn ends_with(process: Process, text: &str) {
    let output = output(process);
    assert!(output.contains(text), "{output}");
    assert!(!output.contains("a lie"), "{output}");
}

/// The call must fail, and not by falling over; gives its exit code and everything it said.
#[track_caller]
pub(crate) fn fails(mut process: Process) -> (i32, String) {
    let status = process.end();
    let told = process.told();
    let code = status.code().unwrap_or_else(|| panic!("{status}: {told}"));
    assert!(code != 0, "{told}");
    assert!(!told.contains("panicked"), "{told}");
    (code, told)
}

/// The names of the tools that `rialto show --json` lists.
pub(crate) fn names(shown: &Value) -> Vec<&str> {
    let tools = shown["tools"].as_array().unwrap_or_else(|| panic!("no tools: {shown}"));
    tools.iter().map(|tool| tool["definition"]["name"].as_str().unwrap_or_else(|| panic!("no name: {tool}"))).collect()
}

/// All that it says beside the tools that can be used.
pub(crate) fn remarks(shown: &Value) -> String {
    let mut rest = shown.clone();
    rest.as_object_mut().unwrap().remove("tools");
    rest.to_string()
}
