//! Several messages in one body, in every version that is spoken over HTTP.

use serde_json::{Value, json};

use torture::stage::Stage;
use torture::stage::door::{Door, META, SESSION_VERSIONS, call, initialize, request};
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};
use torture::stage::wire::{Ask, Messages};

pub(crate) const CASES: &[Case] = &[
    case!(a_batch_is_answered_as_one_array),
    case!(a_batch_without_members_is_an_error),
    case!(notifications_alone_are_not_answered),
    case!(initialize_must_not_be_part_of_one),
    case!(a_cancelled_member_is_left_out),
    case!(a_stateless_batch_is_answered_as_one_array),
    case!(a_stateless_member_must_say_which_version_it_speaks),
    case!(answers_can_come_in_a_batch),
];

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#;

/// The array that answers a batch, whatever came before it.
fn array(mut messages: Messages) -> Vec<Value> {
    let line = messages.find("an array", |line| line.0.starts_with('['));
    assert_eq!(messages.rest().iter().filter(|line| line.find(&["method"]).is_none()).count(), 0);
    serde_json::from_str(&line.0).unwrap()
}

fn a_batch_is_answered_as_one_array() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let life = life.get_or_insert_with(|| server.life());
        let members = [
            &call("1", "x", "\"slow\""),
            NOTE,
            "3",
            &request("\"p\"", "ping", "{}"),
            r#"{"jsonrpc":"2.0","id":4}"#,
            &request("1", "ping", "{}"),
            "null",
        ];
        let wire = session.send(format!("[{}]", members.join(",")));
        let running = life.take("tools/call");
        let token = running.raw(&["params", "_meta", "progressToken"]);
        life.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        ));
        life.reply(&running, r#""result":{"content":[],"n":1}"#);
        let answers = array(wire.messages());
        let codes: Vec<_> = answers.iter().map(|answer| &answer["error"]["code"]).collect();
        assert_eq!(codes, [&Value::Null, &json!(-32600), &Value::Null, &json!(-32600), &json!(-32600), &json!(-32600)]);
        assert_eq!(answers[0]["result"], json!({ "content": [], "n": 1 }));
        assert_eq!((&answers[2]["id"], &answers[2]["result"]), (&json!("p"), &json!({})));
        assert_eq!(answers[3]["id"], 4);
        // The second use of an id is refused while the first is answered.
        assert_eq!(answers[4]["id"], 1);
    }
}

fn a_batch_without_members_is_an_error() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let answer = door.ask(&session.post("[]"));
        assert_eq!((answer.status(), answer.code()), (400, -32600), "{version}");
        // What has no id of its own can only be null, or left out in the newest version with sessions.
        let expected = if version == "2025-11-25" { None } else { Some("null".to_owned()) };
        assert_eq!(answer.message().find(&["id"]), expected, "{version}");
        let answer = door.ask(&session.post("[1,[],\"x\"]"));
        let members: Vec<Value> = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(members.len(), 3);
        assert!(members.iter().all(|member| member["error"]["code"] == -32600), "{members:?}");
        let broken = door.ask(&session.post(format!("[{},", request("1", "ping", "{}"))));
        assert_eq!((broken.status(), broken.code()), (400, -32700), "{version}");
        // Its first member was not run.
        assert_eq!(session.ask("1", "ping", "{}").raw(&["result"]), "{}");
    }
}

fn notifications_alone_are_not_answered() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        for body in [format!("[{NOTE}]"), format!("[{NOTE},{NOTE},{NOTE}]")] {
            let answer = door.ask(&session.post(body));
            assert_eq!((answer.status(), answer.body.len()), (202, 0), "{version}");
        }
    }
    let modern = Ask::post(format!("[{NOTE}]")).with("MCP-Protocol-Version", "2026-07-28");
    let answer = door.ask(&modern);
    assert_eq!((answer.status(), answer.body.len()), (202, 0));
}

fn initialize_must_not_be_part_of_one() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for version in SESSION_VERSIONS {
        let first = format!("[{},{}]", initialize(version, "{}"), request("2", "tools/list", "{}"));
        // Without a session nothing can be done with it.
        let refused = door.ask(&Ask::post(&first));
        assert_eq!((refused.status(), refused.code()), (400, -32600));
        assert!(refused.head.header("mcp-session-id").is_none());
        let session = door.session(version);
        let again = first.replace("hello", "again");
        let answers = array(session.send(again).messages());
        assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!("again"), &json!(-32600)));
        assert!(answers[1]["result"]["tools"].is_array());
    }
}

