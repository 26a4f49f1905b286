//! Who is let in: programs of this machine that know the token, and no web page that found the port.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use torture::stage::Stage;
use torture::stage::door::{Door, TOKEN, initialize, request, stateless};
use torture::stage::runner::{Case, case};
use torture::stage::wire::{Answer, Ask};

pub(crate) const CASES: &[Case] = &[
    case!(only_names_of_this_machine_are_answered),
    case!(pages_from_elsewhere_are_refused),
    case!(only_the_whole_token_opens),
    case!(refusals_come_before_everything_else),
    case!(strangers_learn_nothing_from_health_and_metrics),
    case!(no_page_is_told_that_it_may),
    case!(the_token_is_nowhere_to_be_read),
    case!(names_and_pages_can_be_allowed),
    case!(what_would_be_open_to_all_is_not_started),
];

/// Something that is answered if it is let in.
fn harmless() -> Ask {
    stateless("1", "tools/list", "")
}

fn only_names_of_this_machine_are_answered() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let port = door.address.port();
    for host in ["localhost", &format!("LocalHost:{port}"), &format!("127.0.0.1:{port}"), "[::1]:80", "127.0.0.2"] {
        assert_eq!(door.ask(&harmless().with("Host", host)).status(), 200, "{host}");
    }
    let names = [
        "",
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:127.0.0.1",
        "evil@127.0.0.1",
        "127.0.0.1@evil.example",
        "[::1]evil.example",
        "[::1].evil.example:80",
        "[::1",
        "0.0.0.0",
        "2130706433",
        "127.0.0.1, evil.example",
        "localhost.",
    ];
    for host in names {
        let answer = door.ask(&harmless().with("Host", host));
        assert!([400, 403].contains(&answer.status()), "{host:?}: {}", answer.status());
    }
    // The name stands in two places, and once more in the address: all must be ours.
    let twice = door.ask(&door.signed(&harmless()).also("Host", "evil.example"));
    assert_eq!(twice.status(), 400);
    for (line, status) in [
        ("POST http://evil.example/mcp HTTP/1.1", 403),
        ("POST http://localhost@evil.example/mcp HTTP/1.1", 403),
        (&format!("POST http://127.0.0.1:{port}/mcp HTTP/1.1"), 200),
    ] {
        let mut ask = harmless();
        line.clone_into(&mut ask.line);
        assert_eq!(door.ask(&ask).status(), status, "{line}");
    }
    let mut nameless = door.signed(&harmless()).without("Host");
    nameless.line = nameless.line.replace("1.1", "1.0");
    let wire = door.connect();
    wire.send(&nameless.bytes());
    assert_eq!(wire.answer().status(), 403);
}

fn pages_from_elsewhere_are_refused() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080"] {
        assert_eq!(door.ask(&harmless().with("Origin", origin)).status(), 200, "{origin}");
    }
    let elsewhere = [
        "null",
        "",
        "http://evil.example",
        "https://localhost.evil.example",
        "http://localhost@evil.example",
        "http://[::1]evil.example",
        "file://localhost",
        "chrome-extension://abcdef",
        "localhost",
        "http://localhost, http://evil.example",
    ];
    for origin in elsewhere {
        let answer = door.ask(&harmless().with("Origin", origin));
        assert_eq!((answer.status(), answer.message().find(&["error"]).is_some()), (403, true), "{origin:?}");
    }
    let twice = harmless().also("Origin", "http://localhost").also("Origin", "http://evil.example");
    assert_eq!(door.ask(&twice).status(), 403);
    // Nor does anything else answer them.
    for ask in [Ask::get("/sse"), Ask::get("/healthz"), Ask::get("/metrics"), Ask::bare("OPTIONS", "/mcp")] {
        assert_eq!(door.ask(&ask.with("Origin", "http://evil.example")).status(), 403);
    }
}

