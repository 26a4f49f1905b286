//! What servers ask of the client while a call is running: sampling, elicitation, roots.

use std::time::Duration;

use torture::stage::Stage;
use torture::stage::gateway::Gateway;
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};
use torture::stage::server::{Life, Server};

pub(crate) const CASES: &[Case] = &[
    case!(questions_and_answers_pass_unchanged),
    case!(equal_ids_of_two_servers_stay_apart),
    case!(a_question_outside_a_call_reaches_the_only_client),
    case!(progress_on_a_question_maps_back),
    case!(a_question_that_is_withdrawn_is_withdrawn_from_the_client),
    case!(a_question_of_a_server_that_died_is_withdrawn),
    case!(a_client_that_cannot_is_not_asked),
    case!(a_ping_of_the_server_is_answered),
    case!(a_person_may_think_longer_than_a_call_may_take),
];

const VERSION: &str = "2025-06-18";

/// A client in the middle of a call to the first of two servers.
fn in_a_call(stage: &Stage, flags: &[&str]) -> (Gateway, Life, Line, Server, Server) {
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], flags);
    gateway.begin(VERSION);
    let mut life = alpha.life();
    gateway.call("\"call\"", "alpha__x");
    let request = life.take("tools/call");
    (gateway, life, request, alpha, beta)
}

fn questions_and_answers_pass_unchanged() {
    let stage = Stage::new();
    let (mut gateway, mut life, call, ..) = in_a_call(&stage, &[]);
    let questions = [
        r#"{"jsonrpc":"2.0","id":$ID,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"\u00e9\/"}}],"modelPreferences":{"costPriority":0.30,"speedPriority":1.0},"temperature":0.7,"maxTokens":1E2,"tools":[{"name":"alpha__x"}],"vendor":{"n":12345678901234567890123}}}"#,
        r#"{"id":$ID,"params":{"message":"who?","requestedSchema":{"type":"object","properties":{"z":{"type":"integer","default":1.0},"a":{"type":"string"}}},"mode":"form","_meta":{"x":1.0}},"jsonrpc":"2.0","method":"elicitation/create"}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"method":"vendor/ask","params":{"deep":[1.0]},"beside":0.10}"#,
    ];
    let answers = [
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"role":"assistant","content":{"type":"video","fps":1.0},"model":"m","stopReason":"end_turn","_meta":{"n":1E2}},"beside":[0.30]}"#,
        r#"{"result":{"action":"accept","content":{"z":1.0,"a":"\/"},"new":null},"id":$ID,"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"roots":[{"uri":"file:\/\/\/a","x":1.0}]}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-1,"message":"the user says no","data":{"n":0.30}}}"#,
    ];
    for (place, (question, answer)) in questions.iter().zip(answers).enumerate() {
        // The second time the server counts in strings, as some do.
        for own in [place.to_string(), format!("\"s-{place}\"")] {
            life.send(&question.replace("$ID", &own));
            let is_question = |line: &Line| line.find(&["method"]).is_some() && line.find(&["id"]).is_some();
            let asked = gateway.find_within(torture::stage::line::PATIENCE, "a question", is_question).unwrap();
            assert_eq!(asked.0, question.replace("$ID", &asked.id()));
            gateway.send(&answer.replace("$ID", &asked.id()));
            assert_eq!(life.answer(&own).0, answer.replace("$ID", &own));
        }
    }
    life.reply(&call, r#""result":{}"#);
    gateway.answer("\"call\"");
}

fn equal_ids_of_two_servers_stay_apart() {
    let stage = Stage::new();
    let (mut gateway, mut first, _, _alpha, beta) = in_a_call(&stage, &[]);
    let mut second = beta.life();
    gateway.call("2", "beta__x");
    second.take("tools/call");
    first.send(r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"alpha"}}"#);
    second.send(r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"beta"}}"#);
    let asked = [gateway.take("elicitation/create"), gateway.take("elicitation/create")];
    assert_ne!(asked[0].id(), asked[1].id());
    for question in asked.iter().rev() {
        let who = question.raw(&["params", "message"]);
        gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"to":{who}}}}}"#, question.id()));
    }
    assert_eq!(first.answer("0").raw(&["result", "to"]), "\"alpha\"");
    assert_eq!(second.answer("0").raw(&["result", "to"]), "\"beta\"");
}

