//! What the example of every tool needs to work: a user, a friend of theirs with a web server, what both have published, and
//! the server that is called.
//!
//! Each stage has keys of its own, so any number of them can share one relay.

use std::io::Write as _;
use std::process::Stdio;

use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use nostr::nips::nip44;
use nostr::prelude::PublicKey;
use serde_json::{Value, json};

use super::blossom::{Blossom, Manner};
use super::invoice::invoice;
use super::web;
use torture::nostr_side::client::Client;
use torture::nostr_side::event::{Draft, Event, hex_key};
use torture::nostr_side::host::Host;
use torture::nostr_side::world::World;

/// The relay that examples name.
const RELAY: &str = "wss://relay.example.com";

/// The key that examples name, in both forms: the friend's.
const FRIEND: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const FRIEND_NPUB: &str = "npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d";

/// A key that examples name without anything being published by it.
const STRANGER: &str = "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d";

/// The events that examples name.
const EVENTS: [&str; 2] = [
    "d7dd5eb3ab747e16f8d0212d53032ea2a7cadef53837e5a6c66d42849fcb9027",
    "0000000000000000000000000000000000000000000000000000000000000001",
];

/// Who the user is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Somebody,
    Watched,
    Nobody,
}

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) me: Keys,
    user: User,
    url: String,
    web: String,
    blossom: Blossom,
    friend: Keys,
    events: Vec<(&'static str, Event)>,
}

impl Stage {
    /// Nothing is published on a relay that would not take it.
    pub(crate) fn new(url: &str, user: User) -> Self {
        let (me, friend, wallet) = (Keys::generate(), Keys::generate(), Keys::generate());
        let web = web::start(hex_key(&friend), hex_key(&wallet));
        let blossom = Blossom::start(Manner::Honest);
        let mut stage =
            Self { world: World::new(), me, user, url: url.to_owned(), web, blossom, friend, events: Vec::new() };
        stage.events = stage.write(&wallet);
        match user {
            User::Nobody => {}
            User::Watched => stage.keys(&["import", "me", &stage.me.public_key().to_bech32().unwrap()], ""),
            User::Somebody => stage.keys(&["import", "me"], &stage.me.secret_key().to_bech32().unwrap()),
        }
        stage
    }

    /// The relay.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The public key of the friend.
    pub(crate) fn friend(&self) -> String {
        hex_key(&self.friend)
    }

    pub(crate) fn friend_npub(&self) -> String {
        self.friend.public_key().to_bech32().unwrap()
    }

    /// An event by the friend.
    pub(crate) fn sign(&self, draft: &Draft) -> Event {
        draft.sign(&self.friend)
    }

    /// One of the events that examples are about.
    pub(crate) fn event(&self, name: &str) -> &Event {
        &self.events.iter().find(|(what, _)| *what == name).unwrap().1
    }

    /// Publishes what examples are about.
    pub(crate) fn publish(&self) {
        let client = Client::connect(&self.url, |_, _| {});
        for (what, event) in &self.events {
            let (taken, why) = client.publish(event);
            assert!(taken, "{what}: {why}");
        }
    }