fn only_the_whole_token_opens() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(door.ask(&harmless().with("Authorization", &format!("{scheme} {TOKEN}"))).status(), 200);
    }
    let flipped = TOKEN.to_ascii_uppercase();
    let wrong = [
        String::new(),
        "Bearer".into(),
        "Bearer ".into(),
        format!("Bearer {}", &TOKEN[..TOKEN.len() - 1]),
        format!("Bearer {}", &TOKEN[1..]),
        format!("Bearer {TOKEN}x"),
        format!("Bearer {TOKEN},{TOKEN}"),
        format!("Bearer {flipped}"),
        format!("Basic {TOKEN}"),
        TOKEN.to_owned(),
        format!("Bearer{TOKEN}"),
        format!("Bearer \"{TOKEN}\""),
    ];
    for value in wrong {
        let answer = door.ask(&harmless().with("Authorization", &value));
        assert_eq!(answer.status(), 401, "{value:?}");
        assert!(answer.head.header("www-authenticate").unwrap().starts_with("Bearer"));
        assert!(answer.message().find(&["error"]).is_some());
        assert!(!answer.text().contains(TOKEN));
    }
    // A token in the address would end up in logs, so it does not count there.
    let unsigned = |ask: &Ask| {
        let wire = door.connect();
        wire.send(&door.signed(ask).without("Authorization").bytes());
        wire.answer()
    };
    let mut ask = harmless();
    ask.line = format!("POST /mcp?token={TOKEN}&access_token={TOKEN} HTTP/1.1");
    assert_eq!(unsigned(&ask).status(), 401);
    for ask in [
        Ask::get("/sse"),
        Ask::get("/mcp"),
        Ask::get("/metrics"),
        Ask::get("/nothing"),
        Ask::bare("DELETE", "/mcp"),
        Ask::bare("OPTIONS", "/mcp"),
        Ask::post(initialize("2025-06-18", "{}")),
    ] {
        assert_eq!(unsigned(&ask).status(), 401, "{}", ask.line);
    }
    // A session does not stand in for it.
    let session = door.session("2025-06-18");
    assert_eq!(unsigned(&session.post(request("1", "ping", "{}"))).status(), 401);
    let oldest = door.oldest("/sse");
    assert_eq!(unsigned(&Ask::post_to(&oldest.target, request("1", "ping", "{}"))).status(), 401);
}

fn refusals_come_before_everything_else() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    // Without the right name not even the token is looked at; without the token not even the body.
    let nobody = harmless().with("Host", "evil.example").with("Authorization", "Bearer wrong");
    assert_eq!(door.ask(&nobody).status(), 403);
    let ask = harmless().with("Authorization", "Bearer wrong").with("Content-Length", "1000000000");
    let wire = door.connect();
    wire.send(door.signed(&ask).head().as_bytes());
    assert_eq!(wire.answer().status(), 401);
    for broken in ["{", "", "[1]"] {
        let ask = Ask::post(broken).with("Authorization", "Bearer wrong").with("Content-Type", "text/plain");
        assert_eq!(door.ask(&ask).status(), 401);
    }
}

fn strangers_learn_nothing_from_health_and_metrics() {
    let stage = Stage::new();
    let server = stage.server("very-private");
    server.answers("ping", r#""result":{}"#);
    let door = Door::open(&stage, &[&server], &[]);
    let unsigned = |target: &str| {
        let wire = door.connect();
        wire.send(&door.signed(&Ask::get(target)).without("Authorization").bytes());
        wire.answer()
    };
    let health = unsigned("/healthz");
    assert_eq!(health.status(), 200);
    assert!(!health.text().contains("very-private"), "{}", health.text());
    assert_eq!(health.message().raw(&["status"]), "\"ok\"");
    assert!(door.ask(&Ask::get("/healthz")).text().contains("very-private"));
    let metrics = unsigned("/metrics");
    assert_eq!(metrics.status(), 401);
    assert!(!metrics.text().contains("very-private"));
    let metrics = door.ask(&Ask::get("/metrics")).text();
    assert!(metrics.contains("rialto_server_up{server=\"very-private\"} 1"), "{metrics}");
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        value.parse::<f64>().unwrap();
    }
    for (target, allowed) in [("/healthz", "GET, HEAD"), ("/metrics", "GET")] {
        let refused = door.ask(&Ask::post_to(target, "{}"));
        assert_eq!((refused.status(), refused.head.header("allow")), (405, Some(allowed)));
    }
}

