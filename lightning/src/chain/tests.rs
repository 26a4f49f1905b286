//! What a Lightning node relies on, and what a chain must not let pass.

use super::{Chain, Refused, block};
use ldk_node::bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use ldk_node::bitcoin::{Amount, Block, Transaction, TxOut};
use serde_json::json;

const NOW: u32 = 1_800_000_000;

fn funded() -> (Chain, Transaction) {
    let mut chain = Chain::new(NOW);
    let txid = chain.fund(block::anyone().to_p2wsh(), NOW).unwrap();
    let transaction = chain.transactions[&txid].clone();
    (chain, transaction)
}

#[test]
fn every_block_holds_what_readers_check() {
    let (mut chain, transaction) = funded();
    chain.mine(NOW);
    for pair in chain.blocks.windows(2) {
        let (parent, block) = (&pair[0], &pair[1]);
        assert_eq!(block.header.prev_blockhash, parent.block_hash());
        assert!(block.header.time > parent.header.time && block.header.time <= NOW);
        assert!(block.header.validate_pow(block.header.target()).is_ok());
        assert!(block.check_merkle_root() && block.check_witness_commitment());
    }
    assert!(chain.tip().txdata.contains(&transaction));
    assert_eq!(chain.waiting(), 0);
}

#[test]
fn a_block_comes_back_as_it_was_made() {
    let mut chain = Chain::new(NOW);
    let hash = chain.call("getblockhash", &json!([7]), NOW).unwrap();
    let block: Block =
        deserialize_hex(chain.call("getblock", &json!([hash, 0]), NOW).unwrap().as_str().unwrap()).unwrap();
    assert_eq!(&block, chain.at(7).unwrap());
    assert_eq!(chain.call("getblockheader", &json!([hash]), NOW).unwrap()["height"], 7);
}

#[test]
fn money_is_spent_once() {
    let (mut chain, transaction) = funded();
    let mut other = transaction.clone();
    other.output[0].value -= Amount::from_sat(1);
    assert_eq!(chain.submit(other, NOW), Err(Refused::MissingInput));
    assert_eq!(chain.submit(transaction, NOW).map(|_| chain.waiting()), Ok(1));
}

#[test]
fn money_is_not_made() {
    let mut chain = Chain::new(NOW);
    let mut transaction = funded().1;
    transaction.output.push(TxOut { value: Amount::from_int_btc(1), script_pubkey: block::anyone() });
    assert_eq!(chain.submit(transaction, NOW), Err(Refused::Overspent));
}

#[test]
fn young_rewards_are_kept() {
    let mut chain = Chain::new(NOW);
    assert!(chain.fund(block::anyone(), NOW).is_ok() && chain.fund(block::anyone(), NOW).is_ok());
    assert_eq!(chain.fund(block::anyone(), NOW), Err(Refused::Immature));
}

#[test]
fn what_is_not_there_has_the_code_that_callers_look_for() {
    let mut chain = Chain::new(NOW);
    let nothing = json!(["11".repeat(32)]);
    for method in ["getrawtransaction", "getmempoolentry", "getblock", "getblockheader"] {
        assert_eq!(chain.call(method, &nothing, NOW).unwrap_err().code, -5, "{method}");
    }
    assert_eq!(chain.call("gettxout", &json!(["11".repeat(32), 0, false]), NOW), Ok(json!(null)));
    assert_eq!(chain.call("stop", &json!([]), NOW).unwrap_err().code, -32601);
}

#[test]
fn a_transaction_that_was_sent_is_found_in_the_pool() {
    let transaction = funded().1;
    let mut chain = Chain::new(NOW);
    let txid = chain.call("sendrawtransaction", &json!([serialize_hex(&transaction)]), NOW).unwrap();
    assert_eq!(chain.call("getrawmempool", &json!([false]), NOW), Ok(json!([txid])));
    assert_eq!(chain.call("getmempoolentry", &json!([txid]), NOW).unwrap()["time"], NOW);
    assert_eq!(chain.call("getrawtransaction", &json!([txid]), NOW), Ok(json!(serialize_hex(&transaction))));
}
