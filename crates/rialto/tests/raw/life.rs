//! The course of a session: overlapping calls, progress, cancellation, and the ways it ends.

use std::time::Duration;

use serde_json::json;

use crate::case::{LEGACY, Opening, Row, expand, run};
use crate::wire::{Subject, Wire, both, within};

/// A call of the slow tool.
fn count(id: &str, to: u32, pause_ms: u32) -> String {
    format!(
        r#"{{$J,"id":{id},"method":"tools/call","params":{{"name":"count","arguments":{{"to":{to},"pause_ms":{pause_ms}}}}}}}"#
    )
}

const ROWS: &[Row] = &[
    (
        "the same id while the first runs",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":100}}}"#,
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"second"}}}"#,
        ],
        &[
            r#"{"id":1,"error":{"code":-32600,"data":{"code":"invalid_request"}}}"#,
            r#"{"id":1,"result":{"content":[{"type":"text","text":"Counted to 1."}]}}"#,
        ],
    ),
    (
        "the same string, spelled in another way, while the first runs",
        &[
            r#"{$J,"id":"a","method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":100}}}"#,
            r#"{$J,"id":"\u0061","method":"ping"}"#,
        ],
        &[r#"{"id":"a","error":{"code":-32600}}"#, r#"{"id":"a","result":{}}"#],
    ),
    (
        "number and string of the same digits at once",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":2,"pause_ms":30}}}"#,
            r#"{$J,"id":"1","method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":30}}}"#,
        ],
        &[
            r#"{"id":1,"result":{"content":[{"text":"Counted to 2."}]}}"#,
            r#"{"id":"1","result":{"content":[{"text":"Counted to 1."}]}}"#,
        ],
    ),
    (
        "a cancelled call has no answer",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":10000}}}"#,
            r#"{$J,"method":"notifications/cancelled","params":{"requestId":1,"reason":"no longer needed"}}"#,
        ],
        &[],
    ),
    (
        "a cancelled id stays used",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":10000}}}"#,
            r#"{$J,"method":"notifications/cancelled","params":{"requestId":1}}"#,
            r#"{$J,"id":1,"method":"ping"}"#,
        ],
        &[r#"{"id":1,"error":{"code":-32600}}"#],
    ),
    (
        "a cancellation with the wrong type of id cancels nothing",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":50}}}"#,
            r#"{$J,"method":"notifications/cancelled","params":{"requestId":"1"}}"#,
        ],
        &[r#"{"id":1,"result":{"content":[{"text":"Counted to 1."}]}}"#],
    ),
    (
        "a cancellation that comes too late",
        &[r#"{$J,"id":1,"method":"ping"}"#, r#"{$J,"method":"notifications/cancelled","params":{"requestId":1}}"#],
        &[r#"{"id":1,"result":{}}"#],
    ),
];

#[test]
fn overlapping_calls_and_cancellation() {
    run(Opening::Handshake(&LEGACY), ROWS);
}

#[test]
fn a_cancelled_call_reports_no_more_progress() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.say(
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1000,"pause_ms":20},"_meta":{"progressToken":1}}}"#,
        );
        wire.expect(r#"{"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#);
        wire.say(r#"{$J,"method":"notifications/cancelled","params":{"requestId":1}}"#);
        wire.say(r#"{$J,"id":2,"method":"ping"}"#);
        // What was under way when the cancellation came may still arrive before the answer to `ping`.
        while wire.next()["id"] != 2 {}
        // Three times as long as a step takes: a server that went on would be heard.
        wire.say(&count("3", 1, 60));
        wire.expect(r#"{"id":3,"result":{}}"#);
        wire.finish();
    });
}

#[test]
fn progress_comes_with_the_token_and_before_the_result() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            for token in ["7", r#""seven""#, "9007199254740993", r#""\u0061/\"b""#] {
                let mut wire = Wire::start(subject);
                wire.initialize(version, &json!({}));
                wire.say(&format!(
                    r#"{{$J,"id":1,"method":"tools/call","params":{{"name":"count","arguments":{{"to":4,"pause_ms":1}},"_meta":{{"progressToken":{token}}}}}}}"#
                ));
                for step in 1..=4 {
                    let text = wire.next_text();
                    assert!(text.contains(&format!("\"progressToken\":{token}")), "{text} does not have {token}");
                    let note: serde_json::Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(note["method"], "notifications/progress");
                    assert_eq!(note["params"]["progress"], step);
                    assert_eq!(note["params"]["total"], 4);
                    // The words are younger than the oldest version.
                    assert_eq!(note["params"].get("message").is_some(), version != "2024-11-05");
                }
                wire.expect(r#"{"id":1,"result":{"content":[{"text":"Counted to 4."}]}}"#);
                wire.finish();
            }
        }
    }
}

