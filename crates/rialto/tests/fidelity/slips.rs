//! What is meant to slip past: messages that others read differently than we do, and servers that say odd things.

use torture::stage::Stage;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_carriage_return_cannot_split_a_message),
    case!(a_second_spelling_of_a_key_is_refused),
    case!(what_was_promised_is_answered),
    case!(a_list_that_fails_once_hides_nothing),
    case!(a_log_line_with_an_id_is_no_answer),
    case!(one_of_two_subscriptions_can_end),
    case!(an_answer_to_a_newer_server_is_whole),
    case!(a_storm_of_changes_is_one_change),
    case!(too_many_questions_are_refused),
    case!(an_older_server_gets_no_envelope_of_the_newer_era),
    case!(a_tool_that_is_hidden_by_another_is_told),
];

const VERSION: &str = "2025-06-18";

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Some servers take a carriage return for the end of a line; one between two tokens is legal JSON.
fn a_carriage_return_cannot_split_a_message() {
    let stage = Stage::new();
    let alpha = stage.server("alpha");
    let mut gateway = stage.gateway(&[&alpha], &[]);
    gateway.begin(VERSION);
    gateway.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"alpha__x\",\"arguments\":\r{\"a\":1}\r}}");
    let mut life = alpha.life();
    let request = life.take("tools/call");
    assert!(!request.0.contains('\r'), "{:?}", request.0);
    assert_eq!(request.raw(&["params", "arguments"]), r#"{"a":1}"#);
}

