//! From the client to the server: the introduction, requests, notifications, cancellation, progress tokens.

use torture::stage::Stage;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(the_introduction_reaches_the_server_unchanged),
    case!(requests_reach_the_server_unchanged),
    case!(unknown_methods_and_notifications_reach_the_only_server),
    case!(equal_ids_of_different_kinds_stay_apart),
    case!(a_cancellation_reaches_the_server_with_its_reason),
    case!(progress_tokens_map_back),
    case!(late_progress_does_not_reach_another_call),
    case!(an_answer_after_the_cancellation_is_dropped),
    case!(a_ping_before_the_introduction_changes_nothing),
    case!(keys_given_twice_smuggle_nothing_past_a_rule),
];

const VERSION: &str = "2025-06-18";

fn the_introduction_reaches_the_server_unchanged() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    for server in [&alpha, &beta] {
        server.leaves("initialize");
    }
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    let params = r#"{"protocolVersion":"2025-06-18","vendor":[1.0,1E2],"capabilities":{"experimental":{"feature_x":true},"sampling":{"tools":{}},"new\/one":{"n":0.30}},"clientInfo":{"version":"1.0","name":"t","title":"\u00e9","os":{"bits":64.0}},"_meta":{"a/b":null}}"#;
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":"hi","method":"initialize","params":{params}}}"#));
    for server in [&alpha, &beta] {
        let mut life = server.life();
        let request = life.take("initialize");
        assert_eq!(request.raw(&["params"]), params);
        life.reply(
            &request,
            r#""result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"p","version":"1"}}"#,
        );
        life.take("notifications/initialized");
    }
    gateway.answer("\"hi\"");
}

fn requests_reach_the_server_unchanged() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let mut life = alpha.life();
    for (place, line) in [
        r#"{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"name":"$NAME","arguments":{"b":1.0,"a":0.30,"big":123456789012345678901234567890,"e":1E2,"s":"\/\u00e9"},"task":{"ttl":60000.0},"x.vendor/y":[null]}}"#,
        r#"{"vendor":{"a":1.0},"params":{"_meta":{"trace":"\u0041","n":1.0},"arguments":{},"name":"$NAME"},"method":"tools/call","id":$ID,"jsonrpc":"2.0"}"#,
        r#"{ "jsonrpc" : "2.0" , "id" : $ID , "method" : "tools/call" , "params" : { "name" : "$NAME" } }"#,
        r#"{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{"arguments":{"name":"alpha__x","id":7,"_meta":{"progressToken":1}},"name":"$NAME"}}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("\"c-{place}\"");
        gateway.send(&line.replace("$ID", &id).replace("$NAME", "alpha__x"));
        let request = life.take("tools/call");
        assert_eq!(request.0, line.replace("$ID", &request.id()).replace("$NAME", "x"));
        life.reply(&request, r#""result":{}"#);
        gateway.answer(&id);
    }
}

