//! The rows of the scoreboard: one file each, in groups by whom they try.

pub mod crashes;
pub mod local;
pub mod money;
pub mod relays;
pub mod simulation;

use std::time::Duration;

use crate::score::Score;

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As much as fits into the tests of every push.
    Quick,
    /// As much as the scoreboard says.
    Full,
}

/// With what an experiment begins.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Where all chance begins.
    pub seed: u64,
    pub size: Size,
}

impl Setting {
    /// One of two, by size.
    pub fn choose<T>(self, quick: T, full: T) -> T {
        match self.size {
            Size::Quick => quick,
            Size::Full => full,
        }
    }
}

/// One experiment.
#[derive(Clone, Copy)]
pub struct Row {
    pub id: &'static str,
    /// What is done, in a few words.
    pub about: &'static str,
    /// Needs minutes, or most of the machine, and is run only when it is asked for.
    pub is_long: bool,
    /// Nothing else may run beside it, because it judges what the machine has left.
    pub is_alone: bool,
    /// Whoever takes longer hangs.
    pub limit: Duration,
    pub run: fn(Setting) -> Score,
}

impl Row {
    const fn new(id: &'static str, about: &'static str, run: fn(Setting) -> Score) -> Self {
        Self { id, about, is_long: false, is_alone: false, limit: Duration::from_secs(15 * 60), run }
    }

    #[allow(dead_code, reason = "until the first row stands")]
    const fn long(mut self) -> Self {
        self.is_long = true;
        self.limit = Duration::from_secs(10 * 60 * 60);
        self
    }

    #[allow(dead_code, reason = "until the first row stands")]
    const fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }
}

/// All of them, in the order of the scoreboard.
pub fn all() -> Vec<Row> {
    let mut rows = [crashes::ROWS, local::ROWS, money::ROWS, relays::ROWS, simulation::ROWS].concat();
    rows.sort_by_key(|row| row.id);
    rows
}

/// The rows with these names; `all` names every one, long ones only if they are wanted.
pub fn select(names: &[String], with_long: bool) -> Result<Vec<Row>, String> {
    let all = all();
    let mut chosen = Vec::new();
    for name in names {
        if name == "all" {
            chosen.extend(all.iter().filter(|row| with_long || !row.is_long));
        } else {
            let row = all.iter().find(|row| row.id.eq_ignore_ascii_case(name));
            chosen.push(*row.ok_or_else(|| format!("there is no row {name}\n\nhint: `torture list` shows them all"))?);
        }
    }
    Ok(chosen)
}
