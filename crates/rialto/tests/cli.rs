//! The command line as a user meets it: exit code, stdout and stderr of the real binary.
//!
//! Most of it is data: every file in `tests/cases` describes a small world, commands run in it, and exactly what they
//! give. `BLESS=1 cargo test -p rialto --test cli` writes what they give now; read the difference before committing it.
//!
//! ```text
//! # What the case is about.
//! == file rialto.toml        a file of the project, or of the home directory with ~/
//! …
//! == env NAME=value          [HOME] stands for the home directory
//! == in sub/directory        where the following commands run
//! == run config check        a command, followed by what it gives
//! == exit 0
//! == stdout
//! == stderr
//! ```

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::fs;
use std::path::Path;

use support::{Run, World, repository};

/// Every command that a user sees, with its parents.
const COMMANDS: [&str; 64] = [
    "auth",
    "auth login",
    "auth logout",
    "auth list",
    "gateway",
    "mcp",
    "mcp example",
    "mcp context",
    "context",
    "context build",
    "context resolve",
    "context inspect",
    "context verify",
    "context list",
    "mcp nostr",
    "nostr",
    "nostr keys",
    "nostr keys list",
    "nostr keys add",
    "nostr keys import",
    "nostr keys connect",
    "nostr keys use",
    "nostr keys rename",
    "nostr keys remove",
    "nostr keys show",
    "nostr log",
    "nostr registry",
    "nostr registry list",
    "nostr registry check",
    "serve",
    "find",
    "show",
    "call",
    "use",
    "wallet",
    "wallet connect",
    "wallet show",
    "wallet fund",
    "wallet refund",
    "wallet disconnect",
    "wallet history",
    "budget",
    "budget set",
    "budget show",
    "budget clear",
    "pins",
    "pins list",
    "pins review",
    "pins accept",
    "pins forget",
    "ledger",
    "ledger check",
    "ledger export",
    "relay",
    "connect",
    "doctor",
    "demo",
    "config",
    "config show",
    "config check",
    "config init",
    "paths",
    "completions",
    "man",
];

#[test]
fn cases() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let bless = std::env::var_os("BLESS").is_some();
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut differences = String::new();
    for path in &paths {
        let expected = fs::read_to_string(path).unwrap();
        let given = play(&expected);
        if given != expected && bless {
            fs::write(path, &given).unwrap();
        } else if given != expected {
            differences.push_str(&format!("\n{}\n{}", path.display(), difference(&expected, &given)));
        }
    }
    assert!(paths.len() > 30, "the cases have gone missing");
    assert!(differences.is_empty(), "BLESS=1 accepts what is given now:\n{differences}");
}

/// Carries out a case and returns it with the results that its commands give now.
fn play(case: &str) -> String {
    let mut world = World::new();
    let mut out = String::new();
    let mut sections = case.split_inclusive('\n').collect::<String>();
    sections.insert(0, '\n');
    for (index, section) in sections.split("\n== ").enumerate() {
        if index == 0 {
            let comment = section.trim_start_matches('\n');
            if !comment.is_empty() {
                out.push_str(&format!("{comment}\n"));
            }
            continue;
        }
        let (head, body) = section.split_once('\n').unwrap_or((section, ""));
        let (kind, rest) = head.split_once(' ').unwrap_or((head, ""));
        match kind {
            "file" => {
                let body = if body.is_empty() || body.ends_with('\n') { body.to_owned() } else { format!("{body}\n") };
                world.file(rest, &body);
                out.push_str(&format!("== file {rest}\n{body}"));
            }
            "env" => {
                let (name, value) = rest.split_once('=').unwrap();
                world.variable(name, value);
                out.push_str(&format!("== env {rest}\n"));
            }
            "in" => {
                world.below(rest);
                out.push_str(&format!("== in {rest}\n"));
            }
            "run" => {
                let Run { exit, stdout, stderr } = world.run(&rest.split_whitespace().collect::<Vec<_>>());
                out.push_str(&format!("== run {rest}\n== exit {exit}\n== stdout\n{stdout}== stderr\n{stderr}"));
            }
            // Results: replaced by what the command gives now.
            "exit" | "stdout" | "stderr" => {}
            other => panic!("unknown section `{other}`"),
        }
    }
    out
}