fn a_question_outside_a_call_reaches_the_only_client() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    life.take("notifications/initialized");
    gateway.ask("1", "tools/list", "{}");
    life.send(r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#);
    let asked = gateway.take("roots/list");
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, asked.id()));
    assert_eq!(life.answer("5").raw(&["result"]), r#"{"roots":[]}"#);
}

fn progress_on_a_question_maps_back() {
    let stage = Stage::new();
    let (mut gateway, mut life, ..) = in_a_call(&stage, &[]);
    life.send(
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"_meta":{"progressToken":"own\/"},"messages":[]}}"#,
    );
    let asked = gateway.take("sampling/createMessage");
    let token = asked.raw(&["params", "_meta", "progressToken"]);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$T,"progress":0.50,"vendor":1.0}}"#;
    gateway.send(&note.replace("$T", &token));
    assert_eq!(life.take("notifications/progress").0, note.replace("$T", r#""own\/""#));
}

fn a_question_that_is_withdrawn_is_withdrawn_from_the_client() {
    let stage = Stage::new();
    let (mut gateway, mut life, call, ..) = in_a_call(&stage, &[]);
    life.send(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}"#);
    let asked = gateway.take("elicitation/create");
    life.send(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q","reason":"too \u0073low"}}"#,
    );
    let note = gateway.take("notifications/cancelled");
    assert_eq!(note.raw(&["params", "requestId"]), asked.id());
    assert_eq!(note.raw(&["params", "reason"]), r#""too \u0073low""#);
    // An answer that crossed it does no harm.
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, asked.id()));
    life.reply(&call, r#""result":{}"#);
    gateway.answer("\"call\"");
    assert!(!life.unclaimed().iter().any(|line| line.has_id("\"q\"")), "what was withdrawn is not answered");
}

/// Otherwise a dialogue stays open on somebody's screen, and what is typed there goes nowhere.
fn a_question_of_a_server_that_died_is_withdrawn() {
    let stage = Stage::new();
    let (mut gateway, life, ..) = in_a_call(&stage, &[]);
    life.send(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}"#);
    let asked = gateway.take("elicitation/create");
    life.order("x1");
    gateway.answer("\"call\"");
    let note = gateway.take("notifications/cancelled");
    assert_eq!(note.raw(&["params", "requestId"]), asked.id());
}

fn a_client_that_cannot_is_not_asked() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    let params = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    gateway.ask("0", "initialize", params);
    gateway.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let mut life = server.life();
    gateway.call("1", "x");
    let call = life.take("tools/call");
    for (id, method, code) in [
        ("7", "sampling/createMessage", "-32006"),
        ("8", "elicitation/create", "-32007"),
        ("9", "roots/list", "-32007"),
    ] {
        life.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}"#));
        assert_eq!(life.answer(id).raw(&["error", "code"]), code, "{method}");
    }
    life.reply(&call, r#""result":{}"#);
    gateway.answer("1");
    assert_eq!(gateway.unclaimed(), []);
}

fn a_ping_of_the_server_is_answered() {
    let stage = Stage::new();
    let (_gateway, mut life, ..) = in_a_call(&stage, &[]);
    life.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert_eq!(life.answer("\"p\"").0, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
}

/// The time limit is there to find servers that hang. One that waits for a person's answer does not hang.
fn a_person_may_think_longer_than_a_call_may_take() {
    let stage = Stage::new();
    let (mut gateway, mut life, call, ..) = in_a_call(&stage, &["--timeout-secs", "1"]);
    life.send(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}"#);
    let asked = gateway.take("elicitation/create");
    let early = gateway.find_within(Duration::from_millis(1800), "no answer yet", |line| line.has_id("\"call\""));
    assert_eq!(early, None, "the call was given up while the client was being asked");
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, asked.id()));
    life.answer("\"q\"");
    life.reply(&call, r#""result":{"done":true}"#);
    assert_eq!(gateway.answer("\"call\"").raw(&["result"]), r#"{"done":true}"#);
}
