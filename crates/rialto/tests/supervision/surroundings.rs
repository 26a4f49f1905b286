//! What a server gets to see of its surroundings, and where what it says to people goes.

use torture::stage::Stage;
use torture::stage::runner::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case!(a_server_sees_only_what_it_needs_and_what_is_configured),
    case!(lines_on_standard_error_are_tagged),
    case!(nothing_a_server_says_on_standard_error_reaches_the_client),
];

const VERSION: &str = "2025-06-18";

fn a_server_sees_only_what_it_needs_and_what_is_configured() {
    let stage = Stage::new();
    let (mut alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    alpha.settings = r#"env = { TOKEN = "for-alpha", COPIED = "${SECRET_CANARY}" }"#.to_owned();
    let _gateway = stage.gateway(&[&alpha, &beta], &[]);
    let (first, second) = (alpha.life().environment, beta.life().environment);
    let value = |environment: &[String], name: &str| {
        environment.iter().find_map(|variable| variable.strip_prefix(&format!("{name}="))).map(str::to_owned)
    };
    assert_eq!(value(&first, "TOKEN").as_deref(), Some("for-alpha"));
    assert_eq!(value(&first, "COPIED").as_deref(), Some("yellow-bird"));
    assert_eq!(value(&second, "TOKEN"), None, "what is meant for one server is not for the other");
    for environment in [&first, &second] {
        assert_eq!(value(environment, "SECRET_CANARY"), None);
        assert_eq!(value(environment, "PATH").as_deref(), Some("/usr/bin:/bin"));
        assert!(value(environment, "HOME").is_some());
    }
    assert!(!second.iter().any(|variable| variable.contains("yellow-bird")));
    let known = ["HOME", "PATH", "MCP_CHILD_GUARD_MARK", "MCP_GATEWAY_DEPTH"];
    let unknown: Vec<_> =
        second.iter().filter(|variable| !known.contains(&variable.split('=').next().unwrap())).collect();
    assert_eq!(unknown, Vec::<&String>::new());
}

fn lines_on_standard_error_are_tagged() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.server("alpha"), stage.server("beta"));
    let mut gateway = stage.gateway(&[&alpha, &beta], &[]);
    gateway.begin(VERSION);
    alpha.life().order("2hello from one");
    beta.life().order("2hello from \u{1b}[31mtwo");
    assert_eq!(gateway.error_line("from one"), "alpha| hello from one");
    let line = gateway.error_line("two");
    assert!(line.starts_with("beta| "), "{line}");
    assert!(!line.contains('\u{1b}'), "a server must not control the terminal: {line:?}");
}

fn nothing_a_server_says_on_standard_error_reaches_the_client() {
    let stage = Stage::new();
    let server = stage.server("alpha");
    let mut gateway = stage.single(&server, &[]);
    gateway.begin(VERSION);
    let mut life = server.life();
    for number in 0..200 {
        life.order(&format!(r#"2{{"jsonrpc":"2.0","method":"notifications/message","params":{{"n":{number}}}}}"#));
    }
    gateway.call("1", "x");
    let request = life.take("tools/call");
    life.reply(&request, r#""result":{}"#);
    gateway.answer("1");
    gateway.error_line(r#""n":199"#);
    assert_eq!(gateway.unclaimed(), []);
}
