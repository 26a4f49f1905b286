//! Does something with each of many things, some of them at the same time. One that panics does not take the others with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What came of each, in their order; of one that panicked, its words.
pub fn several<T: Sync, R: Send>(at_once: usize, things: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<Result<R, String>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, things.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(thing) = things.get(index) else { return };
                    let result = catch_unwind(AssertUnwindSafe(|| act(thing))).map_err(|panic| words(&*panic));
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// What somebody said who panicked.
pub fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked".to_owned())
}

#[cfg(test)]
mod tests {
    use super::several;

    #[test]
    fn one_that_panics_does_not_take_the_others_with_it() {
        let results = several(2, &[1, 2, 3], |number| {
            assert_ne!(*number, 2, "not two");
            number * 10
        });
        assert_eq!(results[0], Ok(10));
        assert!(results[1].as_ref().is_err_and(|why| why.contains("not two")), "{results:?}");
        assert_eq!(results[2], Ok(30));
    }
}
