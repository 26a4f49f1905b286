//! The rules of the house, as far as a program can check them.
//!
//! A rule that is not checked is forgotten; a rule that is checked in review costs the reviewer's time. Words that the
//! rules forbid are spelled in two halves here, so that this file does not break them itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{World, repository};

/// Folders with Rust code of ours.
const CODE: [&str; 4] = ["crates", "bench", "fuzz", "interop"];

/// A file that is longer usually holds two subjects.
const LONGEST_FILE: usize = 700;

/// Data tables that may be longer, by path from the top of the repository.
const LONG_TABLES: [&str; 0] = [];

/// Subcommands that a README may ask people to type after `cargo`.
const CARGO_COMMANDS: [&str; 14] = [
    "add",
    "bench",
    "binstall",
    "build",
    "check",
    "clippy",
    "doc",
    "fmt",
    "fuzz",
    "install",
    "metadata",
    "run",
    "test",
    "uninstall",
];

/// Fails with every line at once.
fn complain(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != "node_modules" {
            rust_files(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_file_opens_with_its_purpose_and_is_short() {
    let top = repository();
    let mut files = Vec::new();
    for folder in CODE {
        rust_files(&top.join(folder), &mut files);
    }
    assert!(files.len() > 10, "the code was not found");
    let mut complaints = Vec::new();
    for path in files {
        let name = path.strip_prefix(&top).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        if !text.starts_with("//! ") {
            complaints.push(format!("{name}: does not open with `//! ` and what it is for"));
        }
        let lines = text.lines().count();
        if lines > LONGEST_FILE && !LONG_TABLES.contains(&name.as_str()) {
            complaints.push(format!("{name}: {lines} lines, more than {LONGEST_FILE}"));
        }
    }
    complain(&complaints);
}

/// The text files that git keeps; `None` outside a checkout, such as in a published package.
fn tracked_files(top: &Path) -> Option<Vec<(String, String)>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(top).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let names = String::from_utf8(output.stdout).unwrap();
    let names = names.split('\0').filter(|name| !name.is_empty());
    // A file that is deleted but not yet committed, or is not text, cannot break these rules.
    Some(names.filter_map(|name| Some((name.to_owned(), fs::read_to_string(top.join(name)).ok()?))).collect())
}

#[test]
fn no_path_of_a_developers_machine() {
    let top = repository();
    let Some(files) = tracked_files(&top) else { return };
    let private = [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];
    let mut complaints = Vec::new();
    for (name, text) in files {
        for (number, line) in text.lines().enumerate() {
            let found = private.iter().find(|path| begins_a_path(line, path));
            if let Some(path) = found {
                complaints.push(format!("{name}:{}: holds `{path}`", number + 1));
            }
        }
    }
    complain(&complaints);
}

/// Whether an absolute path starts with `beginning`; `~/work/x` and `example.com/work/x` do not.
fn begins_a_path(line: &str, beginning: &str) -> bool {
    line.match_indices(beginning).any(|(position, _)| {
        let before = line[..position].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '~' | '.' | '-' | '_' | '}' | ']' | '/'))
    })
}

#[test]
fn open_points_say_what_is_open() {
    let top = repository();
    let Some(files) = tracked_files(&top) else { return };
    let words = [concat!("TO", "DO"), concat!("FIX", "ME")];
    let mut complaints = Vec::new();
    for (name, text) in files {
        for (number, line) in text.lines().enumerate() {
            let is_word = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            let found = words.iter().find_map(|word| line.split_once(word)).filter(|(_, rest)| is_word(rest));
            let Some((_, rest)) = found else { continue };
            let sentence = rest.trim_start_matches(':').trim();
            if sentence.split_whitespace().count() < 3 || !sentence.ends_with(['.', '!', '?']) {
                complaints.push(format!("{name}:{}: an open point needs a whole sentence", number + 1));
            }
        }
    }
    complain(&complaints);
}

