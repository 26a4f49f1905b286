//! What passes through over HTTP stays as it is: unknown members, spellings of numbers, the order of keys.

use torture::stage::Stage;
use torture::stage::door::{Door, SESSION_VERSIONS, call, request, stateless};
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(requests_and_results_pass_unchanged_in_sessions),
    case!(requests_and_results_pass_unchanged_without_sessions),
    case!(bodies_with_line_breaks_pass),
    case!(bodies_that_come_in_pieces_pass),
    case!(requests_that_come_together_are_answered_in_turn),
    case!(errors_of_a_server_pass_unchanged),
    case!(two_servers_keep_their_names_apart),
];

/// Arguments and results with everything that a decoder would lose.
const STRANGE: &str =
    r#"{"z":1.0,"a":1E2,"big":123456789012345678901234567890,"neg":-0.0,"esc":"\u00e9\/","twice":1,"twice":2,"":null}"#;

fn requests_and_results_pass_unchanged_in_sessions() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let life = life.get_or_insert_with(|| server.life());
        let body = format!(
            r#"{{"id":"\u0031","params":{{"arguments":{STRANGE},"vendor":[1.10],"name":"x"}},"method":"tools/call","beside":0.30,"jsonrpc":"2.0"}}"#
        );
        let wire = session.send(&body);
        let request = life.take("tools/call");
        assert_eq!(request.0, body.replacen(r#""\u0031""#, &request.id(), 1));
        let answer = format!(
            r#"{{"result":{{"content":[{{"type":"video","fps":1.0}}],"structuredContent":{STRANGE},"new":null}},"beside":1E2,"id":$ID,"jsonrpc":"2.0"}}"#
        );
        life.send(&answer.replace("$ID", &request.id()));
        let messages = wire.messages().rest();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].0, answer.replace("$ID", r#""\u0031""#));
    }
}

