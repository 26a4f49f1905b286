//! How the program begins and ends, as a parent process sees it.

use crate::support::{Program, names};
use rialto_relay::embedded::{Options, Relay};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rialto-lightning"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_writes_one_line_and_leaves_nothing_behind() {
    let relay = Relay::start(Options::default()).await.unwrap();
    let url = relay.url();
    let ended = tokio::task::spawn_blocking(move || {
        let (mut program, line) = Program::start(&["--relay", &url]);
        assert!(line.starts_with("{\"provider\":\"nostr+walletconnect://"), "{line}");
        assert_eq!(program.temporary().len(), 1);
        program.close_input();
        let ended = program.end();
        assert_eq!(program.temporary(), Vec::<String>::new());
        ended
    });
    let (status, rest) = ended.await.unwrap();
    assert!(status.success() && rest.is_empty(), "{status} {rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_when_told_to_and_keeps_what_it_should() {
    let relay = Relay::start(Options::default()).await.unwrap();
    let url = relay.url();
    let temporary = tempfile::tempdir().unwrap();
    let data = temporary.path().join("data");
    let directory = data.to_string_lossy().into_owned();
    let ended = tokio::task::spawn_blocking(move || {
        let (mut program, line) = Program::start(&["--relay", &url, "--data", &directory]);
        let told = Command::new("kill").args(["-TERM", &program.id().to_string()]).status().unwrap();
        assert!(told.success());
        (program.end(), line)
    });
    let ((status, rest), line) = ended.await.unwrap();
    assert!(status.success() && rest.is_empty(), "{status} {rest}");
    let mut kept = names(&data);
    kept.sort();
    assert_eq!(kept, ["customer", "provider"]);
    // Secrets are in that one line and nowhere else.
    let secrets: Vec<&str> = line.split("secret=").skip(1).map(|rest| &rest[..64]).collect();
    assert_eq!(secrets.len(), 2);
    for name in kept {
        let log = std::fs::read_to_string(data.join(name).join("ldk_node.log")).unwrap();
        assert!(secrets.iter().all(|secret| !log.contains(secret)));
    }
    // Old files are not used again.
    let again = program().args(["--relay", "ws://127.0.0.1:9", "--data"]).arg(&data).output().unwrap();
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("is not empty"));
}

#[test]
fn it_can_be_interrupted_while_it_starts() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["--relay", "ws://127.0.0.1:9"]).env("TMPDIR", temporary.path());
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut words = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    words.read_line(&mut line).unwrap();
    assert!(line.starts_with("starting"), "{line}");
    let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    let mut rest = String::new();
    words.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!((rest.as_str(), names(temporary.path())), ("interrupted\n", vec![]));
}

#[test]
fn a_relay_that_is_not_there_is_named() {
    let mut command = program();
    command.args(["--relay", "ws://127.0.0.1:9"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(input);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.stdout.is_empty() && output.status.code() == Some(1));
    assert!(words.contains("error: the relay ws://127.0.0.1:9") && words.contains("hint: "), "{words}");
}

#[test]
fn its_help_says_how_to_use_it() {
    let output = program().arg("--help").output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    for word in ["--relay", "--data", "nostr+walletconnect://", "standard input", "Example"] {
        assert!(words.contains(word), "{word}: {words}");
    }
}
