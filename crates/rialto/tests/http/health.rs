//! Servers that hang or die behind clients that stay, and what `/healthz` and `/metrics` say of it.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use torture::stage::door::{Door, call, stateless_call};
use torture::stage::runner::{Case, case};
use torture::stage::wire::{Answer, Ask, PATIENCE};
use torture::stage::{Stage, kill};

pub(crate) const CASES: &[Case] =
    &[case!(a_server_that_hangs_is_told_and_so_is_its_recovery), case!(a_server_that_dies_is_there_again_for_all)];

/// Asks until the status is this one.
fn wait_for(door: &Door, status: u16) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = door.ask(&Ask::get("/healthz"));
        if answer.status() == status {
            return answer;
        }
        assert!([200, 503].contains(&answer.status()));
        assert!(Instant::now() < deadline, "it never was {status}: {}", answer.text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn a_server_that_hangs_is_told_and_so_is_its_recovery() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    for server in [&alpha, &beta] {
        server.answers("ping", r#""result":{}"#);
        server.answers("tools/call", r#""result":{"content":[]}"#);
    }
    let door = Door::open(&stage, &[&alpha, &beta], &[]);
    // Nobody has needed the servers yet; they are asked all the same.
    let report = wait_for(&door, 200).message().raw(&["servers"]);
    assert!(report.contains("\"alpha\"") && report.contains("\"beta\""), "{report}");
    let life = beta.life();
    kill(life.pid, Signal::STOP);
    let failing = wait_for(&door, 503);
    let report: Vec<serde_json::Value> = serde_json::from_str(&failing.message().raw(&["servers"])).unwrap();
    assert_eq!((&report[0]["name"], &report[0]["ok"]), (&"alpha".into(), &true.into()));
    assert_eq!((&report[1]["name"], &report[1]["ok"]), (&"beta".into(), &false.into()));
    // The other one still works.
    let session = door.session("2025-06-18");
    assert!(session.ask("1", "tools/call", r#"{"name":"alpha__x"}"#).find(&["result"]).is_some());
    kill(life.pid, Signal::CONT);
    wait_for(&door, 200);
    assert!(session.ask("2", "tools/call", r#"{"name":"beta__x"}"#).find(&["result"]).is_some());
    let head = door.send(&Ask::bare("HEAD", "/healthz").with("Connection", "close")).head();
    assert_eq!(head.unwrap().status, 200);
}

fn a_server_that_dies_is_there_again_for_all() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers("ping", r#""result":{}"#);
    let door = Door::open(&stage, &[&server], &[]);
    let (early, late) = (door.session("2025-06-18"), door.session("2025-11-25"));
    let mut oldest = door.oldest("/sse");
    let mut life = server.life();
    let wires = [
        early.send(call("1", "alpha__x", "1")),
        late.send(call("1", "alpha__x", "2")),
        door.send(&stateless_call("1", "alpha__x", "3")),
    ];
    assert_eq!(oldest.post(call("1", "alpha__x", "4")), 202);
    (0..4).for_each(|_| drop(life.take("tools/call")));
    kill(life.pid, Signal::KILL);
    // Everybody is told, each in the words of its version.
    let [one, two, three] = wires.map(|wire| wire.messages().answer("1"));
    assert_eq!(one.raw(&["error", "code"]), "-32003");
    assert_eq!(two.raw(&["result", "isError"]), "true");
    assert_eq!(three.raw(&["result", "isError"]), "true");
    assert_eq!(oldest.stream.answer("1").raw(&["error", "code"]), "-32003");
    let mut life = server.life();
    // All of them go on in their sessions.
    let wires = [
        early.send(call("2", "alpha__x", "1")),
        late.send(call("2", "alpha__x", "2")),
        door.send(&stateless_call("2", "alpha__x", "3")),
    ];
    assert_eq!(oldest.post(call("2", "alpha__x", "4")), 202);
    for _ in 0..4 {
        let request = life.take("tools/call");
        let value = request.raw(&["params", "arguments", "value"]);
        life.reply(&request, &format!(r#""result":{{"content":[],"value":{value}}}"#));
    }
    for (wire, value) in wires.into_iter().zip(["1", "2", "3"]) {
        assert_eq!(wire.messages().answer("2").raw(&["result", "value"]), value);
    }
    assert_eq!(oldest.stream.answer("2").raw(&["result", "value"]), "4");
    wait_for(&door, 200);
    let metrics = door.ask(&Ask::get("/metrics")).text();
    for line in [
        "rialto_server_up{server=\"alpha\"} 1",
        "rialto_server_starts_total{server=\"alpha\"} 2",
        "rialto_server_calls_total{server=\"alpha\"} 8",
        "rialto_http_sessions 3",
        "rialto_http_sessions_total 3",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
}
