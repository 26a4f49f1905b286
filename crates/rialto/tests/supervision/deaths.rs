//! Servers that die: in a call, at the start, again and again.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use torture::stage::gateway::Gateway;
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};
use torture::stage::{Stage, kill};

pub(crate) const CASES: &[Case] = &[
    case!(a_server_that_exits_in_a_call_fails_it_and_comes_back),
    case!(a_server_that_is_killed_in_a_call_fails_it_and_comes_back),
    case!(an_answer_written_just_before_death_counts),
    case!(a_server_that_dies_at_the_start_takes_nobody_with_it),
    case!(a_server_that_dies_at_the_start_is_explained),
    case!(a_lone_server_that_dies_at_the_start_is_explained),
    case!(a_program_that_does_not_exist_takes_nobody_with_it),
    case!(a_program_that_does_not_exist_is_explained),
    case!(a_lone_program_that_does_not_exist_is_explained),
    case!(a_server_that_keeps_dying_is_explained),
    case!(a_server_that_refuses_the_handshake_is_explained),
];

const VERSION: &str = "2025-06-18";

/// Waits for the answer to `id`, which must come within `limit`.
fn answer_within(gateway: &mut Gateway, id: &str, limit: Duration) -> Line {
    let answer = gateway.find_within(limit, &format!("the answer to {id} within {limit:?}"), |line| line.has_id(id));
    answer.unwrap_or_else(|| panic!("{id} was not answered within {limit:?}"))
}

