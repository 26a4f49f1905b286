//! The Lightning network: a private chain, two nodes on it, and a channel from each to the other.
//!
//! Each node opens one channel and gives half of it away, so that both can pay at once, and twice as many payments can be in
//! flight as one channel carries (50 each way).

use crate::chain::{self, Refused};
use crate::node;
use ldk_node::{Node, NodeError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinError;
use tokio::time::{Instant, MissedTickBehavior};

/// The size of each channel, in satoshi: far more than a demonstration spends, and below the limit for ordinary channels.
const CHANNEL_SATS: u64 = 10_000_000;

/// What the other side gets of it: half, in thousandths of a satoshi.
const PUSHED_MSAT: u64 = CHANNEL_SATS / 2 * 1000;

/// How deep a channel must be in the chain before nodes use it.
const CONFIRMATIONS: usize = 6;

/// How many channels there are: one each way.
const CHANNELS: usize = 2;

/// How long each stage may take. On an idle machine all of them together take about three seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes do not tell when they are done with a block; asking this often costs nothing that anybody notices.
const PACE: Duration = Duration::from_millis(25);

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the private chain cannot listen: {0}")]
    Listen(#[from] std::io::Error),
    #[error(transparent)]
    Node(#[from] node::Error),
    #[error("a node cannot {0}: {1}")]
    Refused(&'static str, NodeError),
    #[error("the chain does not fund a node: {0}")]
    Funding(#[from] Refused),
    #[error("waited {} s in vain for {what}", PATIENCE.as_secs())]
    TooSlow { what: &'static str },
    #[error("a node has no address to connect to")]
    NoAddress,
    #[error("a task of ours failed: {0}")]
    Task(#[from] JoinError),
}

pub(crate) struct Network {
    pub(crate) provider: Arc<Node>,
    pub(crate) customer: Arc<Node>,
    /// Nodes ask for the chain as long as they live.
    chain: chain::Server,
}

impl Network {
    /// Starts the chain and both nodes, which keep their files in `directory`. Must not be given up on half-way: a node that
    /// is starting cannot be stopped.
    pub(crate) async fn start(directory: &Path) -> Result<Self, Error> {
        let chain = chain::Server::start().await?;
        let address = chain.address();
        let begin = |name: &'static str| {
            let directory = directory.to_owned();
            tokio::task::spawn_blocking(move || node::start(name, &directory, address))
        };
        let (provider, customer) = tokio::try_join!(begin("provider"), begin("customer"))?;
        Ok(Self { provider: Arc::new(provider?), customer: Arc::new(customer?), chain })
    }

    /// Gives the nodes money and channels; when this returns, both can pay each other.
    pub(crate) async fn prepare(&self) -> Result<(), Error> {
        self.fund().await?;
        self.connect().await
    }

    /// Ends both nodes. What is left of a payment in flight is left as it is: the chain ends as well.
    pub(crate) async fn stop(self) {
        let end = |node: Arc<Node>| tokio::task::spawn_blocking(move || node.stop());
        // A node that cannot stop has stopped already.
        let _ = tokio::join!(end(self.provider), end(self.customer));
    }

    fn nodes(&self) -> [&Arc<Node>; 2] {
        [&self.provider, &self.customer]
    }

    /// Gives each node a coin of its own.
    async fn fund(&self) -> Result<(), Error> {
        for node in self.nodes() {
            let address = node.onchain_payment().new_address().map_err(|error| Error::Refused("be paid", error))?;
            self.chain.with(|chain, now| chain.fund(address.script_pubkey(), now))?;
        }
        // Until a node has seen the whole chain once by itself, it must not be told to look.
        let has_looked = |node: &Node| node.status().latest_lightning_wallet_sync_timestamp.is_some();
        self.until("the nodes to read the chain", || self.nodes().into_iter().all(|node| has_looked(node))).await?;
        self.chain.with(chain::Chain::mine);
        let is_funded = |node: &Node| node.list_balances().spendable_onchain_balance_sats > CHANNEL_SATS;
        self.until_seen("the nodes to have money", || self.nodes().into_iter().all(|node| is_funded(node))).await
    }

    /// Opens a channel each way.
    async fn connect(&self) -> Result<(), Error> {
        for (from, to) in [(&self.customer, &self.provider), (&self.provider, &self.customer)] {
            let address = to.listening_addresses().into_iter().flatten().next().ok_or(Error::NoAddress)?;
            from.open_channel(to.node_id(), address, CHANNEL_SATS, Some(PUSHED_MSAT), None)
                .map_err(|error| Error::Refused("open a channel", error))?;
        }
        let are_funded = || self.chain.with(|chain, _| chain.waiting()) == CHANNELS;
        self.until("the channels to be funded", are_funded).await?;
        for _ in 0..CONFIRMATIONS {
            self.chain.with(chain::Chain::mine);
        }
        let usable = |node: &Node| node.list_channels().iter().filter(|channel| channel.is_usable).count();
        let are_usable = || self.nodes().into_iter().all(|node| usable(node) == CHANNELS);
        self.until_seen("the channels to be ready", are_usable).await
    }

    /// Waits for something.
    async fn until(&self, what: &'static str, is_so: impl Fn() -> bool) -> Result<(), Error> {
        let end = Instant::now() + PATIENCE;
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !is_so() {
            if Instant::now() > end {
                return Err(Error::TooSlow { what });
            }
            pace.tick().await;
        }
        Ok(())
    }

    /// Waits for something that follows from new blocks. Nodes look for them every two seconds by themselves; they are told
    /// to look now, and not from a thread of its own: a node that is stopped while it looks never comes back from it.
    async fn until_seen(&self, what: &'static str, is_so: impl Fn() -> bool) -> Result<(), Error> {
        for node in self.nodes() {
            node.sync_wallets().map_err(|error| Error::Refused("read the chain", error))?;
        }
        self.until(what, is_so).await
    }
}