#[test]
fn without_a_token_there_is_no_progress() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.say(&count("1", 3, 1));
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"Counted to 3."}]}}"#);
        wire.finish();
    });
}

#[test]
fn shutdown_is_answered_and_ends_the_process() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            wire.initialize(version, &json!({}));
            wire.say(r#"{$J,"id":1,"method":"shutdown"}"#);
            let answer = wire.expect(r#"{"id":1,"result":{}}"#);
            assert_eq!(answer["result"], json!({}));
            // The input is still open.
            assert_eq!(wire.exit(), 0);
        }
    }
    both(|mut wire| {
        wire.say(r#"{$J,"id":1,"method":"shutdown"}"#);
        wire.expect(r#"{"id":1,"result":{}}"#);
        assert_eq!(wire.exit(), 0);
    });
}

#[test]
fn shutdown_finishes_what_runs_and_refuses_what_is_new() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.say_all(&[
            &count("1", 2, 150),
            r#"{$J,"id":2,"method":"shutdown"}"#,
            &count("3", 1, 1),
            r#"{$J,"id":4,"method":"ping"}"#,
            r#"{$J,"id":5,"method":"shutdown"}"#,
            "nonsense",
            r#"{$J,"method":"notifications/x"}"#,
        ]);
        wire.expect(r#"{"id":2,"result":{}}"#);
        for id in [3, 4, 5] {
            wire.expect(&format!(r#"{{"id":{id},"error":{{"code":-32600,"data":{{"code":"shutting_down"}}}}}}"#));
        }
        wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"Counted to 2."}]}}"#);
        assert_eq!(wire.exit(), 0);
    });
}

#[test]
fn what_runs_can_be_cancelled_during_shutdown() {
    within(Duration::from_secs(15), || {
        both(|mut wire| {
            wire.initialize("2025-06-18", &json!({}));
            wire.say(&count("1", 1000, 10_000));
            wire.say(r#"{$J,"id":2,"method":"shutdown"}"#);
            wire.expect(r#"{"id":2,"result":{}}"#);
            wire.say(r#"{$J,"method":"notifications/cancelled","params":{"requestId":1}}"#);
            assert_eq!(wire.exit(), 0);
        });
    });
}

#[test]
fn the_end_of_input_lets_calls_finish() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.say(&count("1", 3, 50));
        wire.say(&count("2", 1, 50));
        wire.end_input();
        wire.expect(r#"{"id":2,"result":{"content":[{"text":"Counted to 1."}]}}"#);
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"Counted to 3."}]}}"#);
        assert_eq!(wire.exit(), 0);
    });
}

#[test]
fn the_last_line_needs_no_line_break() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.send_bytes(expand(&count("1", 1, 20)));
        wire.end_input();
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"Counted to 1."}]}}"#);
        assert_eq!(wire.exit(), 0);
    });
    both(|mut wire| {
        wire.send_bytes("{\"jsonrpc\":\"2.0\",\"id\":1,\"meth");
        wire.end_input();
        wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
        assert_eq!(wire.exit(), 0);
    });
}

#[test]
fn no_input_at_all() {
    both(|mut wire| {
        wire.end_input();
        assert_eq!(wire.exit(), 0);
    });
}

