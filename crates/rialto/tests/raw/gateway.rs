//! What only a gateway can get into: servers that die, hang, never start or speak another era.

use serde_json::json;

use crate::case::LEGACY;
use crate::wire::{Subject, Wire, both};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rialto");

/// A gateway with further flags.
fn gateway(flags: &[&str], command: &[&str]) -> Wire {
    let start = ["gateway", "--stdio", "--prefix", "never", "--startup-grace-ms", "20000"];
    Wire::start_with(Subject::Gateway, &[&start, flags, &["--"], command].concat())
}

const EXAMPLE: [&str; 3] = [PROGRAM, "mcp", "example"];

/// A server that dies fails its call in the words of the era, and the next call finds a new one.
#[test]
fn a_server_that_dies() {
    for version in LEGACY {
        let mut wire = gateway(&[], &EXAMPLE);
        wire.initialize(version, &json!({}));
        wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"crash"}}"#);
        if version == "2025-11-25" {
            wire.expect(r#"{"id":1,"result":{"isError":true,"structuredContent":{"error":{"code":"tool_failed"}}}}"#);
        } else {
            wire.expect(r#"{"id":1,"error":{"code":-32003,"data":{"code":"tool_failed"}}}"#);
        }
        wire.say(r#"{$J,"id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"again"}}}"#);
        wire.expect(r#"{"id":2,"result":{"content":[{"text":"again"}]}}"#);
        wire.finish();
    }
    let mut wire = gateway(&[], &EXAMPLE);
    wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"crash",$META}}"#);
    wire.expect(r#"{"id":1,"result":{"resultType":"complete","isError":true}}"#);
    wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"again"},$META}}"#);
    wire.expect(r#"{"id":1,"result":{"resultType":"complete","content":[{"text":"again"}]}}"#);
    wire.finish();
}

