//! Reading tokens, without asking anybody.
//!
//! A token comes from a stranger, and a lock is only worth something if the mint sees the same lock as we do. So a coin counts
//! as locked only if what stands in it can be understood in one way: exactly the shape of NUT-10, every tag known and there
//! once, one key, one signature. Everything else counts as open to anybody. What a token says of its amount is believed only
//! after its mint has changed it.

use super::place::hex;
use cdk::dhke::hash_to_curve;
use cdk::mint_url::MintUrl;
use cdk::nuts::nut02::ShortKeysetId;
use cdk::nuts::{CurrencyUnit, Id, KeySetInfo, Proofs, Token as Cashu};
use cdk::secret::Secret as CoinSecret;
use rialto_payment::amount::Msat;
use rialto_payment::wallet::{Error, Lock};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use std::collections::HashSet;

/// The longest token that is read. A coin takes some 300 characters, one with a lock about 700.
const MAX_LENGTH: usize = 128 * 1024;

/// The most coins in a token. Coins double in value, so that few are ever needed; each costs us a hash to a curve.
const MAX_COINS: usize = 128;

/// The longest secret of a coin; Nutshell takes no longer ones.
const MAX_SECRET: usize = 1024;

/// A token that could be read.
pub(super) struct Parsed {
    pub(super) mint: MintUrl,
    pub(super) sat: u64,
    pub(super) amount: Msat,
    pub(super) lock: Option<Lock>,
    pub(super) coins: Vec<[u8; 33]>,
    token: Cashu,
    keysets: Vec<ShortKeysetId>,
}

impl Parsed {
    /// The same for the same coins, in whatever order and whatever they claim to be worth.
    pub(super) fn id(&self) -> String {
        let mut coins = self.coins.clone();
        coins.sort_unstable();
        hex(digest(&SHA256, &coins.concat()).as_ref())
    }

    /// What the mint will keep of it, as far as its keysets are known; in satoshis.
    pub(super) fn fee(&self, known: &[KeySetInfo]) -> u64 {
        let of = |short: &ShortKeysetId| {
            let id = Id::from_short_keyset_id(short, known).ok()?;
            known.iter().find(|keyset| keyset.id == id).map(|keyset| keyset.input_fee_ppk)
        };
        let fees = self.keysets.iter().filter_map(of).fold(0, u64::saturating_add);
        fees.div_ceil(1000)
    }

    /// Its coins, without what others may have signed on them.
    pub(super) fn proofs(&self, known: &[KeySetInfo]) -> Result<Proofs, Error> {
        let proofs = self.token.proofs(known).map_err(|_| refused("its coins are of no keyset of this mint"))?;
        Ok(proofs.into_iter().map(|proof| cdk::nuts::Proof { witness: None, ..proof }).collect())
    }
}

fn refused(words: &str) -> Error {
    Error::Refused(words.to_owned())
}

/// Reads a token of either version, in satoshis and of one mint.
pub(super) fn parse(text: &str) -> Result<Parsed, Error> {
    let text = text.trim();
    let text = text.strip_prefix("cashu:").unwrap_or(text);
    if text.len() > MAX_LENGTH {
        return Err(refused("the token is too long"));
    }
    // The library's words may repeat parts of the token.
    let token: Cashu = text.parse().map_err(|_| refused("this is not a token"))?;
    let mint = token.mint_url().map_err(|_| refused("the token is not of one mint"))?;
    if token.unit().is_some_and(|unit| unit != CurrencyUnit::Sat) {
        return Err(refused("the token is not in satoshis"));
    }
    let coins = coins(&token);
    if coins.is_empty() || coins.len() > MAX_COINS {
        return Err(refused("the token has no coins, or too many"));
    }
    let mut sat: u64 = 0;
    let mut ids = Vec::with_capacity(coins.len());
    for coin in &coins {
        if coin.sat == 0 || coin.secret.as_bytes().len() > MAX_SECRET {
            return Err(refused("the token has an impossible coin"));
        }
        sat = sat.checked_add(coin.sat).ok_or_else(|| refused("the token is worth more than there is"))?;
        let id = hash_to_curve(coin.secret.as_bytes()).map_err(|_| refused("the token has an impossible coin"))?;
        ids.push(id.to_bytes());
    }
    if ids.iter().collect::<HashSet<_>>().len() != ids.len() {
        return Err(refused("a coin is in the token twice"));
    }
    let amount = Msat::from_sat(sat).ok_or_else(|| refused("the token is worth more than there is"))?;
    let mut locks = coins.iter().map(Coin::lock);
    let first = locks.next().flatten();
    let lock = first.filter(|first| locks.all(|lock| lock.as_ref() == Some(first)));
    let keysets = coins.iter().map(|coin| coin.keyset.clone()).collect();
    Ok(Parsed { mint, sat, amount, lock, coins: ids, keysets, token })
}

