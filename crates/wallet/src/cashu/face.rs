//! What the wallet looks like from outside: a Lightning wallet that also takes and gives ecash.

use super::branch::Branch;
use super::memory::{Asked, Sent};
use super::{Address, NoAddress};
use super::{Cap, Cashu, msat, token};
use rialto_payment::amount::Msat;
use rialto_payment::invoice::Invoice;
use rialto_payment::secret::{PaymentHash, Preimage, Secret};
use rialto_payment::wallet::{Abilities, Error, Later, Lock, Order, Payment, Purse, Receipt, Standing, Token, Wallet};

impl Wallet for Cashu {
    fn name(&self) -> String {
        format!("cashu+{}", self.mints().join(","))
    }

    fn abilities(&self) -> Later<'_, Abilities> {
        Box::pin(async { Ok(Abilities { hold: false, pay: true }) })
    }

    fn make<'a>(&'a self, order: &'a Order) -> Later<'a, Invoice> {
        Box::pin(self.ask(order))
    }

    fn hold<'a>(&'a self, _: &'a Order, _: PaymentHash) -> Later<'a, Invoice> {
        Box::pin(async { Err(Error::Unsupported("mints do not hold payments")) })
    }

    fn settle<'a>(&'a self, _: &'a Preimage) -> Later<'a, ()> {
        Box::pin(async { Err(Error::Unsupported("mints do not hold payments")) })
    }

    fn cancel(&self, _: PaymentHash) -> Later<'_, ()> {
        Box::pin(async { Err(Error::Unsupported("mints do not hold payments")) })
    }

    fn look_up(&self, hash: PaymentHash) -> Later<'_, Standing> {
        Box::pin(async move {
            match self.memory.read::<Asked>(&hash.to_string()).await? {
                Some(asked) => self.branch(&asked.mint)?.look_up(hash, &asked).await,
                None => Ok(Standing::Missing),
            }
        })
    }

    fn pay<'a>(&'a self, invoice: &'a Invoice, max_fee: Msat) -> Later<'a, Receipt> {
        Box::pin(self.pay_once(invoice, max_fee))
    }

    fn look_up_payment(&self, hash: PaymentHash) -> Later<'_, Payment> {
        Box::pin(self.payment(hash))
    }

    fn balance(&self) -> Later<'_, Msat> {
        Box::pin(async { msat(self.sat().await?) })
    }
}

impl Purse for Cashu {
    fn mints(&self) -> Vec<String> {
        self.branches.iter().map(|branch| branch.mint.to_string()).collect()
    }

    fn read(&self, token: &Secret) -> Result<Token, Error> {
        let token = token::parse(token.reveal())?;
        let mint = token.mint.to_string();
        let known = self.branch(&mint).map(Branch::known_keysets).unwrap_or_default();
        let fee = msat(token.fee(&known))?;
        Ok(Token { mint, amount: token.amount, fee, lock: token.lock, coins: token.coins })
    }

    fn receive<'a>(&'a self, token: &'a Secret) -> Later<'a, Msat> {
        Box::pin(self.take(token, Cap::Counts))
    }

    fn send<'a>(&'a self, mint: &'a str, amount: Msat, lock: Lock) -> Later<'a, Secret> {
        Box::pin(async move { self.branch(mint)?.send(amount.sat_rounded_up(), lock).await })
    }

    fn take_back<'a>(&'a self, token: &'a Secret) -> Later<'a, Msat> {
        Box::pin(async move {
            let id = token::parse(token.reveal())?.id();
            let taken = self.take(token, Cap::DoesNotCount).await;
            // Ours again, or somebody else's for good.
            if taken.is_ok() || taken == Err(Error::Refused("already spent".into())) {
                self.memory.remove::<Sent>(&id).await?;
            }
            taken
        })
    }

    fn sweep<'a>(&'a self, keep: Msat, address: &'a str) -> Later<'a, Msat> {
        Box::pin(async move {
            let address: Address = address.parse().map_err(|error: NoAddress| Error::Refused(error.to_string()))?;
            Cashu::sweep(self, keep, &address).await
        })
    }
}
