//! R22: thousands of announcements that take the names, tools and as much as possible of the keys of services that a customer uses.
//! No call may reach anybody else, and what tools are called must depend on whose they are, not on who came first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nostr::key::Keys;
use nostr::nips::nip19::ToBech32 as _;
use secp256k1::{Scalar, SecretKey};
use serde_json::{Value, json};

use crate::nostr_side::event::{Draft, hash, hex_key, now, unhex};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::host::Host;
use crate::nostr_side::random::Random;
use crate::nostr_side::shop::{Shop, say_tool};
use crate::nostr_side::world::World;
use crate::rows::{Row, Setting};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R22", "services that pose as others", run);

/// Keys whose public halves look alike, for tests and nothing else: everybody knows them. Each is the hash of [`SEED`] plus a number.
/// Of each group the first two have their first 32 bits in common, the others the first 16 bits with them.
const ALIKE: [&[u32]; 8] = [
    &[8621, 291_009, 41_876, 81_309, 136_420, 169_422, 183_206, 189_749, 227_590, 265_254],
    &[8347, 292_708, 7865, 77_094, 168_472, 311_591, 394_496],
    &[17_205, 309_048, 14_129, 164_102, 183_550, 285_179, 307_194, 306_283, 339_734],
    &[18_352, 285_766, 1820, 144_565, 255_712, 323_772],
    &[41_763, 258_206, 223, 23_088, 81_195, 109_897, 146_430, 274_772],
    &[55_818, 241_993, 51_674, 194_298, 330_210, 374_572],
    &[70_913, 110_847, 164_326, 178_449, 252_281, 300_619],
    &[75_118, 299_424, 139_751, 180_012, 236_637, 252_251, 289_635, 310_976, 341_216, 350_865, 377_656, 384_346],
];

const SEED: &str = "rialto: keys that look alike, for tests";

fn key(number: u32) -> Keys {
    let base = SecretKey::from_slice(&unhex(&hash(SEED)).unwrap()).unwrap();
    let mut tweak = [0; 32];
    tweak[28..].copy_from_slice(&number.to_be_bytes());
    let key = base.add_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap();
    Keys::parse(&key.display_secret().to_string()).unwrap()
}

/// The groups, and that they are what they say.
fn groups() -> Vec<Vec<Keys>> {
    let groups: Vec<Vec<Keys>> = ALIKE.iter().map(|group| group.iter().map(|number| key(*number)).collect()).collect();
    for group in &groups {
        let first = hex_key(&group[0]);
        assert_eq!(hex_key(&group[1])[..8], first[..8]);
        assert!(group.iter().all(|other| hex_key(other)[..4] == first[..4]));
    }
    groups
}

fn name(group: usize) -> String {
    format!("sayer {group}")
}

fn tools() -> Value {
    json!([say_tool()])
}

/// What a service says of itself on one of the two wires.
fn description(name: &str, relay: &str, is_manifest: bool) -> Draft {
    let tagged = |draft: Draft| draft.tag(&["d", name]).tag(&["t", "mcp"]).tag(&["t", "say"]).tag(&["relays", relay]);
    if is_manifest {
        let content = json!({ "mcp_version": "0.1", "name": name, "description": "Says things", "tools": tools() });
        return tagged(Draft::new(30200, content.to_string())).tag(&["encryption", "nip04 nip59"]);
    }
    let tool = json!({ "name": "say", "description": "Says it", "inputSchema": say_tool()["input_schema"] });
    let content = json!({ "name": name, "about": "Says things", "tools": [tool] });
    let draft = tagged(Draft::new(31990, content.to_string()));
    draft.tag(&["k", "5910"]).tag(&["capabilities", "mcp-1.0"]).tag(&["encryption", "nip59"])
}

fn run(setting: Setting) -> Score {
    let mut score = Score::default();
    let groups = groups();
    let count = setting.choose(1_000, 10_000);
    let impostors = impostors(&groups, count, setting.seed);
    score.tell("announcements", impostors.len() + groups.len());
    let figures = posing(&groups, &impostors, setting.seed);
    score.tell("calls", figures.calls);
    score.exactly("calls that reached whom they were meant for", figures.right, figures.calls);
    score.none("requests to somebody else", figures.strayed);
    score.none("ambiguous names that were called", figures.ambiguous_called);
    score.none("lists that depend on who came first", figures.lists_differ);
    let (names, differ, shared) = naming(&groups, setting.seed);
    score.tell("names", names);
    score.none("names that depend on who came first", differ);
    score.none("names of two providers", shared);
    score
}

