//! Making one block: its reward, the commitment to its witnesses (BIP 141), and as much work as regtest asks for.

use ldk_node::bitcoin::block::{Header, Version};
use ldk_node::bitcoin::hashes::Hash;
use ldk_node::bitcoin::opcodes::{OP_0, OP_TRUE};
use ldk_node::bitcoin::script::Builder;
use ldk_node::bitcoin::{
    Amount, Block, CompactTarget, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxMerkleNode, TxOut, Witness,
    absolute, transaction,
};

/// What a block brings on regtest before its first halving, at height 150, which this chain does not reach.
const SUBSIDY: Amount = Amount::from_int_btc(50);

/// Half of all hashes are good enough.
const TARGET: u32 = 0x207f_ffff;

/// How an output says that it is the commitment to the witnesses: a return of 36 bytes that begin like this.
const COMMITMENT: [u8; 6] = [0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];

/// The value that BIP 141 reserves for later; there has been no later yet.
const RESERVED: [u8; 32] = [0; 32];

/// The script that says yes to whoever shows it.
pub(super) fn anyone() -> ScriptBuf {
    Builder::new().push_opcode(OP_TRUE).into_script()
}

/// A block on top of `parent`.
pub(super) fn assemble(parent: &Header, height: u32, time: u32, transactions: Vec<Transaction>) -> Block {
    let header = Header {
        version: Version::from_consensus(0x2000_0000),
        prev_blockhash: parent.block_hash(),
        merkle_root: TxMerkleNode::all_zeros(),
        time,
        bits: CompactTarget::from_consensus(TARGET),
        nonce: 0,
    };
    let mut txdata = vec![reward(height)];
    txdata.extend(transactions);
    let mut block = Block { header, txdata };
    // The root over the witnesses does not depend on the reward, which is about to name it.
    if let Some(root) = block.witness_root() {
        let commitment = Block::compute_witness_commitment(&root, &RESERVED);
        let script = [COMMITMENT.as_slice(), commitment.as_byte_array()].concat();
        block.txdata[0].output.push(TxOut { value: Amount::ZERO, script_pubkey: ScriptBuf::from_bytes(script) });
    }
    if let Some(root) = block.compute_merkle_root() {
        block.header.merkle_root = root;
    }
    while block.header.validate_pow(block.header.target()).is_err() {
        block.header.nonce += 1;
    }
    block
}

/// The transaction that makes money out of nothing. The height in it (BIP 34) makes each one different.
fn reward(height: u32) -> Transaction {
    let script_sig = Builder::new().push_int(i64::from(height)).push_opcode(OP_0).into_script();
    let witness = Witness::from_slice(&[RESERVED]);
    Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![TxIn { previous_output: OutPoint::null(), script_sig, sequence: Sequence::MAX, witness }],
        output: vec![TxOut { value: SUBSIDY, script_pubkey: anyone().to_p2wsh() }],
    }
}
