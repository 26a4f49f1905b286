//! The relays that the peers meet on: ours, and one by somebody else.

#![allow(dead_code, reason = "not every test binary uses all of it")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::peers::Peers;
use torture::nostr_side::PATIENCE;
use torture::nostr_side::log::until;
use torture::nostr_side::process::Process;
use torture::nostr_side::world::World;

/// A relay that runs, and its address.
pub(crate) type Relay = fn(&Peers, &World) -> (Process, String);

pub(crate) fn our_relay(_: &Peers, world: &World) -> (Process, String) {
    world.relay()
}

/// `nostr-relay` from PyPI.
pub(crate) fn other_relay(peers: &Peers, world: &World) -> (Process, String) {
    let home = world.home("other-relay");
    // It cannot be told to take any free port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let configuration = home.join("relay.yaml");
    let text = format!(
        "storage:\n  sqlalchemy.url: sqlite+aiosqlite:///{}\n  validators:\n    - nostr_relay.validators.is_signed\n\
         gunicorn:\n  bind: 127.0.0.1:{port}\n  loglevel: warning\nauthentication:\n  enabled: false\n",
        home.join("events.sqlite3").display()
    );
    fs::write(&configuration, text).unwrap();
    let command = peers.nostr_relay(&configuration);
    let process = Process::start(Command::new(&command[0]).args(&command[1..]).current_dir(&home));
    until("the relay listens", PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (process, format!("ws://127.0.0.1:{port}"))
}
