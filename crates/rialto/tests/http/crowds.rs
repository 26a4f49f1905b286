//! Many clients at once, and clients that hold on to their connections without using them.

use std::sync::{Barrier, Mutex};
use std::time::Duration;

use torture::machine::memory;
use torture::stage::Stage;
use torture::stage::door::{Door, Oldest, Place, Session, call, stateless, stateless_call};
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};
use torture::stage::server::Life;
use torture::stage::wire::Messages;

pub(crate) const CASES: &[Case] =
    &[case!(a_hundred_clients_of_every_version_do_not_hear_each_other), case!(clients_that_do_not_read_hold_up_nobody)];

/// Plays a server for ever: tells progress and gives back what it was called with; asks back where that is wished.
fn echo(mut life: Life) {
    let mut asked: Vec<(String, Line)> = Vec::new();
    let mut next = 0;
    while let Some(line) = life.find_within(Duration::from_secs(60), |_| true) {
        if let Some(place) = asked.iter().position(|(id, _)| line.has_id(id)) {
            let (_, request) = asked.swap_remove(place);
            life.reply(&request, &format!(r#""result":{{"content":[],"heard":{}}}"#, line.raw(&["result", "heard"])));
            continue;
        }
        if !line.is_method("tools/call") {
            continue;
        }
        let value = line.raw(&["params", "arguments", "value"]);
        let method = match value.trim_matches('"').split('-').next() {
            Some("elicit") => "elicitation/create",
            Some("sample") => "sampling/createMessage",
            _ => {
                let token = line.raw(&["params", "_meta", "progressToken"]);
                for number in 1..=2 {
                    life.send(&format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{number},"message":{value}}}}}"#
                    ));
                }
                life.reply(&line, &format!(r#""result":{{"content":[],"value":{value}}}"#));
                continue;
            }
        };
        next += 1;
        life.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{next},"method":"{method}","params":{{"message":{value},"messages":[]}}}}"#
        ));
        asked.push((next.to_string(), line));
    }
}

/// A client of any version.
enum Visitor<'a> {
    Oldest(Box<Oldest<'a>>),
    Session(Session<'a>),
    Stateless(&'a Place),
}

/// Two signs of progress and the answer, all about one value.
fn check(stream: &mut Messages, id: &str, value: &str) {
    for number in ["1", "2"] {
        let note = stream.take("notifications/progress");
        assert_eq!(note.raw(&["params", "message"]), value);
        assert_eq!(note.raw(&["params", "progress"]), number);
        assert_eq!(note.raw(&["params", "progressToken"]), "\"token\"");
    }
    assert_eq!(stream.answer(id).raw(&["result", "value"]), value);
}

impl<'a> Visitor<'a> {
    fn new(door: &'a Place, number: usize) -> Self {
        match number % 5 {
            0 => Visitor::Oldest(Box::new(door.oldest(if number.is_multiple_of(2) { "/sse" } else { "/mcp" }))),
            1 => Visitor::Session(door.session("2025-03-26")),
            2 => Visitor::Session(door.session("2025-06-18")),
            3 => Visitor::Session(door.session("2025-11-25")),
            _ => Visitor::Stateless(door),
        }
    }

    /// Calls a tool and checks that everything that comes is about this call.
    fn call(&mut self, id: &str, value: &str) {
        match self {
            Visitor::Oldest(client) => {
                assert_eq!(client.post(call(id, "x", value)), 202);
                check(&mut client.stream, id, value);
            }
            Visitor::Session(session) => {
                let mut stream = session.send(call(id, "x", value)).messages();
                check(&mut stream, id, value);
                assert_eq!(stream.rest(), []);
            }
            Visitor::Stateless(door) => {
                let mut stream = door.listen(&stateless_call(id, "x", value));
                check(&mut stream, id, value);
                assert_eq!(stream.rest(), []);
            }
        }
    }

    /// Calls a tool that asks back, and answers it.
    fn converse(&mut self, value: &str) {
        let is_question = |line: &Line| line.find(&["method"]).is_some() && line.find(&["id"]).is_some();
        let check = |asked: &Line| {
            assert_eq!(asked.raw(&["params", "message"]), value);
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"heard":{value}}}}}"#, asked.id())
        };
        let answer = match self {
            Visitor::Oldest(client) => {
                assert_eq!(client.post(call("\"ask\"", "x", value)), 202);
                let asked = client.stream.find("a question", is_question);
                assert_eq!(client.post(check(&asked)), 202);
                client.stream.answer("\"ask\"")
            }
            Visitor::Session(session) => {
                let mut stream = session.send(call("\"ask\"", "x", value)).messages();
                let asked = stream.find("a question", is_question);
                session.tell(&check(&asked));
                stream.answer("\"ask\"")
            }
            Visitor::Stateless(door) => {
                let asked = door.listen(&stateless_call("1", "x", value)).answer("1");
                assert!(asked.raw(&["result", "inputRequests"]).contains(value), "{}", asked.0);
                let state = asked.raw(&["result", "requestState"]);
                let more = format!(
                    r#","name":"x","arguments":{{"value":{value}}},"inputResponses":{{"input-1":{{"heard":{value}}}}},"requestState":{state}"#
                );
                door.listen(&stateless("1", "tools/call", &more).with("Mcp-Name", "x")).answer("1")
            }
        };
        assert_eq!(answer.raw(&["result", "heard"]), value);
    }
}