/// The message of an error, which must hold all these parts.
fn explains(answer: &Line, parts: &[&str]) {
    let message = answer.raw(&["error", "message"]);
    for part in parts {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
}

fn dies_in_a_call(die: impl Fn(&torture::stage::server::Life), status: &str) {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let (mut life, mut other) = (alpha.life(), beta.life());
    for id in ["1", "2", "3"] {
        gateway.call(id, "alpha__x");
        life.take("tools/call");
    }
    gateway.call("4", "beta__x");
    let undisturbed = other.take("tools/call");
    life.order("2warming up");
    life.order("2out of cheese");
    gateway.error_line("out of cheese");
    let died = Instant::now();
    die(&life);
    for id in ["1", "2", "3"] {
        let answer = answer_within(&mut gateway, id, Duration::from_secs(1));
        explains(&answer, &["alpha", status, "out of cheese", "warming up"]);
        assert_eq!(answer.raw(&["error", "code"]), "-32003");
        assert_eq!(answer.raw(&["error", "data", "code"]), "\"tool_failed\"");
    }
    assert!(died.elapsed() < Duration::from_millis(1500), "it took {:?}", died.elapsed());
    assert!(gateway.ask("\"list\"", "tools/list", "{}").0.contains("alpha__x"), "a short absence is not shown");
    alpha.answers("tools/call", r#""result":{"back":true}"#);
    gateway.call("5", "alpha__x");
    assert_eq!(answer_within(&mut gateway, "5", Duration::from_secs(2)).raw(&["result", "back"]), "true");
    other.reply(&undisturbed, r#""result":{}"#);
    assert_eq!(gateway.answer("4").raw(&["result"]), "{}");
    assert_eq!(gateway.unclaimed(), [], "the same tools are back, so no list has changed");
}

fn a_server_that_exits_in_a_call_fails_it_and_comes_back() {
    dies_in_a_call(|life| life.order("x3"), "exit status: 3");
}

fn a_server_that_is_killed_in_a_call_fails_it_and_comes_back() {
    dies_in_a_call(|life| kill(life.pid, Signal::KILL), "signal: 9");
}

fn an_answer_written_just_before_death_counts() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    for round in 1..=3 {
        let mut life = server.life();
        let id = round.to_string();
        gateway.call(&id, "x");
        let request = life.take("tools/call");
        life.reply(&request, &format!(r#""result":{{"round":{round}}}"#));
        life.order("x0");
        assert_eq!(gateway.answer(&id).raw(&["result", "round"]), id);
    }
}

/// Starts two servers, the first of which dies at once; gives what a call to it is answered.
fn dies_at_the_start() -> Line {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    beta.answers("tools/call", r#""result":{}"#);
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    let life = alpha.life();
    life.order("2no such database");
    life.order("x4");
    gateway.begin(VERSION);
    assert!(!gateway.ask("1", "tools/list", "{}").0.contains("alpha__x"));
    gateway.call("2", "beta__x");
    gateway.answer("2");
    gateway.error_line("exit status: 4");
    // A host may still have the tool from its last session.
    gateway.call("3", "alpha__x");
    answer_within(&mut gateway, "3", Duration::from_secs(2))
}

fn a_server_that_dies_at_the_start_takes_nobody_with_it() {
    dies_at_the_start().raw(&["error", "code"]);
}

fn a_server_that_dies_at_the_start_is_explained() {
    explains(&dies_at_the_start(), &["alpha", "exit status: 4", "no such database"]);
}

fn a_lone_server_that_dies_at_the_start_is_explained() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    let life = server.life();
    life.order("2no such database");
    life.order("x4");
    gateway.begin(VERSION);
    gateway.call("1", "x");
    explains(&answer_within(&mut gateway, "1", Duration::from_secs(2)), &["exit status: 4", "no such database"]);
}

/// Configures a program that does not exist beside a server that does; gives what a call to it is answered.
fn does_not_exist() -> Line {
    let mut stage = Stage::new();
    stage.more = "[servers.missing]\ncommand = \"no-such-program-anywhere\"\n".to_owned();
    let beta = stage.server("beta");
    beta.answers("tools/call", r#""result":{}"#);
    let mut gateway = stage.gateway(&[&beta], &[]);
    gateway.begin(VERSION);
    assert!(gateway.ask("1", "tools/list", "{}").0.contains("beta__x"));
    gateway.call("2", "beta__x");
    gateway.answer("2");
    assert!(gateway.error_line("no-such-program-anywhere").contains("missing"));
    gateway.call("3", "missing__x");
    answer_within(&mut gateway, "3", Duration::from_secs(1))
}

fn a_program_that_does_not_exist_takes_nobody_with_it() {
    does_not_exist().raw(&["error", "code"]);
}

fn a_program_that_does_not_exist_is_explained() {
    explains(&does_not_exist(), &["missing", "no-such-program-anywhere"]);
}

fn a_lone_program_that_does_not_exist_is_explained() {
    let mut stage = Stage::new();
    stage.more = "[servers.missing]\ncommand = \"no-such-program-anywhere\"\n".to_owned();
    let mut gateway = stage.gateway(&[], &[]);
    gateway.begin(VERSION);
    gateway.call("1", "missing__x");
    explains(&answer_within(&mut gateway, "1", Duration::from_secs(1)), &["missing", "no-such-program-anywhere"]);
}

/// Lets a server die until it is left alone; gives what a call to it is answered.
fn keeps_dying() -> Line {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    beta.answers("tools/call", r#""result":{}"#);
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    for _ in 0..5 {
        let mut life = alpha.lives_within(Duration::from_secs(10)).unwrap();
        life.take("notifications/initialized");
        life.order("2out of cheese");
        life.order("x5");
    }
    // Its tools go, and the client is told so.
    let is_listed = |gateway: &mut Gateway, id: &str| gateway.ask(id, "tools/list", "{}").0.contains("alpha__x");
    gateway.take("notifications/tools/list_changed");
    assert!(!is_listed(&mut gateway, "1"));
    assert!(alpha.lives_within(Duration::from_secs(2)).is_none(), "it was started a sixth time");
    gateway.call("2", "alpha__x");
    let answer = answer_within(&mut gateway, "2", Duration::from_millis(500));
    gateway.call("3", "beta__x");
    gateway.answer("3");
    answer
}

fn a_server_that_keeps_dying_is_explained() {
    explains(&keeps_dying(), &["alpha", "exit status: 5", "out of cheese"]);
}

fn a_server_that_refuses_the_handshake_is_explained() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers("initialize", r#""error":{"code":-32000,"message":"no licence"}"#);
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    gateway.call("1", "x");
    // What matters is what it said to the handshake, not that it does not know the other era's.
    explains(&answer_within(&mut gateway, "1", Duration::from_secs(2)), &["no licence"]);
}
