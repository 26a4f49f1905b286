//! Another configuration while clients are there: only what changed is exchanged, and no call is dropped.

use std::time::Duration;

use rustix::process::Signal;

use torture::stage::door::{Door, call, stateless, stateless_call};
use torture::stage::runner::{Case, case};
use torture::stage::wire::{Messages, PATIENCE};
use torture::stage::{Stage, expect_gone, is_alive, kill};

pub(crate) const CASES: &[Case] = &[
    case!(servers_come_and_go_without_a_call_being_dropped),
    case!(a_server_that_changed_is_exchanged),
    case!(a_call_that_waits_for_its_client_survives),
    case!(a_configuration_that_is_wrong_changes_nothing),
];

const CHANGED: &str = "notifications/tools/list_changed";

fn servers_come_and_go_without_a_call_being_dropped() {
    let stage = Stage::new();
    let (alpha, beta, gamma) = (stage.server("alpha"), stage.server("beta"), stage.server("gamma"));
    let door = Door::open(&stage, &[&alpha, &beta], &[]);
    let session = door.session("2025-06-18");
    let (mut first, mut second) = (alpha.life(), beta.life());
    let mut news = session.stream();
    let mut oldest = door.oldest("/sse");
    let listen = stateless("1", "subscriptions/listen", r#","notifications":{"toolsListChanged":true}"#);
    let mut listening = door.listen(&listen);
    listening.take("notifications/subscriptions/acknowledged");
    // Calls of every kind run on both.
    let on_alpha = session.send(call("1", "alpha__x", "1"));
    let on_beta = session.send(call("2", "beta__x", "2"));
    let alone_on_beta = door.send(&stateless_call("1", "beta__x", "3"));
    assert_eq!(oldest.post(call("1", "beta__x", "4")), 202);
    let first_call = first.take("tools/call");
    let beta_calls = [second.take("tools/call"), second.take("tools/call"), second.take("tools/call")];

    stage.configure(&[&alpha, &beta, &gamma]);
    let mut third = gamma.life();
    let mut hear = |oldest: &mut Messages| {
        news.take(CHANGED);
        listening.take(CHANGED);
        oldest.take(CHANGED);
    };
    hear(&mut oldest.stream);
    let wire = session.send(call("3", "gamma__x", "1"));
    let request = third.take("tools/call");
    third.reply(&request, r#""result":{"content":[]}"#);
    wire.messages().answer("3");

    stage.configure(&[&alpha, &gamma]);
    hear(&mut oldest.stream);
    let listed = session.ask("4", "tools/list", "{}").raw(&["result", "tools"]);
    assert!(listed.contains("gamma__x") && !listed.contains("beta__x"), "{listed}");
    assert_eq!(session.ask("5", "tools/call", r#"{"name":"beta__x"}"#).raw(&["error", "code"]), "-32602");
    // Its calls are still running, and so is it.
    assert!(is_alive(second.pid));
    for request in beta_calls {
        let value = request.raw(&["params", "arguments", "value"]);
        second.reply(&request, &format!(r#""result":{{"content":[],"value":{value}}}"#));
    }
    assert_eq!(on_beta.messages().answer("2").raw(&["result", "value"]), "2");
    assert_eq!(alone_on_beta.messages().answer("1").raw(&["result", "value"]), "3");
    assert_eq!(oldest.stream.answer("1").raw(&["result", "value"]), "4");
    expect_gone(&[("beta", second.pid)], PATIENCE);
    first.reply(&first_call, r#""result":{"content":[]}"#);
    on_alpha.messages().answer("1");
    // Those that stayed have not been started again.
    assert!(alpha.lives_within(Duration::ZERO).is_none());
    assert!(gamma.lives_within(Duration::ZERO).is_none());
    door.gateway.error_line("the configuration has changed: removed beta");
}

fn a_server_that_changed_is_exchanged() {
    let stage = Stage::new();
    let (alpha, mut beta) = (stage.server("alpha"), stage.server("beta"));
    let door = Door::open(&stage, &[&alpha, &beta], &[]);
    let session = door.session("2025-11-25");
    let mut old = beta.life();
    let wire = session.send(call("1", "beta__x", "1"));
    let running = old.take("tools/call");
    beta.settings = "env = { COLOUR = \"green\" }".to_owned();
    beta.answers("tools/list", r#""result":{"tools":[{"name":"y","inputSchema":{"type":"object"}}]}"#);
    stage.configure(&[&alpha, &beta]);
    let mut new = beta.life();
    assert!(new.environment.contains(&"COLOUR=green".to_owned()));
    door.gateway.error_line("changed beta");
    // A call of a tool that only the new one has goes there; what runs stays where it is.
    let other = session.send(call("2", "beta__y", "2"));
    let request = new.take("tools/call");
    new.reply(&request, r#""result":{"content":[],"by":"new"}"#);
    assert_eq!(other.messages().answer("2").raw(&["result", "by"]), "\"new\"");
    old.reply(&running, r#""result":{"content":[],"by":"old"}"#);
    assert_eq!(wire.messages().answer("1").raw(&["result", "by"]), "\"old\"");
    expect_gone(&[("the old one", old.pid)], PATIENCE);
    assert!(is_alive(new.pid));
    alpha.life();
    assert!(alpha.lives_within(Duration::ZERO).is_none());
}

fn a_call_that_waits_for_its_client_survives() {
    let stage = Stage::new();
    let (alpha, beta, gamma) = (stage.server("alpha"), stage.server("beta"), stage.server("gamma"));
    let door = Door::open(&stage, &[&alpha, &beta, &gamma], &[]);
    let running = door.send(&stateless_call("1", "beta__x", "1"));
    let mut life = beta.life();
    let request = life.take("tools/call");
    life.send(r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"who?"}}"#);
    let state = running.messages().answer("1").raw(&["result", "requestState"]);
    stage.configure(&[&alpha, &gamma]);
    door.gateway.error_line("removed beta");
    let more = format!(
        r#","name":"beta__x","arguments":{{"value":1}},"inputResponses":{{"input-1":{{"action":"accept"}}}},"requestState":{state}"#
    );
    let again = door.send(&stateless("2", "tools/call", &more).with("Mcp-Name", "beta__x"));
    assert_eq!(life.answer("5").raw(&["result"]), r#"{"action":"accept"}"#);
    life.reply(&request, r#""result":{"content":[]}"#);
    assert_eq!(again.messages().answer("2").raw(&["result", "content"]), "[]");
}

fn a_configuration_that_is_wrong_changes_nothing() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let door = Door::open(&stage, &[&alpha], &["-v"]);
    let session = door.session("2025-06-18");
    let mut life = alpha.life();
    let mut works = |id: &str| {
        let wire = session.send(call(id, "x", "1").replace("\"x\"", "\"alpha__x\""));
        let request = life.take("tools/call");
        life.reply(&request, r#""result":{"content":[]}"#);
        assert_eq!(wire.messages().answer(id).raw(&["result", "content"]), "[]");
    };
    works("1");
    let reports = |stage: &Stage| {
        stage.transcript.find("the servers stay as they are").iter().filter(|line| line.contains("2>")).count()
    };
    for (round, text) in ["[servers", "", "[servers.beta]\ncommand = 7\n"].into_iter().enumerate() {
        stage.write_config(text);
        let deadline = std::time::Instant::now() + PATIENCE;
        while reports(&stage) <= round {
            assert!(std::time::Instant::now() < deadline, "it was not reported: {text:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        works(&format!("\"after {round}\""));
    }
    // Whoever asks for it is told at once, even if nothing is different.
    kill(door.gateway.pid(), Signal::HUP);
    let deadline = std::time::Instant::now() + PATIENCE;
    while reports(&stage) < 4 {
        assert!(std::time::Instant::now() < deadline, "the signal was not heard");
        std::thread::sleep(Duration::from_millis(10));
    }
    stage.configure(&[&alpha, &beta]);
    beta.life();
    door.gateway.error_line("the configuration has changed: added beta");
    kill(door.gateway.pid(), Signal::HUP);
    door.gateway.error_line("no server has changed");
    works("9");
    assert!(alpha.lives_within(Duration::ZERO).is_none());
}
