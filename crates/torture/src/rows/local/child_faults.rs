//! R06b: tool servers that die, hang and talk nonsense, behind `rialto serve` and behind the gateway.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::super::{Row, Setting};
use crate::nostr_side::desk::UNLIMITED;
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::harm;
use crate::nostr_side::scene::Scene;
use crate::nostr_side::world::World;
use crate::score::Score;
use crate::stage::gateway::Gateway;
use crate::stage::line::Line;
use crate::stage::server::Server;
use crate::stage::{Stage, kill};

pub(super) const ROW: Row = Row::new("R06b", "tool servers that die, hang and talk nonsense", run);

/// Deaths of one server before the pause until its next life is longer than what is promised; then another one is taken.
const DEATHS: usize = 3;

/// Calls that run when a server dies.
const RUNNING: usize = 3;

/// The promises are of a second and of two; a busy machine and a program that was not optimised may take that much longer.
const SLACK: Duration = Duration::from_secs(2);

const TEN_MEBIBYTES: u64 = 10 << 20;

const VERSION: &str = "2025-06-18";

/// What was seen, on one side.
#[derive(Default)]
struct Tally {
    kills: usize,
    hangs: usize,
    garbled: usize,
    starts: usize,
    failed_well: usize,
    /// What was answered and should have been something else.
    wrong: Vec<String>,
    /// From a death to the error of a call that was running.
    slowest_error: Duration,
    /// From a death to the answer of the next call.
    slowest_return: Duration,
    /// Over the limit that a call was given.
    slowest_timeout: Duration,
    /// From a call to a server that is left alone to its error.
    slowest_refusal: Duration,
}

impl Tally {
    fn expect(&mut self, what: &str, got: &str, wanted: &str) {
        if got == wanted {
            self.failed_well += 1;
        } else {
            self.wrong.push(format!("{what}: {got} in place of {wanted}"));
        }
    }
}

fn run(setting: Setting) -> Score {
    let (nostr, local) = std::thread::scope(|scope| {
        let nostr = scope.spawn(|| nostr(setting));
        let local = scope.spawn(|| local(setting));
        (nostr.join().unwrap(), local.join().unwrap())
    });
    let mut score = Score::default();
    let both = [&nostr, &local];
    let sum = |count: fn(&Tally) -> usize| both.iter().map(|tally| count(tally)).sum::<usize>();
    let slowest = |time: fn(&Tally) -> Duration| both.iter().map(|tally| time(tally)).max().unwrap();
    score.exactly("kills in a call", sum(|tally| tally.kills), 2 * setting.choose(8_usize, 50));
    score.exactly("hangs", sum(|tally| tally.hangs), 2 * setting.choose(3_usize, 20));
    score.exactly("calls among rubbish", sum(|tally| tally.garbled), 2 * setting.choose(4_usize, 20));
    score.at_least("deaths at the start", sum(|tally| tally.starts), 8_usize);
    score.none("wrong answers", sum(|tally| tally.wrong.len()));
    score.tell("right errors", sum(|tally| tally.failed_well));
    score.at_most("error after a death s", slowest(|tally| tally.slowest_error), Duration::from_secs(1) + SLACK);
    score.at_most("next answer after a death s", slowest(|tally| tally.slowest_return), Duration::from_secs(2) + SLACK);
    score.at_most("timeout over its limit s", slowest(|tally| tally.slowest_timeout), Duration::from_secs(1) + SLACK);
    score.at_most("error while left alone s", slowest(|tally| tally.slowest_refusal), Duration::from_secs(1) + SLACK);
    both.iter().flat_map(|tally| tally.wrong.iter().take(5)).for_each(|wrong| score.note(wrong));
    score
}