/// An announcement of somebody who poses as a service, and how it is dated.
struct Impostor {
    keys: Keys,
    group: usize,
    is_manifest: bool,
    age: i64,
}

/// All keys that look alike, and as many others as are wanted.
fn impostors(groups: &[Vec<Keys>], count: usize, seed: u64) -> Vec<Impostor> {
    let mut random = Random::new(seed ^ 0x5ade);
    let mut impostor = |keys: Keys, group: usize| Impostor {
        keys,
        group,
        is_manifest: random.below(2) == 0,
        age: i64::try_from(random.below(4000)).unwrap(),
    };
    let mut all = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        for keys in &group[1..] {
            all.push(impostor(keys.clone(), index));
        }
    }
    while all.len() + groups.len() < count {
        all.push(impostor(Keys::generate(), all.len() % groups.len()));
    }
    all
}

#[derive(Default)]
struct Figures {
    calls: usize,
    right: usize,
    strayed: usize,
    ambiguous_called: usize,
    lists_differ: usize,
}

fn posing(groups: &[Vec<Keys>], impostors: &[Impostor], seed: u64) -> Figures {
    let (relay, world) = (FakeRelay::start(), World::new());
    let url = relay.url();
    let date = now() - 2000;
    let real: Vec<&Keys> = groups.iter().map(|group| &group[0]).collect();
    let announce = || {
        for (group, keys) in real.iter().enumerate() {
            relay.publish(&description(&name(group), &url, true).at(date).sign(keys));
        }
    };
    announce();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for keys in &real {
            let mut shop = Shop::closed(&relay);
            (shop.keys, shop.tools) = ((*keys).clone(), tools());
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if let Some(order) = shop.order_within(Duration::from_millis(500)) {
                        shop.say(&order, &json!({ "content": [{ "type": "text", "text": shop.pubkey() }] }));
                    }
                }
            });
        }
        let figures = pose(&Stage { groups, impostors, real: &real, relay: &relay, world: &world, date, seed });
        is_over.store(true, Ordering::Relaxed);
        figures
    })
}

struct Stage<'a> {
    groups: &'a [Vec<Keys>],
    impostors: &'a [Impostor],
    real: &'a [&'a Keys],
    relay: &'a FakeRelay,
    world: &'a World,
    date: i64,
    seed: u64,
}

fn pose(stage: &Stage<'_>) -> Figures {
    let Stage { real, relay, world, .. } = stage;
    let mut figures = Figures::default();
    let url = relay.url();
    let npubs: Vec<String> = real.iter().map(|keys| keys.public_key().to_bech32().unwrap()).collect();
    // All but the last are used before anybody poses as them.
    let used = npubs.len() - 1;
    let mut arguments: Vec<&str> = npubs[..used].iter().map(String::as_str).collect();
    arguments.extend(["--relay", &url, "--timeout-secs", "20"]);
    let mut host = Host::start(world, &arguments);
    let places = places(&mut host);
    assert_eq!(places.len(), used, "{places:?}\n{}", host.process.told());
    let call_all = |host: &mut Host, figures: &mut Figures| {
        let ids: Vec<(&String, u64)> =
            places.iter().map(|(name, npub)| (npub, host.call(name, &json!({ "text": "x" })))).collect();
        for (npub, id) in ids {
            let answer = host.answer(id);
            let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            let meant = npubs.iter().position(|one| one == npub).map(|index| hex_key(real[index]));
            figures.calls += 1;
            figures.right += usize::from(meant.as_deref() == Some(&text));
        }
    };
    call_all(&mut host, &mut figures);
    stage.publish(stage.seed);
    call_all(&mut host, &mut figures);
    // By name, in a process of its own: what was used stays what it was, what was not used is not guessed.
    let by_name = |group: usize| {
        let mut call = world.rialto("customer", &["call", &name(group), "say", "text=x", "--relay", &url]);
        (call.end(), call.output())
    };
    for hidden in [false, true] {
        if hidden {
            // No relay has the real ones any more, and each name is somebody else's alone.
            relay.forget();
            stage.publish_some(stage.impostors.iter().filter(|impostor| stage.is_twin(impostor)).collect());
        }
        for (group, keys) in real[..used].iter().enumerate() {
            figures.calls += 1;
            figures.right += usize::from(by_name(group).1.trim() == hex_key(keys));
        }
        if !hidden {
            let (status, _) = by_name(used);
            figures.ambiguous_called += usize::from(status.success());
        }
        call_all(&mut host, &mut figures);
    }
    let others: BTreeSet<String> = stage.impostors.iter().map(|impostor| hex_key(&impostor.keys)).collect();
    let requests = relay.published().into_iter().filter(|event| [4, 1059, 5910].contains(&event.kind));
    let strays = |event: &crate::nostr_side::event::Event| {
        event.tags("p").iter().any(|tag| tag.first().is_some_and(|key| others.contains(key)))
    };
    figures.strayed = requests.filter(strays).count();
    figures.lists_differ = stage.lists();
    figures
}

