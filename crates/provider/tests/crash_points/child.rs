//! This test program once more, as a provider that ends where its fuse says.

use crate::fuse::{Fuse, FusedLedger, FusedWallet, Point, When};
use crate::stage;
use bytes::Bytes;
use nostr::prelude::{Keys, RelayUrl};
use rialto_ledger::job::Stage;
use rialto_ledger::sqlite::Sqlite;
use rialto_mcp::call::Call;
use rialto_mcp::error::Error;
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use rialto_payment::price::Rule;
use rialto_payment::secret::Secret;
use rialto_provider::event::Observer;
use rialto_provider::provider::{Books, run, watches};
use rialto_provider::till::Till;
use rialto_relay::clock::SystemClock;
use rialto_relay::pool::{Options, Pool};
use rialto_wallet::reference;
use rustix::process::Signal;
use serde_json::json;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const ROLE: &str = "RIALTO_CRASH_POINT";

/// Nothing that a broken test leaves behind lives longer.
const LIFETIME: std::time::Duration = std::time::Duration::from_secs(170);

/// How calls are paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rail {
    Free,
    Invoice,
    Hold,
    Token,
}

/// What a provider is told.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    pub(crate) relay: String,
    pub(crate) wallet: Secret,
    pub(crate) folder: PathBuf,
    pub(crate) keys: Keys,
    pub(crate) rail: Rail,
}

/// A provider in a process of its own.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Process {
    pub(crate) fn start(orders: &Orders, fuse: Fuse) -> Self {
        let Orders { relay, wallet, folder, keys, rail } = orders;
        let key = keys.secret_key().to_secret_hex();
        let words = [relay, wallet.reveal(), folder.to_str().unwrap(), &key, &format!("{rail:?}"), &write(fuse)];
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child::act", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, words.join("\n")).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn is_gone(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Whether its fuse has burnt through.
    pub(crate) fn is_killed(&mut self) -> bool {
        let status = self.0.try_wait().unwrap();
        assert!(status.is_none_or(|status| status.signal() == Some(Signal::KILL.as_raw())), "{status:?}");
        status.is_some()
    }
}

fn write(fuse: Fuse) -> String {
    match fuse.0 {
        None => "none".to_owned(),
        Some((Point::Commit(stage), when)) => format!("{} {when:?}", stage.number()),
        Some((point, when)) => format!("{point:?} {when:?}"),
    }
}

fn read(text: &str) -> Fuse {
    let Some((point, when)) = text.split_once(' ') else { return Fuse(None) };
    let when = if when == "Before" { When::Before } else { When::After };
    let point = match point {
        "Make" => Point::Make,
        "Look" => Point::Look,
        "Settle" => Point::Settle,
        "Cancel" => Point::Cancel,
        "Receive" => Point::Receive,
        number => Point::Commit(Stage::from_number(number.parse().unwrap()).unwrap()),
    };
    Fuse(Some((point, when)))
}

/// The other process; by itself it does nothing.
#[test]
#[ignore = "started by the others"]
fn act() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split('\n').collect();
    let [relay, wallet, folder, key, rail, fuse] = words.as_slice() else { panic!("{} words", words.len()) };
    let rails = [Rail::Free, Rail::Invoice, Rail::Hold, Rail::Token];
    let orders = Orders {
        relay: (*relay).to_owned(),
        wallet: Secret::new(*wallet),
        folder: folder.into(),
        keys: Keys::parse(key).unwrap(),
        rail: rails.into_iter().find(|one| format!("{one:?}") == *rail).unwrap(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let fuse = read(fuse);
    drop(runtime.block_on(async { tokio::time::timeout(LIFETIME, provide(orders, fuse)).await }));
}

async fn provide(orders: Orders, fuse: Fuse) {
    let Orders { relay, wallet, folder, keys, rail } = orders;
    let mut plan = stage::plan(&keys, &folder.join("ledger"));
    let till = (rail != Rail::Free).then(|| {
        plan.prices.others = Some(Rule { base: 5, ..Rule::FREE });
        let (inner, mint) = (reference::open(&wallet).unwrap().wallet(), folder.clone());
        let wallet = Arc::new(FusedWallet { inner, fuse, mint, key: keys.public_key().to_bytes() });
        let purse = (rail == Rail::Token).then(|| wallet.clone() as _);
        Till { wallet, purse, holds: rail == Rail::Hold }
    });
    let ledger = Arc::new(FusedLedger { inner: Sqlite::open(&plan.record).unwrap(), fuse });
    let relay = RelayUrl::parse(&relay).unwrap();
    let pool = Pool::start(&[relay], watches(&plan), Options::default());
    let (service, clock) = (Arc::new(Tools { folder }), Arc::new(SystemClock));
    let observer = Observer::new(|_| {});
    run(plan, Books { ledger, till }, service, pool, clock, observer, std::future::pending()).await.unwrap();
}

/// Two tools that leave a line: one that succeeds, one that says that it failed.
struct Tools {
    folder: PathBuf,
}

pub(crate) fn effects(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("effects")).unwrap_or_default().lines().count()
}

impl Service for Tools {
    fn info(&self) -> Bytes {
        Bytes::from_static(b"{\"name\":\"tools\",\"version\":\"0\"}")
    }

    async fn describe(&self, _peer: &Arc<Peer>, _profile: &Arc<Profile>) -> Description {
        Description { capabilities: b"{}".to_vec(), info: self.info(), instructions: None, more: Vec::new() }
    }

    async fn request(&self, call: &Call) -> Answer {
        match call.method() {
            "tools/list" => {
                let tool = |name: &str| json!({ "name": name, "description": "", "inputSchema": { "type": "object" } });
                let tools = ["good", "bad"].map(tool);
                Answer::Result(json!({ "tools": tools }).to_string().into_bytes())
            }
            "tools/call" => {
                let name = json::get_string(call.params(), "name").unwrap().into_owned();
                let path = self.folder.join("effects");
                let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
                writeln!(file, "{name}").unwrap();
                let content = json!([{ "type": "text", "text": name }]);
                Answer::Result(json!({ "content": content, "isError": name == "bad" }).to_string().into_bytes())
            }
            method => Answer::Error(Error::not_offered(method)),
        }
    }
}
