//! Clients of 2024-11-05: one stream of events, and an address to post to.

use std::time::{Duration, Instant};

use torture::stage::Stage;
use torture::stage::door::{ABLE, Door, Oldest, call, initialize, request};
use torture::stage::runner::{Case, case};
use torture::stage::wire::{Ask, PATIENCE};

pub(crate) const CASES: &[Case] = &[
    case!(everything_is_answered_over_the_stream),
    case!(two_clients_hear_only_what_is_theirs),
    case!(without_its_stream_a_session_is_gone),
    case!(an_address_that_nobody_was_told_is_unknown),
    case!(what_is_no_message_is_answered_over_the_stream),
    case!(line_breaks_in_a_message_do_not_reach_the_server),
    case!(a_server_asks_over_the_stream),
];

fn everything_is_answered_over_the_stream() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers("vendor/none", r#""error":{"code":-32601,"message":"Method not found"}"#);
    let door = Door::single(&stage, &server);
    for target in ["/sse", "/mcp"] {
        let mut client = door.oldest(target);
        assert!(client.stream.is_stream());
        assert_eq!(client.stream.head.header("mcp-session-id"), None);
        assert!(client.target.starts_with("/mcp?sessionId="), "{}", client.target);
        // Several are on their way at once, and each is answered.
        for id in 1..=20 {
            assert_eq!(client.post(request(&id.to_string(), "tools/list", "{}")), 202);
        }
        for id in (1..=20).rev() {
            assert!(client.stream.answer(&id.to_string()).raw(&["result", "tools"]).contains("\"x\""));
        }
        assert_eq!(client.ask("21", "ping", "{}").raw(&["result"]), "{}");
        assert_eq!(client.ask("22", "vendor/none", "{}").raw(&["error", "code"]), "-32601");
    }
}

fn two_clients_hear_only_what_is_theirs() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let (mut one, mut two) = (door.oldest("/sse"), door.oldest("/mcp"));
    assert_ne!(one.target, two.target);
    let mut life = server.life();
    // Both use the same id and the same progress token.
    assert_eq!(one.post(call("7", "x", "\"one\"")), 202);
    let first = life.take("tools/call");
    assert_eq!(two.post(call("7", "x", "\"two\"")), 202);
    let second = life.take("tools/call");
    assert_eq!(first.raw(&["params", "arguments", "value"]), "\"one\"");
    for (request, word) in [(&second, "two"), (&first, "one")] {
        let token = request.raw(&["params", "_meta", "progressToken"]);
        life.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1,"message":"{word}"}}}}"#
        ));
        life.reply(request, &format!(r#""result":{{"content":[],"for":"{word}"}}"#));
    }
    for (client, word) in [(&mut one, "\"one\""), (&mut two, "\"two\"")] {
        let note = client.stream.take("notifications/progress");
        assert_eq!(note.raw(&["params", "message"]), word);
        assert_eq!(note.raw(&["params", "progressToken"]), "\"token\"");
        assert_eq!(client.stream.answer("7").raw(&["result", "for"]), word);
        // Nothing of the other's came in between.
        assert_eq!(client.ask("8", "ping", "{}").raw(&["result"]), "{}");
    }
}

fn without_its_stream_a_session_is_gone() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let (leaver, mut stayer) = (door.oldest("/sse"), door.oldest("/sse"));
    let target = leaver.target.clone();
    drop(leaver);
    let ping = request("1", "ping", "{}");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = door.ask(&Ask::post_to(&target, &ping));
        if answer.status() == 404 {
            assert_eq!(answer.code(), -32600);
            break;
        }
        assert!(Instant::now() < deadline, "its session is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(stayer.ask("1", "ping", "{}").raw(&["result"]), "{}");
}

fn an_address_that_nobody_was_told_is_unknown() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let known = door.oldest("/sse").target;
    let guesses = ["/mcp?sessionId=", "/mcp?sessionId=0", &format!("{known}0"), &known[..known.len() - 1]];
    for target in guesses {
        let answer = door.ask(&Ask::post_to(target, request("1", "ping", "{}")));
        assert_eq!((answer.status(), answer.code()), (404, -32600), "{target}");
    }
    let refused = door.ask(&Ask::get("/sse").with("Accept", "application/json"));
    assert_eq!(refused.status(), 406);
    let refused = door.ask(&Ask::bare("DELETE", "/sse"));
    assert_eq!((refused.status(), refused.head.header("allow")), (405, Some("GET, POST")));
}

fn what_is_no_message_is_answered_over_the_stream() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut client = door.oldest("/sse");
    for (body, code) in [
        (b"{\"jsonrpc\":".as_slice(), "-32700"),
        (b"\xff\xfe", "-32700"),
        (b"[]", "-32600"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", "-32600"),
    ] {
        let status = client.post(body);
        assert!([202, 400].contains(&status), "{status}");
        let answer = client.stream.find("an error", |line| line.find(&["error"]).is_some());
        assert_eq!(answer.raw(&["error", "code"]), code);
        assert_eq!(answer.raw(&["id"]), "null");
    }
    let batch = format!("[{},3,{}]", request("1", "ping", "{}"), r#"{"jsonrpc":"2.0","method":"notifications/v"}"#);
    assert_eq!(client.post(batch), 202);
    let answers = client.stream.find("an array", |line| line.0.starts_with('['));
    let answers: Vec<serde_json::Value> = serde_json::from_str(&answers.0).unwrap();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["result"], serde_json::json!({}));
    assert_eq!(answers[1]["error"]["code"], -32600);
    // None of it ended anything.
    assert_eq!(client.ask("2", "ping", "{}").raw(&["result"]), "{}");
    let wrong = Ask::post_to(&client.target, request("3", "ping", "{}")).with("Content-Type", "text/plain");
    assert_eq!(door.ask(&wrong).status(), 415);
}

fn line_breaks_in_a_message_do_not_reach_the_server() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut client = door.oldest("/sse");
    let mut life = server.life();
    let pretty = "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"method\": \"tools/call\",\n  \"params\": {\n    \"name\": \"x\",\r\n    \"arguments\": {\n      \"value\": \"a b\"\n    }\n  }\n}\n";
    assert_eq!(client.post(pretty), 202);
    let request = life.take("tools/call");
    assert_eq!(request.raw(&["params", "arguments", "value"]), "\"a b\"");
    life.reply(&request, r#""result":{"content":[]}"#);
    assert_eq!(client.stream.answer("1").raw(&["result", "content"]), "[]");
}

fn a_server_asks_over_the_stream() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut client = Oldest::new(&door, "/sse");
    assert_eq!(client.post(initialize("2024-11-05", ABLE)), 202);
    client.stream.answer("\"hello\"");
    let mut life = server.life();
    assert_eq!(client.post(call("1", "x", "1")), 202);
    let request = life.take("tools/call");
    life.send(
        r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1E2}}"#,
    );
    let asked = client.stream.take("sampling/createMessage");
    assert_eq!(asked.raw(&["params"]), r#"{"messages":[],"maxTokens":1E2}"#);
    assert_eq!(client.post(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"model":"m"}}}}"#, asked.id())), 202);
    assert_eq!(life.answer("\"q\"").raw(&["result"]), r#"{"model":"m"}"#);
    life.reply(&request, r#""result":{"content":[]}"#);
    client.stream.answer("1");
}
