//! Where tokens are kept: in memory, or in a file that only its owner can read.
//!
//! A refresh token may be good for one use only. Whoever uses it holds a lock across the whole exchange, so that of two
//! processes the second finds the first one's result instead of losing it.

use super::Problem;
use super::registration::Client;
use rialto_store::{Changed, Document};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long another process may take to refresh a token.
const LOCK_PATIENCE: Duration = Duration::from_secs(60);

/// A token is renewed this long before it ends: a request may be under way for a while.
const MARGIN: u64 = 30;

/// A token and what can be made of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// In seconds since 1970.
    pub(super) expires: Option<u64>,
    /// The rights that were asked for; what was granted may be less.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

impl Token {
    /// Whether it is about to end, or has.
    pub(super) fn is_stale(&self) -> bool {
        self.expires.is_some_and(|expires| now() + MARGIN >= expires)
    }
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What one authorization server gave us for one server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) client: Client,
    pub(super) token_endpoint: String,
    pub(super) resource: Option<String>,
    pub(super) token: Option<Token>,
}

/// What is known about one server.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Known {
    /// The issuer that the last login was with.
    issuer: String,
    grants: BTreeMap<String, Grant>,
}

type Book = BTreeMap<String, Known>;

/// The tokens of all servers.
#[derive(Clone)]
pub struct Vault(Keeping);

#[derive(Clone)]
enum Keeping {
    Memory { book: Arc<Mutex<Book>>, turn: Arc<tokio::sync::Mutex<()>> },
    File(Document),
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

/// What may be told about a kept login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub server: String,
    pub issuer: String,
    /// Whether there is a token now; a registration alone is none.
    pub has_token: bool,
    /// In seconds since 1970.
    pub expires: Option<u64>,
    pub can_refresh: bool,
    pub scopes: Vec<String>,
}

/// A turn at changing tokens; others wait until it is dropped.
pub(super) enum Turn {
    Memory { _turn: tokio::sync::OwnedMutexGuard<()> },
    File { _lock: File },
}

impl Vault {
    /// Tokens that end with the process.
    pub fn in_memory() -> Self {
        Self(Keeping::Memory { book: Arc::default(), turn: Arc::default() })
    }

    /// Tokens in a file.
    pub fn in_file(path: PathBuf) -> Self {
        Self(Keeping::File(Document::new(path)))
    }

    fn read<R>(&self, look: impl FnOnce(&Book) -> R) -> Result<R, Problem> {
        match &self.0 {
            Keeping::Memory { book, .. } => Ok(look(&book.lock().unwrap_or_else(PoisonError::into_inner))),
            Keeping::File(document) => Ok(look(&document.read()?)),
        }
    }

    fn update<R>(&self, change: impl FnOnce(&mut Book) -> R) -> Result<R, Problem> {
        match &self.0 {
            Keeping::Memory { book, .. } => Ok(change(&mut book.lock().unwrap_or_else(PoisonError::into_inner))),
            Keeping::File(document) => {
                // If it cannot be made, the document says so.
                let folder = document.path().parent().unwrap_or(Path::new("."));
                let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
                Ok(document.update(|book: &mut Book| (change(book), Changed::Yes))?)
            }
        }
    }

    /// Every login that is kept.
    pub fn list(&self) -> Result<Vec<Entry>, Problem> {
        self.read(|book| {
            let entry = |server: &String, issuer: &String, grant: &Grant| Entry {
                server: server.clone(),
                issuer: issuer.clone(),
                has_token: grant.token.is_some(),
                expires: grant.token.as_ref().and_then(|token| token.expires),
                can_refresh: grant.token.as_ref().is_some_and(|token| token.refresh.is_some()),
                scopes: grant.token.as_ref().map(|token| token.scopes.clone()).unwrap_or_default(),
            };
            let all = book.iter().flat_map(|(server, known)| {
                known.grants.iter().map(move |(issuer, grant)| entry(server, issuer, grant))
            });
            all.collect()
        })
    }

    /// Forgets everything about a server; says whether there was something.
    pub fn forget(&self, server: &str) -> Result<bool, Problem> {
        self.update(|book| book.remove(server).is_some())
    }

    /// The login that was made last, and with whom.
    pub(super) fn current(&self, server: &str) -> Result<Option<(String, Grant)>, Problem> {
        self.read(|book| {
            let known = book.get(server)?;
            known.grants.get(&known.issuer).map(|grant| (known.issuer.clone(), grant.clone()))
        })
    }

    pub(super) fn grant(&self, server: &str, issuer: &str) -> Result<Option<Grant>, Problem> {
        self.read(|book| book.get(server)?.grants.get(issuer).cloned())
    }

    pub(super) fn keep(&self, server: &str, issuer: &str, grant: Grant) -> Result<(), Problem> {
        self.update(|book| {
            let known = book.entry(server.to_owned()).or_default();
            issuer.clone_into(&mut known.issuer);
            known.grants.insert(issuer.to_owned(), grant);
        })
    }

    /// Waits for a turn at changing tokens.
    pub(super) async fn turn(&self) -> Result<Turn, Problem> {
        let document = match &self.0 {
            Keeping::Memory { turn, .. } => return Ok(Turn::Memory { _turn: turn.clone().lock_owned().await }),
            Keeping::File(document) => document,
        };
        let folder = document.path().parent().unwrap_or(Path::new("."));
        let locked = async {
            loop {
                if let Some(lock) = rialto_store::hold(folder, "tokens.turn")? {
                    return Ok::<_, Problem>(lock);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let late = |_| Problem::Unreachable { what: "the turn at the tokens", why: "another process holds it".into() };
        Ok(Turn::File { _lock: tokio::time::timeout(LOCK_PATIENCE, locked).await.map_err(late)?? })
    }
}
