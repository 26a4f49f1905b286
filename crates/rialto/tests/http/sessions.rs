//! Sessions of 2025-03-26, 2025-06-18 and 2025-11-25: how they begin, what they need, how they end.

use torture::stage::Stage;
use torture::stage::door::{ABLE, Door, SESSION_VERSIONS, call, initialize, request};
use torture::stage::runner::{Case, case};
use torture::stage::wire::Ask;

pub(crate) const CASES: &[Case] = &[
    case!(a_session_begins_with_initialize_and_ends_with_delete),
    case!(what_needs_a_session_says_so),
    case!(a_version_that_does_not_exist_is_refused),
    case!(ids_are_unique_in_a_session_and_only_there),
    case!(shutdown_ends_one_session_after_what_runs),
    case!(a_server_asks_the_client_whose_call_runs),
    case!(a_client_that_cannot_be_asked_is_not_asked),
    case!(updates_of_a_resource_reach_those_who_asked_for_them),
    case!(an_unknown_version_gets_the_latest_with_sessions),
];

fn a_session_begins_with_initialize_and_ends_with_delete() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut known = Vec::new();
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        assert!(session.id.len() >= 32 && session.id.bytes().all(|byte| byte.is_ascii_graphic()), "{}", session.id);
        assert!(!known.contains(&session.id));
        known.push(session.id.clone());
        assert!(session.ask("1", "tools/list", "{}").raw(&["result", "tools"]).contains("\"x\""));
        let mut stream = session.stream();
        let ended = door.ask(&session.of(Ask::bare("DELETE", "/mcp")));
        assert_eq!((ended.status(), ended.body.len()), (204, 0));
        assert_eq!(stream.rest(), []);
        for ask in [
            session.post(request("2", "ping", "{}")),
            session.of(Ask::get("/mcp")),
            session.of(Ask::bare("DELETE", "/mcp")),
        ] {
            let answer = door.ask(&ask);
            assert_eq!((answer.status(), answer.code()), (404, -32600), "{version} {}", ask.line);
        }
    }
}

fn what_needs_a_session_says_so() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let missing = [
            session.post(request("5", "tools/list", "{}")),
            session.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            session.post(format!("[{}]", request("6", "ping", "{}"))),
            session.post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            session.of(Ask::bare("DELETE", "/mcp")),
        ];
        for (place, ask) in missing.into_iter().enumerate() {
            let answer = door.ask(&ask.clone().without("Mcp-Session-Id"));
            assert_eq!((answer.status(), answer.code()), (400, -32600), "{version} {place}");
            let id = answer.message().find(&["id"]);
            match (place, version) {
                (0, _) => assert_eq!(id.as_deref(), Some("5")),
                (_, "2025-11-25") => assert_eq!(id, None),
                _ => assert_eq!(id.as_deref(), Some("null"), "{version} {place}"),
            }
            for wrong in ["", "0", "null", &session.id[1..], &format!("{0}{0}", session.id), "\u{e9}"] {
                let answer = door.ask(&ask.clone().with("Mcp-Session-Id", wrong));
                assert_eq!((answer.status(), answer.code()), (404, -32600), "{version} {place} {wrong:?}");
            }
        }
        // None of it has touched the session that there is.
        assert_eq!(session.ask("7", "ping", "{}").raw(&["result"]), "{}");
    }
}

fn a_version_that_does_not_exist_is_refused() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let mut life = server.life();
    life.take("notifications/initialized");
    let asks = [
        session.post(request("1", "tools/list", "{}")),
        session.post(call("2", "x", "1")),
        session.post(format!("[{}]", call("3", "x", "1"))),
        session.post(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#),
        session.of(Ask::get("/mcp")),
        session.of(Ask::bare("DELETE", "/mcp")),
    ];
    for ask in asks {
        for wrong in ["1999-01-01", "2025-06-18x", "latest", "", "2025-06-18, 2025-06-18"] {
            let answer = door.ask(&ask.clone().with("MCP-Protocol-Version", wrong));
            assert_eq!(answer.status(), 400, "{wrong:?} {} {}", ask.line, answer.text());
            assert!(answer.code() < -32000);
        }
    }
    // Nothing of it has been done.
    assert_eq!(session.ask("4", "ping", "{}").raw(&["result"]), "{}");
    assert_eq!(life.unclaimed(), []);
}

fn ids_are_unique_in_a_session_and_only_there() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let (session, other) = (door.session(version), door.session(version));
        let life = life.get_or_insert_with(|| server.life());
        let first = session.send(call("1", "x", "\"first\""));
        let running = life.take("tools/call");
        let refused = session.ask("1", "ping", "{}");
        assert_eq!(refused.raw(&["error", "code"]), "-32600");
        // Another client may use the same id, even now.
        assert_eq!(other.ask("1", "ping", "{}").raw(&["result"]), "{}");
        life.reply(&running, r#""result":{"content":[],"n":1.0}"#);
        assert_eq!(first.messages().answer("1").raw(&["result"]), r#"{"content":[],"n":1.0}"#);
        assert_eq!(session.ask("1", "ping", "{}").raw(&["error", "code"]), "-32600");
        assert_eq!(session.ask("\"1\"", "ping", "{}").raw(&["result"]), "{}");
        for bad in ["null", "1.5", "true", "[1]", "{}"] {
            let answer = door.ask(&session.post(request(bad, "ping", "{}")));
            assert_eq!((answer.status(), answer.code()), (400, -32600), "{version} {bad}");
        }
    }
}