fn a_cancelled_member_is_left_out() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let mut life = None;
    for version in SESSION_VERSIONS {
        let session = door.session(version);
        let life = life.get_or_insert_with(|| server.life());
        let wire = session.send(format!("[{},{}]", call("1", "x", "1"), call("2", "x", "2")));
        let (one, two) = (life.take("tools/call"), life.take("tools/call"));
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        session.tell(cancel);
        assert_eq!(life.take("notifications/cancelled").raw(&["params", "requestId"]), one.id());
        life.reply(&two, r#""result":{"content":[]}"#);
        let answers = array(wire.messages());
        assert_eq!(answers, [json!({ "jsonrpc": "2.0", "id": 2, "result": { "content": [] } })]);
        // Where every member is cancelled, nothing is left to say.
        let wire = session.send(format!("[{}]", call("3", "x", "1")));
        life.take("tools/call");
        session.tell(&cancel.replace(":1}", ":3}"));
        assert_eq!(wire.messages().rest(), []);
        life.take("notifications/cancelled");
    }
}

/// A member of a stateless batch.
fn member(id: &str, method: &str, more: &str) -> String {
    request(id, method, &format!(r#"{{"_meta":{{{META}}}{more}}}"#))
}

fn a_stateless_batch_is_answered_as_one_array() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let members = [
        &member("1", "tools/list", ""),
        NOTE,
        "true",
        &member("2", "tools/call", r#","name":"x","arguments":{}"#),
        &initialize("2025-06-18", "{}"),
    ];
    let ask = Ask::post(format!("[{}]", members.join(","))).with("MCP-Protocol-Version", "2026-07-28");
    let wire = door.send(&ask);
    let mut life = server.life();
    let running = life.take("tools/call");
    life.reply(&running, r#""result":{"content":[]}"#);
    let messages = wire.messages();
    assert_eq!(messages.head.status, 200);
    assert!(messages.head.header("mcp-session-id").is_none());
    let answers = array(messages);
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[0]["result"]["resultType"], "complete");
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers[2]["result"]["resultType"], "complete");
    assert_eq!((&answers[3]["id"], &answers[3]["error"]["code"]), (&json!("hello"), &json!(-32600)));
    let empty = door.ask(&Ask::post("[]").with("MCP-Protocol-Version", "2026-07-28"));
    assert_eq!((empty.status(), empty.code()), (400, -32600));
    assert_eq!(empty.message().find(&["id"]), None);
    // Whoever closes the connection cancels all of it.
    let ask = Ask::post(format!("[{}]", member("1", "tools/call", r#","name":"x","arguments":{}"#)));
    let wire = door.send(&ask.with("MCP-Protocol-Version", "2026-07-28"));
    let running = life.take("tools/call");
    drop(wire);
    assert_eq!(life.take("notifications/cancelled").raw(&["params", "requestId"]), running.id());
}

fn a_stateless_member_must_say_which_version_it_speaks() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let body = format!("[{},{}]", request("1", "tools/list", "{}"), member("2", "tools/list", ""));
    let answers = array(door.listen(&Ask::post(body).with("MCP-Protocol-Version", "2026-07-28")));
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(1), &json!(-32602)));
    assert!(answers[1]["result"]["tools"].is_array());
}

fn answers_can_come_in_a_batch() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let session = door.session("2025-03-26");
    let mut life = server.life();
    let wire = session.send(call("1", "x", "1"));
    let running = life.take("tools/call");
    for id in ["8", "9"] {
        life.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#));
    }
    let mut messages = wire.messages();
    let asked = [messages.take("roots/list"), messages.take("roots/list")];
    let answer = |question: &Line| format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, question.id());
    session.tell(&format!("[{},{}]", answer(&asked[1]), answer(&asked[0])));
    for id in ["8", "9"] {
        assert_eq!(life.answer(id).raw(&["result"]), r#"{"roots":[]}"#);
    }
    life.reply(&running, r#""result":{"content":[]}"#);
    messages.answer("1");
}
