//! A growing list that threads can wait on.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shared: clones are the same list.
pub struct Log<T>(Arc<(Mutex<Vec<T>>, Condvar)>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(Arc::new((Mutex::new(Vec::new()), Condvar::new())))
    }
}

impl<T> Log<T> {
    pub fn push(&self, entry: T) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        self.0.1.notify_all();
    }

    /// Looks at the list as it is now.
    pub fn look<R>(&self, with: impl FnOnce(&[T]) -> R) -> R {
        with(&self.0.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the list whenever it has grown, until something is found in it.
    pub fn wait<R>(&self, patience: Duration, mut find: impl FnMut(&[T]) -> Option<R>) -> Option<R> {
        let deadline = Instant::now() + patience;
        let mut list = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = find(&list) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            list = self.0.1.wait_timeout(list, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Waits until a condition holds that nobody announces.
pub fn until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
