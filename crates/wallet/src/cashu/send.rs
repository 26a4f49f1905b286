//! Giving tokens: coins of ours are changed at their mint for coins that are locked to somebody else.
//!
//! This is not left to the library: the secret of a locked coin is drawn at random, and the library keeps it only after the
//! mint has signed it. Who stops in between has paid for coins that nobody can ever spend. Here everything that is needed to
//! make the coins is written down first; what was not finished is asked for again with the same words, which a mint answers
//! with the same signatures.

use super::branch::Branch;
use super::memory::{Output, Sending, Sent};
use super::place::{hex, random};
use super::token;
use super::trouble::{own, short, undone, unknown, within};
use cdk::Amount;
use cdk::amount::{FeeAndAmounts, SplitTarget};
use cdk::dhke::{blind_message, construct_proofs};
use cdk::nuts::{
    BlindSignature, BlindedMessage, Conditions, CurrencyUnit, Id, KeySet, PreMintSecrets, Proof, Proofs, PublicKey,
    RestoreRequest, SecretKey, SpendingConditions, State, SwapRequest, Token,
};
use cdk::wallet::types::ProofInfo;
use rialto_payment::secret::Secret;
use rialto_payment::wallet::{Error, Lock};
use std::str::FromStr as _;

/// Fees and amounts decide on each other; this many steps are enough for any.
const STEPS: usize = 16;

impl Branch {
    /// A token that is worth this much to whoever it is locked to, in satoshis.
    pub(super) async fn send(&self, sat: u64, lock: Lock) -> Result<Secret, Error> {
        let condition = self.condition(lock)?;
        let turn = self.turn().await?;
        self.keysets().await?;
        let keyset = within(self.wallet.active_keyset()).await.map_err(|error| undone(&error))?;
        let sending = match self.plan(sat, lock.until, &condition, &keyset).await {
            Ok(sending) => sending,
            Err(error) => {
                turn.finish();
                return Err(error);
            }
        };
        let name = hex(&random::<16>().map_err(own)?);
        self.memory.write(&name, &sending).await?;
        let sent = self.swap(&name, &sending).await;
        if !matches!(sent, Err(Error::Unknown(_))) {
            turn.finish();
        }
        sent
    }

    fn condition(&self, lock: Lock) -> Result<SpendingConditions, Error> {
        let key = PublicKey::from_slice(&[&[2], &lock.key[..]].concat());
        let key = key.map_err(|_| Error::Refused("this is not a key that a token can be locked to".into()))?;
        let refund = lock.until.map(|_| vec![self.key.public_key()]);
        let conditions = Conditions::new(lock.until, None, refund, None, None, None);
        let conditions = conditions.map_err(|error| Error::Refused(short(error)))?;
        Ok(SpendingConditions::new_p2pk(key, lock.until.map(|_| conditions)))
    }

    /// Chooses the coins to give and draws those to get. Nothing is changed but the number of the next coin.
    async fn plan(
        &self,
        sat: u64,
        until: Option<u64>,
        condition: &SpendingConditions,
        keyset: &KeySet,
    ) -> Result<Sending, Error> {
        let fees: FeeAndAmounts =
            (keyset.input_fee_ppk, keyset.keys.iter().map(|(amount, _)| (*amount).into()).collect()).into();
        let worth = with_receivers_fee(sat, &fees)?;
        let (inputs, total, fee) = self.choose(worth).await?;
        let split = SplitTarget::None;
        let failed = |error: cdk::nuts::nut00::Error| Error::Refused(short(error));
        let locked =
            PreMintSecrets::with_conditions(keyset.id, worth.into(), &split, condition, &fees).map_err(failed)?;
        let change = Amount::from(total - fee - worth);
        let count = change.split_targeted(&split, &fees).map_err(|error| Error::Refused(short(error)))?.len();
        let count = u32::try_from(count).map_err(own)?;
        let next = self.memory.0.increment_keyset_counter(&keyset.id, count).await.map_err(own)?;
        let change = PreMintSecrets::from_seed(keyset.id, next - count, &self.seed.0, change, &split, &fees)
            .map_err(|error| Error::Refused(short(error)))?;
        let mut outputs: Vec<Output> = locked.secrets.iter().chain(&change.secrets).map(output).collect();
        // In order of their worth, so that the mint does not see which of them leave.
        outputs.sort_by_key(|output| output.sat);
        let (mint, keyset) = (self.mint.to_string(), keyset.id.to_string());
        Ok(Sending { mint, keyset, inputs, outputs, sat, until })
    }

