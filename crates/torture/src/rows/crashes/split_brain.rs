//! R17: two providers with one key, each with a ledger of its own. They hear each other, and stop.

use std::time::{Duration, Instant};

use nostr::key::Keys;
use serde_json::json;

use super::super::{Row, Setting};
use crate::nostr_side::actor;
use crate::nostr_side::customer::Customer;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::log::until;
use crate::nostr_side::world::{Provider, World};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R17", "two providers with one key and two ledgers", run);

/// What is said by whoever hears the other.
const ALARM: &str = "somebody else answers with this key";

/// As the help of the program has it: not allowed.
const EXIT: i32 = 3;

/// How long they may take to notice. A second more is for a machine that has other work.
const NOTICE: Duration = Duration::from_secs(5);

/// How long they may take to end: running calls have ten seconds.
const END: Duration = Duration::from_secs(15);

struct Scene {
    world: World,
    relay: FakeRelay,
    key: String,
}

impl Scene {
    fn new() -> Self {
        let world = World::new();
        let key = world.path().join("key");
        std::fs::write(&key, Keys::generate().secret_key().to_secret_hex()).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        Self { key: key.to_str().unwrap().to_owned(), world, relay: FakeRelay::start() }
    }

    /// A provider with a home, and so a ledger, of its own; but all have one list of effects.
    fn serve(&self, who: &str) -> Provider {
        let program = std::env::current_exe().unwrap();
        let server = [program.to_str().unwrap(), actor::ACTOR, self.world.path().to_str().unwrap()];
        self.world.serve_command(who, &[&self.relay.url()], &["--key", &self.key, "--rate-per-key", "0"], &server)
    }
}

fn run(setting: Setting) -> Score {
    let mut score = Score::default();
    alone(setting.choose(3, 10), &mut score);
    together(&mut score);
    score
}

/// One provider that is killed and comes back hears only itself, and goes on.
fn alone(lives: usize, score: &mut Score) {
    let scene = Scene::new();
    let mut alarms = 0;
    let mut asked = 0_usize;
    for _ in 0..lives {
        let mut provider = scene.serve("first");
        let customer = Customer::new(&scene.relay.url(), &provider.pubkey);
        for _ in 0..10 {
            customer.call("note", &json!({ "tag": asked.to_string() }));
            asked += 1;
        }
        // Everything that was ever said is said to it once more.
        scene.relay.hang_up_on(&provider.pubkey);
        customer_again(&scene, &provider);
        alarms += provider.process.stderr.look(|lines| lines.iter().filter(|line| line.contains(ALARM)).count());
        alarms += usize::from(!provider.process.is_running());
        provider.process.kill();
    }
    score.none("false alarms", alarms);
    score.tell("calls without a twin", asked);
}

fn customer_again(scene: &Scene, provider: &Provider) {
    let customer = Customer::new(&scene.relay.url(), &provider.pubkey);
    customer.call("note", &json!({ "tag": "again" }));
}

fn together(score: &mut Score) {
    let scene = Scene::new();
    let mut providers = [scene.serve("first"), scene.serve("second")];
    let customer = Customer::new(&scene.relay.url(), &providers[0].pubkey);
    // What was said in the second in which a provider began is not held against anybody.
    std::thread::sleep(Duration::from_millis(1100));
    let id =
        customer.post(&customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "both" } })));
    let answered = Instant::now();
    until("both have answered", NOTICE, || customer.so_far(&id).responses().len() > 1);
    let noticed: Vec<Duration> = providers
        .iter()
        .map(|provider| {
            let told = provider
                .process
                .stderr
                .wait(2 * NOTICE, |lines| lines.iter().find(|line| line.contains(ALARM)).cloned());
            told.map_or(Duration::MAX, |_| answered.elapsed())
        })
        .collect();
    score.exactly("providers that notice", noticed.iter().filter(|took| **took < Duration::MAX).count(), 2_usize);
    score.at_most(
        "seconds until they do",
        noticed.into_iter().max().unwrap_or(Duration::MAX).min(3 * NOTICE),
        NOTICE + Duration::from_secs(1),
    );
    let late =
        customer.post(&customer.draft("execute-tool", &json!({ "name": "note", "parameters": { "tag": "late" } })));
    let ended = Instant::now() + END;
    while providers.iter_mut().any(|provider| provider.process.is_running()) && Instant::now() < ended {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut code = |provider: &mut Provider| (!provider.process.is_running()).then(|| provider.process.end().code())?;
    let codes: Vec<Option<i32>> = providers.iter_mut().map(&mut code).collect();
    score.exactly("documented exit codes", codes.iter().filter(|code| **code == Some(EXIT)).count(), 2_usize);
    score.none("runs after the alarm", scene.world.times("note late"));
    score.none("answers after the alarm", customer.so_far(&late).responses().len());
    score.note(format!("exit codes {codes:?}; the one call before was run {} times", scene.world.times("note both")));
}