#[test]
fn commands_in_the_readme_exist() {
    let top = repository();
    let Ok(readme) = fs::read_to_string(top.join("README.md")) else {
        // There is none yet. Once there is, everything below is checked.
        assert!(!top.join("README.md").exists(), "README.md cannot be read");
        return;
    };
    let world = World::new();
    let complaints: Vec<String> = shell_commands(&readme)
        .into_iter()
        .filter_map(|(line, command)| {
            let words: Vec<&str> = command.split_whitespace().collect();
            let problem = problem_of(&words, &top, &world)?;
            Some(format!("README.md:{line}: `{command}`: {problem}"))
        })
        .collect();
    complain(&complaints);
}

/// The commands in `sh` and `console` blocks with their line numbers. In a console block only `$` lines are commands.
fn shell_commands(markdown: &str) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut block: Option<&str> = None;
    let mut pending = String::new();
    for (index, line) in markdown.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_some() { None } else { Some(language.trim()) };
            continue;
        }
        let text = match block {
            Some("sh" | "bash" | "shell") => Some(line),
            Some("console") if pending.is_empty() => line.trim_start().strip_prefix("$ "),
            Some("console") => Some(line),
            _ => None,
        };
        let Some(text) = text else { continue };
        let text = text.split(" #").next().unwrap_or_default().trim();
        if let Some(continued) = text.strip_suffix('\\') {
            pending.push_str(continued);
            continue;
        }
        let whole = std::mem::take(&mut pending) + text;
        if whole.starts_with('#') {
            continue;
        }
        let parts = whole.split("&&").flat_map(|part| part.split([';', '|'])).map(|part| part.trim().to_owned());
        commands.extend(parts.filter(|part| !part.is_empty()).map(|part| (index + 1, part)));
    }
    commands
}

/// What is wrong with a command; `None` also for programs that are not ours.
fn problem_of(words: &[&str], top: &Path, world: &World) -> Option<String> {
    let is_assignment = |word: &&&str| word.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '-']));
    let words = &words[words.iter().take_while(is_assignment).count()..];
    let (program, rest) = words.split_first()?;
    match *program {
        "cargo" => {
            let command = rest.iter().find(|word| !word.starts_with(['+', '-']))?;
            (!CARGO_COMMANDS.contains(command)).then(|| "unknown cargo command".to_owned())
        }
        "rialto" => {
            let is_command = |word: &&&str| !word.starts_with('-') && !word.starts_with(['<', '[', '.', '"', '\'']);
            let mut path: Vec<&str> = rest.iter().take_while(is_command).take(2).copied().collect();
            let exists = |path: &[&str]| world.run(&[path, &["--help"]].concat()).exit == 0;
            let first_exists = exists(&path[..path.len().min(1)]);
            if !first_exists {
                return Some("unknown rialto command".to_owned());
            }
            // Only commands that have commands of their own are looked at one level deeper.
            let help = world.run(&[&path[..path.len().min(1)], &["--help"]].concat()).stdout;
            path.truncate(if help.contains("\nCommands:\n") { 2 } else { 1 });
            (!exists(&path)).then(|| "unknown rialto command".to_owned())
        }
        script if script.starts_with("./") => {
            let path = top.join(script);
            match fs::metadata(&path) {
                Err(_) if script.starts_with("./target/") => None,
                Err(_) => Some("does not exist".to_owned()),
                Ok(metadata) => (metadata.permissions().mode() & 0o111 == 0).then(|| "is not executable".to_owned()),
            }
        }
        _ => None,
    }
}

#[test]
fn readme_checks_find_what_is_wrong() {
    let markdown = "\
```sh
cargo build --release && cargo frobnicate
RUST_LOG=1 rialto config show --origin | head
rialto config nonsense
rialto nonsense
rialto completions bash
./no-such-script.sh
```
```console
$ rialto gateway --stdio \\
    --config a.json
rialto is not a command here
```
```text
rialto nonsense
```
";
    let world = World::new();
    let complaints: Vec<String> = shell_commands(markdown)
        .iter()
        .filter_map(|(line, command)| {
            let words: Vec<&str> = command.split_whitespace().collect();
            problem_of(&words, &repository(), &world).map(|problem| format!("{line}: {command}: {problem}"))
        })
        .collect();
    assert_eq!(
        complaints,
        [
            "2: cargo frobnicate: unknown cargo command",
            "4: rialto config nonsense: unknown rialto command",
            "5: rialto nonsense: unknown rialto command",
            "7: ./no-such-script.sh: does not exist",
        ]
    );
}
