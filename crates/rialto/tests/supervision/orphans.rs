//! However the gateway ends, no process that it started outlives it.

use std::io::{BufRead, BufReader};
use std::process::ExitStatus;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::Signal;

use torture::stage::gateway::Gateway;
use torture::stage::line::PATIENCE;
use torture::stage::runner::{Case, case};
use torture::stage::{Stage, expect_gone, is_alive, kill};

pub(crate) const CASES: &[Case] = &[
    case!(asked_to_end),
    case!(interrupted),
    case!(hung_up_on),
    case!(killed),
    case!(killed_before_anybody_was_introduced),
    case!(at_the_end_of_its_input),
    case!(after_shutdown),
    case!(when_its_client_vanished_in_the_middle_of_a_call),
    case!(a_server_that_died_leaves_no_one_of_its_group),
    case!(what_a_dead_server_left_in_a_session_of_its_own_goes_with_the_gateway),
];

const VERSION: &str = "2025-06-18";

/// By then everything must be gone.
const LIMIT: Duration = Duration::from_secs(5);

/// All processes below one.
fn below(parent: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let parent_of = |pid: &i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let children = numbers.iter().filter(|pid| parent_of(pid) == Some(parent));
    children.flat_map(|child| [vec![*child], below(*child)].concat()).collect()
}

/// Three servers that will not go: one ignores everything it can, one has a process in its group, one has a process in
/// a session of its own. Whatever they started ignores what it can as well.
fn ends(end: impl Fn(&mut Gateway)) -> ExitStatus {
    let stage = Stage::new();
    let (alpha, beta, gamma) = (stage.server("alpha"), stage.server("beta"), stage.server("gamma"));
    let mut gateway = stage.gateway(&[&alpha, &beta, &gamma], &[]);
    gateway.begin(VERSION);
    let (stubborn, parent, ancestor) = (alpha.life(), beta.life(), gamma.life());
    stubborn.order_and_wait("s");
    let mut pids = vec![
        ("gateway", gateway.pid()),
        ("stubborn", stubborn.pid),
        ("parent", parent.pid),
        ("child in the group", parent.spawn("group")),
        ("ancestor", ancestor.pid),
        ("child in a session of its own", ancestor.spawn("session")),
    ];
    pids.extend(below(gateway.pid()).into_iter().map(|pid| ("below", pid)));
    assert!(pids.len() >= 6 + 6, "three servers, two children and the guard are below the gateway: {pids:?}");
    assert!(pids.iter().all(|(_, pid)| is_alive(*pid)));
    end(&mut gateway);
    expect_gone(&pids, LIMIT);
    gateway.end(PATIENCE)
}

fn asked_to_end() {
    ends(|gateway| kill(gateway.pid(), Signal::TERM));
}

fn interrupted() {
    ends(|gateway| kill(gateway.pid(), Signal::INT));
}

fn hung_up_on() {
    ends(|gateway| kill(gateway.pid(), Signal::HUP));
}

fn killed() {
    ends(|gateway| kill(gateway.pid(), Signal::KILL));
}

fn at_the_end_of_its_input() {
    assert_eq!(ends(Gateway::close_input).code(), Some(0));
}

fn after_shutdown() {
    let status = ends(|gateway| assert_eq!(gateway.ask("9", "shutdown", "{}").raw(&["result"]), "{}"));
    assert_eq!(status.code(), Some(0));
}

fn killed_before_anybody_was_introduced() {
    let stage = Stage::new();
    let (alpha, beta, gamma) = (stage.server("alpha"), stage.server("beta"), stage.server("gamma"));
    let gateway = stage.gateway(&[&alpha, &beta, &gamma], &[]);
    let lives = [alpha.life(), beta.life(), gamma.life()];
    for life in &lives {
        life.order_and_wait("s");
    }
    let pids: Vec<_> = below(gateway.pid()).into_iter().map(|pid| ("below", pid)).collect();
    assert!(pids.len() >= 4, "{pids:?}");
    kill(gateway.pid(), Signal::KILL);
    expect_gone(&pids, LIMIT);
}

/// A host that crashed closes both pipes. There is nobody left to answer, so nothing is worth waiting for.
fn when_its_client_vanished_in_the_middle_of_a_call() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let (mut gateway, output) = stage.gateway_unread(&[&server], &[]);
    gateway.send(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    let (give, taken) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        output.read_line(&mut String::new()).unwrap();
        let _ = give.send(output);
    });
    let output = taken.recv_timeout(PATIENCE).unwrap();
    let mut life = server.life();
    gateway.call("1", "alpha__x");
    life.take("tools/call");
    let pids: Vec<_> = below(gateway.pid()).into_iter().chain([gateway.pid()]).map(|pid| ("below", pid)).collect();
    gateway.close_input();
    drop(output);
    expect_gone(&pids, LIMIT);
}

fn a_server_that_died_leaves_no_one_of_its_group() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let life = server.life();
    let child = life.spawn("group");
    life.order("x1");
    expect_gone(&[("child in the group", child)], Duration::from_secs(2));
    assert!(is_alive(gateway.pid()));
}

fn what_a_dead_server_left_in_a_session_of_its_own_goes_with_the_gateway() {
    for signal in [Signal::TERM, Signal::KILL] {
        let stage = Stage::new();
        let server = stage.server("alpha");
        let mut gateway = stage.single(&server, &[]);
        gateway.begin(VERSION);
        let life = server.life();
        let child = life.spawn("session");
        life.order("x1");
        let next = server.life();
        kill(gateway.pid(), signal);
        expect_gone(&[("child", child), ("next", next.pid), ("gateway", gateway.pid())], LIMIT);
    }
}
