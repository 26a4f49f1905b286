//! What servers tell on their own account: logs, changed lists, changed resources.

use torture::stage::Stage;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(log_messages_pass_unchanged),
    case!(the_log_level_reaches_every_server_and_its_successor),
    case!(resources_are_subscribed_to_and_their_changes_told),
    case!(a_tool_that_is_added_is_told_and_listed),
    case!(unknown_notifications_pass_unchanged),
    case!(notices_keep_their_order_around_a_result),
];

const VERSION: &str = "2025-06-18";

const WELCOME: &str = r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true,"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}"#;

fn log_messages_pass_unchanged() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    for life in [alpha.life(), beta.life()] {
        let note = r#"{"method":"notifications/message","jsonrpc":"2.0","params":{"level":"warn","logger":"\/a","data":{"n":1.0,"big":12345678901234567890},"new":0.30}}"#;
        life.send(note);
        assert_eq!(gateway.take("notifications/message").0, note);
    }
}

fn the_log_level_reaches_every_server_and_its_successor() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    for server in [&alpha, &beta] {
        server.answers("initialize", WELCOME);
        server.answers("resources/list", r#""result":{"resources":[]}"#);
        server.answers("resources/templates/list", r#""result":{"resourceTemplates":[]}"#);
    }
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    gateway.send(r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"warn"}}"#);
    let (mut first, mut second) = (alpha.life(), beta.life());
    for life in [&mut first, &mut second] {
        let request = life.take("logging/setLevel");
        assert_eq!(request.raw(&["params", "level"]), "\"warning\"", "the common misspelling is mended");
        life.reply(&request, r#""result":{}"#);
    }
    assert_eq!(gateway.answer("1").raw(&["result"]), "{}");
    first.order("x1");
    let request = alpha.life().take("logging/setLevel");
    assert_eq!(request.raw(&["params", "level"]), "\"warning\"");
}

fn resources_are_subscribed_to_and_their_changes_told() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    beta.answers("initialize", WELCOME);
    beta.answers("resources/list", r#""result":{"resources":[{"uri":"file:///a","name":"a"}]}"#);
    beta.answers("resources/templates/list", r#""error":{"code":-32601,"message":"no"}"#);
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let mut life = beta.life();
    let params = r#"{"uri":"file:\/\/\/a","vendor":1.0}"#;
    gateway.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{params}}}"#));
    let request = life.take("resources/subscribe");
    assert_eq!(request.raw(&["params"]), params);
    life.reply(&request, r#""result":{"vendor":1.0}"#);
    assert_eq!(gateway.answer("1").raw(&["result"]), r#"{"vendor":1.0}"#);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:\/\/\/a","title":"\u00e9","n":1.0}}"#;
    life.send(note);
    assert_eq!(gateway.take("notifications/resources/updated").0, note);
    // The next life of the server is told again, without the client's doing.
    life.order("x1");
    let mut life = beta.life();
    let request = life.take("resources/subscribe");
    assert_eq!(request.raw(&["params", "uri"]), r#""file:///a""#);
    life.reply(&request, r#""result":{}"#);
    gateway.send(r#"{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}"#);
    let request = life.take("resources/unsubscribe");
    life.reply(&request, r#""result":{}"#);
    gateway.answer("2");
}

fn a_tool_that_is_added_is_told_and_listed() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let life = beta.life();
    assert!(!gateway.ask("1", "tools/list", "{}").0.contains("beta__new"));
    beta.answers("tools/list", r#""result":{"tools":[{"name":"x"},{"name":"new"}]}"#);
    life.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    gateway.take("notifications/tools/list_changed");
    assert!(gateway.ask("2", "tools/list", "{}").0.contains(r#"{"name":"beta__new"}"#));
    let told = gateway.unclaimed().iter().filter(|line| line.is_method("notifications/tools/list_changed")).count();
    assert_eq!(told, 0, "one change is told once");
}

fn unknown_notifications_pass_unchanged() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let life = server.life();
    for note in [
        r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"a","pollInterval":1E2}}"#,
        r#"{"jsonrpc":"2.0","vendor":1,"method":"vendor/shout"}"#,
    ] {
        life.send(note);
        let found = gateway.find_within(torture::stage::line::PATIENCE, "a notification", |line| line.0 == note);
        assert!(found.is_some(), "{note}");
    }
}

/// A client that has its result may stop listening, so what was said before must come before.
fn notices_keep_their_order_around_a_result() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    for round in 0..20 {
        let id = format!("{}", round + 1);
        gateway.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":"t"}}}}}}"#
        ));
        let request = life.take("tools/call");
        let token = request.raw(&["params", "_meta", "progressToken"]);
        for step in 0..5 {
            life.send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step}}}}}"#
            ));
            life.send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{step}}}}}"#
            ));
        }
        life.reply(&request, r#""result":{}"#);
        gateway.answer(&id);
        // Everything that came before the answer is set aside by now; nothing may be missing.
        let before = gateway.unclaimed();
        assert_eq!(before.len(), (round + 1) * 10, "in round {round}");
        let steps: Vec<_> = before[round * 10..].iter().map(|line| line.is_method("notifications/progress")).collect();
        assert_eq!(steps, [true, false].repeat(5), "in round {round}");
    }
}