fn nostr(setting: Setting) -> Tally {
    let mut tally = Tally::default();
    let kills = setting.choose(8, 50);
    while tally.kills < kills {
        let relay = FakeRelay::start();
        let scene = Scene::on(&relay, &UNLIMITED);
        for _ in 0..DEATHS.min(kills - tally.kills) {
            killed_in_a_call(&scene, &mut tally);
        }
    }
    let world = World::new();
    let relay = FakeRelay::start();
    let flags = [&UNLIMITED[..], &["--timeout-secs", "1"]].concat();
    let provider = world.serve_actor(&[&relay.url()], &flags, &[harm::HARM]);
    let customer = crate::nostr_side::customer::Customer::new(&relay.url(), &provider.pubkey);
    for _ in 0..setting.choose(3, 20) {
        let begun = Instant::now();
        let error = customer.call("hang", &json!({})).error();
        tally.expect("a hang", &error, "timeout");
        tally.slowest_timeout = tally.slowest_timeout.max(begun.elapsed().saturating_sub(Duration::from_secs(1)));
        tally.hangs += 1;
    }
    for _ in 0..setting.choose(4, 20) {
        let text = customer.call("garble", &json!({ "times": 100 })).text();
        tally.expect("rubbish", &text, "in the end");
        tally.garbled += 1;
    }
    let error = customer.call("pour", &json!({ "bytes": TEN_MEBIBYTES })).error();
    tally.expect("a line of 10 MiB", &error, "result_too_large");
    tally.expect("a call after it", &customer.call("note", &json!({ "text": "on" })).text(), "on");
    // From here on each life ends at its start.
    fs::write(world.path().join(harm::STILLBORN), "").unwrap();
    kill(world.actor_pid(), Signal::KILL);
    provider.process.says("next try in 60000 ms");
    tally.starts += 4;
    for _ in 0..3 {
        let begun = Instant::now();
        let error = customer.call("note", &json!({})).error();
        tally.expect("a call to a server that is left alone", &error, "upstream_unavailable");
        tally.slowest_refusal = tally.slowest_refusal.max(begun.elapsed());
    }
    tally
}

/// Kills the server while it has calls, and calls it again.
fn killed_in_a_call(scene: &Scene, tally: &mut Tally) {
    let customer = &scene.customer;
    let tags: Vec<String> = (0..RUNNING).map(|number| format!("{}-{number}", tally.kills)).collect();
    let ask = |tag: &String| {
        customer.post(&customer.draft("execute-tool", &json!({ "name": "hang", "parameters": { "tag": tag } })))
    };
    let calls: Vec<String> = tags.iter().map(ask).collect();
    tags.iter().for_each(|tag| scene.world.wait_for_effect(&format!("hang {tag}")));
    let died = Instant::now();
    kill(scene.world.actor_pid(), Signal::KILL);
    tally.kills += 1;
    for call in calls {
        // It looks for the code in the feedback (7000) and in the answer (6910).
        tally.expect("a call whose server died", &customer.answers(&call).error(), "upstream_unavailable");
    }
    tally.slowest_error = tally.slowest_error.max(died.elapsed());
    tally.expect("the next call", &customer.call("note", &json!({ "text": "back" })).text(), "back");
    tally.slowest_return = tally.slowest_return.max(died.elapsed());
    for tag in tags {
        tally.expect("runs", &scene.world.times(&format!("hang {tag}")).to_string(), "1");
    }
}

