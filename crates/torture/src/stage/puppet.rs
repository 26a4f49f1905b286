//! The server that a test plays: a process that does nothing of its own accord.
//!
//! The test binary starts itself a second time in this role, as a child of the gateway. It connects back to the test over
//! a socket, hands on every line from its standard input, and does what the test tells it: write to its outputs, start
//! processes, ignore what ends others, die. So a test sees both ends of the gateway, and every byte is in its hands.
//!
//! Orders are lines that begin with one letter; what is reported back as well.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The first argument that selects a role.
pub const PUPPET: &str = "puppet";
const SLEEPER: &str = "sleeper";

/// Nothing that a broken test leaves behind lives longer.
const LIFETIME: Duration = Duration::from_secs(90);

/// It survives the end of its input, and being asked to end.
static STUBBORN: AtomicBool = AtomicBool::new(false);

/// It reads its input no more.
static DEAF: AtomicBool = AtomicBool::new(false);

/// Plays a role if this process was started for one.
pub fn play_if_asked() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [PUPPET, socket] => puppet(socket),
        [SLEEPER, rest @ ..] => sleeper(rest),
        _ => {}
    }
}

fn puppet(socket: &str) {
    std::thread::spawn(|| {
        std::thread::sleep(LIFETIME);
        exit(70);
    });
    let stream = UnixStream::connect(socket).unwrap();
    let mut reports = stream.try_clone().unwrap();
    writeln!(reports, "p{}", std::process::id()).unwrap();
    for (name, value) in std::env::vars() {
        writeln!(reports, "v{name}={value}").unwrap();
    }
    writeln!(reports, "!").unwrap();
    let mut input = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(std::io::stdin()).lines();
        while let Some(Ok(line)) = lines.next() {
            if writeln!(input, "<{line}").is_err() {
                break;
            }
            while DEAF.load(Ordering::Acquire) {
                std::thread::park();
            }
        }
        if !STUBBORN.load(Ordering::Acquire) {
            exit(0);
        }
    });
    for order in BufReader::new(stream).lines().map_while(Result::ok) {
        obey(&order, &mut reports);
    }
    if STUBBORN.load(Ordering::Acquire) {
        std::thread::sleep(LIFETIME);
    }
    exit(0);
}

fn obey(order: &str, reports: &mut UnixStream) {
    let (kind, rest) = order.split_at(1);
    let mut words = rest.split(' ');
    let mut number = || words.next().unwrap().parse::<usize>().unwrap();
    match kind {
        ">" => say(rest.as_bytes()),
        "2" => eprintln!("{rest}"),
        // Bytes that are no text.
        "u" => say(&[0xff, 0xfe, b'{', 0x80]),
        // The same line many times.
        "*" => {
            let (times, line) = rest.split_once(' ').unwrap();
            (0..times.parse::<usize>().unwrap()).for_each(|_| say(line.as_bytes()));
        }
        // Notifications with a number each, and this much padding.
        "f" => {
            let (count, size) = (number(), number());
            let padding = "x".repeat(size);
            for place in 0..count {
                let params = format!(r#"{{"level":"info","place":{place},"data":"{padding}"}}"#);
                say(format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#).as_bytes());
            }
        }
        // A result this long between two given pieces of text.
        "b" => {
            let size = number();
            let (before, after) = rest.split_once(' ').unwrap().1.split_once('|').unwrap();
            say(format!("{before}{}{after}", "x".repeat(size)).as_bytes());
        }
        "x" => exit(rest.parse().unwrap()),
        "d" => {
            DEAF.store(true, Ordering::Release);
            writeln!(reports, "d").unwrap();
        }
        "s" => {
            be_stubborn();
            writeln!(reports, "s").unwrap();
        }
        "g" => writeln!(reports, "g{}", start_sleeper(rest)).unwrap(),
        other => panic!("unknown order {other}"),
    }
}

fn say(line: &[u8]) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(line).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    if written.is_err() {
        exit(0);
    }
}

/// From here on a request to end is noticed and ignored.
fn be_stubborn() {
    STUBBORN.store(true, Ordering::Release);
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let kept: Vec<_> = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()]
                .into_iter()
                .map(|kind| signal(kind).unwrap())
                .collect();
            ready.send(()).unwrap();
            std::future::pending::<()>().await;
            drop(kept);
        });
    });
    is_ready.recv().unwrap();
}

/// Starts a process that will not end by itself: in our group, or in a session of its own.
#[allow(clippy::zombie_processes, reason = "to leave it behind is the point")]
fn start_sleeper(how: &str) -> u32 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(SLEEPER).arg(how).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    // It says one line when it is what it is meant to be.
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    process.id()
}

fn sleeper(how: &[&str]) {
    if how == ["session"] {
        rustix::process::setsid().unwrap();
    }
    be_stubborn();
    println!("ready");
    std::thread::sleep(LIFETIME);
    exit(0);
}