/// People try servers with `printf … | rialto …`: all at once, and the end right behind.
fn a_whole_session_in_one_write(subject: Subject) {
    let mut wire = Wire::start(subject);
    let lines = [
        r#"{$J,"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#,
        r#"{$J,"method":"notifications/initialized"}"#,
        r#"{$J,"id":2,"method":"tools/list"}"#,
        r#"{$J,"id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#,
        "",
    ];
    wire.send_bytes(expand(&lines.join("\n")));
    wire.end_input();
    wire.expect(r#"{"id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"rialto-example"}}}"#);
    wire.expect_all(&[r#"{"id":2,"result":{}}"#, r#"{"id":3,"result":{"content":[{"type":"text","text":"hello"}]}}"#]);
    assert_eq!(wire.exit(), 0);
}

#[test]
fn a_whole_session_in_one_write_to_the_example() {
    a_whole_session_in_one_write(Subject::Example);
}

#[test]
fn a_whole_session_in_one_write_to_the_gateway() {
    a_whole_session_in_one_write(Subject::Gateway);
}

fn initialized_before_the_handshake(subject: Subject) {
    let mut wire = Wire::start(subject);
    wire.say(r#"{$J,"method":"notifications/initialized"}"#);
    wire.fence();
    wire.initialize("2025-06-18", &json!({}));
    wire.finish();
}

#[test]
fn initialized_before_the_handshake_of_the_example() {
    initialized_before_the_handshake(Subject::Example);
}

#[test]
fn initialized_before_the_handshake_of_the_gateway() {
    initialized_before_the_handshake(Subject::Gateway);
}

#[test]
fn before_the_handshake() {
    both(|mut wire| {
        wire.say(r#"{$J,"method":"notifications/no/such"}"#);
        wire.say(r#"{$J,"method":"notifications/roots/list_changed"}"#);
        wire.say(r#"{$J,"method":"notifications/cancelled","params":{"requestId":1}}"#);
        wire.fence();
        wire.initialize("2025-06-18", &json!({}));
        wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#);
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"x"}]}}"#);
        wire.finish();
    });
}

#[test]
fn a_second_handshake_is_answered_and_changes_the_version() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.say(
            r#"{$J,"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#,
        );
        wire.expect(r#"{"id":1,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"rialto-example"}}}"#);
        wire.say("nonsense");
        wire.expect(r#"{"id":"<absent>","error":{"code":-32700}}"#);
        wire.finish();
    });
}

/// Many calls at once: each is answered once, with its own answer.
#[test]
fn three_hundred_calls_at_once() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        let ids = 1..=300;
        for id in ids.clone() {
            wire.say(&count(&id.to_string(), 1 + id % 7, 5));
        }
        let mut open: std::collections::BTreeSet<_> = ids.collect();
        while !open.is_empty() {
            let answer = wire.next();
            let id = u32::try_from(answer["id"].as_u64().unwrap()).unwrap();
            assert!(open.remove(&id), "{id} was answered twice");
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert_eq!(text, format!("Counted to {}.", 1 + id % 7));
        }
        wire.finish();
    });
}

/// As under `inetd`: that the client writes must not be taken for its going away.
#[test]
fn one_socket_may_serve_both_directions() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_rialto"))
        .args(["mcp", "example"])
        .stdin(OwnedFd::from(theirs.try_clone().unwrap()))
        .stdout(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(ours.try_clone().unwrap()).lines();
    for id in 1..=3 {
        writeln!(&ours, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(answers.next().is_none());
    assert!(server.wait().unwrap().success());
}

/// A configuration that leads to the gateway itself must come to an end.
#[test]
fn a_gateway_that_is_behind_too_many_others_refuses_to_start() {
    let refused = std::process::Command::new(env!("CARGO_BIN_EXE_rialto"))
        .args(["gateway", "--stdio", "--json", "--", "cat"])
        .env("MCP_GATEWAY_DEPTH", "4")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("gateway_loop"), "{refused:?}");
}