fn requests_and_results_pass_unchanged_without_sessions() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers("initialize", r#""error":{"code":-32601,"message":"Method not found"}"#);
    server.answers(
        "server/discover",
        r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"newer","version":"9"}}}"#,
    );
    let door = Door::single(&stage, &server);
    let ask = stateless("\"\\u0031\"", "tools/call", &format!(r#","vendor":[1.10],"arguments":{STRANGE},"name":"x""#));
    let body = String::from_utf8(ask.bytes()).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned();
    let wire = door.send(&ask.with("Mcp-Name", "x"));
    let mut life = server.life();
    let request = life.take("tools/call");
    let token = request.raw(&["params", "_meta", "progressToken"]);
    let expected = body.replacen(r#""\u0031""#, &request.id(), 1);
    assert_eq!(request.0, expected.replacen(r#""progressToken":"token""#, &format!(r#""progressToken":{token}"#), 1));
    let answer = format!(
        r#"{{"result":{{"resultType":"complete","content":[],"new":{STRANGE},"_meta":{{"io.modelcontextprotocol/serverInfo":{{"n":1.0}}}}}},"beside":1E2,"id":$ID,"jsonrpc":"2.0"}}"#
    );
    life.send(&answer.replace("$ID", &request.id()));
    assert_eq!(wire.messages().answer(r#""\u0031""#).0, answer.replace("$ID", r#""\u0031""#));
}

/// A call, written by somebody who likes space.
fn pretty(id: u32) -> String {
    format!(
        "\r\n{{\r\n\t\"jsonrpc\": \"2.0\",\n  \"id\": {id},\n  \"method\": \"tools/call\",\n  \"params\": {{\n    \"name\": \"x\",\n    \"arguments\": {{\n      \"text\": \"a\\nb\",\n      \"n\": 1.0\n    }}\n  }}\n}}\n\n"
    )
}

fn bodies_with_line_breaks_pass() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let life = life.get_or_insert_with(|| server.life());
        let wires = [session.send(pretty(1)), session.send(format!("[\n{},\n{}\n]\n", pretty(2), pretty(3)))];
        for _ in 1..=3 {
            let request = life.take("tools/call");
            assert_eq!(request.raw(&["params", "arguments", "text"]), r#""a\nb""#);
            assert_eq!(request.raw(&["params", "arguments", "n"]), "1.0");
            life.reply(&request, r#""result":{"content":[]}"#);
        }
        for wire in wires {
            assert_eq!(wire.messages().rest().len(), 1);
        }
        assert_eq!(life.unclaimed().iter().filter(|line| line.find(&["jsonrpc"]).is_none()).count(), 0);
    }
}

fn bodies_that_come_in_pieces_pass() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let mut life = server.life();
    let body = call("1", "x", STRANGE);
    let ask = door.signed(&session.post("")).with("Transfer-Encoding", "chunked");
    let wire = door.connect();
    // A byte at a time, with everything that a chunk may carry.
    wire.send(ask.head().as_bytes());
    for byte in body.bytes() {
        wire.send(format!("1;x=y\r\n{}\r\n", char::from(byte)).as_bytes());
    }
    wire.send(b"0\r\nTrailer: 1\r\n\r\n");
    let request = life.take("tools/call");
    assert_eq!(request.raw(&["params", "arguments", "value"]), STRANGE);
    life.reply(&request, r#""result":{"content":[]}"#);
    assert_eq!(wire.messages().answer("1").raw(&["result", "content"]), "[]");
    // A head that comes a byte at a time.
    let wire = door.connect();
    for byte in door.signed(&session.post(call("2", "x", "1"))).bytes() {
        wire.send(&[byte]);
    }
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{"content":[]}"#);
    assert_eq!(wire.messages().answer("2").raw(&["result", "content"]), "[]");
    // A client that asks first whether it may send.
    let ask = door.signed(&session.post(call("3", "x", "1"))).with("Expect", "100-continue");
    let mut wire = door.connect();
    wire.send(ask.head().as_bytes());
    assert_eq!(wire.head().unwrap().status, 100);
    wire.send(&ask.bytes()[ask.head().len()..]);
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{"content":[]}"#);
    assert_eq!(wire.messages().answer("3").raw(&["result", "content"]), "[]");
}

fn requests_that_come_together_are_answered_in_turn() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-06-18");
    let mut wire = door.connect();
    let asks = (1..=5).flat_map(|id| door.signed(&session.post(request(&id.to_string(), "ping", "{}"))).bytes());
    wire.send(&asks.collect::<Vec<_>>());
    for id in 1..=5 {
        assert_eq!(wire.next_answer().unwrap().message().id(), id.to_string());
    }
}

fn errors_of_a_server_pass_unchanged() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let error = r#""error":{"code":-32000.0,"message":"no\/","data":{"n":1.0},"more":[]}"#;
    server.answers("tools/call", error);
    let door = Door::single(&stage, &server);
    let session = door.session("2025-11-25");
    let answer = door.ask(&session.post(call("1", "x", "1")));
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.message().0, format!(r#"{{"jsonrpc":"2.0","id":1,{error}}}"#));
}

fn two_servers_keep_their_names_apart() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let door = Door::open(&stage, &[&alpha, &beta], &[]);
    let session = door.session("2025-06-18");
    let listed = session.ask("1", "tools/list", "{}").raw(&["result", "tools"]);
    assert!(listed.contains("\"alpha__x\"") && listed.contains("\"beta__x\""), "{listed}");
    for (id, server) in [("2", &alpha), ("3", &beta)] {
        let wire = session.send(call(id, &format!("{}__x", server.name), STRANGE));
        let mut life = server.life();
        let request = life.take("tools/call");
        assert_eq!(request.raw(&["params", "name"]), "\"x\"");
        assert_eq!(request.raw(&["params", "arguments", "value"]), STRANGE);
        life.reply(&request, r#""result":{"content":[]}"#);
        wire.messages().answer(id);
    }
    assert_eq!(session.ask("4", "tools/call", r#"{"name":"gamma__x"}"#).raw(&["error", "code"]), "-32602");
}