    /// The largest coins first: each costs a fee.
    async fn choose(&self, worth: u64) -> Result<(Vec<String>, u64, u64), Error> {
        let mut coins = self.wallet.get_unspent_proofs().await.map_err(own)?;
        coins.sort_by_key(|coin| std::cmp::Reverse(coin.amount));
        let known = self.known_keysets();
        let (mut inputs, mut total, mut thousandths) = (Vec::new(), 0_u64, 0_u64);
        for coin in coins {
            let fee = known.iter().find(|keyset| keyset.id == coin.keyset_id).map_or(0, |keyset| keyset.input_fee_ppk);
            inputs.push(coin.y().map_err(own)?.to_hex());
            total = total.saturating_add(coin.amount.into());
            thousandths = thousandths.saturating_add(fee);
            let fee = thousandths.div_ceil(1000);
            if total >= worth.saturating_add(fee) {
                return Ok((inputs, total, fee));
            }
        }
        Err(Error::Insufficient)
    }

    /// Changes what was planned, and keeps the token before anybody sees it.
    async fn swap(&self, name: &str, sending: &Sending) -> Result<Secret, Error> {
        let inputs = self.inputs(sending).await?;
        let ys = inputs.iter().map(|input| input.y).collect::<Vec<_>>();
        self.memory.0.update_proofs_state(ys.clone(), State::Reserved).await.map_err(own)?;
        let inputs: Proofs = inputs.into_iter().map(|input| input.proof).collect();
        let request = SwapRequest::new(inputs.clone(), messages(sending)?);
        match within(self.wallet.mint_connector().post_swap(request)).await {
            Ok(response) => self.keep(name, sending, response.signatures).await,
            Err(error) if error.is_definitive_failure() => {
                self.memory.0.update_proofs_state(ys, State::Unspent).await.map_err(own)?;
                self.memory.remove::<Sending>(name).await?;
                Err(undone(&error))
            }
            Err(cdk::Error::TokenAlreadySpent) => {
                // By another wallet with our seed. Whatever is left of them is kept.
                within(self.wallet.sync_proofs_state(inputs)).await.map_err(|error| unknown(&error))?;
                self.memory.remove::<Sending>(name).await?;
                Err(Error::Refused("coins of ours were spent elsewhere; try again".into()))
            }
            Err(error) => Err(unknown(&error)),
        }
    }

    /// Brings what was begun to its end: the mint has signed it, or signs it now. Only while it is our turn.
    pub(super) async fn resume_sending(&self, name: &str, sending: &Sending) -> Result<(), Error> {
        self.keysets().await?;
        let messages = messages(sending)?;
        let request = RestoreRequest { outputs: messages.clone() };
        let known =
            within(self.wallet.mint_connector().post_restore(request)).await.map_err(|error| unknown(&error))?;
        let signature = |message: &BlindedMessage| {
            let at = known.outputs.iter().position(|known| known.blinded_secret == message.blinded_secret)?;
            known.signatures.get(at).cloned()
        };
        let signatures: Vec<BlindSignature> = messages.iter().filter_map(signature).collect();
        let ended = if signatures.len() == messages.len() {
            self.keep(name, sending, signatures).await
        } else {
            self.swap(name, sending).await
        };
        match ended {
            Err(error @ (Error::Unknown(_) | Error::Unreachable(_) | Error::Malformed(_))) => Err(error),
            // Done, or never to be done.
            _ => Ok(()),
        }
    }