struct Coin<'a> {
    sat: u64,
    keyset: &'a ShortKeysetId,
    secret: &'a CoinSecret,
    /// Its key is not what stands in it (NUT-28).
    is_blinded: bool,
}

fn coins(token: &Cashu) -> Vec<Coin<'_>> {
    match token {
        Cashu::TokenV3(token) => token
            .token
            .iter()
            .flat_map(|part| &part.proofs)
            .map(|proof| Coin {
                sat: proof.amount.into(),
                keyset: &proof.keyset_id,
                secret: &proof.secret,
                is_blinded: false,
            })
            .collect(),
        Cashu::TokenV4(token) => token
            .token
            .iter()
            .flat_map(|part| part.proofs.iter().map(move |proof| (&part.keyset_id, proof)))
            .map(|(keyset, proof)| Coin {
                sat: proof.amount.into(),
                keyset,
                secret: &proof.secret,
                is_blinded: proof.p2pk_e.is_some(),
            })
            .collect(),
    }
}

/// What stands in a locked coin (NUT-10). A field that is there twice is no field at all.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    #[serde(rename = "nonce")]
    _nonce: String,
    data: String,
    #[serde(default)]
    tags: Vec<Vec<String>>,
}

impl Coin<'_> {
    /// Who alone can spend it, if that is beyond doubt.
    fn lock(&self) -> Option<Lock> {
        if self.is_blinded {
            return None;
        }
        let (kind, condition): (String, Condition) = serde_json::from_slice(self.secret.as_bytes()).ok()?;
        if kind != "P2PK" {
            return None;
        }
        let key = key(&condition.data)?;
        let mut until = None;
        let mut seen = HashSet::new();
        for tag in &condition.tags {
            let (name, values) = tag.split_first()?;
            if !seen.insert(name.as_str()) {
                return None;
            }
            match (name.as_str(), values) {
                ("sigflag", [flag]) if flag == "SIG_INPUTS" => {}
                ("n_sigs" | "n_sigs_refund", [number]) if number == "1" => {}
                ("locktime", [seconds]) => until = Some(number(seconds)?),
                // Of no use before the time; whose they are does not matter.
                ("refund", [_, ..]) => {}
                _ => return None,
            }
        }
        // Some mints let the refund keys sign at once if there is no time.
        if seen.contains("refund") && until.is_none() {
            return None;
        }
        Some(Lock { key, until })
    }
}

/// The key without its sign, which a signature does not show.
fn key(text: &str) -> Option<[u8; 32]> {
    let rest = text.strip_prefix("02").or_else(|| text.strip_prefix("03"))?;
    if rest.len() != 64 || !rest.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    text.parse::<cdk::nuts::PublicKey>().ok().map(|key| key.x_only_public_key().serialize())
}

/// A number as everybody writes it.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    // Before 10^12 nobody takes seconds for anything else; zero means "none" to some.
    (number.to_string() == text && (1..1_000_000_000_000).contains(&number)).then_some(number)
}

#[cfg(test)]
mod tests;