/// All that was running on a server that dies is answered.
#[test]
fn a_server_that_dies_with_many_calls() {
    let mut wire = gateway(&[], &EXAMPLE);
    wire.initialize("2025-06-18", &json!({}));
    for id in 1..=20 {
        wire.say(&format!(
            r#"{{$J,"id":{id},"method":"tools/call","params":{{"name":"count","arguments":{{"to":1,"pause_ms":10000}}}}}}"#
        ));
    }
    wire.say(r#"{$J,"id":21,"method":"tools/call","params":{"name":"crash"}}"#);
    let expected: Vec<_> = (1..=21).map(|id| format!(r#"{{"id":{id},"error":{{"code":-32003}}}}"#)).collect();
    wire.expect_all(&expected.iter().map(String::as_str).collect::<Vec<_>>());
    wire.finish();
}

#[test]
fn a_server_that_hangs() {
    for (version, is_result) in [("2025-06-18", false), ("2025-11-25", true)] {
        let mut wire = gateway(&["--timeout-secs", "1"], &EXAMPLE);
        wire.initialize(version, &json!({}));
        wire.say(
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":10000}}}"#,
        );
        wire.expect(if is_result {
            r#"{"id":1,"result":{"isError":true,"structuredContent":{"error":{"code":"tool_failed"}}}}"#
        } else {
            r#"{"id":1,"error":{"code":-32003,"data":{"code":"tool_failed"}}}"#
        });
        wire.finish();
    }
}

#[test]
fn progress_is_a_sign_of_life() {
    let mut wire = gateway(&["--timeout-secs", "1"], &EXAMPLE);
    wire.initialize("2025-06-18", &json!({}));
    wire.say(
        r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":5,"pause_ms":250},"_meta":{"progressToken":1}}}"#,
    );
    for step in 1..=5 {
        wire.expect(&format!(r#"{{"method":"notifications/progress","params":{{"progress":{step}}}}}"#));
    }
    wire.expect(r#"{"id":1,"result":{"content":[{"text":"Counted to 5."}]}}"#);
    wire.finish();
}

/// Without its only server a gateway still answers everything.
#[test]
fn a_server_that_cannot_be_started() {
    let mut wire = gateway(&[], &["/nonexistent/server"]);
    wire.initialize("2025-06-18", &json!({}));
    wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#);
    wire.expect(r#"{"id":1,"error":{"code":-32003,"data":{"code":"tool_failed"}}}"#);
    wire.say(r#"{$J,"id":2,"method":"resources/read","params":{"uri":"example://about"}}"#);
    wire.expect(r#"{"id":2,"error":{"code":-32603,"data":{"code":"upstream_unavailable"}}}"#);
    wire.say(r#"{$J,"id":3,"method":"tools/list"}"#);
    wire.expect(r#"{"id":3,"result":{"tools":[]}}"#);
    wire.finish();
}

/// An older client in front of a newer server: the question in a result becomes a request.
#[test]
fn an_older_client_is_asked_for_a_newer_server() {
    let mut wire = gateway(&["--era", "modern"], &EXAMPLE);
    wire.initialize("2025-06-18", &json!({"elicitation": {}}));
    wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"ask"}}"#);
    let question = wire.expect(r#"{"method":"elicitation/create"}"#);
    wire.say(&format!(r#"{{$J,"id":{},"result":{{"action":"accept","content":{{"colour":"red"}}}}}}"#, question["id"]));
    wire.expect(r#"{"id":1,"result":{"content":[{"text":"You like red."}]}}"#);
    wire.finish();
}

/// A newer client in front of an older server: the request becomes a question in a result.
#[test]
fn a_newer_client_is_asked_for_an_older_server() {
    let mut wire = gateway(&["--era", "legacy"], &EXAMPLE);
    wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"ask",$ASKABLE}}"#);
    let got = wire.expect(r#"{"id":1,"result":{"resultType":"input_required"}}"#);
    let (key, question) = got["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let state = &got["result"]["requestState"];
    wire.say(&format!(
        r#"{{$J,"id":2,"method":"tools/call","params":{{"name":"ask","inputResponses":{{"{key}":{{"action":"accept","content":{{"colour":"red"}}}}}},"requestState":{state},$ASKABLE}}}}"#
    ));
    wire.expect(r#"{"id":2,"result":{"resultType":"complete","content":[{"text":"You like red."}]}}"#);
    // A state that was used up, or never given out.
    wire.say(&format!(
        r#"{{$J,"id":3,"method":"tools/call","params":{{"name":"ask","inputResponses":{{}},"requestState":{state},$ASKABLE}}}}"#
    ));
    wire.expect(r#"{"id":3,"error":{"code":-32602}}"#);
    wire.finish();
}

/// What a client says in its handshake counts even if it asked something before.
fn a_request_before_the_handshake(subject: Subject) {
    let mut wire = Wire::start(subject);
    wire.say(r#"{$J,"id":1,"method":"tools/list"}"#);
    wire.expect(r#"{"id":1,"result":{}}"#);
    wire.initialize("2025-11-25", &json!({"elicitation": {}}));
    wire.say(r#"{$J,"id":2,"method":"tools/call","params":{"name":"ask"}}"#);
    let question = wire.expect(r#"{"method":"elicitation/create"}"#);
    wire.say(&format!(r#"{{$J,"id":{},"result":{{"action":"decline"}}}}"#, question["id"]));
    wire.expect(r#"{"id":2,"result":{"content":[{"text":"You would rather not say."}]}}"#);
    wire.say(r#"{$J,"id":3,"method":"resources/read","params":{"uri":"example://nowhere"}}"#);
    wire.expect(r#"{"id":3,"error":{"code":-32002}}"#);
    wire.finish();
}

#[test]
fn a_request_to_the_example_before_the_handshake() {
    a_request_before_the_handshake(Subject::Example);
}

#[test]
fn a_request_to_the_gateway_before_the_handshake() {
    a_request_before_the_handshake(Subject::Gateway);
}

/// Each stateless request stands for itself: what one could do says nothing about the next.
#[test]
fn each_stateless_request_has_its_own_capabilities() {
    both(|mut wire| {
        wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"ask",$META}}"#);
        wire.expect(r#"{"id":1,"error":{"code":-32021}}"#);
        wire.say(r#"{$J,"id":2,"method":"tools/call","params":{"name":"ask",$ASKABLE}}"#);
        wire.expect(r#"{"id":2,"result":{"resultType":"input_required"}}"#);
        wire.say(r#"{$J,"id":3,"method":"tools/call","params":{"name":"ask",$META}}"#);
        wire.expect(r#"{"id":3,"error":{"code":-32021}}"#);
        wire.finish();
    });
}
