//! Runs one command to its end, with a limit on its time.

use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// A run takes seconds, on a busy machine tens of them; past this it hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A file of this test run, next to the other build products.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("interop");
    fs::create_dir_all(&directory).expect("the build directory is writable");
    directory.join(name)
}

/// Runs a command and returns what it wrote to stdout. The test fails when the command does, with the end of its stderr.
///
/// Stderr goes into a file, because servers started by the command inherit it and may outlive it for a moment.
pub(crate) fn run(name: &str, command: &[String]) -> String {
    let log = scratch(&format!("{name}.stderr"));
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        // It is ours alone; Rialto warns about variables with its prefix that it does not know.
        .env_remove("MCP_PEERS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&log).expect("the build directory is writable"))
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {} cannot be started: {error}", command[0]));
    let mut stdout = child.stdout.take().expect("stdout is a pipe");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let _ = sender.send(stdout.read_to_string(&mut text).map(|_| text));
    });
    let output = receiver.recv_timeout(LIMIT);
    if output.is_err() {
        // The whole group, so that no server stays behind.
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    }
    let status = child.wait().expect("our own child can be waited for");
    let failure = |what: &str| -> ! {
        let stderr = fs::read(&log).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr);
        let lines: Vec<_> = stderr.lines().collect();
        let tail = lines[lines.len().saturating_sub(20)..].join("\n");
        panic!("{name}: {what}\ncommand: {}\n{tail}", command.join(" "));
    };
    match output {
        Err(_) => failure(&format!("not finished after {} s", LIMIT.as_secs())),
        Ok(Err(error)) => failure(&format!("stdout cannot be read: {error}")),
        Ok(Ok(_)) if !status.success() => failure(&format!("ended with {status}")),
        Ok(Ok(text)) => {
            fs::write(scratch(&format!("{name}.stdout")), &text).expect("the build directory is writable");
            text
        }
    }
}
