//! R19: a tool server that wants more than its work, in a sandbox and, to see that the tries are real, without one.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use serde_json::json;

use super::super::{Row, Setting};
use crate::nostr_side::host::Host;
use crate::nostr_side::process::Process;
use crate::nostr_side::world::World;
use crate::nostr_side::{actor, harm};
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R19", "a hostile server in a sandbox", run).long();

/// A user without any rights, for whom the limit of processes holds, as it does not for root.
const NOBODY: u32 = 65534;

/// What is tried, beside work.
struct Tries {
    read: String,
    write: String,
    connect: String,
    send: String,
}

/// What came of it.
#[derive(Default)]
struct Outcome {
    denied: Vec<&'static str>,
    works: bool,
}

fn run(_: Setting) -> Score {
    let world = World::new();
    let home = world.home("victim");
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::write(home.join(".ssh/id_ed25519"), "the key to everything").unwrap();
    fs::write(home.join("notes.txt"), "meant to be read").unwrap();
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let tries = Tries {
        read: home.join(".ssh/id_ed25519").to_str().unwrap().to_owned(),
        write: home.join("written").to_str().unwrap().to_owned(),
        connect: tcp.local_addr().unwrap().to_string(),
        send: udp.local_addr().unwrap().to_string(),
    };
    let mut score = Score::default();
    let strict = outcome(&world, &["--sandbox", "strict"], &tries);
    let wrote = Path::new(&tries.write).exists();
    let free = outcome(&world, &[], &tries);
    let configured = configured(&world, &tries);
    score.exactly("tries denied in the sandbox", strict.denied.len(), 7_usize);
    score.exactly("the same by configuration", configured.denied.len(), 7_usize);
    score.none("files written outside", usize::from(wrote));
    score.none("tries denied without it", free.denied.len());
    score.exactly(
        "servers that still work",
        usize::from(strict.works) + usize::from(free.works) + usize::from(configured.works),
        3_usize,
    );
    // What the operator allows.
    let notes = home.join("notes.txt");
    let notes = notes.to_str().unwrap();
    let mut host = start(&world, &["--sandbox", "strict", "--sandbox-read", notes, "--sandbox-network"]);
    let allowed = [("read", notes), ("connect", tries.connect.as_str())];
    let granted = allowed.iter().filter(|(what, at)| attempt(&mut host, what, at)).count();
    score.exactly("what is allowed and can be done", granted, 2_usize);
    let denied = !attempt(&mut host, "read", &tries.read) && !attempt(&mut host, "look into", "");
    score.none("what is not and can", usize::from(!denied));
    score.note(format!("denied: {}", strict.denied.join(", ")));
    score.note(format!("denied without a sandbox: {}", free.denied.join(", ")));
    score
}

/// A gateway in front of the actor, whose own files are in the folder that it is started in.
fn start(world: &World, flags: &[&str]) -> Host {
    let program = std::env::current_exe().unwrap();
    let server = ["--", program.to_str().unwrap(), actor::ACTOR, ".", harm::HARM];
    begin(world, &[&["gateway", "--stdio"], flags, &server[..]].concat())
}

fn begin(world: &World, arguments: &[&str]) -> Host {
    let mut command = world.command("victim", arguments);
    if rustix::process::geteuid().is_root() {
        hand_over(world.path());
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut host = Host::over(Process::start(&mut command));
    host.begin();
    host
}

/// Gives a folder and all that is in it to nobody.
fn hand_over(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| hand_over(&entry.unwrap().path()));
    }
}

/// The same server in a file of the operator.
fn configured(world: &World, tries: &Tries) -> Outcome {
    let program = std::env::current_exe().unwrap();
    let config = format!(
        "prefix = \"never\"\n[servers.actor]\ncommand = {program:?}\nargs = [\"{}\", \".\", \"{}\"]\nsandbox = \"strict\"\n",
        actor::ACTOR,
        harm::HARM
    );
    fs::write(world.home("victim").join("rialto.toml"), config).unwrap();
    all(begin(world, &["gateway", "--stdio"]), tries)
}

fn outcome(world: &World, flags: &[&str], tries: &Tries) -> Outcome {
    all(start(world, flags), tries)
}

fn all(mut host: Host, tries: &Tries) -> Outcome {
    let attempts = [
        ("read", tries.read.as_str()),
        ("write", &tries.write),
        ("connect", &tries.connect),
        ("send", &tries.send),
        ("fork", ""),
        ("look into", ""),
        ("signal", ""),
    ];
    let denied = attempts.iter().filter(|(what, at)| !attempt(&mut host, what, at)).map(|(what, _)| *what).collect();
    Outcome { denied, works: attempt(&mut host, "work", "") }
}

/// Whether something could be done.
fn attempt(host: &mut Host, what: &str, at: &str) -> bool {
    let answer = host.ask("tools/call", &json!({ "name": "attempt", "arguments": { "what": what, "at": at } }));
    answer["content"][0]["text"] == "done"
}