fn shutdown_ends_one_session_after_what_runs() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let (session, other) = (door.session(version), door.session(version));
        let life = life.get_or_insert_with(|| server.life());
        let stream = session.stream();
        let running = session.send(call("1", "x", "1"));
        let request = life.take("tools/call");
        assert_eq!(session.ask("2", "shutdown", "{}").raw(&["result"]), "{}");
        assert_eq!(session.ask("3", "ping", "{}").raw(&["error", "code"]), "-32600");
        life.reply(&request, r#""result":{"content":[]}"#);
        assert_eq!(running.messages().answer("1").raw(&["result"]), r#"{"content":[]}"#);
        // The stream ends with the session.
        let mut stream = stream;
        assert_eq!(stream.rest(), []);
        assert_eq!(session.status(), 404);
        assert_eq!(other.ask("1", "ping", "{}").raw(&["result"]), "{}");
    }
}

fn a_server_asks_the_client_whose_call_runs() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let (session, bystander) = (door.session(version), door.session(version));
        let life = life.get_or_insert_with(|| server.life());
        let mut elsewhere = bystander.stream();
        let running = session.send(call("1", "x", "1"));
        let request = life.take("tools/call");
        life.send(r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?","n":1.0}}"#);
        let mut running = running.messages();
        let asked = running.take("elicitation/create");
        assert_eq!(asked.raw(&["params"]), r#"{"message":"who?","n":1.0}"#);
        // An answer of somebody else does not count.
        let forged = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"cancel"}}}}"#, asked.id());
        bystander.tell(&forged);
        session.tell(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"n":1E2}}}}}}"#,
            asked.id()
        ));
        assert_eq!(life.answer("0").raw(&["result"]), r#"{"action":"accept","content":{"n":1E2}}"#);
        life.reply(&request, r#""result":{"content":[]}"#);
        running.answer("1");
        assert_eq!(running.rest(), []);
        assert_eq!(door.ask(&bystander.of(Ask::bare("DELETE", "/mcp"))).status(), 204);
        assert_eq!(elsewhere.rest(), []);
    }
}

fn a_client_that_cannot_be_asked_is_not_asked() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let (plain, able) = (door.session_of("2025-06-18", "{}"), door.session("2025-06-18"));
    let mut life = server.life();
    let question = r#"{"jsonrpc":"2.0","id":$ID,"method":"sampling/createMessage","params":{"messages":[]}}"#;
    let running = plain.send(call("1", "x", "1"));
    let request = life.take("tools/call");
    life.send(&question.replace("$ID", "1"));
    assert!(life.answer("1").find(&["error"]).is_some());
    // With calls of two clients it is unclear who is meant, and nobody is asked.
    let other = able.send(call("1", "x", "1"));
    let second = life.take("tools/call");
    life.send(&question.replace("$ID", "2"));
    assert!(life.answer("2").find(&["error"]).is_some());
    for (request, wire) in [(request, running), (second, other)] {
        life.reply(&request, r#""result":{"content":[]}"#);
        assert_eq!(wire.messages().rest().len(), 1);
    }
}

fn updates_of_a_resource_reach_those_who_asked_for_them() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers(
        "initialize",
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"puppet","version":"1"}}"#,
    );
    server.answers("resources/list", r#""result":{"resources":[]}"#);
    server.answers("resources/templates/list", r#""result":{"resourceTemplates":[]}"#);
    let door = Door::single(&stage, &server);
    let (one, two, other) = (door.session("2025-06-18"), door.session("2025-11-25"), door.session("2025-11-25"));
    let mut life = server.life();
    for session in [&one, &two] {
        let wire = session.send(request("1", "resources/subscribe", r#"{"uri":"note://a"}"#));
        let asked = life.take("resources/subscribe");
        life.reply(&asked, r#""result":{}"#);
        assert_eq!(wire.messages().answer("1").raw(&["result"]), "{}");
    }
    let mut streams = [one.stream(), two.stream()];
    let mut elsewhere = other.stream();
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://a","n":1.0}}"#;
    life.send(updated);
    for stream in &mut streams {
        assert_eq!(stream.next().unwrap().0, updated);
    }
    // While one of the two is left, the server is not told to stop; when the last one goes, it is.
    assert_eq!(one.ask("2", "resources/unsubscribe", r#"{"uri":"note://a"}"#).raw(&["result"]), "{}");
    life.send(updated);
    assert_eq!(streams[1].next().unwrap().0, updated);
    assert_eq!(life.unclaimed().iter().filter(|line| line.is_method("resources/unsubscribe")).count(), 0);
    for session in [&one, &two, &other] {
        assert_eq!(door.ask(&session.of(Ask::bare("DELETE", "/mcp"))).status(), 204);
    }
    assert_eq!(life.take("resources/unsubscribe").raw(&["params"]), r#"{"uri":"note://a"}"#);
    // The first heard nothing after it had unsubscribed, the third nothing at all.
    assert_eq!(streams[0].rest(), []);
    assert_eq!(elsewhere.rest(), []);
}

fn an_unknown_version_gets_the_latest_with_sessions() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for version in ["2030-01-01", "1.0", "2026-07-28"] {
        let answer = door.ask(&Ask::post(initialize(version, ABLE)));
        assert_eq!(answer.message().raw(&["result", "protocolVersion"]), "\"2025-11-25\"", "{version}");
        assert!(answer.head.header("mcp-session-id").is_some());
    }
    let refused = door.ask(&Ask::post(request("1", "initialize", "{}")));
    assert!(refused.head.header("mcp-session-id").is_none());
    assert_eq!(refused.code(), -32602);
}
