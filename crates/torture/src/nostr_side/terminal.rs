//! A command on a terminal: what it says to people there, and not what it says to a file or a pipe.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::PATIENCE;
use super::log::Log;

/// Runs it to its end; gives everything that came, with the line ends of a file. It is asked not to use colours.
#[track_caller]
pub fn on_terminal(command: &mut Command) -> (ExitStatus, String) {
    let what = format!("{command:?}");
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let path = ptsname(&ours, Vec::new()).unwrap();
    let path = std::ffi::OsStr::from_bytes(path.to_bytes());
    let theirs = || OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut child = command.stdin(theirs()).stdout(theirs()).stderr(theirs()).env("NO_COLOR", "1").spawn().unwrap();
    // The command keeps its ends of the terminal open as long as it is there.
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let come: Log<Option<Vec<u8>>> = Log::default();
    let kept = come.clone();
    std::thread::spawn(move || {
        let (mut ours, mut piece) = (std::fs::File::from(ours), [0; 8192]);
        while let Ok(length @ 1..) = ours.read(&mut piece) {
            kept.push(Some(piece[..length].to_vec()));
        }
        kept.push(None);
    });
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it does not end: {what}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    come.wait(PATIENCE, |pieces| pieces.last().is_some_and(Option::is_none).then_some(()));
    let bytes: Vec<u8> = come.look(|pieces| pieces.iter().flatten().flatten().copied().collect());
    (status, String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
}
