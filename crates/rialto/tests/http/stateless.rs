//! Clients of 2026-07-28: no sessions, headers that repeat the body, streams that last as long as their request.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use torture::stage::Stage;
use torture::stage::door::{Door, META, TOKEN, request, stateless, stateless_call};
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};
use torture::stage::server::Server;
use torture::stage::wire::{Ask, Messages};

pub(crate) const CASES: &[Case] = &[
    case!(requests_are_answered_without_a_session),
    case!(headers_must_say_what_the_body_says),
    case!(statuses_go_with_errors),
    case!(arguments_that_a_tool_wants_in_headers_are_compared),
    case!(a_call_that_takes_its_time_is_a_stream),
    case!(closing_the_stream_cancels_the_call),
    case!(a_subscription_tells_of_lists_and_resources),
    case!(a_subscription_that_ends_ends_at_the_server_too),
    case!(a_servers_question_ends_the_call_until_it_is_answered),
    case!(ids_may_come_again_even_at_the_same_time),
];

/// A server that knows nothing of this version, with resources.
fn older(stage: &Stage) -> Server {
    let server = stage.server("alpha");
    server.answers(
        "initialize",
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}},"serverInfo":{"name":"puppet","version":"1"}}"#,
    );
    server.answers("resources/list", r#""result":{"resources":[{"uri":"note://a/é","name":"a"}]}"#);
    server.answers("resources/templates/list", r#""result":{"resourceTemplates":[]}"#);
    server.answers("resources/read", r#""result":{"contents":[]}"#);
    server.answers("resources/subscribe", r#""result":{}"#);
    server
}

fn requests_are_answered_without_a_session() {
    let stage = Stage::new();
    let server = older(&stage);
    let door = Door::single(&stage, &server);
    for method in ["server/discover", "tools/list", "resources/list"] {
        let answer = door.ask(&stateless("1", method, ""));
        assert_eq!(answer.status(), 200);
        assert!(!answer.head.names().any(|name| name.contains("session")), "{:?}", answer.head);
        assert_eq!(answer.message().raw(&["result", "resultType"]), "\"complete\"", "{method}");
        assert!(answer.message().find(&["result", "ttlMs"]).is_some(), "{method}");
    }
    // These exist only with a session.
    for method in ["ping", "logging/setLevel", "resources/subscribe", "initialize"] {
        let answer = door.ask(&stateless("1", method, r#","uri":"note://a","level":"info""#));
        assert_eq!((answer.status(), answer.code()), (404, -32601), "{method}");
        assert!(answer.head.header("mcp-session-id").is_none());
    }
    let modern = |ask: Ask| ask.with("MCP-Protocol-Version", "2026-07-28");
    let refused = door.ask(&modern(Ask::get("/mcp")));
    assert_eq!((refused.status(), refused.head.header("allow")), (405, Some("POST")));
    let taken = door.ask(&modern(Ask::post(r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#)));
    assert_eq!((taken.status(), taken.body.len()), (202, 0));
    let refused = door.ask(&modern(Ask::post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)));
    assert_eq!((refused.status(), refused.code()), (400, -32600));
}

fn headers_must_say_what_the_body_says() {
    let stage = Stage::new();
    let server = older(&stage);
    let door = Door::single(&stage, &server);
    let read = |uri: &str| stateless("7", "resources/read", &format!(r#","uri":"{uri}""#));
    let encoded = |text: &str| format!("=?base64?{}?=", BASE64_STANDARD.encode(text));
    let uri = "note://a/é";
    assert_eq!(door.ask(&read(uri).with("Mcp-Name", &encoded(uri))).status(), 200);
    assert_eq!(door.ask(&read("note://a").with("Mcp-Name", "note://a")).status(), 200);
    assert_eq!(door.ask(&read("note://a").with("mcp-name", "  note://a ")).status(), 200);
    let call = stateless_call("7", "x", "1");
    let wrong = [
        read(uri),
        read(uri).with("Mcp-Name", "note://a/e"),
        read(uri).with("Mcp-Name", &encoded("note://a/è")),
        read(uri).with("Mcp-Name", "=?base64?!!!?="),
        read(uri).with("Mcp-Name", "=?base64?/w==?="),
        call.clone().without("Mcp-Name"),
        call.clone().with("Mcp-Name", "X"),
        call.clone().with("Mcp-Name", ""),
        call.clone().without("Mcp-Method"),
        call.clone().with("Mcp-Method", "tools/list"),
        call.clone().with("Mcp-Method", "Tools/Call"),
        call.clone().without("MCP-Protocol-Version"),
    ];
    for (place, ask) in wrong.iter().enumerate() {
        let answer = door.ask(ask);
        assert_eq!((answer.status(), answer.code()), (400, -32020), "{place}: {}", answer.text());
        assert_eq!(answer.message().id(), "7", "{place}");
    }
    // Nothing of it has reached the server.
    let running = door.send(&call);
    let mut life = server.life();
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{"content":[]}"#);
    running.messages().answer("7");
    assert_eq!(life.unclaimed().iter().filter(|line| line.is_method("tools/call")).count(), 0);
}

fn statuses_go_with_errors() {
    let stage = Stage::new();
    let server = older(&stage);
    let door = Door::single(&stage, &server);
    let modern = |body: String, method: &str| {
        Ask::post(body).with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method)
    };
    // A single server may know what we do not, so it is asked.
    server.answers("vendor/none", r#""error":{"code":-32601,"message":"Method not found"}"#);
    let cases = [
        (modern(request("1", "tools/list", "{}"), "tools/list"), 400, -32602),
        (modern(request("1", "tools/list", r#"{"_meta":{}}"#), "tools/list"), 400, -32602),
        (
            modern(
                request("1", "tools/list", r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#),
                "tools/list",
            ),
            400,
            -32602,
        ),
        (
            modern(
                request("1", "tools/list", &format!("{{\"_meta\":{{{}}}}}", META.replace("2026-07-28", "2031-01-01"))),
                "tools/list",
            )
            .with("MCP-Protocol-Version", "2031-01-01"),
            400,
            -32022,
        ),
        (modern("{".to_owned(), "tools/list"), 400, -32700),
        (modern("[]".to_owned(), "tools/list"), 400, -32600),
        (modern(request("null", "tools/list", "{}"), "tools/list"), 400, -32600),
        (stateless("1", "initialize", ""), 404, -32601),
        (stateless("1", "vendor/none", ""), 404, -32601),
    ];
    for (place, (ask, status, code)) in cases.iter().enumerate() {
        let answer = door.ask(ask);
        assert_eq!((answer.status(), answer.code()), (*status, *code), "{place}: {}", answer.text());
        if [-32700].contains(code) {
            assert_eq!(answer.message().find(&["id"]), None, "{place}");
        }
    }
    let unsupported = door.ask(&cases[3].0).message();
    assert_eq!(unsupported.raw(&["error", "data", "supported"]), r#"["2026-07-28"]"#);
    // Whatever is wrong with a request, who is not allowed in hears of nothing else.
    let stranger = cases[0].0.clone().with("Authorization", &format!("Bearer {TOKEN}x"));
    assert_eq!(door.ask(&stranger).status(), 401);
}

fn arguments_that_a_tool_wants_in_headers_are_compared() {
    let stage = Stage::new();
    let server = older(&stage);
    server.answers(
        "tools/list",
        r#""result":{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"value":{"type":"string","x-mcp-header":"Place"},"n":{"type":"integer","x-mcp-header":"Count"}}}}]}"#,
    );
    server.answers("tools/call", r#""result":{"content":[]}"#);
    let door = Door::single(&stage, &server);
    let call = stateless_call("1", "x", "\"Zürich\"");
    let encoded = format!("=?base64?{}?=", BASE64_STANDARD.encode("Zürich"));
    assert_eq!(door.ask(&call.clone().with("Mcp-Param-Place", &encoded)).status(), 200);
    for wrong in [
        call.clone(),
        call.clone().with("Mcp-Param-Place", "Bern"),
        call.clone().with("Mcp-Param-Place", &encoded).with("Mcp-Param-Count", "3"),
    ] {
        let answer = door.ask(&wrong);
        assert_eq!((answer.status(), answer.code()), (400, -32020), "{}", answer.text());
    }
}

fn a_call_that_takes_its_time_is_a_stream() {
    let stage = Stage::new();
    let server = older(&stage);
    let door = Door::single(&stage, &server);
    let running = door.send(&stateless_call("\"a\"", "x", "1"));
    let mut life = server.life();
    let request = life.take("tools/call");
    assert_eq!(request.find(&["params", "_meta", "io.modelcontextprotocol/protocolVersion"]), None);
    let token = request.raw(&["params", "_meta", "progressToken"]);
    for number in 1..=3 {
        life.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{number}.0}}}}"#
        ));
    }
    let mut stream = running.messages();
    assert!(stream.is_stream());
    assert!(stream.head.header("mcp-session-id").is_none());
    for number in 1..=3 {
        let event = stream.event().unwrap();
        assert_eq!(event.id, None);
        let note = Line(event.data);
        assert_eq!(note.raw(&["params"]), format!(r#"{{"progressToken":"token","progress":{number}.0}}"#));
    }
    life.reply(&request, r#""result":{"content":[]}"#);
    let answer = stream.answer("\"a\"");
    assert_eq!(answer.raw(&["result", "resultType"]), "\"complete\"");
    assert_eq!(stream.rest(), []);
}

fn closing_the_stream_cancels_the_call() {
    let stage = Stage::new();
    let server = older(&stage);
    let door = Door::single(&stage, &server);
    let mut life = None;
    for has_begun in [true, false] {
        let running = door.send(&stateless_call("1", "x", "1"));
        let kept = door.send(&stateless_call("1", "x", "2"));
        let life = life.get_or_insert_with(|| server.life());
        let (mut one, mut two) = (life.take("tools/call"), life.take("tools/call"));
        if one.raw(&["params", "arguments", "value"]) == "2" {
            std::mem::swap(&mut one, &mut two);
        }
        if has_begun {
            let token = one.raw(&["params", "_meta", "progressToken"]);
            life.send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
            ));
            let mut stream = running.messages();
            stream.take("notifications/progress");
            drop(stream);
        } else {
            drop(running);
        }
        let note = life.take("notifications/cancelled");
        assert_eq!(note.raw(&["params", "requestId"]), one.id());
        // The other one goes on.
        life.reply(&two, r#""result":{"content":[]}"#);
        assert_eq!(kept.messages().answer("1").raw(&["result", "resultType"]), "\"complete\"");
        assert_eq!(life.unclaimed().iter().filter(|line| line.is_method("notifications/cancelled")).count(), 0);
    }
}

/// Opens a subscription, and reads its acknowledgement.
fn subscribe(door: &Door, id: &str, wanted: &str) -> Messages {
    let mut stream = door.listen(&stateless(id, "subscriptions/listen", &format!(r#","notifications":{wanted}"#)));
    assert!(stream.is_stream());
    let first = stream.next().unwrap();
    assert!(first.is_method("notifications/subscriptions/acknowledged"), "{}", first.0);
    assert_eq!(first.raw(&["params", "_meta", "io.modelcontextprotocol/subscriptionId"]), id);
    assert_eq!(first.raw(&["params", "notifications"]), wanted);
    stream
}

fn a_subscription_tells_of_lists_and_resources() {
    let stage = Stage::new();
    let server = older(&stage);
    let door = Door::single(&stage, &server);
    let mut lists = subscribe(&door, "1", r#"{"toolsListChanged":true}"#);
    let mut notes = subscribe(&door, "\"b\"", r#"{"resourceSubscriptions":["note://a/é"]}"#);
    let life = server.life();
    server.answers("tools/list", r#""result":{"tools":[{"name":"y","inputSchema":{"type":"object"}}]}"#);
    life.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    let updated =
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://a/é","n":1.0}}"#;
    life.send(&updated.replace("a/é", "b"));
    life.send(updated);
    let note = lists.next().unwrap();
    assert!(note.is_method("notifications/tools/list_changed"), "{}", note.0);
    assert_eq!(note.raw(&["params", "_meta", "io.modelcontextprotocol/subscriptionId"]), "1");
    let note = notes.next().unwrap();
    assert!(note.is_method("notifications/resources/updated"), "{}", note.0);
    assert_eq!(note.raw(&["params", "uri"]), "\"note://a/é\"");
    assert_eq!(note.raw(&["params", "n"]), "1.0");
    assert_eq!(note.raw(&["params", "_meta", "io.modelcontextprotocol/subscriptionId"]), "\"b\"");
    assert!(door.ask(&stateless("2", "tools/list", "")).text().contains("\"y\""));
}

fn a_subscription_that_ends_ends_at_the_server_too() {
    let stage = Stage::new();
    let server = older(&stage);
    server.leaves("resources/subscribe");
    let door = Door::single(&stage, &server);
    let wanted = r#"{"resourceSubscriptions":["note://a/é"]}"#;
    let opening = door.send(&stateless("1", "subscriptions/listen", &format!(r#","notifications":{wanted}"#)));
    let mut life = server.life();
    let asked = life.take("resources/subscribe");
    assert_eq!(asked.raw(&["params", "uri"]), "\"note://a/é\"");
    life.reply(&asked, r#""result":{}"#);
    let mut first = opening.messages();
    first.take("notifications/subscriptions/acknowledged");
    // A second one for the same resource is no news for the server, nor is the end of the first.
    let second = subscribe(&door, "2", wanted);
    drop(first);
    let mut third = subscribe(&door, "3", wanted);
    drop(second);
    life.send(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://a/é"}}"#);
    third.take("notifications/resources/updated");
    assert_eq!(life.unclaimed().iter().filter(|line| line.0.contains("subscribe")).count(), 0);
    drop(third);
    let ended = life.take("resources/unsubscribe");
    assert_eq!(ended.raw(&["params", "uri"]), "\"note://a/é\"");
}

fn a_servers_question_ends_the_call_until_it_is_answered() {
    let stage = Stage::new();
    let server = older(&stage);
    let door = Door::single(&stage, &server);
    let running = door.send(&stateless_call("1", "x", "1"));
    let mut life = server.life();
    let request = life.take("tools/call");
    life.send(r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"who?","n":1.0}}"#);
    let asked = running.messages().answer("1");
    assert_eq!(asked.raw(&["result", "resultType"]), "\"input_required\"");
    let questions = asked.raw(&["result", "inputRequests"]);
    let questions: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&questions).unwrap();
    let key = questions.keys().next().unwrap();
    let more = format!(
        r#","name":"x","arguments":{{"value":1}},"inputResponses":{{"{key}":{{"action":"accept","n":2.0}}}},"requestState":{}"#,
        asked.raw(&["result", "requestState"])
    );
    let again = door.send(&stateless("2", "tools/call", &more).with("Mcp-Name", "x"));
    assert_eq!(life.answer("5").raw(&["result"]), r#"{"action":"accept","n":2.0}"#);
    life.reply(&request, r#""result":{"content":[],"n":3.0}"#);
    assert_eq!(again.messages().answer("2").raw(&["result", "n"]), "3.0");
}

fn ids_may_come_again_even_at_the_same_time() {
    let stage = Stage::new();
    let server = older(&stage);
    let door = Door::single(&stage, &server);
    let wires: Vec<_> = (0..5).map(|n| door.send(&stateless_call("1", "x", &n.to_string()))).collect();
    let mut life = server.life();
    for _ in 0..5 {
        let request = life.take("tools/call");
        let value = request.raw(&["params", "arguments", "value"]);
        life.reply(&request, &format!(r#""result":{{"content":[],"value":{value}}}"#));
    }
    for (n, wire) in wires.into_iter().enumerate() {
        assert_eq!(wire.messages().answer("1").raw(&["result", "value"]), n.to_string());
    }
    for bad in ["null", "1.5", "true"] {
        let answer = door.ask(&stateless(bad, "tools/list", ""));
        assert_eq!((answer.status(), answer.code()), (400, -32600), "{bad}");
    }
}
