//! A private Bitcoin chain: blocks as regtest has them, a pool of transactions, and who owns what.
//!
//! It is what a Lightning node needs to see and no more. Inputs must exist, be mature and be unspent, and nobody may pay out
//! more than was paid in; scripts and signatures are not checked, because everybody on this chain is us. A block appears only
//! when somebody asks for one: while the chain stands still, no held payment runs into its deadline.

mod block;
mod rpc;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use self::server::Server;

use ldk_node::bitcoin::blockdata::constants::genesis_block;
use ldk_node::bitcoin::{
    Amount, Block, BlockHash, Network, OutPoint, ScriptBuf, Transaction, TxIn, TxOut, Txid, Witness, Work, absolute,
    transaction,
};
use std::collections::{HashMap, VecDeque};

/// How deep a block must lie before its reward can be spent.
const MATURITY: u32 = 100;

/// Rewards that are mature when the chain begins: one for each node that is to be funded.
const MATURE_REWARDS: u32 = 2;

/// What is left to the miner when a reward is handed out.
const FEE: Amount = Amount::from_sat(1_000);

/// Blocks are dated one second apart, from this long ago: none is dated ahead, and none before its parent.
const HEAD_START_SECS: u32 = 600;

/// Why a transaction is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("an input does not exist, or is spent")]
    MissingInput,
    #[error("an input comes from a block that is too young")]
    Immature,
    #[error("more is paid out than paid in")]
    Overspent,
    #[error("no reward is left to hand out")]
    NoReward,
}

/// An output that nobody has spent.
#[derive(Debug, Clone)]
struct Coin {
    output: TxOut,
    /// The first height at which it can be spent.
    matures: u32,
}

/// A transaction that waits for a block.
#[derive(Debug)]
struct Waiting {
    txid: Txid,
    time: u32,
    height: u32,
}

#[derive(Debug)]
pub(crate) struct Chain {
    blocks: Vec<Block>,
    /// All work up to the block of the same height.
    work: Vec<Work>,
    heights: HashMap<BlockHash, u32>,
    transactions: HashMap<Txid, Transaction>,
    /// In the order of their coming, so that parents are before their children.
    pool: Vec<Waiting>,
    coins: HashMap<OutPoint, Coin>,
    rewards: VecDeque<OutPoint>,
}

impl Chain {
    /// A chain with some money to hand out. `now` is in seconds since 1970.
    pub(crate) fn new(now: u32) -> Self {
        let genesis = genesis_block(Network::Regtest);
        let mut chain = Self {
            work: vec![genesis.header.work()],
            heights: HashMap::from([(genesis.block_hash(), 0)]),
            blocks: vec![genesis],
            transactions: HashMap::new(),
            pool: Vec::new(),
            coins: HashMap::new(),
            rewards: VecDeque::new(),
        };
        // A reward is spent in a later block at the earliest, so the last of these need not be there yet.
        for _ in 1..MATURITY + MATURE_REWARDS {
            chain.mine(now);
        }
        chain
    }

    pub(crate) fn height(&self) -> u32 {
        // As many heights as blocks, and far fewer than there are numbers.
        u32::try_from(self.blocks.len() - 1).unwrap_or(u32::MAX)
    }

    /// How many transactions wait for a block.
    pub(crate) fn waiting(&self) -> usize {
        self.pool.len()
    }

    fn tip(&self) -> &Block {
        &self.blocks[self.blocks.len() - 1]
    }

    fn at(&self, height: u32) -> Option<&Block> {
        self.blocks.get(usize::try_from(height).ok()?)
    }

    /// Pays one reward to `script`; it is in the next block.
    pub(crate) fn fund(&mut self, script: ScriptBuf, now: u32) -> Result<Txid, Refused> {
        let reward = self.rewards.pop_front().ok_or(Refused::NoReward)?;
        let coin = self.coins.get(&reward).ok_or(Refused::MissingInput)?;
        let value = coin.output.value.checked_sub(FEE).ok_or(Refused::Overspent)?;
        // A reward belongs to whoever shows the script that says yes.
        let witness = Witness::from_slice(&[block::anyone().as_bytes()]);
        let transaction = Transaction {
            version: transaction::Version::TWO,
            lock_time: absolute::LockTime::ZERO,
            input: vec![TxIn { previous_output: reward, witness, ..TxIn::default() }],
            output: vec![TxOut { value, script_pubkey: script }],
        };
        self.submit(transaction, now)
    }

    /// Takes a transaction into the pool. One that is there already is taken again, as if for the first time.
    pub(crate) fn submit(&mut self, transaction: Transaction, now: u32) -> Result<Txid, Refused> {
        let txid = transaction.compute_txid();
        if self.transactions.contains_key(&txid) {
            return Ok(txid);
        }
        let mut paid_in = Amount::ZERO;
        for input in &transaction.input {
            let coin = self.coins.get(&input.previous_output).ok_or(Refused::MissingInput)?;
            if coin.matures > self.height() + 1 {
                return Err(Refused::Immature);
            }
            paid_in += coin.output.value;
        }
        let paid_out = transaction.output.iter().try_fold(Amount::ZERO, |sum, output| sum.checked_add(output.value));
        if paid_out.is_none_or(|paid_out| paid_out > paid_in) {
            return Err(Refused::Overspent);
        }
        for input in &transaction.input {
            self.coins.remove(&input.previous_output);
        }
        self.note(transaction, 0);
        self.pool.push(Waiting { txid, time: now, height: self.height() });
        Ok(txid)
    }

    /// Puts everything that waits into a block.
    pub(crate) fn mine(&mut self, now: u32) {
        let height = self.height() + 1;
        let parent = self.tip().header;
        let time = (parent.time + 1).max(now.saturating_sub(HEAD_START_SECS));
        let waiting = std::mem::take(&mut self.pool);
        let transactions = waiting.iter().filter_map(|waiting| self.transactions.get(&waiting.txid).cloned()).collect();
        let block = block::assemble(&parent, height, time, transactions);
        let reward = block.txdata[0].clone();
        self.rewards.push_back(OutPoint::new(reward.compute_txid(), 0));
        self.note(reward, height + MATURITY);
        let work = self.work[self.work.len() - 1] + block.header.work();
        self.work.push(work);
        self.heights.insert(block.block_hash(), height);
        self.blocks.push(block);
    }

    /// Remembers a transaction and its outputs.
    fn note(&mut self, transaction: Transaction, matures: u32) {
        let txid = transaction.compute_txid();
        for (index, output) in (0..).zip(&transaction.output) {
            self.coins.insert(OutPoint::new(txid, index), Coin { output: output.clone(), matures });
        }
        self.transactions.insert(txid, transaction);
    }
}
