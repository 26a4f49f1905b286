//! Batches: taken in every era, answered with one array when the last member is done.

use serde_json::{Value, json};

use crate::case::{LEGACY, Opening, Row, run};
use crate::wire::{Subject, Wire, both};

const ROWS: &[Row] = &[
    ("one request", &[r#"[{$J,"id":1,"method":"ping"}]"#], &[r#"[{"id":1,"result":{}}]"#]),
    (
        "several requests, answered in their order",
        &[
            r#"[{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":50}}},{$J,"id":"b","method":"ping"},{$J,"id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}]"#,
        ],
        &[
            r#"[{"id":1,"result":{"content":[{"text":"Counted to 1."}]}},{"id":"b","result":{}},{"id":3,"result":{"structuredContent":{"sum":3.0}}}]"#,
        ],
    ),
    (
        "requests among notifications and responses",
        &[
            r#"[{$J,"method":"notifications/no/such"},{$J,"id":1,"method":"ping"},{$J,"id":7,"result":{}},{$J,"id":8,"error":{"code":1,"message":"x"}}]"#,
        ],
        &[r#"[{"id":1,"result":{}}]"#],
    ),
    ("only notifications", &[r#"[{$J,"method":"notifications/a"},{$J,"method":"notifications/b"}]"#], &[]),
    ("only responses", &[r#"[{$J,"id":1,"result":{}},{$J,"error":{"code":1,"message":"x"}}]"#], &[]),
    ("only malformed responses", &[r#"[{"id":1,"result":{}},{$J,"result":{}}]"#], &[]),
    (
        "an unknown method and a bad envelope",
        &[r#"[{$J,"id":1,"method":"no/such"},{"id":2,"method":"ping"},{$J,"id":3,"method":"ping"}]"#],
        &[r#"[{"id":1,"error":{"code":-32601}},{"id":2,"error":{"code":-32600}},{"id":3,"result":{}}]"#],
    ),
    (
        "initialize inside",
        &[
            r#"[{$J,"id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}},{$J,"id":2,"method":"ping"}]"#,
        ],
        &[r#"[{"id":1,"error":{"code":-32600,"data":{"code":"invalid_request"}}},{"id":2,"result":{}}]"#],
    ),
    (
        "the same id twice inside",
        &[r#"[{$J,"id":1,"method":"ping"},{$J,"id":1,"method":"ping"}]"#],
        &[r#"[{"id":1,"result":{}},{"id":1,"error":{"code":-32600}}]"#],
    ),
    (
        "the same id in two batches",
        &[r#"[{$J,"id":1,"method":"ping"}]"#, r#"[{$J,"id":1,"method":"ping"}]"#],
        &[r#"[{"id":1,"result":{}}]"#, r#"[{"id":1,"error":{"code":-32600}}]"#],
    ),
    (
        "a member cancelled by a later member",
        &[
            r#"[{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":10000}}},{$J,"id":2,"method":"ping"},{$J,"method":"notifications/cancelled","params":{"requestId":1}}]"#,
        ],
        &[r#"[{"id":2,"result":{}}]"#],
    ),
    (
        "a member cancelled by a later line",
        &[
            r#"[{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":10000}}},{$J,"id":2,"method":"ping"}]"#,
            r#"{$J,"method":"notifications/cancelled","params":{"requestId":1}}"#,
        ],
        &[r#"[{"id":2,"result":{}}]"#],
    ),
    (
        "the only request cancelled",
        &[
            r#"[{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":10000}}}]"#,
            r#"{$J,"method":"notifications/cancelled","params":{"requestId":1,"reason":"changed my mind"}}"#,
        ],
        &[],
    ),
    (
        "progress comes before the array",
        &[
            r#"[{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":2,"pause_ms":1},"_meta":{"progressToken":"t"}}}]"#,
        ],
        &[
            r#"{"method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#,
            r#"{"method":"notifications/progress","params":{"progressToken":"t","progress":2}}"#,
            r#"[{"id":1,"result":{"content":[{"text":"Counted to 2."}]}}]"#,
        ],
    ),
    (
        "space inside",
        &["[ {$J,\"id\":1,\"method\":\"ping\"}\t, {$J,\"id\":2,\"method\":\"ping\"} ]"],
        &[r#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#],
    ),
];

#[test]
fn in_every_era_with_a_handshake() {
    run(Opening::Handshake(&LEGACY), ROWS);
}

/// Members that are no message at all: each has its own error, and the id is `null` or absent by era.
#[test]
fn members_that_are_no_messages() {
    for (version, id) in [("2025-03-26", "null"), ("2025-06-18", "null"), ("2025-11-25", "\"<absent>\"")] {
        let bad = format!(r#"{{"id":{id},"error":{{"code":-32600,"data":{{"code":"invalid_request"}}}}}}"#);
        both(|mut wire| {
            wire.initialize(version, &json!({}));
            wire.say("[1,2,3]");
            wire.expect(&format!("[{bad},{bad},{bad}]"));
            wire.say(r#"[null,[],{},"x"]"#);
            wire.expect(&format!("[{bad},{bad},{bad},{bad}]"));
            wire.say(r#"[1,{$J,"id":9,"method":"ping"},{$J,"method":"notifications/x"}]"#);
            wire.expect(&format!(r#"[{bad},{{"id":9,"result":{{}}}}]"#));
            wire.say("[]");
            wire.expect(&bad);
            // A batch within a batch is a member that is no object.
            wire.say(r#"[[{$J,"id":10,"method":"ping"}]]"#);
            wire.expect(&format!("[{bad}]"));
            wire.finish();
        });
    }
}

/// A batch is read as one JSON text: a flaw anywhere makes all of it unreadable, and nothing of it runs.
#[test]
fn a_flaw_in_one_member_spoils_the_batch() {
    both(|mut wire| {
        wire.initialize("2025-03-26", &json!({}));
        wire.say(r#"[{$J,"id":1,"method":"ping"},{$J,"id":2,"method"]"#);
        wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
        // The ids were never used.
        wire.say(r#"[{$J,"id":1,"method":"ping"},{$J,"id":2,"method":"ping"}]"#);
        wire.expect(r#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#);
        wire.finish();
    });
}

#[test]
fn initialize_in_a_batch_opens_no_session() {
    both(|mut wire| {
        wire.say(
            r#"[{$J,"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}]"#,
        );
        wire.expect(r#"[{"id":1,"error":{"code":-32600}}]"#);
        // Had it opened a session of that version, the id would be left out.
        wire.say("nonsense");
        wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
        wire.finish();
    });
}

#[test]
fn a_thousand_members_have_one_answer() {
    both(|mut wire| {
        wire.initialize("2025-03-26", &json!({}));
        let members: Vec<_> = (0..1000).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})).collect();
        wire.send(Value::from(members).to_string());
        let answer = wire.next();
        let ids: Vec<_> = answer.as_array().unwrap().iter().map(|member| member["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, (0..1000).collect::<Vec<_>>());
        assert!(answer.as_array().unwrap().iter().all(|member| member["result"]["tools"].is_array()));
        wire.finish();
    });
}

#[test]
fn other_lines_do_not_wait_for_a_slow_batch() {
    both(|mut wire| {
        wire.initialize("2025-03-26", &json!({}));
        wire.say(
            r#"[{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":800}}},{$J,"id":2,"method":"ping"}]"#,
        );
        wire.say(r#"{$J,"id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#);
        wire.expect(r#"{"id":3,"result":{"content":[{"text":"x"}]}}"#);
        wire.expect(r#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#);
        wire.finish();
    });
}

#[test]
fn shutdown_in_a_batch_lets_the_others_finish() {
    both(|mut wire| {
        wire.initialize("2025-03-26", &json!({}));
        wire.say(
            r#"[{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":50}}},{$J,"id":2,"method":"shutdown"},{$J,"id":3,"method":"ping"}]"#,
        );
        wire.expect(
            r#"[{"id":1,"result":{"content":[{"text":"Counted to 1."}]}},{"id":2,"result":{}},{"id":3,"error":{"code":-32600,"data":{"code":"shutting_down"}}}]"#,
        );
        assert_eq!(wire.exit(), 0);
    });
}

#[test]
fn the_end_of_input_lets_a_batch_finish() {
    both(|mut wire| {
        wire.initialize("2025-03-26", &json!({}));
        wire.say(
            r#"[{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":50}}},{$J,"id":2,"method":"ping"}]"#,
        );
        wire.end_input();
        wire.expect(r#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#);
        assert_eq!(wire.exit(), 0);
    });
}

#[test]
fn in_the_stateless_era() {
    for subject in Subject::BOTH {
        let mut wire = Wire::start(subject);
        wire.say(
            r#"[{$J,"id":1,"method":"server/discover","params":{$META}},{$J,"id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},$META}},{$J,"id":3,"method":"ping","params":{$META}},7]"#,
        );
        let got = wire.expect(
            r#"[{"id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"]}},{"id":2,"result":{"resultType":"complete","content":[{"text":"x"}]}},{"id":3,"error":{"code":-32601}},{"id":"<absent>","error":{"code":-32600}}]"#,
        );
        assert!(got[3].get("id").is_none());
        // Both may be used again, for they were answered.
        wire.say(r#"[{$J,"id":1,"method":"tools/list","params":{$META}},{$J,"id":2,"method":"prompts/list","params":{$META}}]"#);
        wire.expect(r#"[{"id":1,"result":{"resultType":"complete"}},{"id":2,"result":{"resultType":"complete"}}]"#);
        wire.finish();
    }
}
