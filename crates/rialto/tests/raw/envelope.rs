//! What is not a message, or not a proper one: always answered, never the end of the connection.

use serde_json::json;

use crate::case::{EARLY, LEGACY, Opening, Row, assert_fits, expand, run};
use crate::wire::{Subject, Wire, both};

/// Lines of which no id can be read, and the number they are answered with.
const WITHOUT_ID: &[(&str, &str, i32)] = &[
    ("not JSON", "not json", -32700),
    ("truncated in a string", r#"{$J,"id":1,"method":"pi"#, -32700),
    ("truncated after a value", r#"{$J,"id":1,"method":"ping""#, -32700),
    ("truncated batch", r#"[{$J,"id":1,"method":"ping"}"#, -32700),
    ("two values on a line", r#"{$J,"id":1,"method":"ping"}{$J,"id":2,"method":"ping"}"#, -32700),
    ("comment", r#"{$J,"id":1,"method":"ping"} // why"#, -32700),
    ("trailing comma", r#"{$J,"id":1,"method":"ping",}"#, -32700),
    ("single quotes", "{'jsonrpc':'2.0'}", -32700),
    ("not a number", r#"{$J,"id":1,"method":"ping","params":{"a":NaN}}"#, -32700),
    ("leading zero", r#"{$J,"id":01,"method":"ping"}"#, -32700),
    ("raw tab in a string", "{$J,\"id\":1,\"method\":\"pi\tng\"}", -32700),
    ("lone high surrogate", r#"{$J,"id":1,"method":"ping","params":{"a":"\ud800"}}"#, -32700),
    ("lone low surrogate", r#"{$J,"id":1,"method":"ping","params":{"a":"\udc00x"}}"#, -32700),
    ("NUL", "\0", -32700),
    ("byte order mark in the middle", "\u{feff}{$J,\"id\":1,\"method\":\"ping\"}", -32700),
    ("number", "42", -32600),
    ("string", r#""ping""#, -32600),
    ("null", "null", -32600),
    ("empty object", "{}", -32600),
    ("strange object", r#"{"foo":1}"#, -32600),
    ("empty batch", "[]", -32600),
    ("empty batch with space", " [ ] ", -32600),
    ("id null", r#"{$J,"id":null,"method":"ping"}"#, -32600),
    ("id with a fraction", r#"{$J,"id":1.5,"method":"ping"}"#, -32600),
    ("id with an exponent", r#"{$J,"id":1e3,"method":"ping"}"#, -32600),
    ("id true", r#"{$J,"id":true,"method":"ping"}"#, -32600),
    ("id an array", r#"{$J,"id":[1],"method":"ping"}"#, -32600),
    ("id an object", r#"{$J,"id":{},"method":"ping"}"#, -32600),
    ("two ids", r#"{$J,"id":1,"method":"ping","id":2}"#, -32600),
];

/// Lines with an id that can be read, and the number they are answered with. Each has an id of its own.
const WITH_ID: &[(&str, &str, &str, i32)] = &[
    ("old JSON-RPC", r#"{"jsonrpc":"1.0","id":101,"method":"ping"}"#, "101", -32600),
    ("no JSON-RPC", r#"{"id":102,"method":"ping"}"#, "102", -32600),
    ("JSON-RPC as a number", r#"{"jsonrpc":2.0,"id":103,"method":"ping"}"#, "103", -32600),
    ("method a number", r#"{$J,"id":104,"method":1}"#, "104", -32600),
    ("method null", r#"{$J,"id":105,"method":null}"#, "105", -32600),
    ("no method", r#"{$J,"id":106}"#, "106", -32600),
    ("params an array", r#"{$J,"id":107,"method":"tools/call","params":["echo"]}"#, "107", -32600),
    (
        "params a string",
        r#"{$J,"id":"one hundred eight","method":"ping","params":"x"}"#,
        "\"one hundred eight\"",
        -32600,
    ),
    ("request and response at once", r#"{$J,"id":109,"method":"ping","result":{}}"#, "109", -32600),
    ("unknown method", r#"{$J,"id":110,"method":"no/such"}"#, "110", -32601),
    ("empty method", r#"{$J,"id":111,"method":""}"#, "111", -32601),
    ("method in capitals", r#"{$J,"id":112,"method":"PING"}"#, "112", -32601),
    ("method of a notification", r#"{$J,"id":113,"method":"notifications/initialized"}"#, "113", -32601),
    ("no tool named", r#"{$J,"id":114,"method":"tools/call"}"#, "114", -32602),
    ("no tool named in params", r#"{$J,"id":115,"method":"tools/call","params":{"arguments":{}}}"#, "115", -32602),
    ("tool name a number", r#"{$J,"id":116,"method":"tools/call","params":{"name":1}}"#, "116", -32602),
    ("tool named twice", r#"{$J,"id":117,"method":"tools/call","params":{"name":"echo","name":"add"}}"#, "117", -32602),
    ("unknown tool", r#"{$J,"id":118,"method":"tools/call","params":{"name":"nope"}}"#, "118", -32602),
    ("no uri", r#"{$J,"id":119,"method":"resources/read","params":{}}"#, "119", -32602),
    ("no prompt named", r#"{$J,"id":120,"method":"prompts/get","params":{}}"#, "120", -32602),
    ("initialize without a version", r#"{$J,"id":121,"method":"initialize","params":{}}"#, "121", -32602),
];

/// The symbol that belongs to a number, for those that have only one.
fn symbol(code: i32) -> &'static str {
    match code {
        -32700 => "parse_error",
        -32600 => "invalid_request",
        -32601 => "method_not_found",
        _ => unreachable!("{code} has several symbols"),
    }
}

fn all_without_id(mut wire: Wire, id: &str) {
    for (name, line, code) in WITHOUT_ID {
        wire.remark(name);
        wire.say(line);
        let symbol = symbol(*code);
        wire.expect(&format!(r#"{{"id":{id},"error":{{"code":{code},"data":{{"code":"{symbol}"}}}}}}"#));
    }
    wire.finish();
}

#[test]
fn without_a_readable_id_before_the_handshake() {
    both(|wire| all_without_id(wire, "null"));
}

#[test]
fn without_a_readable_id_up_to_june_2025() {
    both(|wire| {
        for version in EARLY {
            let mut wire = Wire::start(wire.subject);
            wire.initialize(version, &json!({}));
            all_without_id(wire, "null");
        }
    });
}

#[test]
fn without_a_readable_id_from_november_2025_on() {
    both(|mut wire| {
        wire.initialize("2025-11-25", &json!({}));
        all_without_id(wire, "\"<absent>\"");
    });
    both(|mut wire| {
        wire.say(r#"{$J,"id":"opening","method":"tools/list","params":{$META}}"#);
        wire.expect(r#"{"id":"opening","result":{}}"#);
        all_without_id(wire, "\"<absent>\"");
    });
}

#[test]
fn with_a_readable_id() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            wire.initialize(version, &json!({}));
            for (name, line, id, code) in WITH_ID {
                wire.remark(name);
                wire.say(line);
                let got = wire.expect(&format!(r#"{{"id":{id},"error":{{"code":{code}}}}}"#));
                if *code != -32602 {
                    assert_eq!(got["error"]["data"]["code"], symbol(*code));
                }
            }
            wire.finish();
        }
    }
}

/// Ids come back exactly as they were written, whatever a number type could hold.
#[test]
fn ids_are_echoed_as_they_were_written() {
    let ids = [
        "0",
        "-7",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "-170141183460469231731687303715884105729",
        "123456789012345678901234567890",
        r#""""#,
        r#""1""#,
        r#""\u00e4\/\ud83d\ude00""#,
        r#""ä 😀""#,
    ];
    // The same id may not be used twice, so each method has a session of its own.
    for method in ["ping", "tools/list", "tools/call", "no/such"] {
        both(|mut wire| {
            wire.initialize("2025-06-18", &json!({}));
            for id in ids {
                wire.say(&format!(r#"{{$J,"id":{id},"method":"{method}","params":{{}}}}"#));
                let text = wire.next_text();
                let is_there = text.contains(&format!("\"id\":{id},")) || text.contains(&format!("\"id\":{id}}}"));
                assert!(is_there, "{text} does not echo {id}");
            }
            wire.finish();
        });
    }
}

/// What must be passed over in silence, and what is unusual but right.
const ACCEPTED: &[Row] = &[
    ("unknown notification", &[r#"{$J,"method":"notifications/no/such","params":{"a":1}}"#], &[]),
    ("unknown notification that looks like a request", &[r#"{$J,"method":"tools/list"}"#], &[]),
    ("progress without a token", &[r#"{$J,"method":"notifications/progress","params":{"progress":50}}"#], &[]),
    (
        "progress for nobody",
        &[r#"{$J,"method":"notifications/progress","params":{"progressToken":9,"progress":1}}"#],
        &[],
    ),
    ("cancellation of nothing", &[r#"{$J,"method":"notifications/cancelled","params":{"requestId":77}}"#], &[]),
    ("cancellation without an id", &[r#"{$J,"method":"notifications/cancelled"}"#], &[]),
    ("cancellation with a bad id", &[r#"{$J,"method":"notifications/cancelled","params":{"requestId":null}}"#], &[]),
    ("result for nobody", &[r#"{$J,"id":1,"result":{}}"#], &[]),
    ("error for nobody", &[r#"{$J,"id":1,"error":{"code":-32603,"message":"no"}}"#], &[]),
    ("error without an id", &[r#"{$J,"error":{"code":-32700,"message":"Parse error"}}"#], &[]),
    ("error with id null", &[r#"{$J,"id":null,"error":{"code":-32700,"message":"Parse error"}}"#], &[]),
    ("result without an id", &[r#"{$J,"result":{}}"#], &[]),
    ("result with a bad id", &[r#"{$J,"id":true,"result":{}}"#], &[]),
    ("result and error", &[r#"{$J,"id":1,"result":{},"error":{"code":1,"message":"x"}}"#], &[]),
    ("result of old JSON-RPC", &[r#"{"jsonrpc":"1.0","id":1,"result":{}}"#], &[]),
    ("result without JSON-RPC", &[r#"{"id":1,"result":{}}"#], &[]),
    ("error that is no object", &[r#"{$J,"id":1,"error":"bad"}"#], &[]),
    ("blank lines", &["", "   ", "\t", "\r"], &[]),
    ("params null", &[r#"{$J,"id":1,"method":"ping","params":null}"#], &[r#"{"id":1,"result":{}}"#]),
    ("space around", &[" \t{ $J , \"id\" : 1 , \"method\" : \"ping\" } \t"], &[r#"{"id":1,"result":{}}"#]),
    ("carriage return", &["{$J,\"id\":1,\"method\":\"ping\"}\r"], &[r#"{"id":1,"result":{}}"#]),
    ("strange members", &[r#"{$J,"id":1,"method":"ping","x":{"id":2}}"#], &[r#"{"id":1,"result":{}}"#]),
    ("escaped keys", &[r#"{"\u006asonrpc":"2.0","i\u0064":1,"method":"pin\u0067"}"#], &[r#"{"id":1,"result":{}}"#]),
    (
        "surrogate pair",
        &[r#"{$J,"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"\ud83d\ude00"}}}"#],
        &[r#"{"id":1,"result":{"content":[{"type":"text","text":"😀"}]}}"#],
    ),
];

#[test]
fn accepted_with_a_handshake() {
    run(Opening::Handshake(&["2025-11-25"]), ACCEPTED);
}

#[test]
fn accepted_without_a_handshake() {
    run(Opening::Nothing, ACCEPTED);
}

#[test]
fn bytes_that_are_not_utf8() {
    let broken: [&[u8]; 5] = [
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\xff\"}}",
        b"\xc3\x28",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"\xed\xa0\x80\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"\xc0\xaf\"}",
        // What Windows shells write when asked for Unicode.
        b"\xff\xfe{\0}\0",
    ];
    both(|mut wire| {
        for bytes in broken {
            wire.send(bytes);
            wire.expect(r#"{"id":null,"error":{"code":-32700,"data":{"code":"parse_error"}}}"#);
        }
        wire.finish();
    });
}

#[test]
fn byte_order_mark_and_carriage_returns() {
    both(|mut wire| {
        wire.send_bytes(expand("\u{feff}{$J,\"id\":1,\"method\":\"ping\"}\r\n{$J,\"id\":2,\"method\":\"ping\"}\r\n"));
        wire.expect(r#"{"id":1,"result":{}}"#);
        wire.expect(r#"{"id":2,"result":{}}"#);
        wire.finish();
    });
}

#[test]
fn a_message_in_single_bytes_and_two_in_one_write() {
    both(|mut wire| {
        for byte in expand("{$J,\"id\":1,\"method\":\"ping\"}\n").bytes() {
            wire.send_bytes([byte]);
        }
        wire.expect(r#"{"id":1,"result":{}}"#);
        wire.send_bytes(expand("{$J,\"id\":2,\"method\":\"ping\"}\n{$J,\"id\":3,\"method\":\"pi"));
        wire.expect(r#"{"id":2,"result":{}}"#);
        wire.send_bytes("ng\"}\n");
        wire.expect(r#"{"id":3,"result":{}}"#);
        wire.finish();
    });
}

#[test]
fn nesting_has_a_limit() {
    both(|mut wire| {
        let nested = |id: u32, depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            expand(&format!(r#"{{$J,"id":{id},"method":"ping","params":{{"a":{open}{close}}}}}"#))
        };
        wire.send(nested(1, 100));
        wire.expect(r#"{"id":1,"result":{}}"#);
        wire.send(nested(2, 200));
        wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
        wire.send("[".repeat(200));
        wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
        wire.send("[".repeat(100_000));
        wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
        wire.finish();
    });
}

/// In one session an id is used once, up to November 2025; what it was written as does not matter.
#[test]
fn an_id_is_used_once_in_a_session() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            wire.initialize(version, &json!({}));
            let again = r#"{"error":{"code":-32600,"data":{"code":"invalid_request"}}}"#;
            for (first, second) in
                [("1", "1"), (r#""a""#, r#""\u0061""#), ("99999999999999999999", "99999999999999999999")]
            {
                wire.say(&format!(r#"{{$J,"id":{first},"method":"ping"}}"#));
                wire.expect(r#"{"result":{}}"#);
                wire.say(&format!(r#"{{$J,"id":{second},"method":"tools/list"}}"#));
                let text = wire.next_text();
                assert!(text.contains(&format!("\"id\":{second}")), "{text} does not echo {second}");
                assert_fits(&serde_json::from_str(&text).unwrap(), again);
            }
            // A number and the same digits in a string are two ids.
            wire.say(r#"{$J,"id":"1","method":"ping"}"#);
            wire.expect(r#"{"id":"1","result":{}}"#);
            // The id of the handshake counts as well.
            wire.say(r#"{$J,"id":"initialize","method":"ping"}"#);
            wire.expect(r#"{"id":"initialize","error":{"code":-32600}}"#);
            wire.finish();
        }
    }
}

/// Clients that count downwards or in steps are remembered as exactly as those that count up.
#[test]
fn many_ids_are_remembered() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        let ids: Vec<i64> = (0..500).map(|step| step * 2).chain((1..500).rev().map(|step| -step)).collect();
        for id in &ids {
            wire.say(&format!(r#"{{$J,"id":{id},"method":"ping"}}"#));
        }
        for id in &ids {
            wire.expect(&format!(r#"{{"id":{id},"result":{{}}}}"#));
        }
        for id in ids.iter().step_by(100) {
            wire.say(&format!(r#"{{$J,"id":{id},"method":"ping"}}"#));
            wire.expect(&format!(r#"{{"id":{id},"error":{{"code":-32600}}}}"#));
        }
        wire.finish();
    });
}
