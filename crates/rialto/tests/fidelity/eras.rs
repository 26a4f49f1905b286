//! A client and a server of different eras: with a handshake (up to 2025-11-25), and without (2026-07-28).

use torture::stage::Stage;
use torture::stage::gateway::Gateway;
use torture::stage::line::Line;
use torture::stage::runner::{Case, case};
use torture::stage::server::Server;

pub(crate) const CASES: &[Case] = &[
    case!(an_older_client_calls_a_newer_server),
    case!(a_newer_servers_question_is_put_to_an_older_client),
    case!(an_older_client_that_cannot_answer_gets_an_error),
    case!(a_newer_client_calls_an_older_server),
    case!(an_older_servers_question_ends_a_newer_clients_call_until_it_is_answered),
    case!(what_a_newer_client_leaves_out_is_asked_again),
    case!(a_refusal_of_a_newer_client_reaches_the_older_server),
    case!(a_state_that_nobody_gave_out_is_refused),
    case!(a_server_that_dies_of_the_probe_is_not_probed_again),
    case!(a_newer_client_hears_of_an_older_servers_changes),
    case!(between_newer_ones_everything_passes_unchanged),
    case!(progress_and_cancellation_cross_from_older_to_newer),
    case!(an_older_clients_subscription_reaches_a_newer_server),
    case!(a_newer_client_may_take_its_time_with_an_answer),
];

/// What each request of a newer client carries.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1","os":1.0}}"#;

const TOOLS: &str = r#""result":{"resultType":"complete","tools":[{"name":"x","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}"#;

/// A server that knows no handshake.
fn newer(stage: &Stage) -> Server {
    let server = stage.server("newer");
    server.answers("initialize", r#""error":{"code":-32601,"message":"Method not found"}"#);
    server.answers(
        "server/discover",
        r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"newer","version":"9"}}}"#,
    );
    server.answers("tools/list", TOOLS);
    server
}

/// A server that knows nothing but the handshake.
fn older(stage: &Stage) -> Server {
    stage.server("older")
}

/// Calls the tool `x` as a newer client, with more members in its params.
fn call(gateway: &mut Gateway, id: &str, more: &str) {
    gateway.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{META},"name":"x","arguments":{{"n":1.0}}{more}}}}}"#
    ));
}

fn is_complete(answer: &Line) {
    assert_eq!(answer.raw(&["result", "resultType"]), "\"complete\"");
}

