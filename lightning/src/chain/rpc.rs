//! The chain as Bitcoin Core's JSON-RPC tells it: the eleven methods that a Lightning node calls, and only as much of each
//! answer as it reads.

use super::Chain;
use ldk_node::bitcoin::consensus::encode;
use ldk_node::bitcoin::hex::DisplayHex;
use ldk_node::bitcoin::{BlockHash, OutPoint, Txid};
use serde_json::{Value, json};

/// Bitcoin Core's own codes. Callers tell a transaction that is not there from a failure by the first.
const NOT_FOUND: i64 = -5;
const INVALID_PARAMETER: i64 = -8;
const REJECTED: i64 = -26;
const NO_SUCH_METHOD: i64 = -32601;

/// What any transaction costs here, in bitcoin per 1000 virtual bytes: two satoshi a byte.
const FEE_RATE: f64 = 0.000_02;

/// What a transaction costs at least, in the same unit.
const LEAST_FEE_RATE: f64 = 0.000_01;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: i64,
    pub(super) message: String,
}

fn failure(code: i64, message: impl Into<String>) -> Failure {
    Failure { code, message: message.into() }
}

/// One parameter, read as what it should be.
fn parameter<T: std::str::FromStr>(params: &Value, index: usize) -> Result<T, Failure> {
    let text = match &params[index] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.parse().map_err(|_| failure(INVALID_PARAMETER, format!("parameter {index} is not what it should be")))
}

impl Chain {
    /// Answers one call. `now` is in seconds since 1970.
    pub(super) fn call(&mut self, method: &str, params: &Value, now: u32) -> Result<Value, Failure> {
        match method {
            "getblockchaininfo" => {
                Ok(json!({"chain": "regtest", "blocks": self.height(), "bestblockhash": self.tip().block_hash()}))
            }
            "getblockhash" => {
                let block =
                    self.at(parameter(params, 0)?).ok_or_else(|| failure(INVALID_PARAMETER, "no such height"))?;
                Ok(json!(block.block_hash()))
            }
            "getblockheader" => self.header(parameter(params, 0)?),
            "getblock" => {
                let height = self.height_of(parameter(params, 0)?)?;
                let block = self.at(height).ok_or_else(|| failure(NOT_FOUND, "no such block"))?;
                Ok(json!(encode::serialize_hex(block)))
            }
            "getrawmempool" => Ok(self.pool.iter().map(|waiting| json!(waiting.txid)).collect()),
            "getmempoolentry" => {
                let txid: Txid = parameter(params, 0)?;
                let entry = self.pool.iter().find(|waiting| waiting.txid == txid);
                let entry = entry.ok_or_else(|| failure(NOT_FOUND, "not in the pool"))?;
                Ok(json!({"time": entry.time, "height": entry.height}))
            }
            "getrawtransaction" => {
                let transaction = self.transactions.get(&parameter::<Txid>(params, 0)?);
                let transaction = transaction.ok_or_else(|| failure(NOT_FOUND, "no such transaction"))?;
                Ok(json!(encode::serialize_hex(transaction)))
            }
            "gettxout" => {
                let coin = self.coins.get(&OutPoint::new(parameter(params, 0)?, parameter(params, 1)?));
                Ok(coin.map_or(Value::Null, |coin| json!({"value": coin.output.value.to_btc()})))
            }
            "getmempoolinfo" => Ok(json!({"size": self.pool.len(), "mempoolminfee": LEAST_FEE_RATE})),
            "estimatesmartfee" => Ok(json!({"feerate": FEE_RATE, "blocks": params[0]})),
            "sendrawtransaction" => {
                let transaction = encode::deserialize_hex(&parameter::<String>(params, 0)?);
                let transaction = transaction.map_err(|error| failure(INVALID_PARAMETER, error.to_string()))?;
                let txid = self.submit(transaction, now).map_err(|refused| failure(REJECTED, refused.to_string()))?;
                Ok(json!(txid))
            }
            _ => Err(failure(NO_SUCH_METHOD, format!("there is no `{method}` here"))),
        }
    }

    fn height_of(&self, hash: BlockHash) -> Result<u32, Failure> {
        self.heights.get(&hash).copied().ok_or_else(|| failure(NOT_FOUND, "no such block"))
    }

    fn header(&self, hash: BlockHash) -> Result<Value, Failure> {
        let height = self.height_of(hash)?;
        let found = self.at(height).zip(self.work.get(height as usize));
        let (block, work) = found.ok_or_else(|| failure(NOT_FOUND, "no such block"))?;
        let header = block.header;
        Ok(json!({
            "hash": hash,
            "height": height,
            "version": header.version.to_consensus(),
            "previousblockhash": header.prev_blockhash,
            "merkleroot": header.merkle_root,
            "time": header.time,
            "bits": format!("{:08x}", header.bits.to_consensus()),
            "nonce": header.nonce,
            "chainwork": work.to_be_bytes().to_lower_hex_string(),
        }))
    }
}