fn local(setting: Setting) -> Tally {
    let mut tally = Tally::default();
    let kills = setting.choose(8, 50);
    while tally.kills < kills {
        let stage = Stage::new();
        let server = stage.server("alpha");
        let mut gateway = stage.single(&server, &[]);
        gateway.begin(VERSION);
        for _ in 0..DEATHS.min(kills - tally.kills) {
            killed_behind_the_gateway(&mut gateway, &server, &mut tally);
        }
    }
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &["--timeout-secs", "1"]);
    gateway.begin(VERSION);
    let mut life = server.life();
    for number in 0..setting.choose(3, 20) {
        let id = format!("\"hang {number}\"");
        let begun = Instant::now();
        gateway.call(&id, "x");
        let answer = gateway.answer(&id);
        tally.expect("a hang", &failure(&answer, "no answer within"), "failed");
        tally.slowest_timeout = tally.slowest_timeout.max(begun.elapsed().saturating_sub(Duration::from_secs(1)));
        life.take("tools/call");
        tally.hangs += 1;
    }
    for number in 0..setting.choose(4, 20) {
        let id = format!("\"rubbish {number}\"");
        gateway.call(&id, "x");
        let request = life.take("tools/call");
        for rubbish in ["no message \u{1b}[31m", r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#, "[[[[[[[[", "{}"] {
            life.order(&format!("*100 {rubbish}"));
        }
        life.order("u");
        life.reply(&request, r#""result":{"n":1}"#);
        tally.expect("rubbish", &gateway.answer(&id).find(&["result", "n"]).unwrap_or_default(), "1");
        tally.garbled += 1;
    }
    gateway.call("\"long\"", "x");
    let id = life.take("tools/call").id();
    life.order(&format!(r#"b{TEN_MEBIBYTES} {{"jsonrpc":"2.0","id":{id},"result":{{"content":"|"}}}}"#));
    let length = gateway.answer("\"long\"").raw(&["result", "content"]).len() - 2;
    tally.expect("a line of 10 MiB", &length.to_string(), &TEN_MEBIBYTES.to_string());
    dies_at_the_start(&mut gateway, &server, &life, &mut tally);
    tally
}

/// Whether a call failed as it should, with words that hold the reason: local clients are told of all failures of a server with one
/// code (`docs/protocol.md`).
fn failure(answer: &Line, reason: &str) -> String {
    let is_typed = answer.find(&["error", "data", "code"]).as_deref() == Some("\"tool_failed\"");
    if is_typed && answer.0.contains(reason) { "failed".to_owned() } else { answer.0.clone() }
}

fn killed_behind_the_gateway(gateway: &mut Gateway, server: &Server, tally: &mut Tally) {
    server.leaves("tools/call");
    let mut life = server.life();
    let ids: Vec<String> = (0..RUNNING).map(|number| format!("\"{} {number}\"", tally.kills)).collect();
    for id in &ids {
        gateway.call(id, "x");
        life.take("tools/call");
    }
    let died = Instant::now();
    kill(life.pid, Signal::KILL);
    tally.kills += 1;
    for id in &ids {
        let answer = gateway.answer(id);
        tally.expect("a call whose server died", &failure(&answer, "signal: 9"), "failed");
    }
    tally.slowest_error = tally.slowest_error.max(died.elapsed());
    server.answers("tools/call", r#""result":{"back":true}"#);
    let next = format!("\"{} next\"", tally.kills);
    gateway.call(&next, "x");
    tally.expect("the next call", &gateway.answer(&next).find(&["result", "back"]).unwrap_or_default(), "true");
    tally.slowest_return = tally.slowest_return.max(died.elapsed());
}

/// Lets a server die as soon as it is started, until it is left alone.
fn dies_at_the_start(gateway: &mut Gateway, server: &Server, life: &crate::stage::server::Life, tally: &mut Tally) {
    server.leaves("initialize");
    kill(life.pid, Signal::KILL);
    for _ in 0..4 {
        server.lives_within(Duration::from_secs(20)).unwrap().order("x4");
        tally.starts += 1;
    }
    gateway.take("notifications/tools/list_changed");
    for number in 0..3 {
        let id = format!("\"alone {number}\"");
        let begun = Instant::now();
        gateway.call(&id, "x");
        let answer = gateway.answer(&id);
        tally.expect("a call to a server that is left alone", &failure(&answer, "exit status: 4"), "failed");
        tally.slowest_refusal = tally.slowest_refusal.max(begun.elapsed());
    }
    if server.lives_within(Duration::from_secs(2)).is_some() {
        tally.wrong.push("a server that is left alone was started again".to_owned());
    }
}
