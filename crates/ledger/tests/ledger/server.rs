//! A real PostgreSQL in a directory of its own, for as long as this process lives. It listens on a socket in that directory,
//! and waits for the disk as one that is used in earnest.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub(crate) struct Server {
    pub(crate) directory: PathBuf,
    port: u16,
    /// When the pipe to it closes, even because we were killed, the server is stopped and its directory removed.
    _keeper: Child,
}

impl Server {
    pub(crate) fn address(&self) -> String {
        format!("postgres:///postgres?user=rialto&host={}&port={}", self.directory.display(), self.port)
    }
}

/// The server that all tests share; `None`, said loudly, if there is no PostgreSQL here.
pub(crate) fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

/// The folder with `initdb`; Debian keeps it out of the way.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))));
    }
    folders.into_iter().find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

/// PostgreSQL refuses to run as root. An ordinary user runs it as itself.
fn servant() -> Option<(&'static str, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    ["postgres", "nobody"].into_iter().find_map(|name| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        Some((name, line.split(':').nth(2)?.parse().ok()?))
    })
}

fn as_servant(program: &Path) -> Command {
    let mut command = match servant() {
        None => return Command::new(program),
        Some((name, _)) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", name, "--clear-groups"]);
            command
        }
    };
    command.arg(program);
    command
}

fn start() -> Option<Server> {
    start_with(&["-c", "listen_addresses="], 5432, |_| ()).map(|started| started.expect("PostgreSQL does not start"))
}

/// A server with more settings, and files in its folder that it may read; an error if it ends at once.
pub(crate) fn start_with(settings: &[&str], port: u16, prepare: impl Fn(&Path)) -> Option<Result<Server, String>> {
    let Some(programs) = programs() else {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "there is no PostgreSQL, and CI=true");
        let words =
            "\n*** SKIPPED: there is no PostgreSQL (Debian: postgresql); the tests that need it did nothing ***\n";
        // Past the harness, which hides what a test that passes says.
        std::io::stderr().write_all(words.as_bytes()).unwrap();
        return None;
    };
    let directory = tempfile::Builder::new().prefix("ledger").tempdir().unwrap().keep();
    if let Some((_, number)) = servant() {
        chown(&directory, Some(number), None).unwrap();
    }
    prepare(&directory);
    for entry in directory.read_dir().unwrap() {
        chown(entry.unwrap().path(), servant().map(|(_, number)| number), None).unwrap();
    }
    let data = directory.join("data");
    let made = as_servant(&programs.join("initdb"))
        .args(["--username=rialto", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
        .arg(&data)
        .current_dir("/")
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // It says when the server has ended by itself.
    let script = r#"log=$1; directory=$2; shift 2; ("$@" >"$log" 2>&1; touch "$directory/ended") & server=$!
        read -r never; kill -INT "$(head -n 1 "$directory/data/postmaster.pid")"; wait "$server"; rm -rf "$directory""#;
    let run = as_servant(&programs.join("postgres"));
    let keeper = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(directory.join("log"))
        .arg(&directory)
        .arg(run.get_program())
        .args(run.get_args())
        .arg("-D")
        .arg(&data)
        .args(settings)
        .args(["-c", "fsync=on", "-c", "max_connections=200", "-k"])
        .arg(&directory)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server { directory, port, _keeper: keeper };
    let (address, ended) = (server.address(), server.directory.join("ended"));
    // A runtime cannot be waited for inside another.
    let waiting = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while let Err(error) =
            runtime.block_on(async { tokio_postgres::connect(&address, tokio_postgres::NoTls).await.map(|_| ()) })
        {
            if ended.exists() {
                return Err(error.to_string());
            }
            assert!(Instant::now() < end, "PostgreSQL does not start: {error}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    });
    Some(waiting.join().unwrap().map(|()| server))
}
