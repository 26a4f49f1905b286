//! A cache that is kept ready: its table, its index, and how to tell that it is still the same cache.
//!
//! What is handed out is read from the cache at each call and must have the hash that the manifest names, so nothing that was
//! tampered with is ever answered with. That the rest is unharmed is known from when the index was made, and as long as
//! manifest and folder look the same; small caches are looked over in full each time.

use crate::beneath::{Folder, Stamp};
use crate::cache::{self, Seal, Table};
use crate::error::{Error, Kind};
use crate::index::store::Store;
use crate::index::{Builder, Index};
use crate::manifest::{DOCUMENTS, MANIFEST};
use crate::reply::{Resolution, Selected, Summary, Why};
use crate::selection::select;
use crate::words;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Up to so many documents, the state of each is looked at in each call; that takes a microsecond for each.
const LOOKED_OVER: usize = 200;

/// Tells work that nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Error::because(Kind::Internal, "interrupted"));
        }
        Ok(())
    }
}

/// How much of a cache is checked in each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checking {
    /// What is handed out, and the state of the files.
    Used,
    /// Every document.
    All,
}

/// What is asked of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) query: &'a str,
    pub(crate) budget: u64,
    pub(crate) most: u64,
}

/// A cache that is ready to be asked.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) table: Table,
    pub(crate) index: Index,
    state: State,
    seal: Option<Seal>,
}

/// What shows that a cache was replaced or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    manifest: Stamp,
    documents: Option<Stamp>,
}

impl State {
    fn of(cache: &Folder) -> Result<Self, Error> {
        let manifest = cache.stamp(MANIFEST).map_err(|trouble| cache::damaged(&trouble, MANIFEST))?;
        Ok(Self { manifest, documents: cache.folder(DOCUMENTS).and_then(|folder| folder.own_stamp()).ok() })
    }
}

impl Resident {
    /// Makes a cache ready: with an index that was kept, if the files are as they were when they were last checked; else by
    /// reading all of them.
    pub(crate) fn load(
        cache: &Folder,
        store: Option<&Store>,
        checking: Checking,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let state = State::of(cache)?;
        let table = Table::of(cache::read_manifest(cache)?)?;
        let documents = cache::documents(cache, &table)?;
        let seal = cache::seal(documents.as_ref(), &table)?;
        let kept = store.and_then(|store| store.load(&table));
        let is_sealed = match (store, &documents) {
            (Some(store), Some(documents)) => store.is_sealed(&table, documents, &seal),
            _ => false,
        };
        let index = match kept {
            Some(index) if is_sealed && checking == Checking::Used => index,
            kept => {
                let index = read_all(&table, documents.as_ref(), kept, interrupt)?;
                if let (Some(store), Some(documents)) = (store, &documents) {
                    store.save_if_new(&table, &index);
                    // What changed while it was read is not what was read.
                    if cache::seal(Some(documents), &table)? == seal {
                        store.save_seal(&table, documents, &seal);
                    }
                }
                index.index
            }
        };
        let seal = (table.rows.len() <= LOOKED_OVER).then_some(seal);
        Ok(Self { table, index, state, seal })
    }

    /// Whether this is still the cache that is in the folder.
    pub(crate) fn is_current(&self, cache: &Folder) -> bool {
        let look_over = |seal: &Seal| {
            let documents = cache::documents(cache, &self.table).ok()?;
            cache::seal(documents.as_ref(), &self.table).ok().filter(|now| now == seal)
        };
        State::of(cache).is_ok_and(|now| now == self.state)
            && self.seal.as_ref().is_none_or(|seal| look_over(seal).is_some())
    }

    /// `context.resolve`, with at most about `most` bytes of text.
    pub(crate) fn resolve(
        &self,
        cache: &Folder,
        Question { query, budget, most }: Question<'_>,
        interrupt: &Interrupt,
    ) -> Result<Resolution, Error> {
        let terms: Arc<[String]> = words::terms(query).into();
        let chosen = select(&self.index, &terms, budget);
        // The terms stand in each document's reason: a long query and many documents make more than anybody can take.
        let reason: u64 = terms.iter().map(|term| term.len() as u64 + 3).sum();
        let size = chosen.iter().map(|choice| choice.tokens.saturating_mul(4).saturating_add(reason));
        if size.fold(0, u64::saturating_add) > most {
            return Err(Error::because(Kind::Internal, "the answer would be too large"));
        }
        let documents = cache::documents(cache, &self.table)?;
        let mut selected = Vec::with_capacity(chosen.len());
        for choice in &chosen {
            interrupt.check()?;
            let document = cache::read_document(documents.as_ref(), &self.table.rows[choice.place])?;
            selected.push(Selected {
                id: document.id,
                version: document.version,
                content: document.content,
                score: choice.score,
                tokens: choice.tokens,
                why: Why { query_terms: terms.clone(), term_matches: choice.matches, total_words: choice.words },
            });
        }
        let (considered, count) = (self.index.len() as u64, chosen.len() as u64);
        let selection = Summary {
            query: query.to_owned(),
            budget,
            tokens_used: chosen.iter().map(|choice| choice.tokens).sum(),
            documents_considered: considered,
            documents_selected: count,
            documents_excluded_by_budget: considered - count,
        };
        Ok(Resolution { documents: selected, selection })
    }
}

/// An index, and whether it was there before.
struct Checked {
    index: Index,
    is_new: bool,
}

/// Reads and checks every document; makes the index unless there is one.
fn read_all(
    table: &Table,
    documents: Option<&Folder>,
    kept: Option<Index>,
    interrupt: &Interrupt,
) -> Result<Checked, Error> {
    let mut builder = Builder::default();
    for row in &table.rows {
        interrupt.check()?;
        let document = cache::read_document(documents, row)?;
        if kept.is_none() {
            builder.add(&document.content);
        }
    }
    Ok(match kept {
        Some(index) => Checked { index, is_new: false },
        None => Checked { index: builder.finish(&table.fingerprint), is_new: true },
    })
}

impl Store {
    fn save_if_new(&self, table: &Table, checked: &Checked) {
        if checked.is_new {
            self.save(table, &checked.index);
        }
    }
}
