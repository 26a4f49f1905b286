//! Servers that hang: at the start, in a call, or with their input unread.

use std::time::{Duration, Instant};

use torture::stage::Stage;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_server_that_hangs_at_the_start_delays_nobody_for_long),
    case!(a_server_that_is_late_joins),
    case!(a_call_that_hangs_times_out_and_is_cancelled),
    case!(progress_extends_a_call_up_to_the_maximum),
    case!(a_server_that_reads_nothing_is_given_up_like_one_that_says_nothing),
    case!(a_server_that_reads_nothing_does_not_stop_the_others),
    case!(a_notification_that_cannot_be_passed_on_stops_nothing),
    case!(a_list_that_is_never_answered_delays_nobody_for_long),
];

const VERSION: &str = "2025-06-18";

fn a_server_that_hangs_at_the_start_delays_nobody_for_long() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    alpha.leaves("initialize");
    beta.answers("tools/call", r#""result":{}"#);
    let mut gateway = stage.gateway(&[&alpha, &beta], &["--startup-grace-ms", "700"]);
    let start = Instant::now();
    gateway.begin(VERSION);
    assert!(gateway.ask("1", "tools/list", "{}").0.contains("beta__x"));
    assert!(start.elapsed() < Duration::from_millis(1500), "it took {:?}", start.elapsed());
    let start = Instant::now();
    gateway.call("2", "beta__x");
    gateway.answer("2");
    gateway.ask("3", "tools/list", "{}");
    gateway.ask("4", "resources/list", "{}");
    assert!(start.elapsed() < Duration::from_millis(500), "after the grace it took {:?}", start.elapsed());
}

fn a_server_that_is_late_joins() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    alpha.leaves("initialize");
    let mut gateway = stage.gateway(&[&alpha, &beta], &["--startup-grace-ms", "200"]);
    gateway.begin(VERSION);
    assert!(!gateway.ask("1", "tools/list", "{}").0.contains("alpha__x"));
    let mut life = alpha.life();
    let request = life.take("initialize");
    life.reply(
        &request,
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"p","version":"1"}}"#,
    );
    gateway.take("notifications/tools/list_changed");
    assert!(gateway.ask("2", "tools/list", "{}").0.contains("alpha__x"));
}

fn a_call_that_hangs_times_out_and_is_cancelled() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &["--timeout-secs", "1"]);
    gateway.begin(VERSION);
    let mut life = alpha.life();
    let start = Instant::now();
    gateway.call("1", "alpha__x");
    let request = life.take("tools/call");
    let answer = gateway.answer("1");
    let took = start.elapsed();
    assert!((Duration::from_millis(950)..Duration::from_millis(2000)).contains(&took), "it took {took:?}");
    assert_eq!(answer.raw(&["error", "code"]), "-32003");
    assert!(answer.raw(&["error", "message"]).contains("alpha"), "{}", answer.0);
    let note = life.take("notifications/cancelled");
    assert_eq!(note.raw(&["params", "requestId"]), request.id());
    // It was slow, not dead: the same process goes on.
    life.reply(&request, r#""result":{"late":true}"#);
    gateway.call("2", "alpha__x");
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{"in":"time"}"#);
    assert_eq!(gateway.answer("2").raw(&["result"]), r#"{"in":"time"}"#);
}

fn progress_extends_a_call_up_to_the_maximum() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &["--timeout-secs", "1", "--max-timeout-secs", "3"]);
    gateway.begin(VERSION);
    let mut life = server.life();
    for (id, is_answered) in [("1", true), ("2", false)] {
        gateway.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","_meta":{{"progressToken":"t"}}}}}}"#
        ));
        let request = life.take("tools/call");
        let token = request.raw(&["params", "_meta", "progressToken"]);
        let start = Instant::now();
        let steps = if is_answered { 3 } else { 6 };
        for step in 0..steps {
            std::thread::sleep(Duration::from_millis(600));
            life.send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step}}}}}"#
            ));
        }
        if is_answered {
            life.reply(&request, r#""result":{}"#);
            assert_eq!(gateway.answer(id).raw(&["result"]), "{}");
        } else {
            gateway.answer(id).raw(&["error", "code"]);
            assert!(start.elapsed() < Duration::from_secs(4), "the maximum is the maximum");
            assert_eq!(life.take("notifications/cancelled").raw(&["params", "requestId"]), request.id());
        }
    }
}

/// Calls to `alpha` that are together more than any buffer holds.
fn bulky_calls() -> Vec<String> {
    let bulk = "x".repeat(400_000);
    (1..=8)
        .map(|id| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"alpha__x","arguments":{{"b":"{bulk}"}}}}}}"#
            )
        })
        .collect()
}

fn a_server_that_reads_nothing_is_given_up_like_one_that_says_nothing() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &["--timeout-secs", "1"]);
    gateway.begin(VERSION);
    alpha.life().order_and_wait("d");
    gateway.send_aside(bulky_calls());
    for id in 1..=8 {
        gateway.answer(&id.to_string()).raw(&["error", "code"]);
    }
}

/// One server reads nothing any more, and has more to read than any buffer holds; then `lines` are sent.
fn others_go_on(lines: &[&str]) {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    beta.answers("tools/call", r#""result":{}"#);
    let mut gateway = stage.gateway(&[&alpha, &beta], &["--timeout-secs", "1"]);
    gateway.begin(VERSION);
    alpha.life().order_and_wait("d");
    let mut bulk = bulky_calls();
    let call = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"beta__x","arguments":{{}}}}}}"#)
    };
    bulk.push(call("101"));
    bulk.extend(lines.iter().map(|line| (*line).to_owned()));
    bulk.push(call("102"));
    bulk.push(r#"{"jsonrpc":"2.0","id":103,"method":"ping"}"#.to_owned());
    gateway.send_aside(bulk);
    for id in ["101", "102", "103"] {
        gateway.answer(id).raw(&["result"]);
    }
}

fn a_server_that_reads_nothing_does_not_stop_the_others() {
    others_go_on(&[r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#]);
}

fn a_notification_that_cannot_be_passed_on_stops_nothing() {
    others_go_on(&[r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#]);
}

fn a_list_that_is_never_answered_delays_nobody_for_long() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    alpha.answers(
        "initialize",
        r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}"#,
    );
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    gateway.ask("1", "tools/list", "{}");
    // It does not tell of changes, so it is asked each time; now it has stopped to answer.
    alpha.leaves("tools/list");
    let start = Instant::now();
    assert!(gateway.ask("2", "tools/list", "{}").0.contains("alpha__x"), "what was known is still told");
    assert!(start.elapsed() < Duration::from_secs(3), "it took {:?}", start.elapsed());
}