fn an_older_client_calls_a_newer_server() {
    let stage = Stage::new();
    let server = newer(&stage);
    let mut gateway = stage.single(&server, &[]);
    let told = gateway.begin("2025-06-18");
    assert_eq!(told.raw(&["result", "protocolVersion"]), "\"2025-06-18\"");
    assert_eq!(told.raw(&["result", "serverInfo", "name"]), "\"newer\"");
    let listed = gateway.ask("1", "tools/list", "{}");
    assert!(listed.raw(&["result", "tools"]).contains(r#""name":"x""#));
    let mut life = server.life();
    let params = r#"{"name":"x","arguments":{"b":1.0,"a":"\/"},"_meta":{"vendor":0.30}}"#;
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}"#));
    let request = life.take("tools/call");
    assert_eq!(request.raw(&["params", "arguments"]), r#"{"b":1.0,"a":"\/"}"#);
    assert_eq!(request.raw(&["params", "_meta", "vendor"]), "0.30");
    let meta = |key: &str| request.raw(&["params", "_meta", &format!("io.modelcontextprotocol/{key}")]);
    assert_eq!(meta("protocolVersion"), "\"2026-07-28\"");
    assert_eq!(meta("clientInfo"), r#"{"name":"t","version":"1"}"#);
    assert!(meta("clientCapabilities").contains("elicitation"));
    life.reply(&request, r#""result":{"resultType":"complete","content":[{"type":"video","n":1.0}],"vendor":1E2}"#);
    let answer = gateway.answer("2");
    assert_eq!(answer.raw(&["result", "content"]), r#"[{"type":"video","n":1.0}]"#);
    assert_eq!(answer.raw(&["result", "vendor"]), "1E2");
}

fn a_newer_servers_question_is_put_to_an_older_client() {
    let stage = Stage::new();
    let server = newer(&stage);
    let mut gateway = stage.single(&server, &[]);
    gateway.begin("2025-06-18");
    let mut life = server.life();
    gateway.send(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0},"vendor":0.30}}"#,
    );
    let mut request = life.take("tools/call");
    for round in 0..2 {
        let question = r#"{"message":"who?","requestedSchema":{"type":"object","properties":{"n":{"default":1.0}}}}"#;
        life.reply(
            &request,
            &format!(
                r#""result":{{"resultType":"input_required","inputRequests":{{"q\/1":{{"method":"elicitation/create","params":{question}}}}},"requestState":"s\/{round}"}}"#
            ),
        );
        let asked = gateway.take("elicitation/create");
        assert_eq!(asked.raw(&["params"]), question);
        let answer = r#"{"action":"accept","content":{"n":2.0},"vendor":1E2}"#;
        gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{answer}}}"#, asked.id()));
        let again = life.take("tools/call");
        assert_ne!(again.id(), request.id());
        assert_eq!(again.raw(&["params", "inputResponses"]), format!(r#"{{"q\/1":{answer}}}"#));
        assert_eq!(again.raw(&["params", "requestState"]), format!(r#""s\/{round}""#));
        assert_eq!(again.raw(&["params", "arguments"]), r#"{"n":1.0}"#);
        assert_eq!(again.raw(&["params", "vendor"]), "0.30");
        request = again;
    }
    life.reply(&request, r#""result":{"resultType":"complete","content":[],"done":1.0}"#);
    assert_eq!(gateway.answer("1").raw(&["result", "done"]), "1.0");
}

fn an_older_client_that_cannot_answer_gets_an_error() {
    let stage = Stage::new();
    let server = newer(&stage);
    let mut gateway = stage.single(&server, &[]);
    let params = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    gateway.ask("0", "initialize", params);
    let mut life = server.life();
    gateway.call("1", "x");
    let request = life.take("tools/call");
    life.reply(
        &request,
        r#""result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{}}}}"#,
    );
    let answer = gateway.answer("1");
    assert_eq!(answer.raw(&["error", "code"]), "-32007");
    assert!(answer.raw(&["error", "message"]).contains("elicitation"));
}

fn a_newer_client_calls_an_older_server() {
    let stage = Stage::new();
    let server = older(&stage);
    let mut gateway = stage.single(&server, &[]);
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}"#));
    let told = gateway.answer("1");
    is_complete(&told);
    assert_eq!(told.raw(&["result", "supportedVersions"]), r#"["2026-07-28"]"#);
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{META}}}}}"#));
    let listed = gateway.answer("2");
    is_complete(&listed);
    assert!(listed.raw(&["result", "tools"]).contains(r#""name":"x""#));
    let mut life = server.life();
    call(&mut gateway, "3", r#","vendor":0.30"#);
    let request = life.take("tools/call");
    assert_eq!(request.raw(&["params", "arguments"]), r#"{"n":1.0}"#);
    assert_eq!(request.raw(&["params", "vendor"]), "0.30");
    life.reply(&request, r#""result":{"content":[{"type":"text","text":"\/"}],"n":1.0},"beside":1E2"#);
    let answer = gateway.answer("3");
    is_complete(&answer);
    assert_eq!(answer.raw(&["result", "content"]), r#"[{"type":"text","text":"\/"}]"#);
    assert_eq!(answer.raw(&["result", "n"]), "1.0");
    assert_eq!(answer.raw(&["beside"]), "1E2");
}

/// The key and the state of the only question in an answer.
fn question(answer: &Line) -> (String, Line, String) {
    assert_eq!(answer.raw(&["result", "resultType"]), "\"input_required\"");
    let requests = answer.raw(&["result", "inputRequests"]);
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&requests).unwrap();
    let keys: Vec<_> = members.keys().cloned().collect();
    assert_eq!(keys.len(), 1, "{requests}");
    let question = Line(Line(requests).raw(&[&keys[0]]));
    (keys[0].clone(), question, answer.raw(&["result", "requestState"]))
}

fn an_older_servers_question_ends_a_newer_clients_call_until_it_is_answered() {
    let stage = Stage::new();
    let server = older(&stage);
    let mut gateway = stage.single(&server, &[]);
    call(&mut gateway, "1", "");
    let mut life = server.life();
    let request = life.take("tools/call");
    let mut id = 1;
    for (own, method, params) in [
        ("\"q\"", "elicitation/create", r#"{"message":"\u00e9","requestedSchema":{"n":1.0}}"#),
        ("7", "sampling/createMessage", r#"{"messages":[],"temperature":0.70}"#),
    ] {
        life.send(&format!(r#"{{"jsonrpc":"2.0","id":{own},"method":"{method}","params":{params}}}"#));
        let (key, asked, state) = question(&gateway.answer(&id.to_string()));
        assert_eq!(asked.0, format!(r#"{{"method":"{method}","params":{params}}}"#));
        id += 1;
        let answer = r#"{"action":"accept","content":{"n":2.0}}"#;
        call(
            &mut gateway,
            &id.to_string(),
            &format!(r#","inputResponses":{{"{key}":{answer}}},"requestState":{state}"#),
        );
        assert_eq!(life.answer(own).raw(&["result"]), answer);
    }
    life.reply(&request, r#""result":{"content":[],"n":1.0}"#);
    let answer = gateway.answer(&id.to_string());
    is_complete(&answer);
    assert_eq!(answer.raw(&["result", "n"]), "1.0");
    let calls = life.unclaimed().iter().filter(|line| line.is_method("tools/call")).count();
    assert_eq!(calls, 0, "the server was called once");
    assert!(!gateway.unclaimed().iter().any(|line| line.is_method("elicitation/create")), "servers may not ask it");
}

fn what_a_newer_client_leaves_out_is_asked_again() {
    let stage = Stage::new();
    let server = older(&stage);
    let mut gateway = stage.single(&server, &[]);
    call(&mut gateway, "1", "");
    let mut life = server.life();
    let request = life.take("tools/call");
    life.send(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}"#);
    let (key, _, state) = question(&gateway.answer("1"));
    call(&mut gateway, "2", &format!(r#","inputResponses":{{"other":{{}}}},"requestState":{state}"#));
    let (again, _, state) = question(&gateway.answer("2"));
    assert_eq!(key, again);
    call(&mut gateway, "3", &format!(r#","inputResponses":{{"{key}":{{"action":"cancel"}}}},"requestState":{state}"#));
    assert_eq!(life.answer("\"q\"").raw(&["result"]), r#"{"action":"cancel"}"#);
    life.reply(&request, r#""result":{"content":[]}"#);
    is_complete(&gateway.answer("3"));
}

fn a_refusal_of_a_newer_client_reaches_the_older_server() {
    let stage = Stage::new();
    let server = older(&stage);
    let mut gateway = stage.single(&server, &[]);
    call(&mut gateway, "1", "");
    let mut life = server.life();
    life.take("tools/call");
    // It declared no roots.
    life.send(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#);
    assert!(life.answer("\"q\"").find(&["error", "code"]).is_some());
}

fn a_state_that_nobody_gave_out_is_refused() {
    let stage = Stage::new();
    let server = older(&stage);
    let mut gateway = stage.single(&server, &[]);
    call(&mut gateway, "1", r#","inputResponses":{},"requestState":"made up""#);
    assert_eq!(gateway.answer("1").raw(&["error", "code"]), "-32602");
    assert!(!server.life().unclaimed().iter().any(|line| line.is_method("tools/call")));
}

fn a_server_that_dies_of_the_probe_is_not_probed_again() {
    let stage = Stage::new();
    let server = stage.server("fragile");
    server.leaves("server/discover");
    server.answers("tools/call", r#""result":{"content":[]}"#);
    let mut gateway = stage.single(&server, &[]);
    call(&mut gateway, "1", "");
    let mut life = server.life();
    life.take("server/discover");
    life.order("x1");
    let mut life = server.life();
    is_complete(&gateway.answer("1"));
    assert!(!life.unclaimed().iter().any(|line| line.is_method("server/discover")));
    assert!(life.find_within(std::time::Duration::ZERO, |line| line.is_method("notifications/initialized")).is_some());
}

fn a_newer_client_hears_of_an_older_servers_changes() {
    let stage = Stage::new();
    let server = older(&stage);
    let mut gateway = stage.single(&server, &[]);
    gateway.send(&format!(
        r#"{{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{{{META},"notifications":{{"toolsListChanged":true}}}}}}"#
    ));
    let agreed = gateway.take("notifications/subscriptions/acknowledged");
    assert_eq!(agreed.raw(&["params", "notifications"]), r#"{"toolsListChanged":true}"#);
    let life = server.life();
    server.answers("tools/list", r#""result":{"tools":[{"name":"new"}]}"#);
    life.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    let note = gateway.take("notifications/tools/list_changed");
    assert_eq!(note.raw(&["params", "_meta", "io.modelcontextprotocol/subscriptionId"]), "\"sub\"");
}

fn between_newer_ones_everything_passes_unchanged() {
    let stage = Stage::new();
    let server = newer(&stage);
    let mut gateway = stage.single(&server, &[]);
    let mut life = server.life();
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"method":"tools/call","params":{{{META},"name":"x","inputResponses":{{"a":{{"n":1.0}}}},"requestState":"theirs\/"}}}}"#
    );
    gateway.send(&line.replace("$ID", "\"a\""));
    let request = life.take("tools/call");
    assert_eq!(request.0, line.replace("$ID", &request.id()));
    let info = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"newer","version":"9"},"n":1.0}"#;
    let response = format!(
        r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{{"n":1.0}}}}}},"requestState":"x\/y",{info}}}}}"#
    );
    life.send(&response.replace("$ID", &request.id()));
    assert_eq!(gateway.answer("\"a\"").0, response.replace("$ID", "\"a\""));
}

fn progress_and_cancellation_cross_from_older_to_newer() {
    let stage = Stage::new();
    let server = newer(&stage);
    let mut gateway = stage.single(&server, &[]);
    gateway.begin("2025-06-18");
    let mut life = server.life();
    gateway.send(
        r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"x","_meta":{"progressToken":"own\/"}}}"#,
    );
    let request = life.take("tools/call");
    let token = request.raw(&["params", "_meta", "progressToken"]);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$T,"progress":0.50}}"#;
    life.send(&note.replace("$T", &token));
    assert_eq!(gateway.take("notifications/progress").0, note.replace("$T", r#""own\/""#));
    gateway
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"\u0061"}}"#);
    let note = life.take("notifications/cancelled");
    assert_eq!(note.raw(&["params", "requestId"]), request.id());
    assert_eq!(note.raw(&["params", "reason"]), r#""\u0061""#);
}

fn an_older_clients_subscription_reaches_a_newer_server() {
    let stage = Stage::new();
    let server = newer(&stage);
    server.answers(
        "server/discover",
        r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}},"ttlMs":0,"cacheScope":"private"}"#,
    );
    server.answers("resources/list", r#""result":{"resultType":"complete","resources":[{"uri":"a://b","name":"b"}]}"#);
    server.answers("resources/templates/list", r#""result":{"resultType":"complete","resourceTemplates":[]}"#);
    let mut gateway = stage.single(&server, &[]);
    gateway.begin("2025-06-18");
    let mut life = server.life();
    assert_eq!(gateway.ask("1", "resources/subscribe", r#"{"uri":"a://b"}"#).raw(&["result"]), "{}");
    let listen = life.take("subscriptions/listen");
    assert_eq!(listen.raw(&["params", "notifications", "resourceSubscriptions"]), r#"["a://b"]"#);
    life.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"a://b","_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}}}"#,
        listen.id()
    ));
    let note = gateway.take("notifications/resources/updated");
    assert_eq!(note.raw(&["params", "uri"]), "\"a://b\"");
    assert!(!note.0.contains("subscriptionId"), "it would mean nothing to the client: {}", note.0);
}

fn a_newer_client_may_take_its_time_with_an_answer() {
    let stage = Stage::new();
    let server = older(&stage);
    let mut gateway = stage.single(&server, &["--timeout-secs", "1"]);
    call(&mut gateway, "1", "");
    let mut life = server.life();
    let request = life.take("tools/call");
    life.send(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}"#);
    let (key, _, state) = question(&gateway.answer("1"));
    let given_up = |line: &Line| line.is_method("notifications/cancelled");
    assert_eq!(life.find_within(std::time::Duration::from_millis(1800), given_up), None);
    call(&mut gateway, "2", &format!(r#","inputResponses":{{"{key}":{{"action":"cancel"}}}},"requestState":{state}"#));
    life.answer("\"q\"");
    life.reply(&request, r#""result":{"content":[]}"#);
    is_complete(&gateway.answer("2"));
}
