//! R24: addresses that strangers give, and that lead into the machine or its network: as names (NIP-05), as wallets (LNURL), as relays,
//! and as what a server elsewhere sends us to.
//!
//! Every address has the same port, at which we listen on all addresses of this machine. Whoever tries to reach it anywhere has
//! a connection with that port at its far end, which the system shows.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nostr::key::Keys;
use serde_json::json;

use super::super::{Row, Setting};
use super::listener::Listener;
use crate::nostr_side::PATIENCE;
use crate::nostr_side::event::{Draft, hex_key};
use crate::nostr_side::fake_relay::FakeRelay;
use crate::nostr_side::host::Host;
use crate::nostr_side::log::until;
use crate::nostr_side::process::Process;
use crate::nostr_side::world::World;
use crate::score::Score;

pub(super) const ROW: Row = Row::new("R24", "addresses of strangers that lead into the private network", run);

/// This machine and its neighbours, in every way to write them.
const HOSTS: [&str; 56] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.0x0.0x0.0x1",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "0.0.0.0",
    "0",
    "0x0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:a00:1::1]",
    "10.0.0.1",
    "10.255.255.255",
    "167772161",
    "0x0a000001",
    "012.0.0.1",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.0.1",
    "192.168.1.254",
    "3232235521",
    "169.254.169.254",
    "169.254.170.2",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "100.100.100.200",
    "100.64.0.1",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[fd00:ec2::254]",
    "[fd00::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:10.0.0.1]",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
];

/// A server of the open network; nobody is asked there, as all goes through a proxy of ours.
const PUBLIC: &str = "93.184.215.14";

fn run(_: Setting) -> Score {
    // Both families: a socket for the newer one takes the older as well.
    let door = Listener::on("[::]:0").or_else(|| Listener::on("0.0.0.0:0")).unwrap();
    let port = door.address.port();
    let watch = Watch::start(port);
    let mut hosts: Vec<String> = HOSTS.iter().map(|host| (*host).to_owned()).collect();
    hosts.extend(local_names());
    let (world, relay) = (World::new(), FakeRelay::start());
    // The operator's own relay may be anywhere; it has the one name that no stranger uses here.
    let own = relay.url().replace("127.0.0.1", "localhost");
    let mut nostr = Host::over(world.rialto("user", &["mcp", "nostr", "--relay", &own]));
    nostr.begin();
    let mut tries = Tries::default();
    strangers(&mut nostr, &relay, &hosts, port, &mut tries);
    indirections(&mut nostr, &relay, port, &mut tries);
    let (proxy, asked) = upstreams(&world, &hosts, port);
    let mut score = Score::default();
    score.at_least("addresses", hosts.len() + 3, 59_usize);
    score.at_least("tries", tries.count + proxy, 4 * HOSTS.len());
    score.none("tries that succeeded", tries.succeeded);
    score.none("private connections", door.count() + watch.seen().len());
    score.none("private addresses asked for through a proxy", asked.len());
    // And the traps would have worked.
    let seen = watch.seen();
    door.catches();
    let visitor = TcpStream::connect(("127.0.0.1", port)).unwrap();
    until("a connection is seen", PATIENCE, || !watch.seen().is_empty());
    drop(visitor);
    score.at_least("tries that were answered at all", tries.answered, tries.count);
    seen.iter().chain(&asked).take(8).for_each(|seen| score.note(seen));
    tries.notes.iter().take(5).for_each(|note| score.note(note));
    score
}

/// Names of this machine that its own table has, besides the one that is taken.
fn local_names() -> Vec<String> {
    let table = fs::read_to_string("/etc/hosts").unwrap_or_default();
    let lines = table.lines().filter(|line| line.starts_with("127.") || line.starts_with("::1"));
    let names = lines.flat_map(|line| line.split_whitespace().skip(1)).filter(|name| *name != "localhost");
    names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().chain(["localhost.".to_owned()]).collect()
}

/// What was tried with the Nostr tools.
#[derive(Default)]
struct Tries {
    count: usize,
    answered: usize,
    succeeded: usize,
    notes: Vec<String>,
}

impl Tries {
    fn call(&mut self, host: &mut Host, tool: &str, arguments: &serde_json::Value, must_fail: bool) {
        self.count += 1;
        let id = host.call(tool, arguments);
        let answer = host.answer(id);
        self.answered += 1;
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
        if must_fail && !failed {
            self.succeeded += 1;
            self.notes.push(format!("{tool} {arguments}: {answer}"));
        }
    }
}

/// A name, a wallet and relays of a stranger at each address.
fn strangers(nostr: &mut Host, relay: &FakeRelay, hosts: &[String], port: u16, tries: &mut Tries) {
    for host in hosts {
        tries.call(
            nostr,
            "nostr_nip05_resolve",
            &json!({ "identifier": format!("bob@{host}:{port}"), "timeout_secs": 2 }),
            true,
        );
        let stranger = Keys::generate();
        let who = hex_key(&stranger);
        let profile = json!({ "name": "bob", "lud16": format!("bob@{host}:{port}") });
        relay.publish(&Draft::new(0, profile.to_string()).sign(&stranger));
        let relays = Draft::new(10002, "").tag(&["r", &format!("ws://{host}:{port}")]);
        relay.publish(&relays.tag(&["r", &format!("wss://{host}:{port}/x")]).sign(&stranger));
        tries.call(
            nostr,
            "nostr_zaps_prepare_anonymous",
            &json!({ "target": who, "amount_sats": 21, "timeout_secs": 2 }),
            true,
        );
        // Their profile is on our relay, so that this may succeed; where else it is looked for is what matters.
        tries.call(nostr, "nostr_profiles_get", &json!({ "pubkey": who, "timeout_secs": 2 }), false);
    }
}

