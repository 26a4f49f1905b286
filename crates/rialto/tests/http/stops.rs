//! The end of the gateway: what runs is answered, nothing new begins, and nobody is left behind.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use torture::stage::door::{Door, META, SESSION_VERSIONS, call, request, stateless, stateless_call};
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};
use torture::stage::server::Life;
use torture::stage::wire::{Ask, PATIENCE};
use torture::stage::{Stage, expect_gone, kill};

pub(crate) const CASES: &[Case] = &[
    case!(clients_that_do_not_read_are_not_waited_for_without_end),
    case!(a_client_that_has_left_is_not_waited_for),
    case!(what_runs_is_answered_and_nothing_new_begins),
    case!(whoever_asks_twice_does_not_wait),
    case!(a_subscription_in_a_batch_does_not_keep_the_gateway_alive),
    case!(a_stateless_shutdown_ends_nothing_else),
];

/// Waits until nobody listens any more.
fn expect_closed(door: &Door) {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(door.address).is_ok() {
        assert!(Instant::now() < deadline, "it still listens");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn what_runs_is_answered_and_nothing_new_begins() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut door = Door::single(&stage, &server);
    let pid = door.gateway.pid();
    let mut life = {
        let sessions: Vec<_> = SESSION_VERSIONS.iter().map(|version| door.session(version)).collect();
        let mut oldest = door.oldest("/sse");
        let mut life = server.life();
        let mut running = Vec::new();
        for (number, session) in sessions.iter().enumerate() {
            running.push((session.send(call("1", "x", &number.to_string())), life.take("tools/call")));
        }
        running.push((door.send(&stateless_call("1", "x", "3")), life.take("tools/call")));
        assert_eq!(oldest.post(call("1", "x", "4")), 202);
        let oldest_call = life.take("tools/call");
        let mut news = sessions[1].stream();
        let listen = stateless("\"l\"", "subscriptions/listen", r#","notifications":{"toolsListChanged":true}"#);
        let mut listening = door.listen(&listen);
        listening.take("notifications/subscriptions/acknowledged");
        let idle = door.connect();
        let mut kept = door.connect();
        kept.send(&door.signed(&sessions[0].post(request("2", "ping", "{}"))).bytes());
        assert_eq!(kept.next_answer().unwrap().status(), 200);
        kill(pid, Signal::TERM);
        expect_closed(&door);
        // A subscription ends with its answer.
        assert_eq!(listening.answer("\"l\"").raw(&["result", "resultType"]), "\"complete\"");
        assert_eq!(listening.rest(), []);
        // A connection that was left open takes nothing new.
        if kept.try_send(&door.signed(&sessions[0].post(call("3", "x", "5"))).bytes()).is_ok()
            && let Some(answer) = kept.next_answer()
        {
            assert!(answer.status() >= 400 || answer.code() == -32600, "{}", answer.text());
        }
        drop(idle);
        for (number, (wire, request)) in running.into_iter().enumerate() {
            life.reply(&request, &format!(r#""result":{{"content":[],"n":{number}}}"#));
            assert_eq!(wire.messages().answer("1").raw(&["result", "n"]), number.to_string());
        }
        life.reply(&oldest_call, r#""result":{"content":[],"n":4}"#);
        assert_eq!(oldest.stream.answer("1").raw(&["result", "n"]), "4");
        assert_eq!(oldest.stream.rest(), []);
        assert_eq!(news.rest(), []);
        life
    };
    assert_eq!(door.gateway.end(PATIENCE).code(), Some(0));
    expect_gone(&[("server", life.pid)], PATIENCE);
    assert_eq!(life.unclaimed().iter().filter(|line| line.is_method("tools/call")).count(), 0);
}

/// Has the server say more about a call than is kept for a client that does not read, and then answer.
fn overwhelm(life: &Life, request: &Line) {
    let token = request.raw(&["params", "_meta", "progressToken"]);
    let padding = "y".repeat(4000);
    life.order(&format!(
        r#"*4000 {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1,"message":"{padding}"}}}}"#
    ));
    life.reply(request, r#""result":{"content":[]}"#);
}

fn a_client_that_has_left_is_not_waited_for() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut door = Door::single(&stage, &server);
    let pid = door.gateway.pid();
    {
        let session = door.session("2025-11-25");
        let mut life = server.life();
        let wire = session.send(call("1", "x", "1"));
        let request = life.take("tools/call");
        let token = request.raw(&["params", "_meta", "progressToken"]);
        life.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        ));
        let mut stream = wire.messages();
        stream.take("notifications/progress");
        drop(stream);
        overwhelm(&life, &request);
        // Over the same pipe, so that the gateway has taken all of it once this is answered.
        let wire = session.send(call("2", "x", "1"));
        let request = life.take("tools/call");
        life.reply(&request, r#""result":{"content":[]}"#);
        wire.messages().answer("2");
    }
    kill(pid, Signal::TERM);
    assert_eq!(door.gateway.end(PATIENCE).code(), Some(0));
}

fn clients_that_do_not_read_are_not_waited_for_without_end() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut door = Door::single(&stage, &server);
    let pid = door.gateway.pid();
    let idle = {
        let session = door.session("2025-06-18");
        let oldest = door.oldest("/sse");
        let mut life = server.life();
        assert_eq!(oldest.post(call("1", "x", "1")), 202);
        let mut calls = vec![life.take("tools/call")];
        let wires = [session.send(call("1", "x", "1")), door.send(&stateless_call("1", "x", "1"))];
        calls.extend(wires.iter().map(|_| life.take("tools/call")));
        calls.iter().for_each(|request| overwhelm(&life, request));
        (oldest.stream, wires)
    };
    kill(pid, Signal::TERM);
    // It gives them up once they have read nothing for a while, which is half a minute.
    assert_eq!(door.gateway.end(3 * PATIENCE).code(), Some(0));
    drop(idle);
}

fn whoever_asks_twice_does_not_wait() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut door = Door::single(&stage, &server);
    let pid = door.gateway.pid();
    let (wires, life) = {
        let session = door.session("2025-06-18");
        let mut life = server.life();
        let wires = [session.send(call("1", "x", "1")), door.send(&stateless_call("1", "x", "2"))];
        wires.iter().for_each(|_| drop(life.take("tools/call")));
        kill(pid, Signal::TERM);
        expect_closed(&door);
        (wires, life)
    };
    // It waits for the calls, which nobody will answer.
    kill(pid, Signal::TERM);
    let status = door.gateway.end(PATIENCE);
    assert!(status.code().is_some(), "{status}");
    drop(wires);
    expect_gone(&[("server", life.pid)], PATIENCE);
}

fn a_subscription_in_a_batch_does_not_keep_the_gateway_alive() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut door = Door::single(&stage, &server);
    let params = format!(r#"{{"_meta":{{{META}}},"notifications":{{"toolsListChanged":true}}}}"#);
    let batch = format!("[{}]", request("1", "subscriptions/listen", &params));
    let mut stream = door.listen(&Ask::post(batch).with("MCP-Protocol-Version", "2026-07-28"));
    stream.take("notifications/subscriptions/acknowledged");
    kill(door.gateway.pid(), Signal::TERM);
    let answer = stream.find("an array", |line| line.0.starts_with('['));
    assert!(answer.0.contains("\"result\""), "{}", answer.0);
    assert_eq!(door.gateway.end(PATIENCE).code(), Some(0));
}

fn a_stateless_shutdown_ends_nothing_else() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    assert_eq!(door.ask(&stateless("1", "shutdown", "")).status(), 200);
    assert_eq!(session.ask("1", "ping", "{}").raw(&["result"]), "{}");
    assert_eq!(door.ask(&stateless("2", "tools/list", "")).status(), 200);
}