    fn write(&self, wallet: &Keys) -> Vec<(&'static str, Event)> {
        let (me, friend) = (hex_key(&self.me), hex_key(&self.friend));
        let badge = format!("30009:{friend}:bravery");
        let inbox = || Draft::new(10050, "").tag(&["relay", &self.url]);
        let profile = json!({ "name": "bob", "lud16": format!("bob@{}", self.web) }).to_string();
        let poll = Draft::new(1068, "Tabs or spaces?").tag(&["option", "a", "Tabs"]).tag(&["option", "b", "Spaces"]);
        let request = Draft::new(9734, "").tag(&["p", &friend]).tag(&["amount", "21000"]).sign(&self.me).json();
        let receipt = Draft::new(9735, "").tag(&["p", &friend]).tag(&["description", &request]);
        let theirs = [
            ("profile", Draft::new(0, profile)),
            ("note", Draft::new(1, "hello")),
            ("thread", Draft::new(11, "hello").tag(&["title", "x"])),
            ("poll", poll.tag(&["relay", &self.url])),
            ("badge", Draft::new(30009, "").tag(&["d", "bravery"])),
            ("award", Draft::new(8, "").tag(&["a", &badge]).tag(&["p", &me])),
            ("inbox", inbox()),
            ("group", Draft::new(39000, "").tag(&["d", "cats"]).tag(&["name", "Cats"])),
        ];
        let mine = [
            ("my note", Draft::new(1, "mine")),
            ("my follows", Draft::new(3, "").tag(&["p", &friend])),
            ("my inbox", inbox()),
        ];
        let receipt = receipt.tag(&["bolt11", &invoice(21_000, &request)]).sign(wallet);
        let theirs = theirs.into_iter().map(|(what, draft)| (what, draft.sign(&self.friend)));
        let mine = mine.into_iter().map(|(what, draft)| (what, draft.sign(&self.me)));
        theirs.chain(mine).chain([("receipt", receipt)]).collect()
    }

    /// Runs `rialto nostr keys`.
    fn keys(&self, arguments: &[&str], input: &str) {
        let mut command = self.world.command("user", &[&["nostr", "keys"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts the server; shakes hands where this version of the protocol has that.
    pub(crate) fn serve(&self, version: &str) -> Host {
        self.serve_with(version, &[])
    }

    /// The same with these flags.
    pub(crate) fn serve_with(&self, version: &str, flags: &[&str]) -> Host {
        let command = [&["mcp", "nostr", "--relay", &self.url], flags].concat();
        let mut host = Host::over(self.world.rialto("user", &command));
        if version < "2026" {
            host.begin_as(version);
        }
        host
    }

    /// An example, with what is on this stage in the place of what it names.
    pub(crate) fn arguments(&self, tool: &str, example: &Value) -> Value {
        let event = match tool {
            "nostr_events_vote_poll" | "nostr_events_get_poll_results" => "poll",
            "nostr_events_post_comment" => "thread",
            "nostr_badges_set_profile" => "award",
            "nostr_zaps_validate_receipt" => "receipt",
            "nostr_events_delete" => "my note",
            _ => "note",
        };
        let event = &self.event(event).id;
        // A badge is given by whoever has made it.
        let author = if tool == "nostr_badges_award" { &self.me } else { &self.friend };
        let stranger = PublicKey::from_hex(STRANGER).unwrap();
        let sealed = nip44::encrypt(self.me.secret_key(), &stranger, "see you", nip44::Version::V2).unwrap();
        let elsewhere = self.world.path().join("elsewhere");
        let mut text = example.to_string();
        for (named, meant) in [
            (RELAY, self.url.as_str()),
            ("relay.example.com'", &format!("{}'", self.url)),
            (FRIEND_NPUB, &author.public_key().to_bech32().unwrap()),
            ("https://blossom.example.com", &self.blossom.url()),
            ("bob@example.com", &format!("bob@{}", self.web)),
            ("/srv/nostr", elsewhere.to_str().unwrap()),
            ("AgQ…", &sealed),
            (EVENTS[0], event),
            (EVENTS[1], event),
        ] {
            text = text.replace(named, meant);
        }
        // The event that some examples hold is signed by that key.
        if !text.contains("event_json") {
            text = text.replace(FRIEND, &hex_key(author));
        }
        let arguments: Value = serde_json::from_str(&text).unwrap();
        self.prepare(tool, &arguments);
        arguments
    }

    /// Makes the keys that tools for keys are about.
    fn prepare(&self, tool: &str, arguments: &Value) {
        let label = ["label", "from"].iter().find_map(|name| arguments[*name].as_str());
        let label = label.or_else(|| arguments["private_key"].as_str()?.strip_prefix("label:"));
        let is_made_by_it = matches!(tool, "nostr_keys_generate" | "nostr_keys_import");
        if let Some(label) = label.filter(|_| self.user == User::Somebody && !is_made_by_it) {
            self.keys(&["add", label, "--no-use"], "");
        }
    }
}