/// Some servers ignore the case of keys; a policy must not be fooled by it.
fn a_second_spelling_of_a_key_is_refused() {
    let stage = Stage::new();
    let mut alpha = stage.server("alpha");
    alpha.settings = r#"deny = ["hidden"]"#.to_owned();
    alpha.answers("tools/call", r#""result":{"ran":true}"#);
    let mut gateway = stage.gateway(&[&alpha], &[]);
    gateway.begin(VERSION);
    for (id, params) in
        [("1", r#"{"name":"alpha__x","Name":"hidden"}"#), ("2", r#"{"name":"alpha__x","N\u0061me":"hidden"}"#)]
    {
        assert_eq!(gateway.ask(id, "tools/call", params).raw(&["error", "code"]), "-32602", "{params}");
    }
    gateway.send(
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"alpha__x"},"Params":{"name":"hidden"}}"#,
    );
    assert_eq!(gateway.answer("null").raw(&["error", "code"]), "-32600");
    assert_eq!(gateway.ask("4", "tools/call", r#"{"name":"alpha__x"}"#).raw(&["result", "ran"]), "true");
}

/// A gateway over several servers promises every list, since any of them may come to have one.
fn what_was_promised_is_answered() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    let welcome = gateway.begin(VERSION);
    for (id, capability, method, list) in [
        ("1", "prompts", "prompts/list", "prompts"),
        ("2", "resources", "resources/list", "resources"),
        ("3", "resources", "resources/templates/list", "resourceTemplates"),
    ] {
        assert!(welcome.find(&["result", "capabilities", capability]).is_some(), "{}", welcome.0);
        assert_eq!(gateway.ask(id, method, "{}").raw(&["result", list]), "[]", "{method}");
    }
}

/// A server that does not tell of changes is asked for each list; that it fails once does not mean that it has nothing.
fn a_list_that_fails_once_hides_nothing() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    alpha.answers(
        "initialize",
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}"#,
    );
    alpha.answers("tools/call", r#""result":{"ran":true}"#);
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    assert!(gateway.ask("1", "tools/list", "{}").0.contains("alpha__x"));
    alpha.answers("tools/list", r#""error":{"code":-32603,"message":"not now"}"#);
    assert!(gateway.ask("2", "tools/list", "{}").0.contains("alpha__x"));
    gateway.call("3", "alpha__x");
    assert_eq!(gateway.answer("3").raw(&["result", "ran"]), "true");
}

fn a_log_line_with_an_id_is_no_answer() {
    let stage = Stage::new();
    let alpha = stage.server("alpha");
    let mut gateway = stage.gateway(&[&alpha], &[]);
    gateway.begin(VERSION);
    gateway.call("1", "alpha__x");
    let mut life = alpha.life();
    let request = life.take("tools/call");
    life.send(&format!(r#"{{"level":"info","id":{},"message":"working"}}"#, request.id()));
    life.reply(&request, r#""result":{"ran":true}"#);
    assert_eq!(gateway.answer("1").raw(&["result", "ran"]), "true");
}

/// Clients replace a subscription by opening the new one first.
fn one_of_two_subscriptions_can_end() {
    let stage = Stage::new();
    let alpha = stage.server("alpha");
    alpha.answers(
        "initialize",
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"resources":{"subscribe":true,"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}"#,
    );
    alpha.answers("resources/list", r#""result":{"resources":[{"uri":"a://b","name":"b"}]}"#);
    alpha.answers("resources/templates/list", r#""result":{"resourceTemplates":[]}"#);
    alpha.answers("resources/subscribe", r#""result":{}"#);
    let mut gateway = stage.single(&alpha, &[]);
    for id in ["1", "2"] {
        gateway.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["a://b"]}},{META}}}}}"#
        ));
        gateway.take("notifications/subscriptions/acknowledged");
    }
    gateway.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    // A round trip, so that the cancellation has been taken.
    gateway.ask("3", "resources/list", &format!("{{{META}}}"));
    let life = alpha.life();
    life.send(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}"#);
    let note = gateway.take("notifications/resources/updated");
    assert_eq!(note.raw(&["params", "_meta", "io.modelcontextprotocol/subscriptionId"]), "2");
    assert_eq!(stage.transcript.find("alpha <- ").iter().filter(|line| line.contains("scribe\"")).count(), 1);
}

/// A newer server has no business asking; if it does, it gets an answer that can be read.
fn an_answer_to_a_newer_server_is_whole() {
    let stage = Stage::new();
    let alpha = stage.server("alpha");
    alpha.answers("initialize", r#""error":{"code":-32601,"message":"Method not found"}"#);
    alpha.answers(
        "server/discover",
        r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#,
    );
    let mut gateway = stage.single(&alpha, &[]);
    gateway.begin(VERSION);
    gateway.call("1", "x");
    let mut life = alpha.life();
    let request = life.take("tools/call");
    life.send(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#);
    let question = gateway.take("roots/list");
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, question.id()));
    assert_eq!(life.answer("\"q\"").raw(&["result"]), r#"{"roots":[]}"#);
    life.reply(&request, r#""result":{"resultType":"complete","content":[]}"#);
    gateway.answer("1");
}

fn a_storm_of_changes_is_one_change() {
    const STORM: usize = 20_000;
    let stage = Stage::new();
    let alpha = stage.server("alpha");
    let mut gateway = stage.single(&alpha, &[]);
    gateway.begin(VERSION);
    let mut life = alpha.life();
    alpha.leaves("tools/list");
    for _ in 0..STORM {
        life.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }
    // All of them have been read when this comes through.
    life.send(r#"{"jsonrpc":"2.0","method":"notifications/vendor/end"}"#);
    gateway.take("notifications/vendor/end");
    let request = life.take("tools/list");
    alpha.answers("tools/list", r#""result":{"tools":[{"name":"y"}]}"#);
    life.reply(&request, r#""result":{"tools":[]}"#);
    // One for what was being fetched, one for all that was said meanwhile.
    gateway.take("notifications/tools/list_changed");
    gateway.take("notifications/tools/list_changed");
    assert!(gateway.ask("1", "tools/list", "{}").0.contains(r#""name":"y""#));
    let fetched = stage.transcript.find("alpha <- ").iter().filter(|line| line.contains("tools/list\"")).count();
    assert!(fetched < 10, "{STORM} notifications caused {fetched} requests");
}

fn too_many_questions_are_refused() {
    let stage = Stage::new();
    let alpha = stage.server("alpha");
    let mut gateway = stage.single(&alpha, &[]);
    gateway.begin(VERSION);
    let mut life = alpha.life();
    for number in 0..300 {
        life.send(&format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"roots/list"}}"#));
    }
    assert_eq!(life.answer("299").raw(&["error", "data", "code"]), "\"busy\"");
    life.send(r#"{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#);
    assert_eq!(life.answer("0").raw(&["error", "code"]), "-32600");
    for _ in 0..256 {
        let question = gateway.take("roots/list");
        gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, question.id()));
    }
    assert_eq!(life.answer("255").raw(&["result", "roots"]), "[]");
}

/// Some servers refuse a stateless request on a connection that began with `initialize`.
fn an_older_server_gets_no_envelope_of_the_newer_era() {
    let stage = Stage::new();
    let alpha = stage.server("alpha");
    alpha.answers("tools/call", r#""result":{"content":[]}"#);
    let mut gateway = stage.single(&alpha, &[]);
    gateway.ask("1", "tools/call", &format!(r#"{{"name":"x","more":1.50,{META}}}"#));
    let vendor = format!(r#"{},"vendor/key":[1.0],"progressToken":"p"}}"#, META.strip_suffix('}').unwrap());
    gateway.ask("2", "tools/call", &format!(r#"{{"name":"x",{vendor}}}"#));
    let calls = stage.transcript.find(r#"alpha <- {"jsonrpc":"2.0","id""#);
    let calls: Vec<_> = calls.iter().filter(|line| line.contains("tools/call")).collect();
    assert!(calls[0].ends_with(r#""params":{"name":"x","more":1.50}}"#), "{calls:?}");
    assert!(calls[1].contains(r#""_meta":{"vendor/key":[1.0],"progressToken":"#), "{calls:?}");
    assert!(calls.iter().all(|line| !line.contains("io.modelcontextprotocol")), "{calls:?}");
}

fn a_tool_that_is_hidden_by_another_is_told() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &["--prefix", "never"]);
    gateway.begin(VERSION);
    gateway.ask("1", "tools/list", "{}");
    gateway.error_line("beta: `x` of tools/list is offered by an earlier server already");
}
