//! The caches beneath a root, kept ready between calls.

use crate::beneath::Folder;
use crate::cache;
use crate::error::{Error, Kind};
use crate::index::store::Store;
use crate::inspect;
use crate::reply::{Inspection, Listing, Resolution};
use crate::resident::{Checking, Interrupt, Question, Resident};
use crate::search::Findings;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// How many caches are kept ready at once.
const MOST: usize = 16;

/// How often a call begins anew because the cache was replaced while it was read.
const ATTEMPTS: usize = 8;

/// The most text that a library answers with. Whoever needs more has the cache's folder.
const MAX_ANSWER: u64 = 64 << 20;

/// How often those who wait for a cache to be made ready look whether it is.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

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
#[derive(Debug, Default)]
struct Shelf {
    resident: Mutex<Option<Arc<Resident>>>,
    loading: Mutex<()>,
}

impl Shelf {
    /// Waits for its turn to load, as long as somebody waits for the answer.
    fn wait_to_load(&self, interrupt: &Interrupt) -> Result<MutexGuard<'_, ()>, Error> {
        loop {
            match self.loading.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => interrupt.check()?,
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Library {
    /// The caches beneath `root`; indexes are kept in `store` between runs.
    pub fn new(root: &Path, store: Option<Store>, checking: Checking) -> Self {
        Self { root: root.to_owned(), store, checking, shelves: Mutex::default() }
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
        let question = Question { query, budget, most: MAX_ANSWER };
        self.with(name, interrupt, |resident, cache| resident.resolve(cache, question, interrupt))
    }

    /// `context.search`.
    pub fn search(&self, name: &str, query: &str, budget: i64, interrupt: &Interrupt) -> Result<Findings, Error> {
        let budget = u64::try_from(budget).map_err(|_| Kind::InvalidBudget)?;
        let question = Question { query, budget, most: MAX_ANSWER };
        self.with(name, interrupt, |resident, cache| resident.search(cache, question, interrupt))
    }

    /// Does something with a cache that is ready.
    fn with<T>(
        &self,
        name: &str,
        interrupt: &Interrupt,
        work: impl Fn(&Resident, &Folder) -> Result<T, Error>,
    ) -> Result<T, Error> {
        again_if_replaced(
            || cache::open_beneath(&self.root, name),
            |folder| self.ready(name, folder, interrupt).and_then(|resident| work(&resident, folder)),
        )
    }

    fn ready(&self, name: &str, folder: &Folder, interrupt: &Interrupt) -> Result<Arc<Resident>, Error> {
        let shelf = self.shelf(name);
        let current = || lock(&shelf.resident).clone().filter(|resident| resident.is_current(folder));
        if self.checking == Checking::All {
            return Ok(Arc::new(Resident::load(folder, self.store.as_ref(), self.checking, interrupt)?));
        }
        if let Some(resident) = current() {
            return Ok(resident);
        }
        let _loading = shelf.wait_to_load(interrupt)?;
        if let Some(resident) = current() {
            return Ok(resident);
        }
        // The old one is not needed while the new one is made.
        *lock(&shelf.resident) = None;
        // Finished even if nobody waits any more: whoever asks next needs it too, and might never get it otherwise.
        let unhurried = Interrupt::default();
        let resident = Arc::new(Resident::load(folder, self.store.as_ref(), self.checking, &unhurried)?);
        *lock(&shelf.resident) = Some(resident.clone());
        Ok(resident)
    }

    fn shelf(&self, name: &str) -> Arc<Shelf> {
        // However the name is written, there is one place for it.
        let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let name = parts.join("/");
        let mut shelves = lock(&self.shelves);
        let shelf = match shelves.iter().position(|(known, _)| *known == name) {
            Some(place) => shelves.remove(place),
            None => (name, Arc::default()),
        };
        if shelves.len() >= MOST {
            shelves.remove(0);
        }
        shelves.push(shelf.clone());
        shelf.1
    }
}

/// Does something with a cache, and once more if it was replaced meanwhile: its files are then gone, or those of another.
fn again_if_replaced<T>(
    open: impl Fn() -> Result<Folder, Error>,
    work: impl Fn(&Folder) -> Result<T, Error>,
) -> Result<T, Error> {
    let identity = |folder: &Folder| folder.own_stamp().map(|stamp| stamp.identity()).ok();
    for _ in 1..ATTEMPTS {
        let folder = open()?;
        match work(&folder) {
            Err(error) if error.kind == Kind::CacheInvalid && identity(&open()?) != identity(&folder) => {}
            result => return result,
        }
    }
    work(&open()?)
}

/// `context.resolve` for a cache that its owner named by its path.
pub fn resolve_folder(path: &Path, query: &str, budget: u64, store: Option<&Store>) -> Result<Resolution, Error> {
    let question = Question { query, budget, most: u64::MAX };
    let interrupt = Interrupt::default();
    again_if_replaced(
        || cache::open(path),
        |folder| {
            let resident = Resident::load(folder, store, Checking::Used, &interrupt)?;
            resident.resolve(folder, question, &interrupt)
        },
    )
}
