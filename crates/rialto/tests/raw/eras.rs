//! One server, five versions: what is agreed on, and how each error looks in each of them.

use serde_json::json;

use crate::case::{LEGACY, expand};
use crate::wire::{Subject, Wire, both};

#[test]
fn versions_are_negotiated() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        // The stateless version has no handshake, so with one it is as good as unknown.
        ("2026-07-28", "2025-11-25"),
        ("1999-12-31", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
        ("latest", "2025-11-25"),
    ] {
        both(|mut wire| {
            let result = wire.initialize(asked, &json!({}));
            assert_eq!(result["protocolVersion"], agreed, "{asked}");
            assert_eq!(result["serverInfo"]["name"], "rialto-example");
            assert_eq!(result["instructions"], "Try `echo` first.");
            // Only what the official versions know.
            for capability in ["tools", "resources", "prompts", "completions"] {
                assert!(result["capabilities"][capability].is_object(), "{capability}");
            }
            for odd in ["/tools/streaming", "/resources/templates", "/prompts/dynamic", "/logging/levels"] {
                assert_eq!(result["capabilities"].pointer(odd), None);
            }
            assert!(result.get("resultType").is_none(), "a handshake knows no resultType");
            wire.finish();
        });
    }
}

/// Flags that no official version has, and clients that leave things out, are no reason to refuse them.
#[test]
fn unusual_introductions_are_accepted() {
    for params in [
        r#"{"protocolVersion":"2025-06-18"}"#,
        r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}"#,
        r#"{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":null}"#,
        r#"{"protocolVersion":"2025-06-18","capabilities":{"experimental":{"x":true},"sampling":true,"tools":{"streaming":true},"logging":{"levels":["warn"]}},"clientInfo":{"name":"x","version":"1","title":"X"}}"#,
    ] {
        both(|mut wire| {
            wire.say(&format!(r#"{{$J,"id":1,"method":"initialize","params":{params}}}"#));
            wire.expect(r#"{"id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
            wire.say(r#"{$J,"id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#);
            wire.expect(r#"{"id":2,"result":{"structuredContent":{"sum":3.0}}}"#);
            wire.finish();
        });
    }
}

/// How an error is sent: up to June 2025, in November 2025, and without a handshake. Zero stands for a result with
/// `isError`.
struct Numbers {
    name: &'static str,
    method: &'static str,
    params: &'static str,
    early: i32,
    november: i32,
    modern: i32,
    symbol: &'static str,
    /// A detail that must stand beside the symbol.
    detail: (&'static str, &'static str),
}

const NUMBERS: &[Numbers] = &[
    Numbers {
        name: "resource not found",
        method: "resources/read",
        params: r#""uri":"example://nowhere""#,
        early: -32001,
        november: -32002,
        modern: -32602,
        symbol: "resource_not_found",
        detail: ("uri", "example://nowhere"),
    },
    Numbers {
        name: "prompt not found",
        method: "prompts/get",
        params: r#""name":"nope""#,
        early: -32005,
        november: -32602,
        modern: -32602,
        symbol: "prompt_not_found",
        detail: ("name", "nope"),
    },
    Numbers {
        name: "arguments that do not fit",
        method: "tools/call",
        params: r#""name":"add","arguments":{"a":"one","b":2}"#,
        early: -32004,
        november: 0,
        modern: 0,
        symbol: "invalid_arguments",
        detail: ("field", "a"),
    },
    Numbers {
        name: "arguments that are missing",
        method: "tools/call",
        params: r#""name":"echo""#,
        early: -32004,
        november: 0,
        modern: 0,
        symbol: "invalid_arguments",
        detail: ("field", "text"),
    },
    Numbers {
        name: "arguments out of range",
        method: "tools/call",
        params: r#""name":"count","arguments":{"to":100000}"#,
        early: -32004,
        november: 0,
        modern: 0,
        symbol: "invalid_arguments",
        detail: ("field", "to"),
    },
    Numbers {
        name: "unknown tool",
        method: "tools/call",
        params: r#""name":"nope""#,
        early: -32602,
        november: -32602,
        modern: -32602,
        symbol: "tool_not_found",
        detail: ("name", "nope"),
    },
    Numbers {
        name: "unknown method",
        method: "no/such",
        params: r#""a":1"#,
        early: -32601,
        november: -32601,
        modern: -32601,
        symbol: "method_not_found",
        detail: ("method", "no/such"),
    },
    Numbers {
        name: "client cannot be asked",
        method: "tools/call",
        params: r#""name":"ask""#,
        early: -32007,
        november: -32601,
        modern: -32021,
        symbol: "client_capability_missing",
        detail: ("", ""),
    },
    Numbers {
        name: "bad cursor",
        method: "tools/list",
        params: r#""cursor":"nowhere""#,
        early: -32602,
        november: -32602,
        modern: -32602,
        symbol: "invalid_params",
        detail: ("", ""),
    },
];

impl Numbers {
    fn check(&self, wire: &mut Wire, meta: &str, code: i32) {
        wire.remark(self.name);
        let (method, params, symbol) = (self.method, self.params, self.symbol);
        let id = self.name;
        wire.say(&format!(r#"{{$J,"id":"{id}","method":"{method}","params":{{{params}{meta}}}}}"#));
        let got = wire.next();
        assert_eq!(got["id"], id);
        let data = if code == 0 {
            assert_eq!(got["result"]["isError"], true);
            assert_eq!(got["result"]["content"][0]["type"], "text");
            assert!(got["result"]["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));
            &got["result"]["structuredContent"]["error"]
        } else {
            assert_eq!(got["error"]["code"], code, "{id}");
            &got["error"]["data"]
        };
        assert_eq!(data["code"], symbol);
        let (key, value) = self.detail;
        if !key.is_empty() {
            assert_eq!(data[key], value, "{id}");
        }
    }
}

#[test]
fn numbers_with_a_handshake() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            wire.initialize(version, &json!({}));
            for numbers in NUMBERS {
                let code = if version == "2025-11-25" { numbers.november } else { numbers.early };
                numbers.check(&mut wire, "", code);
            }
            wire.finish();
        }
    }
}

#[test]
fn numbers_without_a_handshake() {
    both(|mut wire| {
        for numbers in NUMBERS {
            numbers.check(&mut wire, ",$META", numbers.modern);
        }
        wire.finish();
    });
}

/// The client that says nothing about itself is treated like one of June 2025.
#[test]
fn numbers_before_the_handshake() {
    both(|mut wire| {
        for numbers in NUMBERS {
            numbers.check(&mut wire, "", numbers.early);
        }
        wire.finish();
    });
}

/// A tool that ran and says no is a result in every era.
#[test]
fn a_tool_that_says_no_is_a_result() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            wire.initialize(version, &json!({}));
            wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"fail"}}"#);
            wire.expect(r#"{"id":1,"error":"<absent>","result":{"isError":true,"resultType":"<absent>"}}"#);
            wire.finish();
        }
        let mut wire = Wire::start(subject);
        wire.say(r#"{$J,"id":1,"method":"tools/call","params":{"name":"fail",$META}}"#);
        wire.expect(r#"{"id":1,"error":"<absent>","result":{"isError":true,"resultType":"complete"}}"#);
        wire.finish();
    }
}

/// A method of the protocol for which the server lacks the capability: the number says so up to June 2025.
fn a_capability_that_is_not_there(subject: Subject) {
    for (version, code) in
        [("2024-11-05", -32007), ("2025-03-26", -32007), ("2025-06-18", -32007), ("2025-11-25", -32601)]
    {
        let mut wire = Wire::start(subject);
        wire.initialize(version, &json!({}));
        for (id, request) in [
            ("level", r#""method":"logging/setLevel","params":{"level":"info"}"#),
            ("subscribe", r#""method":"resources/subscribe","params":{"uri":"example://about"}"#),
            ("unsubscribe", r#""method":"resources/unsubscribe","params":{"uri":"example://about"}"#),
        ] {
            wire.say(&format!(r#"{{$J,"id":"{id}",{request}}}"#));
            wire.expect(&format!(
                r#"{{"id":"{id}","error":{{"code":{code},"data":{{"code":"capability_unsupported"}}}}}}"#
            ));
        }
        wire.finish();
    }
}

#[test]
fn a_capability_that_the_example_does_not_have() {
    a_capability_that_is_not_there(Subject::Example);
}

#[test]
fn a_capability_that_the_gateway_does_not_have() {
    a_capability_that_is_not_there(Subject::Gateway);
}

/// Methods that exist only without a handshake are unknown after one.
#[test]
fn stateless_methods_after_a_handshake() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            wire.initialize(version, &json!({}));
            wire.say(r#"{$J,"id":1,"method":"server/discover"}"#);
            wire.expect(r#"{"id":1,"error":{"code":-32601}}"#);
            wire.say(r#"{$J,"id":2,"method":"subscriptions/listen","params":{"notifications":{}}}"#);
            wire.expect(r#"{"id":2,"error":{"code":-32601}}"#);
            wire.finish();
        }
    }
}

/// Results of the older versions carry nothing of the newer ones.
#[test]
fn results_with_a_handshake_are_plain() {
    for subject in Subject::BOTH {
        for version in LEGACY {
            let mut wire = Wire::start(subject);
            wire.initialize(version, &json!({}));
            for (id, request, key) in [
                (1, r#""method":"tools/list""#, "tools"),
                (2, r#""method":"resources/list""#, "resources"),
                (3, r#""method":"resources/templates/list""#, "resourceTemplates"),
                (4, r#""method":"prompts/list""#, "prompts"),
                (5, r#""method":"resources/read","params":{"uri":"example://square/12"}"#, "contents"),
                (6, r#""method":"prompts/get","params":{"name":"greet","arguments":{"name":"Ada"}}"#, "messages"),
                (7, r#""method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}"#, "content"),
            ] {
                wire.send(expand(&format!(r#"{{$J,"id":{id},{request}}}"#)));
                let got = wire.next();
                assert_eq!(got["id"], id);
                let result = got["result"].as_object().unwrap();
                assert!(result[key].as_array().is_some_and(|items| !items.is_empty()), "{key}");
                for newer in ["resultType", "ttlMs", "cacheScope", "_meta", "nextCursor"] {
                    assert!(!result.contains_key(newer), "{newer} in {got}");
                }
            }
            wire.say(
                r#"{$J,"id":8,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"a"}}}"#,
            );
            wire.expect(r#"{"id":8,"result":{"completion":{"values":["Ada","Alan"],"total":2,"hasMore":false}}}"#);
            wire.finish();
        }
    }
}

/// Some clients write `null` for a member they leave out.
#[test]
fn a_cursor_of_null_is_the_first_page() {
    both(|mut wire| {
        wire.initialize("2025-06-18", &json!({}));
        wire.say(r#"{$J,"id":1,"method":"tools/list","params":{"cursor":null}}"#);
        wire.expect(r#"{"id":1,"result":{}}"#);
        wire.finish();
    });
}
