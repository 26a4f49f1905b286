//! Getting money out of the mints: tokens that nobody took, and everything above an amount to a Lightning address.

use super::address::Address;
use super::branch::Branch;
use super::memory::Sent;
use super::trouble::own;
use super::{Cashu, msat, token};
use cdk::nuts::PublicKey;
use rialto_payment::amount::Msat;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Error, Receipt};

/// A token of ours that is not known to have been spent.
#[derive(Debug, Clone)]
pub struct Pending {
    pub mint: String,
    /// What it is worth to whom it is locked to.
    pub amount: Msat,
    /// When it can be taken back, in seconds since 1970; `None` for never.
    pub until: Option<u64>,
    pub token: Secret,
}

/// How often the amount is made smaller when the mint's fee turns out to be more than was left for it.
const TRIES: usize = 4;

impl Cashu {
    /// The tokens that were sent and not spent, as far as their mints can be asked.
    pub async fn pending(&self) -> Result<Vec<Pending>, Error> {
        // What was begun and not finished may have become a token.
        self.catch_up().await;
        let mut pending = Vec::new();
        for (id, sent) in self.memory.all::<Sent>().await? {
            let is_spent = match self.branch(&sent.mint) {
                Ok(branch) => branch.is_spent(&sent.token).await.unwrap_or(false),
                Err(_) => false,
            };
            if is_spent {
                self.memory.remove::<Sent>(&id).await?;
                continue;
            }
            let Sent { mint, token, sat, until } = sent;
            pending.push(Pending { mint, amount: msat(sat)?, until, token: Secret::new(token) });
        }
        Ok(pending)
    }

    /// Pays everything above `keep` to an address, mint by mint; says what has left. What is too little for the fees stays.
    pub async fn sweep(&self, keep: Msat, address: &Address) -> Result<Msat, Error> {
        let mut above = self.sat().await?.saturating_sub(keep.sat_rounded_up());
        let mut left = Msat::ZERO;
        for branch in &self.branches {
            let most = branch.sat().await?.min(above);
            let Some(paid) = self.empty(branch, most, address).await? else { continue };
            above = above.saturating_sub(paid.sat_rounded_up());
            left = left.checked_add(paid).unwrap_or(left);
        }
        Ok(left)
    }

    /// Pays as much as `most` allows for with its fees; `None` if that is nothing.
    async fn empty(&self, branch: &Branch, most: u64, address: &Address) -> Result<Option<Msat>, Error> {
        // The mint names its fee only for an invoice, and the invoice is only given for an amount.
        let mut sat = most.saturating_sub(most / 100 + 2);
        for _ in 0..TRIES {
            if sat == 0 {
                return Ok(None);
            }
            let amount = msat(sat)?;
            let invoice = address.invoice(&self.agent, amount).await?;
            let fee = msat(most - sat)?;
            match branch.pay(&invoice, fee).await {
                Ok(Receipt { .. }) => return Ok(Some(amount)),
                Err(Error::Insufficient | Error::Refused(_)) => {
                    let reserve = u64::from(branch.offer(&invoice).await?.fee_reserve);
                    sat = sat.min(most.saturating_sub(reserve)).saturating_sub(most / 100 + 1);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Branch {
    /// Whether the mint has taken all coins of a token.
    async fn is_spent(&self, text: &str) -> Result<bool, Error> {
        let coins = token::parse(text)?.coins;
        let ys = coins.iter().map(|coin| PublicKey::from_slice(coin)).collect::<Result<Vec<_>, _>>();
        self.are_spent(ys.map_err(own)?).await
    }
}