fn a_hundred_clients_of_every_version_do_not_hear_each_other() {
    const CLIENTS: usize = 100;
    const CALLS: usize = 5;
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    // The first client has the server introduced, in the era that it knows.
    drop(door.session("2025-06-18"));
    let life = server.life();
    let playing = std::thread::spawn(move || echo(life));
    let (all_there, all_called, turn) = (Barrier::new(CLIENTS), Barrier::new(CLIENTS), Mutex::new(()));
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (door, all_there, all_called, turn) = (&*door, &all_there, &all_called, &turn);
            scope.spawn(move || {
                // A client that fails must not keep the others waiting for it.
                let attempt =
                    |work: &mut dyn FnMut()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok();
                let mut visitor = None;
                let mut is_well = attempt(&mut || visitor = Some(Visitor::new(door, number)));
                all_there.wait();
                is_well &= attempt(&mut || {
                    for round in 0..CALLS {
                        // All of them use the same ids.
                        visitor.as_mut().unwrap().call(&round.to_string(), &format!("\"client-{number}-{round}\""));
                    }
                });
                all_called.wait();
                let mine = turn.lock().unwrap();
                let word = if number.is_multiple_of(2) { "elicit" } else { "sample" };
                is_well &= attempt(&mut || visitor.as_mut().unwrap().converse(&format!("\"{word}-{number}\"")));
                drop(mine);
                assert!(is_well, "client {number}");
            });
        }
    });
    drop(door);
    playing.join().unwrap();
}

fn clients_that_do_not_read_hold_up_nobody() {
    const ALLOWED: u64 = 256 * 1024;
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-11-25");
    let mut life = server.life();
    let before = memory(door.gateway.pid());
    // Four clients call and read nothing of what they get: far more than sockets and buffers hold.
    let oldest = door.oldest("/sse");
    let other = door.session("2025-06-18");
    assert_eq!(oldest.post(call("1", "x", "0")), 202);
    let mut calls = vec![life.take("tools/call")];
    let lazy =
        [session.send(call("1", "x", "1")), other.send(call("1", "x", "2")), door.send(&stateless_call("1", "x", "3"))];
    calls.extend((0..3).map(|_| life.take("tools/call")));
    for request in &calls {
        let token = request.raw(&["params", "_meta", "progressToken"]);
        let padding = "y".repeat(4000);
        life.order(&format!(
            r#"*3000 {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1,"message":"{padding}"}}}}"#
        ));
        life.order(&format!(
            r#"b{} {{"jsonrpc":"2.0","id":{},"result":{{"content":[],"long":"|"}}}}"#,
            8 * 1024 * 1024,
            request.id()
        ));
    }
    // What the server says next comes after all that, over the same pipe.
    let reader = door.session("2025-06-18");
    for number in 0..20 {
        let wire = reader.send(call(&number.to_string(), "x", "4"));
        let request = life.take("tools/call");
        life.reply(&request, &format!(r#""result":{{"content":[],"n":{number}}}"#));
        let answer = wire.messages().answer(&number.to_string());
        assert_eq!(answer.raw(&["result", "n"]), number.to_string());
    }
    let now = memory(door.gateway.pid());
    assert!(now < before + ALLOWED, "{before} KiB before, {now} now");
    // Whoever reads in the end gets its answer, once.
    for wire in lazy {
        let mut stream = wire.messages();
        assert!(stream.answer("1").raw(&["result", "long"]).len() > 8 * 1024 * 1024);
        assert_eq!(stream.rest().iter().filter(|line| line.find(&["result"]).is_some()).count(), 0);
    }
    let mut oldest = oldest;
    assert!(oldest.stream.answer("1").raw(&["result", "long"]).len() > 8 * 1024 * 1024);
}