fn no_page_is_told_that_it_may() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let door = Door::single(&stage, &server);
    let preflight = |target: &str| {
        Ask::bare("OPTIONS", target)
            .with("Origin", "http://localhost:3000")
            .with("Access-Control-Request-Method", "POST")
            .with("Access-Control-Request-Headers", "authorization")
    };
    let is_silent = |answer: &Answer| !answer.head.names().any(|name| name.starts_with("access-control"));
    for target in ["/mcp", "/sse", "/healthz", "/metrics", "*"] {
        let answer = door.ask(&preflight(target));
        assert!(answer.status() >= 400, "{target}: {}", answer.status());
        assert!(is_silent(&answer), "{:?}", answer.head);
    }
    assert!(is_silent(&door.ask(&harmless().with("Origin", "http://localhost:3000"))));
}

fn the_token_is_nowhere_to_be_read() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    server.answers("ping", r#""result":{}"#);
    let door = Door::open(&stage, &[&server], &["-vv"]);
    let session = door.session("2025-06-18");
    session.ask("1", "tools/list", "{}");
    assert_eq!(door.ask(&harmless().with("Authorization", &format!("Bearer {TOKEN}x"))).status(), 401);
    assert_eq!(door.ask(&Ask::post("{").with("Authorization", &format!("Bearer {TOKEN}"))).status(), 400);
    for ask in [Ask::get("/metrics"), Ask::get("/healthz"), Ask::get("/nothing")] {
        assert!(!door.ask(&ask).text().contains(TOKEN));
    }
    assert!(!stage.transcript.find("gateway 2>").is_empty());
    assert_eq!(stage.transcript.find(TOKEN), Vec::<String>::new());
    let life = server.life();
    assert!(!life.environment.iter().any(|variable| variable.contains(TOKEN)));
    // Everybody can read how a program was started.
    let command = fs::read(format!("/proc/{}/cmdline", door.gateway.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&command).contains(TOKEN));
}

fn names_and_pages_can_be_allowed() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let flags = ["--allow-host", "box.lan", "--allow-origin", "https://app.example"];
    let door = Door::open(&stage, &[&server], &flags);
    let ask = harmless().with("Host", "box.lan:80").with("Origin", "https://app.example");
    assert_eq!(door.ask(&ask).status(), 200);
    for (header, value) in [
        ("Host", "box.lan.evil.example"),
        ("Host", "notbox.lan"),
        ("Origin", "http://app.example"),
        ("Origin", "https://app.example.evil.example"),
        ("Origin", "https://app.example:8443"),
    ] {
        assert_eq!(door.ask(&ask.clone().with(header, value)).status(), 403, "{value}");
    }
}

/// Runs the program until it ends; gives its exit code and what it said.
fn run(stage: &Stage, arguments: &[&str]) -> (i32, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_rialto"))
        .args(arguments)
        .env_clear()
        .env("HOME", stage.path())
        .current_dir(stage.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (process.wait().unwrap().code().unwrap_or(-1), said)
}

fn what_would_be_open_to_all_is_not_started() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    stage.configure(&[&server]);
    for address in ["0.0.0.0:0", "[::]:0"] {
        let (code, said) = run(&stage, &["gateway", "--http", address, "--no-token"]);
        assert_ne!(code, 0);
        assert!(said.contains("--no-token"), "{said}");
    }
    let token = stage.path().join("secret");
    let path = token.to_str().unwrap();
    let started = |stage: &Stage| run(stage, &["gateway", "--http", "127.0.0.1:0", "--token-file", path]);
    for (content, mode, word) in [
        ("open-sesame-0123456789", 0o644, "chmod 600"),
        ("open-sesame-0123456789", 0o640, "chmod 600"),
        ("open-sesame-0123456789", 0o604, "chmod 600"),
        ("", 0o600, "holds no token"),
        ("short", 0o600, "holds no token"),
        ("has a space in its middle", 0o600, "holds no token"),
    ] {
        fs::write(&token, content).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(mode)).unwrap();
        let (code, said) = started(&stage);
        assert_ne!(code, 0, "{content:?} {mode:o}");
        assert!(said.contains(word), "{said}");
        assert!(content.is_empty() || !said.contains(content), "{said}");
    }
    assert!(server.lives_within(std::time::Duration::ZERO).is_none(), "a server was started all the same");
}
