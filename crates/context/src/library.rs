//! The caches beneath a root, kept ready between calls.

use crate::beneath::Folder;
use crate::cache;
use crate::error::{Error, Kind};
use crate::index::store::Store;
use crate::inspect;
use crate::reply::{Inspection, Listing, Resolution};
use crate::resident::{Checking, Interrupt, Resident};
use crate::search::Findings;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many caches are kept ready at once.
const MOST: usize = 16;

/// How often a call begins anew because the cache was replaced while it was read.
const ATTEMPTS: usize = 4;

/// The caches beneath one root.
#[derive(Debug)]
pub struct Library {
    root: PathBuf,
    store: Option<Store>,
    checking: Checking,
    /// The latest used is last.
    shelves: Mutex<Vec<(String, Arc<Shelf>)>>,
}

/// The place of one cache. Whoever comes first makes it ready; the others wait for that.
type Shelf = Mutex<Option<Arc<Resident>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Library {
    /// The caches beneath `root`; indexes are kept in the folder `store` between runs.
    pub fn new(root: &Path, store: Option<&Path>, checking: Checking) -> Self {
        Self { root: root.to_owned(), store: store.map(Store::new), checking, shelves: Mutex::default() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `context.list_caches`.
    pub fn list(&self) -> Result<Listing, Error> {
        inspect::list(&self.root)
    }

    /// `context.inspect_cache`.
    pub fn inspect(&self, name: &str) -> Result<Inspection, Error> {
        inspect::inspect(&self.root, name)
    }

    /// `context.resolve`. A negative budget is an error, and told before anything else is looked at.
    pub fn resolve(&self, name: &str, query: &str, budget: i64, interrupt: &Interrupt) -> Result<Resolution, Error> {
        let budget = u64::try_from(budget).map_err(|_| Kind::InvalidBudget)?;
        self.with(name, interrupt, |resident, cache| resident.resolve(cache, query, budget, interrupt))
    }

    /// `context.search`.
    pub fn search(&self, name: &str, query: &str, budget: i64, interrupt: &Interrupt) -> Result<Findings, Error> {
        let budget = u64::try_from(budget).map_err(|_| Kind::InvalidBudget)?;
        self.with(name, interrupt, |resident, cache| resident.search(cache, query, budget, interrupt))
    }

    /// Does something with a cache that is ready, and once more if the cache was replaced meanwhile.
    pub(crate) fn with<T>(
        &self,
        name: &str,
        interrupt: &Interrupt,
        work: impl Fn(&Resident, &Folder) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut attempt = 1;
        loop {
            let folder = cache::open_beneath(&self.root, name)?;
            let result = self.ready(name, &folder, interrupt).and_then(|resident| work(&resident, &folder));
            let was_replaced = || {
                let now = cache::open_beneath(&self.root, name).and_then(|now| identity(&now));
                now.is_ok_and(|now| identity(&folder).is_ok_and(|then| then != now))
            };
            match result {
                Err(error) if error.kind == Kind::CacheInvalid && attempt < ATTEMPTS && was_replaced() => attempt += 1,
                result => return result,
            }
        }
    }

    fn ready(&self, name: &str, folder: &Folder, interrupt: &Interrupt) -> Result<Arc<Resident>, Error> {
        let shelf = self.shelf(name);
        let mut place = lock(&shelf);
        if let Some(resident) = &*place
            && self.checking == Checking::Used
            && resident.is_current(folder)
        {
            return Ok(resident.clone());
        }
        // The old one is not needed while the new one is made.
        *place = None;
        let resident = Arc::new(Resident::load(folder, self.store.as_ref(), self.checking, interrupt)?);
        *place = Some(resident.clone());
        Ok(resident)
    }

    fn shelf(&self, name: &str) -> Arc<Shelf> {
        let mut shelves = lock(&self.shelves);
        let shelf = match shelves.iter().position(|(known, _)| known == name) {
            Some(place) => shelves.remove(place),
            None => (name.to_owned(), Arc::default()),
        };
        if shelves.len() >= MOST {
            shelves.remove(0);
        }
        shelves.push(shelf.clone());
        shelf.1
    }
}

fn identity(folder: &Folder) -> Result<(u64, u64), Error> {
    let stamp = folder.own_stamp().map_err(|trouble| cache::damaged(&trouble, "the cache"))?;
    Ok(stamp.identity())
}

/// `context.resolve` for a cache that its owner named by its path.
pub fn resolve_folder(path: &Path, query: &str, budget: i64, store: Option<&Path>) -> Result<Resolution, Error> {
    let budget = u64::try_from(budget).map_err(|_| Kind::InvalidBudget)?;
    let folder = cache::open(path)?;
    let interrupt = Interrupt::default();
    let store = store.map(Store::new);
    let resident = Resident::load(&folder, store.as_ref(), Checking::Used, &interrupt)?;
    resident.resolve(&folder, query, budget, &interrupt)
}
