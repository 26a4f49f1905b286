//! The stateless era: no handshake, every request says who asks, every result says what it is.

use serde_json::{Value, json};

use crate::case::{Opening, Row, run};
use crate::wire::{Wire, both};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Sends a request and gives its result, checked for what every result of this era has.
fn ask(wire: &mut Wire, id: &str, method: &str, members: &str) -> Value {
    let comma = if members.is_empty() { "" } else { "," };
    wire.say(&format!(r#"{{$J,"id":{id},"method":"{method}","params":{{{members}{comma}$META}}}}"#));
    let got = wire.next();
    assert_eq!(got["id"].to_string(), id);
    check_result(&got["result"]);
    got["result"].clone()
}

fn check_result(result: &Value) {
    let kind = result["resultType"].as_str().expect("every result has a resultType");
    assert!(["complete", "input_required"].contains(&kind), "{kind}");
    let info = &result["_meta"][SERVER_INFO];
    assert!(info["name"].is_string() && info["version"].is_string(), "every result says who answers");
}

fn check_cache_hints(result: &Value) {
    assert!(result["ttlMs"].is_u64(), "ttlMs is a whole number: {result}");
    let scope = result["cacheScope"].as_str().expect("cacheScope is a string");
    assert!(["private", "public"].contains(&scope), "{scope}");
}

#[test]
fn discover_tells_what_there_is() {
    both(|mut wire| {
        let result = ask(&mut wire, "1", "server/discover", "");
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
        for capability in ["tools", "resources", "prompts", "completions"] {
            assert!(result["capabilities"][capability].is_object(), "{capability}");
        }
        assert_eq!(result["instructions"], "Try `echo` first.");
        assert_eq!(result["_meta"][SERVER_INFO]["name"], "rialto-example");
        assert!(result.get("protocolVersion").is_none() && result.get("serverInfo").is_none());
        check_cache_hints(&result);
        wire.finish();
    });
}

#[test]
fn every_result_says_what_it_is() {
    let cacheable = [
        ("tools/list", "", "tools"),
        ("resources/list", "", "resources"),
        ("resources/templates/list", "", "resourceTemplates"),
        ("prompts/list", "", "prompts"),
        ("resources/read", r#""uri":"example://square/-3""#, "contents"),
    ];
    let others = [
        ("tools/call", r#""name":"echo","arguments":{"text":"x"}"#, "content"),
        ("tools/call", r#""name":"count","arguments":{"to":1,"pause_ms":1}"#, "content"),
        ("prompts/get", r#""name":"greet","arguments":{"name":"Ada"}"#, "messages"),
    ];
    both(|mut wire| {
        for (method, members, key) in cacheable {
            let result = ask(&mut wire, "1", method, members);
            assert!(result[key].as_array().is_some_and(|items| !items.is_empty()), "{key}");
            check_cache_hints(&result);
        }
        for (method, members, key) in others {
            let result = ask(&mut wire, "1", method, members);
            assert!(result[key].as_array().is_some_and(|items| !items.is_empty()), "{key}");
            assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none(), "{method} is not cacheable");
        }
        let reference = r#""ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"G"}"#;
        assert_eq!(ask(&mut wire, "1", "completion/complete", reference)["completion"]["values"], json!(["Grace"]));
        // A result that says no is a result like any other.
        assert_eq!(ask(&mut wire, "1", "tools/call", r#""name":"fail""#)["isError"], true);
        assert_eq!(ask(&mut wire, "1", "tools/call", r#""name":"add""#)["isError"], true);
        wire.finish();
    });
}

const ROWS: &[Row] = &[
    (
        "a version that is not known",
        &[
            r#"{$J,"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        ],
        &[
            r#"{"id":1,"error":{"code":-32022,"data":{"code":"unsupported_version","supported":["2026-07-28"],"requested":"2099-01-01"}}}"#,
        ],
    ),
    (
        "a version that needs a handshake",
        &[
            r#"{$J,"id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        ],
        &[r#"{"id":1,"error":{"code":-32022,"data":{"code":"unsupported_version","supported":["2026-07-28"]}}}"#],
    ),
    (
        "no capabilities",
        &[
            r#"{$J,"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        ],
        &[r#"{"id":1,"error":{"code":-32602,"data":{"code":"invalid_params"}}}"#],
    ),
    (
        "capabilities that are no object",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}}}"#,
        ],
        &[r#"{"id":1,"error":{"code":-32602,"data":{"code":"invalid_params"}}}"#],
    ),
    (
        "discover without a version",
        &[r#"{$J,"id":1,"method":"server/discover"}"#],
        &[r#"{"id":1,"error":{"code":-32602}}"#],
    ),
    (
        "listen without a version",
        &[r#"{$J,"id":1,"method":"subscriptions/listen","params":{"notifications":{}}}"#],
        &[r#"{"id":1,"error":{"code":-32602}}"#],
    ),
    ("ping", &[r#"{$J,"id":1,"method":"ping","params":{$META}}"#], &[r#"{"id":1,"error":{"code":-32601}}"#]),
    (
        "setLevel",
        &[r#"{$J,"id":1,"method":"logging/setLevel","params":{"level":"info",$META}}"#],
        &[r#"{"id":1,"error":{"code":-32601,"data":{"code":"method_not_found"}}}"#],
    ),
    (
        "subscribe and unsubscribe",
        &[
            r#"{$J,"id":1,"method":"resources/subscribe","params":{"uri":"example://about",$META}}"#,
            r#"{$J,"id":2,"method":"resources/unsubscribe","params":{"uri":"example://about",$META}}"#,
        ],
        &[r#"{"id":1,"error":{"code":-32601}}"#, r#"{"id":2,"error":{"code":-32601}}"#],
    ),
    (
        "an id may be used again once it was answered",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"},$META}}"#,
            r#"{$J,"id":"opening","method":"tools/list","params":{$META}}"#,
        ],
        &[
            r#"{"id":1,"result":{"content":[{"text":"a"}]}}"#,
            r#"{"id":"opening","result":{"tools":[{},{},{},{},{},{}]}}"#,
        ],
    ),
    (
        "an id may not be used while the first is in flight",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":100},$META}}"#,
            r#"{$J,"id":1,"method":"tools/list","params":{$META}}"#,
        ],
        &[
            r#"{"id":1,"error":{"code":-32600,"data":{"code":"invalid_request"}}}"#,
            r#"{"id":1,"result":{"content":[{"text":"Counted to 1."}]}}"#,
        ],
    ),
    (
        "a cancelled id may be used again",
        &[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":10000},$META}}"#,
            r#"{$J,"method":"notifications/cancelled","params":{"requestId":1}}"#,
            r#"{$J,"id":1,"method":"tools/list","params":{$META}}"#,
        ],
        &[r#"{"id":1,"result":{"resultType":"complete"}}"#],
    ),
    (
        "the client's user cannot be asked",
        &[r#"{$J,"id":1,"method":"tools/call","params":{"name":"ask",$META}}"#],
        &[
            r#"{"id":1,"error":{"code":-32021,"data":{"code":"client_capability_missing","requiredCapabilities":{"elicitation":{}}}}}"#,
        ],
    ),
    (
        "listen without a filter",
        &[
            r#"{$J,"id":1,"method":"subscriptions/listen","params":{$META}}"#,
            r#"{$J,"id":2,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":"x"},$META}}"#,
        ],
        &[r#"{"id":1,"error":{"code":-32602}}"#, r#"{"id":2,"error":{"code":-32602}}"#],
    ),
];

#[test]
fn rules_of_the_stateless_era() {
    run(Opening::Stateless, ROWS);
}

#[test]
fn progress_comes_before_the_result() {
    both(|mut wire| {
        let meta = crate::case::expand("$META").replacen("{", r#"{"progressToken":"p","#, 1);
        wire.say(&format!(
            r#"{{$J,"id":1,"method":"tools/call","params":{{"name":"count","arguments":{{"to":3,"pause_ms":1}},{meta}}}}}"#
        ));
        for step in 1..=3 {
            wire.expect(&format!(
                r#"{{"method":"notifications/progress","params":{{"progressToken":"p","progress":{step},"total":3}}}}"#
            ));
        }
        let got = wire.expect(r#"{"id":1,"result":{"content":[{"text":"Counted to 3."}]}}"#);
        check_result(&got["result"]);
        wire.finish();
    });
}

/// A server has no requests of its own any more: what it needs to know, it asks for in a result.
#[test]
fn input_is_required_and_the_call_is_made_again() {
    for (answer, said) in [
        (r#"{"action":"accept","content":{"colour":"teal"}}"#, "You like teal."),
        (r#"{"action":"decline"}"#, "You would rather not say."),
        (r#"{"action":"cancel"}"#, "You would rather not say."),
    ] {
        both(|mut wire| {
            wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"ask","arguments":{},$ASKABLE}}"#);
            let got = wire.expect(r#"{"id":1,"result":{"resultType":"input_required"}}"#);
            check_result(&got["result"]);
            let questions = got["result"]["inputRequests"].as_object().unwrap();
            assert_eq!(questions.len(), 1);
            let (key, question) = questions.iter().next().unwrap();
            assert_eq!(question["method"], "elicitation/create");
            assert_eq!(question["params"]["message"], "Which colour do you like?");
            assert_eq!(question["params"]["requestedSchema"]["type"], "object");
            let state = got["result"]["requestState"].clone();
            assert!(state.is_string());
            wire.say(&format!(
                r#"{{$J,"id":2,"method":"tools/call","params":{{"name":"ask","arguments":{{}},"inputResponses":{{"{key}":{answer}}},"requestState":{state},$ASKABLE}}}}"#
            ));
            let got = wire.expect(r#"{"id":2,"result":{"resultType":"complete","isError":"<absent>"}}"#);
            check_result(&got["result"]);
            assert_eq!(got["result"]["content"][0]["text"], said);
            wire.finish();
        });
    }
}

/// Begins to listen, with everything there is to hear; gives the acknowledgement.
fn listen(wire: &mut Wire, id: &str) -> Value {
    wire.say(&format!(
        r#"{{$J,"id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"promptsListChanged":true}},$META}}}}"#
    ));
    let note = wire.expect(r#"{"id":"<absent>","method":"notifications/subscriptions/acknowledged"}"#);
    assert_eq!(note["params"]["_meta"][SUBSCRIPTION].to_string(), id);
    note["params"]["notifications"].clone()
}

#[test]
fn listening_is_acknowledged_first() {
    both(|mut wire| {
        let agreed = listen(&mut wire, "1");
        // It never changes, so it promises nothing; and one server's word is passed on as it is.
        assert_eq!(agreed, json!({}));
        // Others are answered meanwhile.
        ask(&mut wire, "2", "tools/list", "");
        wire.say(r#"{$J,"id":1,"method":"tools/list","params":{$META}}"#);
        wire.expect(r#"{"id":1,"error":{"code":-32600}}"#);
        wire.say(r#"{$J,"method":"notifications/cancelled","params":{"requestId":1}}"#);
        wire.finish();
    });
}

#[test]
fn listening_ends_silently_when_cancelled() {
    both(|mut wire| {
        listen(&mut wire, "\"a\"");
        wire.say(r#"{$J,"method":"notifications/cancelled","params":{"requestId":"a"}}"#);
        wire.fence();
        // And may begin anew.
        listen(&mut wire, "\"a\"");
        wire.say(r#"{$J,"method":"notifications/cancelled","params":{"requestId":"a"}}"#);
        wire.finish();
    });
}

#[test]
fn listening_ends_with_a_result_at_shutdown() {
    both(|mut wire| {
        listen(&mut wire, "\"a\"");
        listen(&mut wire, "2");
        wire.say(r#"{$J,"id":3,"method":"shutdown","params":{$META}}"#);
        let mut ids = Vec::new();
        for _ in 0..3 {
            let got = wire.next();
            check_result(&got["result"]);
            if got["id"] != 3 {
                assert_eq!(got["result"]["_meta"][SUBSCRIPTION], got["id"]);
            }
            ids.push(got["id"].to_string());
        }
        ids.sort();
        assert_eq!(ids, ["\"a\"", "2", "3"]);
        assert_eq!(wire.exit(), 0);
    });
}

#[test]
fn listening_ends_with_a_result_at_the_end_of_input() {
    both(|mut wire| {
        listen(&mut wire, "1");
        wire.end_input();
        let got = wire.expect(r#"{"id":1,"result":{"resultType":"complete"}}"#);
        assert_eq!(got["result"]["_meta"][SUBSCRIPTION], 1);
        assert_eq!(wire.exit(), 0);
    });
}

#[test]
fn shutdown_finishes_what_runs() {
    both(|mut wire| {
        wire.say_all(&[
            r#"{$J,"id":1,"method":"tools/call","params":{"name":"count","arguments":{"to":1,"pause_ms":100},$META}}"#,
            r#"{$J,"id":2,"method":"shutdown","params":{$META}}"#,
            r#"{$J,"id":3,"method":"tools/list","params":{$META}}"#,
        ]);
        wire.expect(r#"{"id":2,"result":{"resultType":"complete"}}"#);
        wire.expect(r#"{"id":3,"error":{"code":-32600,"data":{"code":"shutting_down"}}}"#);
        wire.expect(r#"{"id":1,"result":{"content":[{"text":"Counted to 1."}]}}"#);
        assert_eq!(wire.exit(), 0);
    });
}

/// A client that tries the new way first and then goes back to the old one.
#[test]
fn a_handshake_after_a_probe() {
    both(|mut wire| {
        ask(&mut wire, "1", "server/discover", "");
        wire.initialize("2025-06-18", &json!({}));
        wire.say(r#"{$J,"id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#);
        wire.expect(r#"{"id":2,"result":{"content":[{"text":"x"}]}}"#);
        wire.say("nonsense");
        wire.expect(r#"{"id":null,"error":{"code":-32700}}"#);
        wire.finish();
    });
}
