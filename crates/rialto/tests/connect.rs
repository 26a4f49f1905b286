//! `rialto connect --write` on files as people have them: nothing is lost, and what is wrong is left alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use support::{World, own_path};

/// A host, its file, a file with comments and an entry of somebody else, and the same with ours.
struct Case {
    host: &'static str,
    file: &'static str,
    before: &'static str,
    after: &'static str,
}

const CASES: [Case; 5] = [
    Case {
        host: "claude-desktop",
        file: "~/.config/Claude/claude_desktop_config.json",
        before: "{\n    \"globalShortcut\": \"\",\n    \"mcpServers\": {\n        \"files\": {\"command\": \"npx\", \"args\": []}\n    }\n}\n",
        after: "{\n    \"globalShortcut\": \"\",\n    \"mcpServers\": {\n        \"files\": {\"command\": \"npx\", \"args\": []},\n        \"weather\": {\n            \"command\": \"[RIALTO]\",\n            \"args\": [\"use\", \"weather\"]\n        }\n    }\n}\n",
    },
    Case {
        host: "claude-code",
        file: ".mcp.json",
        before: "{\"mcpServers\":{\"files\":{\"command\":\"npx\"}}}",
        after: "{\"mcpServers\":{\"files\":{\"command\":\"npx\"}, \"weather\": {\"command\": \"[RIALTO]\", \"args\": [\"use\", \"weather\"]}}}",
    },
    Case {
        host: "cursor",
        file: "~/.cursor/mcp.json",
        before: "{\n  // mine, all mine\n  \"mcpServers\": {\n    /* \"off\": {}, */\n    \"files\": { \"url\": \"https://a.example\" }, // remote\n  },\n}\n",
        after: "{\n  // mine, all mine\n  \"mcpServers\": {\n    /* \"off\": {}, */\n    \"files\": { \"url\": \"https://a.example\" }, // remote\n    \"weather\": {\n      \"command\": \"[RIALTO]\",\n      \"args\": [\"use\", \"weather\"]\n    },\n  },\n}\n",
    },
    Case {
        host: "vscode",
        file: ".vscode/mcp.json",
        before: "{\r\n\t\"inputs\": [],\r\n\t\"servers\": {} // none yet\r\n}\r\n",
        after: "{\r\n\t\"inputs\": [],\r\n\t\"servers\": {\r\n\t\t\"weather\": {\r\n\t\t\t\"type\": \"stdio\",\r\n\t\t\t\"command\": \"[RIALTO]\",\r\n\t\t\t\"args\": [\"use\", \"weather\"]\r\n\t\t}\r\n\t} // none yet\r\n}\r\n",
    },
    Case {
        host: "codex",
        file: "~/.codex/config.toml",
        before: "model = \"x\" # the best\n\n[mcp_servers.files]\ncommand = 'npx' # keep\n\n[mcp_servers.files.env]\nA = \"b\"",
        after: "model = \"x\" # the best\n\n[mcp_servers.files]\ncommand = 'npx' # keep\n\n[mcp_servers.files.env]\nA = \"b\"\n\n[mcp_servers.weather]\ncommand = \"[RIALTO]\"\nargs = [\"use\", \"weather\"]\n",
    },
];