/// A web server at a name that may be asked, which sends everybody elsewhere.
fn indirections(nostr: &mut Host, relay: &FakeRelay, port: u16, tries: &mut Tries) {
    let web = Listener::start();
    let at = format!("localhost:{}", web.address.port());
    for place in ["http://127.0.0.1", "https://[::1]", "http://169.254.169.254"] {
        web.redirects_to(&format!("{place}:{port}/"));
        let identifier = json!({ "identifier": format!("bob@{at}"), "timeout_secs": 2 });
        tries.call(nostr, "nostr_nip05_resolve", &identifier, true);
        let stranger = Keys::generate();
        relay.publish(&Draft::new(0, json!({ "lud16": format!("bob@{at}") }).to_string()).sign(&stranger));
        let zap = json!({ "target": hex_key(&stranger), "amount_sats": 21, "timeout_secs": 2 });
        tries.call(nostr, "nostr_zaps_prepare_anonymous", &zap, true);
    }
    assert!(web.count() > 0, "the name that may be asked was not asked, so that nothing was tried");
}

/// Servers of the open network that send us to private addresses: by redirection, and to log in. Gives how many there were, and which
/// addresses were asked for in spite of all.
fn upstreams(world: &World, hosts: &[String], port: u16) -> (usize, Vec<String>) {
    let proxy = Proxy::start(hosts, port);
    let mut config = String::new();
    for number in 0..2 * hosts.len() {
        config.push_str(&format!("[servers.s{number}]\nurl = \"http://{PUBLIC}/{number}\"\n"));
    }
    fs::write(world.home("gateway").join("rialto.toml"), config).unwrap();
    let mut command = world.command("gateway", &["gateway", "--stdio", "-v"]);
    command
        .env("HTTP_PROXY", format!("http://{}", proxy.address))
        .env("http_proxy", format!("http://{}", proxy.address));
    command.env("HTTPS_PROXY", format!("http://{}", proxy.address));
    let mut host = Host::over(Process::start(&mut command));
    host.begin();
    until("every server has been asked", PATIENCE, || proxy.led.lock().unwrap().len() >= 2 * hosts.len());
    // What follows from its answers comes at once.
    std::thread::sleep(Duration::from_secs(1));
    let asked = proxy.strayed.lock().unwrap().clone();
    (2 * hosts.len(), asked)
}

/// Plays all servers of the open network, and writes down who is asked for beside them.
struct Proxy {
    address: String,
    /// The servers that have been asked.
    led: Arc<Mutex<BTreeSet<usize>>>,
    strayed: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(hosts: &[String], port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (led, strayed) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(Mutex::new(Vec::new())));
        let (hosts, seen, astray): (Vec<String>, _, _) = (hosts.to_vec(), led.clone(), strayed.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (hosts, seen, astray) = (hosts.clone(), seen.clone(), astray.clone());
                std::thread::spawn(move || answer(stream, &hosts, port, &seen, &astray));
            }
        });
        Self { address, led, strayed }
    }
}

fn answer(
    mut stream: TcpStream,
    hosts: &[String],
    port: u16,
    led: &Mutex<BTreeSet<usize>>,
    strayed: &Mutex<Vec<String>>,
) {
    let mut text = Vec::new();
    while !text.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(length) => text.extend_from_slice(&piece[..length]),
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().next().unwrap_or_default().to_owned();
    let number =
        line.split_once(&format!("//{PUBLIC}/")).and_then(|(_, rest)| rest.split([' ', '?']).next()?.parse().ok());
    let head = match number {
        Some(number) => {
            led.lock().unwrap().insert(number);
            let host = &hosts[number / 2];
            match number % 2 {
                0 => format!("307 Temporary Redirect\r\nLocation: http://{host}:{port}/mcp"),
                _ => format!(
                    "401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata=\"https://{host}:{port}/meta\""
                ),
            }
        }
        None => {
            // Other documents of the servers themselves are theirs to be asked for.
            if !line.contains(&format!("//{PUBLIC}")) && !line.contains(&format!(" {PUBLIC}")) {
                strayed.lock().unwrap().push(line);
            }
            "404 Not Found".to_owned()
        }
    };
    let _ = stream.write_all(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes());
}

/// Looks at all connections of the machine for a port at their far end.
struct Watch {
    seen: Arc<Mutex<BTreeSet<String>>>,
    is_over: Arc<AtomicBool>,
}

impl Watch {
    fn start(port: u16) -> Self {
        let (seen, is_over) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicBool::new(false)));
        let (found, over) = (seen.clone(), is_over.clone());
        let port = format!(":{port:04X}");
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
                    let lines = fs::read_to_string(table).unwrap_or_default();
                    let far = lines.lines().filter_map(|line| line.split_whitespace().nth(2));
                    let far: Vec<String> = far.filter(|far| far.ends_with(&port)).map(str::to_owned).collect();
                    found.lock().unwrap().extend(far);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { seen, is_over }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().cloned().collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
