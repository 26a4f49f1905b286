//! Taking tokens: they are changed at their mint for coins that only we know.

use super::branch::{Branch, MARK};
use super::memory::Received;
use super::place::{hex, random};
use super::token::Parsed;
use super::trouble::{own, undone, unknown, within};
use cdk::wallet::ReceiveOptions;
use rialto_payment::wallet::Error;
use std::collections::HashMap;

impl Branch {
    /// What came in with this token before, in satoshis. Something that was begun is brought to its end first.
    pub(super) async fn received(&self, token: &Parsed) -> Result<Option<u64>, Error> {
        let id = token.id();
        match self.memory.read::<Received>(&id).await? {
            None => return Ok(None),
            Some(Received::Done { sat }) => return Ok(Some(sat)),
            Some(Received::Begun { .. }) => {}
        }
        let turn = self.turn().await?;
        let fate = self.fate(&id).await?;
        turn.finish();
        Ok(fate)
    }

    /// Changes a token, once; in satoshis.
    pub(super) async fn receive(&self, token: &Parsed) -> Result<u64, Error> {
        let id = token.id();
        let turn = self.turn().await?;
        // Someone else may have had the same token in hand while we waited.
        if let Some(sat) = self.fate(&id).await? {
            turn.finish();
            return Ok(sat);
        }
        let known = self.keysets().await?;
        let fee = token.fee(&known);
        if token.sat <= fee {
            turn.finish();
            return Err(Error::Refused("the token is not worth the fee of its mint".into()));
        }
        let proofs = token.proofs(&known)?;
        let attempt = hex(&random::<16>().map_err(own)?);
        self.memory.write(&id, &Received::Begun { attempt: attempt.clone() }).await?;
        let options = ReceiveOptions {
            p2pk_signing_keys: vec![self.key.clone()],
            metadata: HashMap::from([(MARK.to_owned(), attempt)]),
            ..ReceiveOptions::default()
        };
        // In place of the token the library keeps its digest, by which we find it again.
        let swapped = within(self.wallet.receive_proofs(proofs, options, None, Some(id.clone()))).await;
        let error = match swapped {
            Ok(amount) => {
                let sat = amount.into();
                self.memory.write(&id, &Received::Done { sat }).await?;
                turn.finish();
                return Ok(sat);
            }
            Err(error) => error,
        };
        // Whether anything was done, only the mint knows.
        self.recover().await.map_err(|_| unknown(&error))?;
        let fate = self.fate(&id).await?;
        if fate.is_none() {
            self.memory.remove::<Received>(&id).await?;
        }
        turn.finish();
        fate.ok_or_else(|| refusal(&error))
    }
}

fn refusal(error: &cdk::Error) -> Error {
    match error {
        cdk::Error::NUT11(_)
        | cdk::Error::NUT14(_)
        | cdk::Error::PreimageNotProvided
        | cdk::Error::P2PKConditionsNotMet(_) => Error::Refused("the token is locked, and not to us".into()),
        cdk::Error::NUT12(_) => Error::Refused("the token's coins are not signed by its mint".into()),
        error => undone(error),
    }
}
