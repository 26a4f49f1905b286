//! The wallet's coins at one mint.
//!
//! Everything that moves coins takes its turn, one after the other: the library's own recovery touches whatever it finds
//! unfinished, and must not find what is merely being done. A turn that was not finished, since the process died or whoever
//! waited for it did not wait any longer, is cleaned up by the next.

use super::memory::{Memory, Received, Recovering, Sending};
use super::place::Seed;
use super::trouble::{own, undone, within};
use cdk::mint_url::MintUrl;
use cdk::nuts::{CheckStateRequest, CurrencyUnit, KeySetInfo, MintInfo, PublicKey, RestoreRequest, SecretKey, State};
use cdk::wallet::types::{OperationData, ReceiveSagaState, TransactionDirection, TransactionStatus, WalletSagaState};
use cdk::wallet::{Wallet as Cdk, WalletBuilder};
use rialto_payment::wallet::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, MutexGuard};

/// What a transaction of the library's is marked with, so that we find ours.
pub(super) const MARK: &str = "rialto";

#[derive(Debug)]
pub(super) struct Branch {
    pub(super) mint: MintUrl,
    pub(super) wallet: Cdk,
    pub(super) memory: Memory,
    pub(super) seed: Seed,
    /// Whom tokens are locked to, and who takes back what was not spent.
    pub(super) key: SecretKey,
    turn: Mutex<()>,
    /// Whether the last turn was finished.
    is_clean: AtomicBool,
}

/// The right to move coins.
pub(super) struct Turn<'a> {
    _guard: MutexGuard<'a, ()>,
    is_clean: &'a AtomicBool,
}

impl Turn<'_> {
    /// Nothing is left undone.
    pub(super) fn finish(self) {
        self.is_clean.store(true, Ordering::Release);
    }
}

impl Branch {
    pub(super) async fn open(mint: MintUrl, memory: Memory, seed: Seed, key: SecretKey) -> Result<Self, cdk::Error> {
        let wallet = WalletBuilder::new()
            .mint_url(mint.clone())
            .unit(CurrencyUnit::Sat)
            .localstore(memory.0.clone())
            .seed(seed.0)
            // Each coin costs a fee when it is spent.
            .target_proof_count(1)
            // A provider is paid more often than the library's default of twenty requests a minute would let it be.
            .without_rate_limiting()
            .use_http_subscription()
            .build()?;
        // From the store only, so that fees are known before the mint was asked.
        let _ = wallet.metadata_cache.load_cached(&memory.0).await;
        Ok(Self { mint, wallet, memory, seed, key, turn: Mutex::default(), is_clean: AtomicBool::new(false) })
    }

    pub(super) fn is(&self, mint: &str) -> bool {
        mint.parse().is_ok_and(|mint: MintUrl| mint == self.mint)
    }