fn path(world: &World, file: &str) -> PathBuf {
    match file.strip_prefix("~/") {
        Some(file) => world.home().join(file),
        None => world.project().join(file),
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap().replace(&own_path(), "[RIALTO]")
}

/// The names in the folder of a file, with digits of dates replaced.
fn beside(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names.iter().map(|name| name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()).collect()
}

#[test]
fn a_file_keeps_everything_and_a_copy() {
    for Case { host, file, before, after } in CASES {
        let world = World::new();
        world.file(file, before);
        let path = path(&world, file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let run = world.run(&["connect", host, "weather", "--write"]);
        assert_eq!((run.exit, run.stdout.as_str()), (0, ""), "{host}: {}", run.stderr);
        assert!(run.stderr.contains("\nnext: "), "{host}: {}", run.stderr);
        assert_eq!(read(&path), after, "{host}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "{host}");

        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(beside(&path), [name.to_owned(), format!("{name}.bak-00000000-000000")], "{host}");
        let backup = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        let backup = backup.into_iter().find(|backup| *backup != path).unwrap();
        assert_eq!(read(&backup), before, "{host}");
        assert!(run.stderr.contains(backup.file_name().unwrap().to_str().unwrap()), "{host}: {}", run.stderr);

        let again = world.run(&["connect", host, "weather", "--write"]);
        assert!(again.stderr.contains("is already in"), "{host}: {}", again.stderr);
        assert_eq!((again.exit, read(&path).as_str(), beside(&path).len()), (0, after, 2), "{host}");
    }
}

#[test]
fn a_new_file_is_made_with_its_folder() {
    for Case { host, file, .. } in CASES {
        for empty in [None, Some(" \n")] {
            let world = World::new();
            if let Some(empty) = empty {
                world.file(file, empty);
            }
            let run = world.run(&["--json", "connect", host, "weather", "--write"]);
            assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{host}");
            assert!(run.stdout.contains("\"written\":true"), "{host}: {}", run.stdout);
            assert_eq!(run.stdout.contains("\"backup\":null"), empty.is_none(), "{host}: {}", run.stdout);
            let text = read(&path(&world, file));
            assert!(text.contains("[RIALTO]") && text.ends_with('\n'), "{host}: {text}");
            let again = world.run(&["connect", host, "weather", "--write"]);
            assert!(again.stderr.contains("nothing to do"), "{host}: {}", again.stderr);
        }
    }
}

#[test]
fn another_entry_of_that_name_needs_force() {
    for Case { host, file, after, .. } in CASES {
        let world = World::new();
        let other = after.replace("[RIALTO]", "/old/rialto").replace("[\"use\", \"weather\"]", "[]");
        world.file(file, &other);
        let path = path(&world, file);
        let run = world.run(&["connect", host, "weather", "--write"]);
        assert_eq!(run.exit, 2, "{host}");
        assert!(run.stderr.contains("says something else") && run.stderr.contains("--force"), "{host}: {}", run.stderr);
        assert_eq!((read(&path), beside(&path).len()), (other, 1), "{host}");

        let run = world.run(&["connect", host, "weather", "--write", "--force"]);
        assert_eq!(run.exit, 0, "{host}: {}", run.stderr);
        assert_eq!(read(&path), after, "{host}");
    }
}

#[test]
fn what_else_an_entry_says_is_kept_where_it_can_be() {
    let world = World::new();
    let own = own_path();
    let text = format!(
        "{{\"mcpServers\": {{\"weather\": {{\"env\": {{}}, \"command\": \"{own}\", \"args\": [\"use\", \"weather\"]}}}}}}"
    );
    world.file("~/.cursor/mcp.json", &text);
    assert!(world.run(&["connect", "cursor", "weather", "--write"]).stderr.contains("already in"));

    world.file("~/.codex/config.toml", "[mcp_servers]\nweather = { command = \"old\", env = { A = \"b\" } } # mine\n");
    let run = world.run(&["connect", "codex", "weather", "--write", "--force"]);
    assert_eq!(run.exit, 0, "{}", run.stderr);
    assert_eq!(
        read(&world.home().join(".codex/config.toml")),
        "[mcp_servers]\nweather = { command = \"[RIALTO]\", args = [\"use\", \"weather\"], env = { A = \"b\" } } # mine\n"
    );
}

#[test]
fn a_file_that_cannot_be_understood_or_written_is_not_touched() {
    for Case { host, file, before, .. } in CASES {
        let is_toml = file.ends_with(".toml");
        let broken: &[&[u8]] =
            if is_toml { &[b"[a\n", b"a = 1\na = 2\n"] } else { &[b"{\"a\": ", b"{\"a\":1,\"a\":2}"] };
        for text in broken.iter().copied().chain([&b"\"caf\xe9\""[..]]) {
            let world = World::new();
            world.file(file, text);
            let path = path(&world, file);
            let run = world.run(&["connect", host, "weather", "--write", "--force"]);
            assert_eq!(run.exit, 2, "{host}: {}", run.stderr);
            assert_eq!((fs::read(&path).unwrap().as_slice(), beside(&path).len()), (text, 1), "{host}");
        }

        let world = World::new();
        world.file(file, before);
        let path = path(&world, file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
        let run = world.run(&["connect", host, "weather", "--write"]);
        assert_eq!(run.exit, 2, "{host}: {}", run.stderr);
        assert!(run.stderr.contains("is read-only") && run.stderr.contains("chmod u+w"), "{host}: {}", run.stderr);
        assert_eq!((read(&path).as_str(), beside(&path).len()), (before, 1), "{host}");
    }
}

#[test]
fn links_are_followed_and_stay_links() {
    for Case { host, file, before, after } in CASES {
        for exists in [true, false] {
            let world = World::new();
            let path = path(&world, file);
            let real = world.home().join("dotfiles/real");
            fs::create_dir_all(real.parent().unwrap()).unwrap();
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if exists {
                fs::write(&real, before).unwrap();
            }
            symlink(&real, &path).unwrap();
            let run = world.run(&["connect", host, "weather", "--write"]);
            assert_eq!(run.exit, 0, "{host}: {}", run.stderr);
            assert!(fs::symlink_metadata(&path).unwrap().is_symlink(), "{host}");
            if exists {
                assert_eq!(read(&real), after, "{host}");
                assert_eq!(beside(&real), ["real", "real.bak-00000000-000000"], "{host}");
            } else {
                assert!(read(&real).contains("[RIALTO]"), "{host}");
            }
        }
    }
}

#[test]
fn a_rehearsal_shows_the_entry_and_changes_nothing() {
    for Case { host, file, before, .. } in CASES {
        let world = World::new();
        world.file(file, before);
        let path = path(&world, file);
        let run = world.run(&["connect", host, "weather", "--write", "--dry-run"]);
        assert_eq!(run.exit, 0, "{host}: {}", run.stderr);
        assert!(run.stdout.contains("[RIALTO]") && run.stderr.starts_with("would write `weather`"), "{host}: {run:?}");
        assert_eq!((read(&path).as_str(), beside(&path).len()), (before, 1), "{host}");
    }
}