impl Stage<'_> {
    /// Everybody poses, in an order that depends on a number.
    fn publish(&self, seed: u64) {
        let mut all: Vec<&Impostor> = self.impostors.iter().collect();
        Random::new(seed).shuffle(&mut all);
        self.publish_some(all);
    }

    /// Whether it is the one whose key is most like a real one.
    fn is_twin(&self, impostor: &Impostor) -> bool {
        hex_key(&impostor.keys) == hex_key(&self.groups[impostor.group][1])
    }

    fn publish_some(&self, impostors: Vec<&Impostor>) {
        for impostor in impostors {
            let draft = description(&name(impostor.group), &self.relay.url(), impostor.is_manifest);
            self.relay.publish(&draft.at(self.date + 2000 - impostor.age).sign(&impostor.keys));
        }
    }

    /// How many of several lists of the same services, in other orders, are not the same.
    fn lists(&self) -> usize {
        let list = |run: u64| {
            let relay = FakeRelay::start();
            // A search ends after five thousand, which relays give newest first; ours gives them as they came.
            let impostors = &self.impostors[..self.impostors.len().min(4_000)];
            let stage = Stage { relay: &relay, impostors, ..*self };
            for (group, members) in self.groups.iter().enumerate() {
                let draft = description(&name(group), "ws://127.0.0.1:1", true).at(self.date);
                relay.publish(&draft.sign(&members[0]));
            }
            stage.publish(self.seed + run);
            let who = format!("looker-{run}");
            let arguments = ["find", "sayer", "--no-check", "--limit", "100", "--json", "--relay", &relay.url()];
            let text = self.world.rialto(&who, &arguments).output();
            let list: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
            assert_eq!(list.len(), 100, "{text}");
            list.iter().map(|one| format!("{} {}", one["npub"], one["name"])).collect::<Vec<_>>()
        };
        let first = list(0);
        (1..3).filter(|run| list(*run) != first).count()
    }
}

/// The names of all tools of a host, and whose each is.
fn places(host: &mut Host) -> BTreeMap<String, String> {
    let tools = host.ask("tools/list", &json!({}));
    let place = |tool: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&tool["name"]), text(&tool["_meta"]["rialto/provider"]))
    };
    tools["tools"].as_array().unwrap().iter().map(place).collect()
}

/// Hosts that use all of those who look alike, who all have the same name: in every order, with descriptions that come in every
/// order, in new homes. Gives how many names there are, how many of them are not the same everywhere, and how many are two's.
fn naming(groups: &[Vec<Keys>], seed: u64) -> (usize, usize, usize) {
    let all: Vec<&Keys> = groups.iter().flatten().collect();
    let world = World::new();
    let runs: Vec<BTreeMap<String, String>> = (0..4)
        .map(|run| {
            let relay = FakeRelay::start();
            let mut order: Vec<&Keys> = all.clone();
            Random::new(seed + run).shuffle(&mut order);
            for keys in &order {
                relay.publish(&description("sayer", &relay.url(), true).at(now() - 100).sign(keys));
            }
            Random::new(seed + run + 100).shuffle(&mut order);
            let npubs: Vec<String> = order.iter().map(|keys| keys.public_key().to_bech32().unwrap()).collect();
            let (url, prefix) = (relay.url(), if run % 2 == 0 { "always" } else { "conflict" });
            let mut arguments: Vec<&str> = vec!["use"];
            arguments.extend(npubs.iter().map(String::as_str));
            arguments.extend(["--relay", &url, "--prefix", prefix]);
            let mut host = Host::over(world.rialto(&format!("home-{run}"), &arguments));
            host.begin();
            let deadline = std::time::Instant::now() + crate::nostr_side::PATIENCE;
            loop {
                let places = places(&mut host);
                if places.len() >= all.len() || std::time::Instant::now() > deadline {
                    return places;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        })
        .collect();
    let first = &runs[0];
    let differ = runs[1..].iter().map(|run| {
        let missing = first.iter().filter(|(name, npub)| run.get(*name) != Some(npub)).count();
        missing + run.len().saturating_sub(first.len())
    });
    let owners: BTreeSet<&String> = first.values().collect();
    (first.len(), differ.sum(), all.len() - owners.len())
}