fn unknown_methods_and_notifications_reach_the_only_server() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    life.take("notifications/initialized");
    let line = r#"{"jsonrpc":"2.0","id":$ID,"method":"tasks/list","params":{"cursor":null,"n":1.0},"more":0.30}"#;
    gateway.send(&line.replace("$ID", "7"));
    let request = life.take("tasks/list");
    assert_eq!(request.0, line.replace("$ID", &request.id()));
    life.reply(&request, r#""result":{"tasks":[]}"#);
    assert_eq!(gateway.answer("7").raw(&["result"]), r#"{"tasks":[]}"#);
    for note in [
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":{"n":1.0}}}"#,
        r#"{"jsonrpc":"2.0","params":{"a":0.30},"method":"vendor/shout","z":1}"#,
    ] {
        gateway.send(note);
        let found = life.find_within(torture::stage::line::PATIENCE, |line| line.find(&["id"]).is_none());
        assert_eq!(found.unwrap().0, note);
    }
}

fn equal_ids_of_different_kinds_stay_apart() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    let ids = ["1", "\"1\"", "\"01\"", "\"\"", "-1", "9007199254740993", "\"\\u0031x\""];
    for id in ids {
        gateway.call(id, "x");
    }
    let requests: Vec<_> = ids.iter().map(|_| life.take("tools/call")).collect();
    for (id, request) in ids.iter().zip(&requests).rev() {
        life.reply(request, &format!(r#""result":{{"for":{id}}}"#));
    }
    for id in ids {
        assert_eq!(gateway.answer(id).raw(&["result", "for"]), id);
    }
}

fn a_cancellation_reaches_the_server_with_its_reason() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let (mut alpha, mut beta) = (alpha.life(), beta.life());
    gateway.call("\"a\"", "alpha__x");
    gateway.call("\"b\"", "beta__x");
    gateway.call("\"c\"", "alpha__x");
    let (kept, _, cancelled) = (alpha.take("tools/call"), beta.take("tools/call"), alpha.take("tools/call"));
    gateway.send(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"no\u00e9d \/","vendor":1.0}}"#,
    );
    let note = alpha.take("notifications/cancelled");
    assert_eq!(note.raw(&["params", "requestId"]), cancelled.id());
    assert_eq!(note.raw(&["params", "reason"]), r#""no\u00e9d \/""#);
    alpha.reply(&kept, r#""result":{"kept":true}"#);
    assert_eq!(gateway.answer("\"a\"").raw(&["result"]), r#"{"kept":true}"#);
    assert!(!beta.unclaimed().iter().any(|line| line.is_method("notifications/cancelled")), "it was not its call");
}

fn progress_tokens_map_back() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let mut lives = [alpha.life(), beta.life()];
    for (place, token) in ["7", "\"t\\/\"", "\"7\"", "0"].into_iter().enumerate() {
        for (name, server) in [("a", "alpha"), ("b", "beta")] {
            gateway.send(&format!(
                r#"{{"jsonrpc":"2.0","id":"{name}{place}","method":"tools/call","params":{{"_meta":{{"progressToken":{token},"other":1.0}},"name":"{server}__x"}}}}"#
            ));
        }
        for (who, life) in lives.iter_mut().enumerate() {
            let request = life.take("tools/call");
            let own = request.raw(&["params", "_meta", "progressToken"]);
            assert_eq!(request.raw(&["params", "_meta", "other"]), "1.0");
            let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":50,"progressToken":$T,"total":1E2,"message":"\u00e9","vendor":$WHO.0}}"#
                .replace("$WHO", &who.to_string());
            life.send(&note.replace("$T", &own));
            assert_eq!(gateway.take("notifications/progress").0, note.replace("$T", token));
            life.reply(&request, r#""result":{}"#);
        }
        gateway.answer(&format!("\"a{place}\""));
        gateway.answer(&format!("\"b{place}\""));
    }
}

/// Tokens of the gateway's own making mean nothing to a client, or worse, something else.
fn late_progress_does_not_reach_another_call() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    let call = |id: &str, token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":{token}}}}}}}"#
        )
    };
    gateway.send(&call("1", "\"first\""));
    let first = life.take("tools/call");
    let own = first.raw(&["params", "_meta", "progressToken"]);
    life.reply(&first, r#""result":{}"#);
    gateway.answer("1");
    // The client now happens to use the very token that the gateway used for the first call.
    gateway.send(&call("2", &own));
    let second = life.take("tools/call");
    life.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{own},"progress":9}}}}"#
    ));
    life.reply(&second, r#""result":{}"#);
    gateway.answer("2");
    let wrong: Vec<_> =
        gateway.unclaimed().into_iter().filter(|line| line.is_method("notifications/progress")).collect();
    assert_eq!(wrong, [], "progress of a call that has ended");
}

fn an_answer_after_the_cancellation_is_dropped() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    gateway.call("1", "x");
    let request = life.take("tools/call");
    gateway.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    life.take("notifications/cancelled");
    life.reply(&request, r#""result":{"late":true}"#);
    gateway.call("2", "x");
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{}"#);
    gateway.answer("2");
    assert!(!gateway.unclaimed().iter().any(|line| line.has_id("1")), "a cancelled request is not answered");
}

fn a_ping_before_the_introduction_changes_nothing() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.leaves("initialize");
    let mut gateway = stage.single(&server, &[]);
    assert_eq!(gateway.ask("1", "ping", "{}").raw(&["result"]), "{}");
    let params =
        r#"{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"me","version":"1"}}"#;
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"initialize","params":{params}}}"#));
    assert_eq!(server.life().take("initialize").raw(&["params"]), params);
}

/// Of two equal keys one program reads the first and another the last: what one checks, the other must not run.
fn keys_given_twice_smuggle_nothing_past_a_rule() {
    let stage = Stage::new();
    let mut server = stage.server("alpha");
    server.settings = r#"deny = ["forbidden"]"#.to_owned();
    server.answers("tools/list", r#""result":{"tools":[{"name":"x"},{"name":"forbidden"}]}"#);
    server.answers("tools/call", r#""result":{}"#);
    let mut gateway = stage.gateway(&[&server], &[]);
    gateway.begin(VERSION);
    let (good, bad) = (r#"{"name":"alpha__x"}"#, r#"{"name":"forbidden"}"#);
    for (place, rest) in [
        r#""method":"tools/call","params":{"name":"alpha__x","name":"forbidden"}"#.to_owned(),
        r#""method":"tools/call","params":{"name":"alpha__x","n\u0061me":"forbidden"}"#.to_owned(),
        format!(r#""method":"tools/call","params":{good},"params":{bad}"#),
        format!(r#""method":"tools/call","params":{bad},"params":{good}"#),
        format!(r#""method":"tools/call","params":{good},"par\u0061ms":{bad}"#),
        format!(r#""method":"tools/list","method":"tools/call","params":{bad}"#),
        format!(r#""method":"tools/call","params":{bad}"#),
    ]
    .into_iter()
    .enumerate()
    {
        gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{place},{rest}}}"#));
    }
    gateway.call("100", "alpha__x");
    gateway.answer("100").raw(&["result"]);
    let refused = gateway.unclaimed().iter().filter(|line| line.find(&["error", "code"]).is_some()).count();
    assert_eq!(refused, 7, "each is answered with an error");
    let seen = stage.transcript.find("alpha <-").into_iter().filter(|line| line.contains("forbidden")).count();
    assert_eq!(seen, 0, "the server saw nothing of it");
}
