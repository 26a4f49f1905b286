//! A server that asks back in the eras with a handshake, and clients that answer well, badly or not at all.

use serde_json::{Value, json};

use crate::case::LEGACY;
use crate::wire::{Subject, Wire, both};

/// Begins a call that asks the user; gives the id of the question.
fn begin(wire: &mut Wire, id: u32) -> Value {
    wire.say(&format!(r#"{{$J,"id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{}}}}}}"#));
    let question = wire.expect(r#"{"method":"elicitation/create","params":{"message":"Which colour do you like?"}}"#);
    assert!(question["params"]["requestedSchema"]["properties"]["colour"].is_object());
    assert!(question["id"].is_string() || question["id"].is_u64(), "a question is a request");
    question["id"].clone()
}

fn askable(wire: &mut Wire, version: &str) {
    wire.initialize(version, &json!({"elicitation": {}}));
}

#[test]
fn the_answer_of_the_user_is_used() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            askable(&mut wire, version);
            for (id, answer, said) in [
                (1, r#"{"action":"accept","content":{"colour":"blue"}}"#, "You like blue."),
                (2, r#"{"action":"decline"}"#, "You would rather not say."),
                (3, r#"{"action":"cancel"}"#, "You would rather not say."),
                (4, "{}", "You would rather not say."),
            ] {
                let question = begin(&mut wire, id);
                wire.say(&format!(r#"{{$J,"id":{question},"result":{answer}}}"#));
                wire.expect(&format!(
                    r#"{{"id":{id},"result":{{"content":[{{"text":"{said}"}}],"isError":"<absent>"}}}}"#
                ));
            }
            wire.finish();
        }
    }
}

#[test]
fn two_questions_at_once_have_two_ids() {
    both(|mut wire| {
        askable(&mut wire, "2025-06-18");
        let (first, second) = (begin(&mut wire, 1), begin(&mut wire, 2));
        assert_ne!(first, second);
        wire.say(&format!(r#"{{$J,"id":{second},"result":{{"action":"accept","content":{{"colour":"red"}}}}}}"#));
        wire.expect(r#"{"id":2,"result":{"content":[{"text":"You like red."}]}}"#);
        wire.say(&format!(r#"{{$J,"id":{first},"result":{{"action":"accept","content":{{"colour":"green"}}}}}}"#));
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"You like green."}]}}"#);
        wire.finish();
    });
}

#[test]
fn a_question_may_have_the_id_of_a_call() {
    both(|mut wire| {
        askable(&mut wire, "2025-06-18");
        // The ids of the two directions have nothing to do with each other.
        let question = begin(&mut wire, 1);
        wire.say(&format!(r#"{{$J,"id":{question},"result":{{"action":"accept","content":{{"colour":"red"}}}}}}"#));
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"You like red."}]}}"#);
        // Answered twice: the second answer is for nobody.
        wire.say(&format!(r#"{{$J,"id":{question},"result":{{"action":"decline"}}}}"#));
        wire.finish();
    });
}

/// The tool could not be run, which is an error up to June 2025 and a result afterwards.
fn expect_failure(wire: &mut Wire, id: u32, version: &str) {
    if version == "2025-11-25" {
        wire.expect(&format!(
            r#"{{"id":{id},"result":{{"isError":true,"structuredContent":{{"error":{{"code":"tool_failed"}}}}}}}}"#
        ));
    } else {
        wire.expect(&format!(r#"{{"id":{id},"error":{{"code":-32003,"data":{{"code":"tool_failed"}}}}}}"#));
    }
}

#[test]
fn an_error_of_the_client_is_not_answered_but_ends_the_call() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            askable(&mut wire, version);
            let question = begin(&mut wire, 1);
            wire.say(&format!(r#"{{$J,"id":{question},"error":{{"code":-32601,"message":"no such method"}}}}"#));
            expect_failure(&mut wire, 1, version);
            wire.finish();
        }
    }
}

#[test]
fn a_malformed_answer_is_not_answered() {
    both(|mut wire| {
        askable(&mut wire, "2025-06-18");
        let question = begin(&mut wire, 1);
        for malformed in [
            r#"{$J,"id":null,"result":{}}"#,
            r#"{$J,"id":[],"error":{"code":1,"message":"x"}}"#,
            r#"{$J,"id":987654,"result":{}}"#,
        ] {
            wire.say(malformed);
        }
        wire.fence();
        // A proper one still counts.
        wire.say(&format!(r#"{{$J,"id":{question},"result":{{"action":"accept","content":{{"colour":"red"}}}}}}"#));
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"You like red."}]}}"#);
        wire.finish();
    });
}

#[test]
fn a_malformed_answer_fails_the_call_that_waits_for_it() {
    both(|mut wire| {
        askable(&mut wire, "2025-06-18");
        for (id, malformed) in
            [(1, r#"{"id":$ID,"result":{}}"#), (2, r#"{$J,"id":$ID,"result":{},"error":{"code":1,"message":"x"}}"#)]
        {
            let question = begin(&mut wire, id);
            wire.say(&malformed.replace("$ID", &question.to_string()));
            wire.expect(&format!(r#"{{"id":{id},"error":{{"code":-32003,"data":{{"code":"tool_failed"}}}}}}"#));
        }
        wire.finish();
    });
}

/// JavaScript hosts send this when they cut a text in the middle of an emoji.
#[test]
fn an_answer_with_half_a_surrogate_pair_is_taken() {
    both(|mut wire| {
        askable(&mut wire, "2025-06-18");
        let question = begin(&mut wire, 1);
        wire.say(&format!(r#"{{$J,"id":{question},"result":{{"action":"decline","note":"\ud83d"}}}}"#));
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"You would rather not say."}]}}"#);
        wire.finish();
    });
}

#[test]
fn a_cancelled_call_takes_its_question_back() {
    both(|mut wire| {
        askable(&mut wire, "2025-06-18");
        let question = begin(&mut wire, 1);
        wire.say(r#"{$J,"method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}"#);
        wire.expect(&format!(
            r#"{{"id":"<absent>","method":"notifications/cancelled","params":{{"requestId":{question}}}}}"#
        ));
        // The answer comes too late and is for nobody.
        wire.say(&format!(r#"{{$J,"id":{question},"result":{{"action":"decline"}}}}"#));
        wire.finish();
    });
}

#[test]
fn the_end_of_input_answers_for_the_client() {
    for subject in Subject::BOTH {
        for version in ["2025-06-18", "2025-11-25"] {
            let mut wire = Wire::start(subject);
            askable(&mut wire, version);
            begin(&mut wire, 1);
            wire.end_input();
            expect_failure(&mut wire, 1, version);
            assert_eq!(wire.exit(), 0);
        }
    }
}

#[test]
fn a_question_can_be_answered_during_shutdown() {
    both(|mut wire| {
        askable(&mut wire, "2025-06-18");
        let question = begin(&mut wire, 1);
        wire.say(r#"{$J,"id":2,"method":"shutdown"}"#);
        wire.expect(r#"{"id":2,"result":{}}"#);
        wire.say(&format!(r#"{{$J,"id":{question},"result":{{"action":"accept","content":{{"colour":"red"}}}}}}"#));
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"You like red."}]}}"#);
        assert_eq!(wire.exit(), 0);
    });
}

/// Answers may come in a batch, too.
#[test]
fn an_answer_in_a_batch() {
    both(|mut wire| {
        askable(&mut wire, "2025-03-26");
        let question = begin(&mut wire, 1);
        wire.say(&format!(
            r#"[{{$J,"id":{question},"result":{{"action":"accept","content":{{"colour":"red"}}}}}},{{$J,"id":2,"method":"ping"}}]"#
        ));
        wire.expect_all(&[r#"[{"id":2,"result":{}}]"#, r#"{"id":1,"result":{"content":[{"text":"You like red."}]}}"#]);
        wire.finish();
    });
}

/// An answer that is too long to be read is as good as none: the call fails at once, and no error is sent for the answer,
/// whose id may well be that of a call of the client's own.
#[test]
fn an_answer_that_is_too_long_fails_the_call() {
    both(|mut wire| {
        askable(&mut wire, "2025-06-18");
        let question = begin(&mut wire, 1);
        let colour = "x".repeat(17 * 1024 * 1024);
        wire.say(&format!(
            r#"{{$J,"id":{question},"result":{{"action":"accept","content":{{"colour":"{colour}"}}}}}}"#
        ));
        expect_failure(&mut wire, 1, "2025-06-18");
        wire.finish();
    });
}
