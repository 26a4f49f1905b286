//! Sizes, times and forms of requests that are refused, with the status that says why.

use std::time::{Duration, Instant};

use torture::stage::Stage;
use torture::stage::door::{Door, call, request, stateless};
use torture::stage::runner::{Case, case};
use torture::stage::wire::{Ask, PATIENCE};

pub(crate) const CASES: &[Case] = &[
    case!(a_message_has_a_largest_size),
    case!(a_head_has_a_largest_size),
    case!(lengths_that_are_not_true),
    case!(kinds_of_content),
    case!(methods_and_places),
];

const LIMIT: usize = 16 * 1024 * 1024;

fn a_message_has_a_largest_size() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let of_size = |id: &str, size: usize| {
        let frame = call(id, "x", "\"\"");
        call(id, "x", &format!("\"{}\"", "x".repeat(size - frame.len())))
    };
    server.answers("tools/call", r#""result":{"content":[]}"#);
    let largest = of_size("1", LIMIT - 64);
    assert_eq!(session.send(&largest).messages().answer("1").raw(&["result", "content"]), "[]");
    drop(largest);
    // Told from its length alone, before any of it is sent.
    let ask = door.signed(&session.post("").with("Content-Length", &(LIMIT + 1).to_string()));
    let wire = door.connect();
    wire.send(ask.head().as_bytes());
    let answer = wire.answer();
    assert_eq!((answer.status(), answer.code()), (413, -32600));
    assert_eq!(session.ask("2", "ping", "{}").raw(&["result"]), "{}");
}

fn a_head_has_a_largest_size() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let ask = session.post(request("1", "ping", "{}"));
    let many = (0..300).fold(ask.clone(), |ask, number| ask.with(&format!("X-{number}"), "y"));
    for (what, ask) in [("long", ask.with("X-Long", &"y".repeat(64 * 1024))), ("many", many)] {
        let wire = door.connect();
        // It may be refused before all of it is sent.
        let _ = wire.try_send(&door.signed(&ask).bytes());
        assert_eq!(wire.answer().status(), 431, "{what}");
    }
    // One that never ends, and has no line breaks.
    let wire = door.connect();
    let filler = [b'G'; 4096];
    let begun = Instant::now();
    while wire.try_send(&filler).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it is read without end");
    }
    assert_eq!(session.ask("1", "ping", "{}").raw(&["result"]), "{}");
}

fn lengths_that_are_not_true() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let mut life = server.life();
    life.take("notifications/initialized");
    let ask = session.post(call("1", "x", "1"));
    let length = ask.bytes().len() - ask.head().len();
    // Less comes than was promised, and then the end.
    let wire = door.connect();
    wire.send(&door.signed(&ask.clone().with("Content-Length", &(length + 1).to_string())).bytes());
    wire.finish();
    let mut wire = wire;
    if let Some(answer) = wire.next_answer() {
        assert_eq!(answer.status(), 400);
    }
    // More comes than was promised: what is left is no request, and the body is no message.
    let mut wire = door.connect();
    wire.send(&door.signed(&ask.clone().with("Content-Length", &(length - 1).to_string())).bytes());
    assert_eq!(wire.next_answer().unwrap().code(), -32700);
    // Two lengths, no length at all, nonsense: nothing of it may be guessed.
    let bad = [
        ask.clone().also("Content-Length", &length.to_string()).also("Content-Length", &(length - 1).to_string()),
        ask.clone().with("Content-Length", "-1"),
        ask.clone().with("Content-Length", "0x10"),
        ask.clone().with("Content-Length", "99999999999999999999999"),
        ask.clone().with("Transfer-Encoding", "gzip"),
    ];
    for (place, ask) in bad.iter().enumerate() {
        let mut wire = door.connect();
        wire.send(&door.signed(ask).bytes());
        if let Some(answer) = wire.next_answer() {
            assert!([400, 413].contains(&answer.status()), "{place}: {}", answer.status());
        }
    }
    // Chunks that are none.
    for chunks in ["zz\r\n", "5\r\nab", "ffffffffffffffffff\r\n", "-1\r\n"] {
        let wire = door.connect();
        wire.send(door.signed(&ask.clone().with("Transfer-Encoding", "chunked")).head().as_bytes());
        wire.send(chunks.as_bytes());
        wire.finish();
        let mut wire = wire;
        if let Some(answer) = wire.next_answer() {
            assert!([400, 413].contains(&answer.status()), "{chunks:?}: {}", answer.status());
        }
    }
    assert_eq!(session.ask("2", "ping", "{}").raw(&["result"]), "{}");
    assert_eq!(life.find_within(Duration::from_millis(50), |line| line.is_method("tools/call")), None);
}

fn kinds_of_content() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let ping = |id: u32| session.post(request(&id.to_string(), "ping", "{}"));
    let mut next = 0;
    let mut id = || {
        next += 1;
        next
    };
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/json;x=y"] {
        assert_eq!(door.ask(&ping(id()).with("Content-Type", kind)).status(), 200, "{kind}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", ""] {
        let answer = door.ask(&ping(id()).with("Content-Type", kind));
        assert_eq!((answer.status(), answer.code()), (415, -32600), "{kind:?}");
    }
    assert_eq!(door.ask(&ping(id()).without("Content-Type")).status(), 415);
    for accept in ["application/json, text/event-stream", "text/event-stream;q=0.5,application/json", "*/*"] {
        assert_eq!(door.ask(&ping(id()).with("Accept", accept)).status(), 200, "{accept}");
    }
    let apart = ping(id()).with("Accept", "application/json").also("Accept", "text/event-stream");
    assert_eq!(door.ask(&apart).status(), 200);
    for accept in ["application/json", "text/event-stream", "text/html", "text/*", ""] {
        let answer = door.ask(&ping(id()).with("Accept", accept));
        assert_eq!((answer.status(), answer.code()), (406, -32600), "{accept:?}");
        let answer = door.ask(&stateless("1", "tools/list", "").with("Accept", accept));
        assert_eq!(answer.status(), 406, "{accept:?}");
    }
    for accept in ["application/json", "text/html"] {
        assert_eq!(door.ask(&session.of(Ask::get("/mcp")).with("Accept", accept)).status(), 406);
        assert_eq!(door.ask(&Ask::get("/sse").with("Accept", accept)).status(), 406);
    }
}

fn methods_and_places() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for method in ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"] {
        let answer = door.ask(&Ask::bare(method, "/mcp").with("Connection", "close"));
        assert_eq!((answer.status(), answer.head.header("allow")), (405, Some("GET, POST, DELETE")), "{method}");
    }
    for target in ["/", "/mcp/", "/MCP", "//mcp", "/mcp/../mcp", "/%6dcp", "/sse/", "/messages", "/mcp;x"] {
        let answer = door.ask(&Ask::post_to(target, request("1", "ping", "{}")));
        assert_eq!((answer.status(), answer.code()), (404, -32600), "{target}");
    }
    // Lines that are no HTTP end their connection and nothing else.
    for line in ["GET", "POST /mcp HTTP/9.9", "\u{1}\u{2}\u{3}", "POST  /mcp HTTP/1.1", "PRI * HTTP/2.0"] {
        let mut wire = door.connect();
        wire.send(format!("{line}\r\n\r\n").as_bytes());
        if let Some(answer) = wire.next_answer() {
            assert!(answer.status() >= 400, "{line:?}: {}", answer.status());
        }
    }
    assert_eq!(door.ask(&stateless("1", "tools/list", "")).status(), 200);
}