fn difference(expected: &str, given: &str) -> String {
    let mark = |text: &str, other: &str, sign: char| -> String {
        let lines = text.lines().filter(|line| !other.lines().any(|known| known == *line));
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    let marked = mark(expected, given, '-') + &mark(given, expected, '+');
    if marked.is_empty() { format!("lines have moved; given now:\n{given}") } else { marked }
}

#[test]
fn help_of_every_command_has_examples() {
    let world = World::new();
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let mut words: Vec<&str> = command.split(' ').collect();
            words.push(flag);
            let run = world.run(&words);
            assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{command}");
            assert!(run.stdout.contains("Examples:\n  rialto "), "{command} {flag}:\n{}", run.stdout);
        }
    }
    let help = world.run(&["--help"]).stdout;
    for part in ["Examples:", "Exit codes:", "Environment:", "RIALTO_PREFIX"] {
        assert!(help.contains(part), "{part}");
    }
    assert!(!help.contains("__guard"), "hidden command is shown");
}

#[test]
fn the_list_of_commands_is_complete() {
    let help = World::new().run(&["--help"]).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for line in listed {
        let name = line.split_whitespace().next().unwrap();
        assert!(name == "help" || COMMANDS.contains(&name), "`{name}` is missing in COMMANDS");
    }
}

#[test]
fn completions_exist_for_every_shell() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = world.run(&["completions", shell]);
        assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{shell}");
        assert!(run.stdout.contains("gateway") && run.stdout.contains("prefix"), "{shell}");
        assert!(!run.stdout.contains("__guard"), "{shell} offers a hidden command");
    }
    assert_eq!(world.run(&["completions", "tcsh"]).exit, 2);
}

#[test]
fn manual_pages_exist_for_every_command() {
    let world = World::new();
    let run = world.run(&["man"]);
    assert!(run.stdout.contains(".TH rialto 1") && run.stdout.contains("Exit codes"), "{}", run.stdout);

    let run = world.run(&["man", "--dir", "pages/man1"]);
    assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    assert_eq!(run.stderr, format!("wrote {} pages to pages/man1\n", COMMANDS.len() + 1));
    for command in COMMANDS {
        let page = world.project().join(format!("pages/man1/rialto-{}.1", command.replace(' ', "-")));
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        assert!(text.contains("Examples:"), "{command}");
    }
}

#[test]
fn a_file_that_is_not_text_is_refused_with_its_line() {
    let world = World::new();
    world.file("rialto.toml", b"prefix = 'never'\n# caf\xe9\n");
    let run = world.run(&["config", "check"]);
    assert_eq!(run.exit, 2);
    assert!(run.stderr.contains("line 2 is not valid UTF-8"), "{}", run.stderr);
}

#[test]
fn secrets_never_reach_messages() {
    let world = World::new();
    let texts = [
        ("a.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"TOKEN\":\"hunter2-hunter2\" \"B\":1}}}}"),
        ("b.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"TOKEN\":\"hunter2-hunter2\n}}}}"),
        ("c.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"TOKEN\":hunter2-hunter2}}}}"),
        ("d.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":\"hunter2-hunter2\"}}}"),
        ("e.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{\"TOKEN\":\"hunter2-hunter2${UNSET}\"}}}}"),
        ("f.toml", "[servers.a]\ncommand = 'x'\nenv = { TOKEN = hunter2-hunter2 }\n"),
        ("g.toml", "[servers.a]\ncommand = 'x'\nenv = { TOKEN = 'hunter2-hunter2\n"),
        ("h.toml", "[servers.a]\ncommand = 'x'\nargs = '--token hunter2-hunter2'\n"),
    ];
    for (name, text) in texts {
        world.file(name, text);
        for flags in [&["config", "check"][..], &["--json", "-vv", "config", "check"][..]] {
            let run = world.run(&[flags, &[name]].concat());
            assert_eq!(run.exit, 2, "{name}: {}", run.stdout);
            assert!(!run.stderr.contains("hunter2"), "{name}:\n{}", run.stderr);
            assert!(run.stderr.contains(name), "{name}:\n{}", run.stderr);
        }
    }
}

#[test]
fn every_example_gives_a_plan_without_a_word_of_complaint() {
    let directory = repository().join("examples");
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        // Configurations are files; folders hold examples of other things.
        if path.is_dir() {
            continue;
        }
        let run = World::new().run(&["--json", "config", "check", path.to_str().unwrap()]);
        assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{}", path.display());
        assert!(run.stdout.contains("\"warnings\":[]"), "{}", run.stdout);
        assert!(!run.stdout.contains("\"servers\":[]"), "{}", run.stdout);
        count += 1;
    }
    assert!(count >= 3);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_rialto"))
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
