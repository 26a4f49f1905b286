//! Servers that say too much: floods, endless lines, rubbish.

use std::io::{BufRead, BufReader};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use torture::machine::peak_memory;
use torture::stage::Stage;
use torture::stage::gateway::Gateway;
use torture::stage::line::PATIENCE;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_flood_to_a_slow_client_is_held_back_and_nothing_is_lost),
    case!(an_answer_that_is_too_long_fails_its_call_only),
    case!(an_answer_that_is_too_long_and_ends_with_its_id_fails_its_call_only),
    case!(a_long_answer_passes),
    case!(rubbish_by_the_thousand_does_no_harm),
];

const VERSION: &str = "2025-06-18";

/// More would mean that what a client does not read is kept for it.
const MOST_MEMORY: u64 = 100 * 1024;

/// The most memory that the gateway ever had, in KiB.
fn memory(gateway: &Gateway) -> u64 {
    peak_memory(gateway.pid())
}

fn a_flood_to_a_slow_client_is_held_back_and_nothing_is_lost() {
    const COUNT: usize = 20_000;
    const SIZE: usize = 10_000;
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    beta.answers("tools/call", r#""result":{"among":"the flood"}"#);
    let (mut gateway, output) = stage.gateway_unread(&[&alpha, &beta], &[]);
    // One line at a time, and only when it is asked for.
    let (give, lines) = sync_channel(0);
    std::thread::spawn(move || {
        let mut read = BufReader::new(output).lines().map_while(Result::ok);
        while read.next().is_some_and(|line| give.send(line).is_ok()) {}
    });
    gateway.send(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    assert!(lines.recv_timeout(PATIENCE).unwrap().contains(r#""id":0"#));
    gateway.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let life = alpha.life();
    life.order(&format!("f{COUNT} {SIZE}"));
    // The client looks away for a while.
    std::thread::sleep(Duration::from_secs(2));
    assert!(memory(&gateway) < MOST_MEMORY, "{} KiB while the client looked away", memory(&gateway));
    gateway.call("1", "beta__x");
    let (mut next, mut answers) = (0, 0);
    while next < COUNT || answers == 0 {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nothing came after {next} of {COUNT}"));
        if line.contains("among") {
            answers += 1;
            continue;
        }
        assert!(line.contains(&format!(r#""place":{next},"#)), "not number {next}: {:.150}", line);
        assert!(line.len() > SIZE);
        next += 1;
    }
    assert!(memory(&gateway) < MOST_MEMORY, "{} KiB in the end", memory(&gateway));
}

fn too_long(order: impl Fn(&str) -> String) {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let (mut life, mut other) = (alpha.life(), beta.life());
    for (id, tool) in [("1", "alpha__x"), ("2", "alpha__x"), ("3", "beta__x")] {
        gateway.call(id, tool);
    }
    let (long, short) = (life.take("tools/call"), life.take("tools/call"));
    life.order(&order(&long.id()));
    life.reply(&short, r#""result":{"n":2}"#);
    assert_eq!(gateway.answer("2").raw(&["result", "n"]), "2");
    let request = other.take("tools/call");
    other.reply(&request, r#""result":{"n":3}"#);
    assert_eq!(gateway.answer("3").raw(&["result", "n"]), "3");
    let answer = gateway.answer("1");
    assert_eq!(answer.raw(&["error", "code"]), "-32003");
    assert!(answer.raw(&["error", "message"]).contains("longer than"), "{}", answer.0);
    assert!(memory(&gateway) < MOST_MEMORY, "{} KiB", memory(&gateway));
    gateway.call("4", "alpha__x");
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{"n":4}"#);
    assert_eq!(gateway.answer("4").raw(&["result", "n"]), "4");
}

fn an_answer_that_is_too_long_fails_its_call_only() {
    too_long(|id| format!(r#"b20971520 {{"jsonrpc":"2.0","id":{id},"result":{{"content":"|"}}}}"#));
}

/// The order in which the most used SDK writes its answers.
fn an_answer_that_is_too_long_and_ends_with_its_id_fails_its_call_only() {
    too_long(|id| format!(r#"b20971520 {{"result":{{"content":"|"}},"jsonrpc":"2.0","id":{id}}}"#));
}

fn rubbish_by_the_thousand_does_no_harm() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    let mut life = alpha.life();
    life.take("notifications/initialized");
    gateway.call("1", "alpha__x");
    let request = life.take("tools/call");
    for rubbish in [
        "[debug] not a message at all \u{1b}[31m",
        r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        r#"{"jsonrpc":"1.0","result":1}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}"#,
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    ] {
        life.order(&format!("*1000 {rubbish}"));
    }
    life.order("u");
    life.reply(&request, r#""result":{"still":"here"}"#);
    assert_eq!(gateway.answer("1").raw(&["result", "still"]), "\"here\"");
    let answered = life.unclaimed();
    assert_eq!(answered, [], "rubbish is not answered");
}

fn a_long_answer_passes() {
    const SIZE: usize = 12 * 1024 * 1024;
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    gateway.call("1", "x");
    let id = life.take("tools/call").id();
    life.order(&format!(r#"b{SIZE} {{"jsonrpc":"2.0","id":{id},"result":{{"content":"|"}}}}"#));
    let answer = gateway.answer("1").0;
    assert_eq!(answer.len(), r#"{"jsonrpc":"2.0","id":1,"result":{"content":""}}"#.len() + SIZE);
    assert!(memory(&gateway) < MOST_MEMORY, "{} KiB", memory(&gateway));
}
