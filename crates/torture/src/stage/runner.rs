//! Runs the cases of one test binary, in the manner and with the words of the standard runner.
//!
//! The standard one cannot be used: it owns `main`, and this binary must also be able to play a server, on whose standard
//! output nothing but the protocol may appear.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// One test.
#[derive(Clone, Copy)]
pub struct Case {
    /// Where it stands, the name of the binary included.
    pub path: &'static str,
    pub run: fn(),
    /// Why it is not run unless asked for: it shows something that is wrong at present.
    pub defect: Option<&'static str>,
}

/// `case!(function)`, or `case!(function, "defect: …")` for one that is not run unless asked for.
#[macro_export]
macro_rules! case {
    ($function:ident) => {
        $crate::stage::runner::Case {
            path: concat!(module_path!(), "::", stringify!($function)),
            run: $function,
            defect: None,
        }
    };
    ($function:ident, $defect:literal) => {
        $crate::stage::runner::Case {
            path: concat!(module_path!(), "::", stringify!($function)),
            run: $function,
            defect: Some($defect),
        }
    };
}
pub use crate::case;

impl Case {
    /// The name as the standard runner would give it.
    fn name(&self) -> &'static str {
        self.path.split_once("::").map_or(self.path, |(_, name)| name)
    }
}

/// What was asked for on the command line; the words are those of the standard runner.
#[derive(Default)]
struct Wanted {
    filters: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    ignored: bool,
    included: bool,
    list: bool,
    threads: Option<usize>,
}

impl Wanted {
    fn read() -> Self {
        let mut wanted = Self::default();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let (name, value) = argument.split_once('=').map_or((argument.as_str(), None), |(a, b)| (a, Some(b)));
            let mut value = || value.map(str::to_owned).or_else(|| arguments.next()).unwrap_or_default();
            match name {
                "--exact" => wanted.exact = true,
                "--ignored" => wanted.ignored = true,
                "--include-ignored" => wanted.included = true,
                "--list" => wanted.list = true,
                "--skip" => wanted.skipped.push(value()),
                "--test-threads" => wanted.threads = value().parse().ok(),
                "--format" | "--color" | "--logfile" | "-Z" => drop(value()),
                other if other.starts_with('-') => {}
                _ => wanted.filters.push(argument),
            }
        }
        wanted
    }

    fn names(&self, case: &Case) -> bool {
        let fits =
            |filter: &String| if self.exact { case.name() == filter } else { case.name().contains(filter.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skipped.iter().any(fits)
    }

    fn runs(&self, case: &Case) -> bool {
        match case.defect {
            None => !self.ignored,
            Some(_) => self.ignored || self.included,
        }
    }
}

/// Runs the cases that the command line asks for: `together` several at a time, `alone` one after the other. Exits.
pub fn main(together: &[&[Case]], alone: &[&[Case]]) -> ! {
    let wanted = Wanted::read();
    let select = |groups: &[&[Case]]| -> Vec<Case> {
        groups.iter().flat_map(|group| group.iter().copied()).filter(|case| wanted.names(case)).collect()
    };
    let (together, alone) = (select(together), select(alone));
    let all = together.len() + alone.len();
    if wanted.list {
        together.iter().chain(&alone).for_each(|case| println!("{}: test", case.name()));
        std::process::exit(0);
    }
    println!("\nrunning {all} tests");
    let (passed, ignored) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = Mutex::new(Vec::new());
    let run = |case: &Case| {
        if !wanted.runs(case) {
            ignored.fetch_add(1, Ordering::Relaxed);
            return println!("test {} ... ignored, {}", case.name(), case.defect.unwrap_or("not a defect"));
        }
        let thread = std::thread::Builder::new().name(case.name().to_owned()).spawn(case.run).unwrap();
        if thread.join().is_ok() {
            passed.fetch_add(1, Ordering::Relaxed);
            println!("test {} ... ok", case.name());
        } else {
            failed.lock().unwrap_or_else(PoisonError::into_inner).push(case.name());
            println!("test {} ... FAILED", case.name());
        }
    };
    let threads = wanted.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, |n| n.get() + 1));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(case) = together.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(case);
                }
            });
        }
    });
    alone.iter().for_each(run);
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.join("\n    "));
    }
    let (passed, ignored) = (passed.into_inner(), ignored.into_inner());
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {passed} passed; {} failed; {ignored} ignored; 0 measured\n", failed.len());
    std::process::exit(if failed.is_empty() { 0 } else { 101 });
}
