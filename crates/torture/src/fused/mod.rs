//! A provider in a process of its own that ends where its fuse says: this program once more, in that role.

mod fuse;

pub use fuse::{Mark, Point, When};

use crate::nostr_side::actor;
use bytes::Bytes;
use nostr::prelude::{Keys, RelayUrl};
use rialto_ledger::job::Stage;
use rialto_ledger::sqlite::Sqlite;
use rialto_mcp::call::Call;
use rialto_mcp::error::{Error, Kind};
use rialto_mcp::json;
use rialto_mcp::peer::{Peer, Profile};
use rialto_mcp::reply::Answer;
use rialto_mcp::server::{Description, Service};
use rialto_payment::price::{Prices, Rule};
use rialto_payment::secret::Secret;
use rialto_provider::event::Observer;
use rialto_provider::limits::Limits;
use rialto_provider::plan::{Access, DEFAULT_QUOTE, DEFAULT_WINDOW, Ending, Plan};
use rialto_provider::provider::{Books, run, watches};
use rialto_provider::till::Till;
use rialto_relay::clock::SystemClock;
use rialto_relay::pool::{Options, Pool};
use rialto_wallet::reference;
use rialto_wire::dvmcp::request::OpenJobs;
use rialto_wire::service::Wire;
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fuse::{Fuse, FusedLedger, FusedWallet};

const ROLE: &str = "TORTURE_FUSED";

/// Nothing that a broken experiment leaves behind lives longer.
const LIFETIME: Duration = Duration::from_secs(170);

/// How long a tool may take here.
pub const TIMEOUT: Duration = Duration::from_secs(3);

/// How calls are paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rail {
    Free,
    Invoice,
    Hold,
    Token,
}

/// What a provider is told.
#[derive(Debug, Clone)]
pub struct Orders {
    pub relay: String,
    pub wallet: Secret,
    pub folder: PathBuf,
    pub keys: Keys,
    pub rail: Rail,
}

/// A provider in a process of its own.
pub struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Process {
    pub fn start(orders: &Orders, mark: Option<Mark>) -> Self {
        let Orders { relay, wallet, folder, keys, rail } = orders;
        let key = keys.secret_key().to_secret_hex();
        let words = [relay, wallet.reveal(), folder.to_str().unwrap(), &key, &format!("{rail:?}"), &write(mark)];
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(ROLE, words.join("\n")).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub fn is_gone(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Whether its fuse has burnt through.
    pub fn is_killed(&mut self) -> bool {
        let status = self.0.try_wait().unwrap();
        assert!(status.is_none_or(|status| status.signal() == Some(Signal::KILL.as_raw())), "{status:?}");
        status.is_some()
    }
}

fn write(mark: Option<Mark>) -> String {
    match mark {
        None => "none".to_owned(),
        Some(Mark { point: Point::Commit(stage), when, nth }) => format!("{} {when:?} {nth}", stage.number()),
        Some(Mark { point, when, nth }) => format!("{point:?} {when:?} {nth}"),
    }
}

fn read(text: &str) -> Option<Mark> {
    let words: Vec<&str> = text.split(' ').collect();
    let [point, when, nth] = words.as_slice() else { return None };
    let when = if *when == "Before" { When::Before } else { When::After };
    let point = match *point {
        "Make" => Point::Make,
        "Look" => Point::Look,
        "Settle" => Point::Settle,
        "Cancel" => Point::Cancel,
        "Receive" => Point::Receive,
        "Sent" => Point::Sent,
        number => Point::Commit(Stage::from_number(number.parse().unwrap()).unwrap()),
    };
    Some(Mark { point, when, nth: nth.parse().unwrap() })
}

/// Plays the provider, if this process was started for that.
pub fn play_if_asked() {
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
    let fuse = Fuse::new(read(fuse));
    drop(runtime.block_on(async { tokio::time::timeout(LIFETIME, provide(orders, fuse)).await }));
    std::process::exit(0);
}

fn plan(keys: &Keys, folder: PathBuf) -> Plan {
    Plan {
        keys: keys.clone(),
        id: "fused".into(),
        name: "fused".into(),
        about: String::new(),
        wires: Wire::ALL.into(),
        access: Access::default(),
        limits: Limits { rate_per_key: 0, running_per_key: 64, ..Limits::default() },
        window: DEFAULT_WINDOW,
        timeout: TIMEOUT,
        open_jobs: OpenJobs::Ignored,
        ending: Ending::Withdraw,
        relays: Vec::new(),
        record: folder,
        prices: Prices::default(),
        idempotent: BTreeSet::new(),
        quote: DEFAULT_QUOTE,
    }
}

async fn provide(orders: Orders, fuse: Fuse) {
    let Orders { relay, wallet, folder, keys, rail } = orders;
    let mut plan = plan(&keys, folder.join(LEDGER));
    let till = (rail != Rail::Free).then(|| {
        plan.prices.others = Some(Rule { base: 5, ..Rule::FREE });
        let (inner, mint) = (reference::open(&wallet).unwrap().wallet(), folder.clone());
        let wallet = Arc::new(FusedWallet { inner, fuse: fuse.clone(), mint, key: keys.public_key().to_bytes() });
        let purse = (rail == Rail::Token).then(|| wallet.clone() as _);
        Till { wallet, purse, holds: rail == Rail::Hold }
    });
    let ledger = Arc::new(FusedLedger { inner: Sqlite::open(&plan.record).unwrap(), fuse });
    let relay = RelayUrl::parse(&relay).unwrap();
    let pool = Pool::start(&[relay], watches(&plan), Options { hears_itself: false, ..Options::default() });
    let (service, clock) = (Arc::new(Tools { folder }), Arc::new(SystemClock));
    let observer = Observer::new(|_| {});
    run(plan, Books { ledger, till }, service, pool, clock, observer, std::future::pending()).await.unwrap();
}

/// Where it has its ledger, in its folder.
pub const LEDGER: &str = "ledger";

/// Tools that leave a line, as the actor does: one that succeeds, and one for each way to fail.
const TOOLS: [&str; 4] = ["good", "bad", "broken", "hang"];

struct Tools {
    folder: PathBuf,
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
                let tools = TOOLS.map(tool);
                Answer::Result(json!({ "tools": tools }).to_string().into_bytes())
            }
            "tools/call" => {
                let name = json::get_string(call.params(), "name").unwrap().into_owned();
                let tag = json::get(call.params(), "arguments").and_then(|given| json::get_string(given, "tag"));
                actor::write_down(&self.folder, &format!("{name} {}", tag.unwrap_or_default()));
                match name.as_str() {
                    "broken" => return Answer::Error(Error::new(Kind::Internal, "something broke")),
                    "hang" => std::future::pending().await,
                    _ => {}
                }
                let content = json!([{ "type": "text", "text": name }]);
                Answer::Result(json!({ "content": content, "isError": name == "bad" }).to_string().into_bytes())
            }
            method => Answer::Error(Error::not_offered(method)),
        }
    }
}
