//! Long messages, many messages, and what they may cost.

use std::time::Duration;

use serde_json::{Value, json};

use crate::case::expand;
use crate::wire::{Subject, Wire, both, within};

const MEBIBYTE: usize = 1024 * 1024;

/// What the example server may have held in memory at any time, after messages of 20 MiB, in kilobytes.
const MOST_MEMORY: u64 = 80 * 1024;

fn echo(id: u32, length: usize) -> String {
    let text = "x".repeat(length);
    expand(&format!(
        r#"{{$J,"id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
    ))
}

#[test]
fn five_mebibytes_are_answered() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.send(echo(1, 5 * MEBIBYTE));
        let answer = wire.next();
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["result"]["content"][0]["text"].as_str().map(str::len), Some(5 * MEBIBYTE));
        if wire.subject == Subject::Example {
            assert!(wire.peak_memory() < MOST_MEMORY, "{} kB", wire.peak_memory());
        }
        wire.finish();
    });
}

#[test]
fn twenty_mebibytes_are_refused_and_the_connection_stays() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        for id in 1..=3 {
            wire.send(echo(id, 20 * MEBIBYTE));
            wire.expect(&format!(r#"{{"id":{id},"error":{{"code":-32600,"data":{{"code":"invalid_request"}}}}}}"#));
            wire.say(&format!(
                r#"{{$J,"id":"{id}","method":"tools/call","params":{{"name":"echo","arguments":{{"text":"x"}}}}}}"#
            ));
            wire.expect(&format!(r#"{{"id":"{id}","result":{{"content":[{{"text":"x"}}]}}}}"#));
        }
        if wire.subject == Subject::Example {
            assert!(wire.peak_memory() < MOST_MEMORY, "{} kB", wire.peak_memory());
        }
        wire.finish();
    });
}

#[test]
fn an_id_at_the_end_of_a_long_message_is_not_known() {
    for (version, id) in [("2025-06-18", "null"), ("2025-11-25", "\"<absent>\"")] {
        both(|mut wire| {
            wire.initialize(version, &json!({}));
            let padding = "x".repeat(17 * MEBIBYTE);
            wire.say(&format!(r#"{{$J,"method":"ping","params":{{"x":"{padding}"}},"id":1}}"#));
            wire.expect(&format!(r#"{{"id":{id},"error":{{"code":-32600}}}}"#));
            // A batch has no id at all.
            wire.say(&format!(r#"[{{$J,"id":1,"method":"ping","params":{{"x":"{padding}"}}}}]"#));
            wire.expect(&format!(r#"{{"id":{id},"error":{{"code":-32600}}}}"#));
            wire.finish();
        });
    }
}

/// Only the first bytes of an over-long message are kept. An id that is cut there must not be taken for a shorter one.
#[test]
fn an_id_is_never_cut() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        let beginning = expand(r#"{$J"#);
        let padding = " ".repeat(4096 - beginning.len() - r#","id":123"#.len());
        let rest = "x".repeat(17 * MEBIBYTE);
        wire.say(&format!(r#"{{$J{padding},"id":123456789,"method":"ping","params":{{"x":"{rest}"}}}}"#));
        let answer = wire.expect(r#"{"error":{"code":-32600}}"#);
        assert!(answer["id"].is_null() || answer["id"] == 123_456_789, "a wrong id: {}", answer["id"]);
        wire.finish();
    });
}

#[test]
fn a_long_message_without_an_end() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.send_bytes(echo(1, 20 * MEBIBYTE));
        wire.expect(r#"{"id":1,"error":{"code":-32600}}"#);
        wire.end_input();
        assert_eq!(wire.exit(), 0);
    });
}

/// A long response must not be answered, for no response may be.
fn a_long_response_is_not_answered(subject: Subject) {
    let mut wire = Wire::start(subject);
    wire.initialize("2025-06-18", &json!({}));
    let rest = "x".repeat(17 * MEBIBYTE);
    wire.say(&format!(r#"{{$J,"id":1,"result":{{"x":"{rest}"}}}}"#));
    wire.finish();
}

#[test]
fn a_long_response_is_not_answered_by_the_example() {
    a_long_response_is_not_answered(Subject::Example);
}

#[test]
fn a_long_response_is_not_answered_by_the_gateway() {
    a_long_response_is_not_answered(Subject::Gateway);
}

/// Whoever sends nothing but nonsense is slowed down, but has an answer to each line.
#[test]
fn two_thousand_malformed_lines_are_all_answered() {
    within(Duration::from_secs(60), || {
        std::thread::scope(|scope| {
            for subject in Subject::BOTH {
                scope.spawn(move || {
                    let mut wire = Wire::start(subject);
                    wire.initialize("2025-06-18", &json!({}));
                    wire.send_bytes("nonsense\n".repeat(1000));
                    wire.send_bytes("{\"foo\":1}\n".repeat(1000));
                    for code in [-32700, -32600] {
                        for _ in 0..1000 {
                            wire.expect(&format!(r#"{{"id":null,"error":{{"code":{code}}}}}"#));
                        }
                    }
                    wire.finish();
                });
            }
        });
    });
}

/// Honest mistakes now and then are not slowed down: 10,000 good and bad lines in turn.
#[test]
fn mistakes_among_good_messages_cost_nothing() {
    within(Duration::from_secs(30), || {
        both(|mut wire| {
            wire.initialize("2025-06-18", &json!({}));
            let lines: String =
                (0..5000).map(|id| expand(&format!("nonsense\n{{$J,\"id\":{id},\"method\":\"ping\"}}\n"))).collect();
            wire.send_bytes(lines);
            for id in 0..5000 {
                wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
                wire.expect(&format!(r#"{{"id":{id},"result":{{}}}}"#));
            }
            wire.finish();
        });
    });
}

/// There is a limit to what runs at once. What is over it is refused, the rest goes on.
#[test]
fn more_at_once_than_is_taken() {
    const LIMIT: usize = 4096;
    let mut wire = Wire::start(Subject::Example);
    wire.initialize("2025-06-18", &json!({}));
    for id in 0..LIMIT + 3 {
        wire.say(&format!(
            r#"{{$J,"id":{id},"method":"tools/call","params":{{"name":"count","arguments":{{"to":1,"pause_ms":10000}}}}}}"#
        ));
    }
    for id in LIMIT..LIMIT + 3 {
        wire.expect(&format!(r#"{{"id":{id},"error":{{"code":-32603,"data":{{"code":"busy"}}}}}}"#));
    }
    for id in 0..LIMIT {
        wire.send(
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string(),
        );
    }
    wire.finish();
}

/// A client that sends a lot before it reads anything gets everything in the end.
#[test]
fn a_megabyte_of_answers_to_a_slow_reader() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        let members: Vec<_> = (0..64).map(|id| echo(id, 64 * 1024)).collect();
        wire.send(format!("[{}]", members.join(",")));
        let answer = wire.next();
        let lengths: Vec<_> = answer
            .as_array()
            .unwrap()
            .iter()
            .map(|member| member["result"]["content"][0]["text"].as_str().map_or(0, str::len))
            .collect();
        assert_eq!(lengths, vec![64 * 1024; 64]);
        assert!(answer.as_array().unwrap().iter().all(Value::is_object));
        wire.finish();
    });
}