    /// Waits for our turn, and cleans up after one that was not finished.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, Error> {
        let guard = self.turn.lock().await;
        if !self.is_clean.swap(false, Ordering::AcqRel) {
            self.recover().await?;
        }
        Ok(Turn { _guard: guard, is_clean: &self.is_clean })
    }

    /// The keysets as they were last seen, without asking.
    pub(super) fn known_keysets(&self) -> Vec<KeySetInfo> {
        let metadata = self.wallet.metadata_cache.get_cached();
        metadata
            .map(|metadata| metadata.keysets.values().map(|keyset| (**keyset).clone()).collect())
            .unwrap_or_default()
    }

    /// What the mint says of itself. One that cannot repeat its signatures (NUT-09) is not used: what is lost on its way from
    /// there is lost for good.
    pub(super) async fn info(&self) -> Result<MintInfo, Error> {
        let info = within(self.wallet.load_mint_info()).await.map_err(|error| undone(&error))?;
        match info.nuts.nut09.supported {
            true => Ok(info),
            false => Err(Error::Refused("the mint cannot restore coins (NUT-09)".into())),
        }
    }

    /// The keysets, asked for where they are not known.
    pub(super) async fn keysets(&self) -> Result<Vec<KeySetInfo>, Error> {
        self.info().await?;
        within(self.wallet.keysets(cdk::wallet::types::KeysetLoadPolicy::default()))
            .await
            .map_err(|error| undone(&error))?;
        Ok(self.known_keysets())
    }

    /// What can be spent at this mint, in satoshis.
    pub(super) async fn sat(&self) -> Result<u64, Error> {
        self.wallet.total_balance().await.map(Into::into).map_err(own)
    }

    /// Finds out how everything has ended that was begun and not finished. Only while it is our turn.
    pub(super) async fn recover(&self) -> Result<(), Error> {
        self.note_receipts().await?;
        within(async { self.wallet.recover_incomplete_sagas().await.map(|_| ()) })
            .await
            .map_err(|error| undone(&error))?;
        self.judge_receipts().await?;
        for (name, sending) in self.memory.all::<Sending>().await? {
            if !self.is(&sending.mint) {
                continue;
            }
            match self.resume_sending(&name, &sending).await {
                // What the mint answers wrongly it will answer wrongly again; it must not hold up everything else.
                Ok(()) | Err(Error::Malformed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The library takes a token for received if it has been spent, by whomever. So that we can tell, we keep what the mint was
    /// asked to sign before the library forgets it.
    async fn note_receipts(&self) -> Result<(), Error> {
        for saga in self.memory.0.get_incomplete_sagas().await.map_err(own)? {
            let is_sent = matches!(saga.state, WalletSagaState::Receive(ReceiveSagaState::SwapRequested));
            let OperationData::Receive(data) = saga.data else { continue };
            if !is_sent || saga.mint_url != self.mint {
                continue;
            }
            if let (Some(token), Some(outputs)) = (data.token, data.blinded_messages) {
                let record = Recovering { mint: self.mint.to_string(), token, outputs };
                self.memory.write(&saga.id.to_string(), &record).await?;
            }
        }
        Ok(())
    }

    /// Asks the mint what it has signed of that.
    async fn judge_receipts(&self) -> Result<(), Error> {
        let unfinished = self.memory.0.get_incomplete_sagas().await.map_err(own)?;
        for (name, record) in self.memory.all::<Recovering>().await? {
            if !self.is(&record.mint) {
                continue;
            }
            let request = RestoreRequest { outputs: record.outputs };
            let client = self.wallet.mint_connector();
            let signed = match within(client.post_restore(request)).await {
                Ok(restored) => restored.signatures,
                // It does not say, and will not. That must not hold up everything else; who asks for the token is told.
                Err(error) if error.is_definitive_failure() => continue,
                Err(error) => return Err(undone(&error)),
            };
            let sat = signed.iter().map(|signature| u64::from(signature.amount)).fold(0, u64::saturating_add);
            if let Some(saga) = unfinished.iter().find(|saga| saga.id.to_string() == name) {
                let inputs = self.memory.0.get_reserved_proofs(&saga.id).await.map_err(own)?;
                let ys: Vec<PublicKey> = inputs.iter().map(|input| input.y).collect();
                // The library keeps what somebody else has spent for ever, and asks again each time.
                if sat > 0 || ys.is_empty() || !self.are_spent(ys.clone()).await? {
                    // Still open.
                    continue;
                }
                self.memory.0.update_proofs(Vec::new(), ys).await.map_err(own)?;
                self.memory.0.delete_saga(&saga.id).await.map_err(own)?;
            }
            match sat {
                0 => self.memory.remove::<Received>(&record.token).await?,
                sat => self.memory.write(&record.token, &Received::Done { sat }).await?,
            }
            self.memory.remove::<Recovering>(&name).await?;
        }
        Ok(())
    }

    /// Whether the mint has taken all of these coins.
    pub(super) async fn are_spent(&self, ys: Vec<PublicKey>) -> Result<bool, Error> {
        let count = ys.len();
        let states = within(self.wallet.mint_connector().post_check_state(CheckStateRequest { ys })).await;
        let states = states.map_err(|error| undone(&error))?.states;
        Ok(states.len() == count && states.iter().all(|state| state.state == State::Spent))
    }

    /// What came in with a token that was begun or received before; `None` if nothing did and nothing will. Only while it is
    /// our turn, after recovery.
    pub(super) async fn fate(&self, token: &str) -> Result<Option<u64>, Error> {
        let attempt = match self.memory.read::<Received>(token).await? {
            None => return Ok(None),
            Some(Received::Done { sat }) => return Ok(Some(sat)),
            Some(Received::Begun { attempt }) => attempt,
        };
        if self.memory.all::<Recovering>().await?.iter().any(|(_, record)| record.token == token) {
            return Err(Error::Unknown("the mint has not said yet what became of the token".into()));
        }
        // Nothing unfinished is left of it. Either the library finished, and we were stopped before we wrote that down; or it
        // was never sent.
        let incoming = Some(TransactionDirection::Incoming);
        let done = self.memory.0.list_transactions(Some(self.mint.clone()), incoming, None).await.map_err(own)?;
        let ours = |transaction: &&cdk::wallet::types::Transaction| {
            transaction.status == TransactionStatus::Completed && transaction.metadata.get(MARK) == Some(&attempt)
        };
        let Some(done) = done.iter().find(ours) else { return Ok(None) };
        let sat = done.amount.into();
        self.memory.write(token, &Received::Done { sat }).await?;
        Ok(Some(sat))
    }
}
