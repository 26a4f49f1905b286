//! What we must remember beside the coins themselves, in the same store: which tokens were begun, sent and received, and
//! which invoice and payment belongs to which quote of which mint. Each record is written and synced on its own; the order in
//! which they are written is what makes a crash harmless (see [`super`]).

use super::trouble::own;
use cdk::cdk_database::{Error as StoreError, WalletDatabase};
use cdk::nuts::BlindedMessage;
use cdk_redb::WalletRedbDatabase;
use rialto_payment::wallet::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

pub(super) type Store = Arc<dyn WalletDatabase<StoreError> + Send + Sync>;

/// The part of the store that is ours and not the library's.
const OURS: &str = "rialto";

/// A kind of record, by the name of its shelf.
pub(super) trait Record: Serialize + DeserializeOwned {
    const SHELF: &'static str;
}

/// A token that came, by the digest of its coins.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Received {
    /// Its mint may have been asked to change it. The attempt tells apart what different tries left behind.
    Begun { attempt: String },
    /// Its worth is ours.
    Done { sat: u64 },
}

/// A try of the library's to find out how a token that was begun has ended, by the name of its saga.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Recovering {
    pub(super) mint: String,
    pub(super) token: String,
    /// What the mint was asked to sign. It remembers whether it has.
    pub(super) outputs: Vec<BlindedMessage>,
}

/// An invoice of ours, by its payment hash.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) mint: String,
    pub(super) quote: String,
    pub(super) sat: u64,
    /// Seconds since 1970.
    pub(super) expires: u64,
    pub(super) is_settled: bool,
}

/// A payment of ours, by its payment hash.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Paying {
    pub(super) mint: String,
    pub(super) quote: String,
}

/// A token that left and is not known to have been spent, by the digest of its coins.
#[derive(Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) mint: String,
    pub(super) token: String,
    pub(super) sat: u64,
    pub(super) until: Option<u64>,
}

/// Coins that are being changed into a token, by a random name.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Sending {
    pub(super) mint: String,
    pub(super) keyset: String,
    /// The coins that are given.
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<Output>,
    pub(super) sat: u64,
    pub(super) until: Option<u64>,
}

/// A coin to be: all that is needed to make it out of the mint's signature.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) secret: String,
    pub(super) blinding: String,
    pub(super) sat: u64,
    /// Its place in the row of coins made from the seed; `None` for those that leave.
    pub(super) index: Option<u32>,
}

impl Record for Received {
    const SHELF: &'static str = "received";
}
impl Record for Recovering {
    const SHELF: &'static str = "recovering";
}
impl Record for Asked {
    const SHELF: &'static str = "asked";
}
impl Record for Paying {
    const SHELF: &'static str = "paying";
}
impl Record for Sent {
    const SHELF: &'static str = "sent";
}
impl Record for Sending {
    const SHELF: &'static str = "sending";
}

#[derive(Debug, Clone)]
pub(super) struct Memory(pub(super) Store);

impl Memory {
    /// Opens the store. A new one lacks the table of unfinished operations until the first, and asking for them fails; taking
    /// away one that never was makes the table.
    pub(super) async fn open(path: &Path) -> Result<Self, String> {
        let store: Store = Arc::new(WalletRedbDatabase::new(path).map_err(|error| error.to_string())?);
        let none =
            serde_json::from_str(r#""00000000-0000-0000-0000-000000000000""#).map_err(|error| error.to_string())?;
        store.delete_saga(&none).await.map_err(|error| error.to_string())?;
        Ok(Self(store))
    }

    pub(super) async fn read<T: Record>(&self, key: &str) -> Result<Option<T>, Error> {
        let Some(bytes) = self.0.kv_read(OURS, T::SHELF, key).await.map_err(own)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|_| own("a record cannot be read"))
    }

    /// Kept, whatever happens afterwards.
    pub(super) async fn write<T: Record>(&self, key: &str, record: &T) -> Result<(), Error> {
        let bytes = serde_json::to_vec(record).map_err(own)?;
        self.0.kv_write(OURS, T::SHELF, key, &bytes).await.map_err(own)
    }

    pub(super) async fn remove<T: Record>(&self, key: &str) -> Result<(), Error> {
        self.0.kv_remove(OURS, T::SHELF, key).await.map_err(own)
    }

    pub(super) async fn all<T: Record>(&self) -> Result<Vec<(String, T)>, Error> {
        let mut all = Vec::new();
        for key in self.0.kv_list(OURS, T::SHELF).await.map_err(own)? {
            if let Some(record) = self.read(&key).await? {
                all.push((key, record));
            }
        }
        Ok(all)
    }
}