    /// Makes the coins out of the mint's signatures. May be done again after a crash: it makes the same coins.
    async fn keep(&self, name: &str, sending: &Sending, signatures: Vec<BlindSignature>) -> Result<Secret, Error> {
        let unusable = |why: &str| Error::Malformed(format!("the mint's signatures cannot be used: {why}"));
        let id = Id::from_str(&sending.keyset).map_err(own)?;
        let keyset = within(self.wallet.keyset(id)).await.map_err(|error| unknown(&error))?;
        let messages = messages(sending)?;
        let is_fit = |(signature, message): (&BlindSignature, &BlindedMessage)| {
            let key = keyset.keys.amount_key(message.amount);
            signature.amount == message.amount
                && signature.keyset_id == message.keyset_id
                && key.is_some_and(|key| {
                    signature.dleq.is_none() || signature.verify_dleq(key, message.blinded_secret).is_ok()
                })
        };
        if signatures.len() != messages.len() || !signatures.iter().zip(&messages).all(is_fit) {
            return Err(unusable("they are not for what it was asked to sign"));
        }
        let (mut blindings, mut secrets) = (Vec::new(), Vec::new());
        for output in &sending.outputs {
            blindings.push(SecretKey::from_hex(&output.blinding).map_err(own)?);
            secrets.push(cdk::secret::Secret::new(output.secret.clone()));
        }
        let coins =
            construct_proofs(signatures, blindings, secrets, &keyset.keys).map_err(|error| unusable(&short(error)))?;
        let (change, leaving): (Vec<_>, Vec<_>) =
            coins.into_iter().zip(&sending.outputs).partition(|(_, output)| output.index.is_some());
        let leaving: Proofs = leaving.into_iter().map(|(coin, _)| coin).collect();
        let token = Token::new(self.mint.clone(), leaving, None, CurrencyUnit::Sat).to_string();
        let (mint, sat, until) = (sending.mint.clone(), sending.sat, sending.until);
        self.memory.write(&token::parse(&token)?.id(), &Sent { mint, token: token.clone(), sat, until }).await?;
        let change =
            change.into_iter().map(|(coin, output)| self.own_coin(coin, output)).collect::<Result<Vec<_>, _>>()?;
        let spent = sending.inputs.iter().map(PublicKey::from_hex).collect::<Result<Vec<_>, _>>().map_err(own)?;
        self.memory.0.update_proofs(change, spent).await.map_err(own)?;
        self.memory.remove::<Sending>(name).await?;
        Ok(Secret::new(token))
    }

    fn own_coin(&self, coin: Proof, output: &Output) -> Result<ProofInfo, Error> {
        let info = ProofInfo::new(coin, self.mint.clone(), State::Unspent, CurrencyUnit::Sat).map_err(own)?;
        Ok(match output.index {
            Some(index) => info.with_derivation_index(index),
            None => info,
        })
    }

    async fn inputs(&self, sending: &Sending) -> Result<Vec<ProofInfo>, Error> {
        let ys = sending.inputs.iter().map(PublicKey::from_hex).collect::<Result<Vec<_>, _>>().map_err(own)?;
        let inputs = self.memory.0.get_proofs_by_ys(ys).await.map_err(own)?;
        if inputs.len() == sending.inputs.len() { Ok(inputs) } else { Err(own("coins are missing")) }
    }
}

/// What must leave so that this much remains after the receiver's own change.
fn with_receivers_fee(sat: u64, fees: &FeeAndAmounts) -> Result<u64, Error> {
    let mut worth = sat;
    for _ in 0..STEPS {
        let coins = Amount::from(worth).split_targeted(&SplitTarget::None, fees);
        let coins = coins.map_err(|error| Error::Refused(short(error)))?.len() as u64;
        let needed = sat.saturating_add(coins.saturating_mul(fees.fee()).div_ceil(1000));
        if worth >= needed {
            return Ok(worth);
        }
        worth = needed;
    }
    Err(Error::Refused("the mint's fees cannot be met".into()))
}

fn output(secret: &cdk::nuts::PreMint) -> Output {
    Output {
        secret: secret.secret.to_string(),
        blinding: secret.r.to_secret_hex(),
        sat: secret.amount.into(),
        index: secret.derivation_index,
    }
}

/// What the mint is asked to sign; the same each time.
fn messages(sending: &Sending) -> Result<Vec<BlindedMessage>, Error> {
    let id = Id::from_str(&sending.keyset).map_err(own)?;
    let message = |output: &Output| {
        let blinding = SecretKey::from_hex(&output.blinding).map_err(own)?;
        let (blinded, _) = blind_message(output.secret.as_bytes(), Some(blinding)).map_err(own)?;
        Ok(BlindedMessage::new(output.sat.into(), id, blinded))
    };
    sending.outputs.iter().map(message).collect()
}
