//! What the other processes of one customer must know of a lane: they have the same key, so that an answer which does not
//! say what it answers comes to all of them. A small file for each provider, locked while a call is open.

use super::CLOSED;
use crate::store::Error;
use nostr::prelude::{PublicKey, Timestamp};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// How long it is believed of a provider that its answers say what they answer. It may be replaced by another program.
const NAMED: Duration = Duration::from_secs(3600);

/// Nothing is true for longer; what says so was written while the clock was wrong.
const LONGEST: u64 = 2 * 24 * 60 * 60;

/// All texts are this long, so that one write replaces another as a whole.
const LENGTH: usize = 64;

/// What is true until then.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Told {
    /// Answers say what they answer; else, that the lane is closed.
    names: bool,
    until: u64,
}

/// How a lane is found.
#[derive(Debug)]
pub(super) enum Found {
    Free(Hold),
    /// Another process has a call open.
    Busy,
    Closed(Duration),
    Named,
}

/// How it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Answered,
    Unanswered,
    Named,
}

/// The lane, as long as no other process may have it.
#[derive(Debug)]
pub(super) struct Hold(File);

/// Takes the lane to a provider, if it is free, for a call that lasts no longer than `patience`.
pub(super) fn enter(directory: &Path, provider: &PublicKey, patience: Duration) -> Result<Found, Error> {
    let path = directory.join(provider.to_hex());
    let error = |error: std::io::Error| Error::new("open", &path, error);
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(error)?;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(error)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(Found::Busy),
        Err(errno) => return Err(error(errno.into())),
    }
    let mut text = String::new();
    (&file).take(LENGTH as u64).read_to_string(&mut text).map_err(error)?;
    // What cannot be understood says nothing.
    let told: Told = serde_json::from_str(&text).unwrap_or_default();
    let left = told.until.saturating_sub(Timestamp::now().as_secs());
    if left > 0 && left <= LONGEST {
        return Ok(if told.names { Found::Named } else { Found::Closed(Duration::from_secs(left)) });
    }
    let hold = Hold(file);
    // A process that is killed cannot say that its call was not answered.
    hold.write(false, patience + CLOSED).map_err(error)?;
    Ok(Found::Free(hold))
}

impl Hold {
    fn write(&self, names: bool, lasts: Duration) -> std::io::Result<()> {
        let until = Timestamp::now().as_secs().saturating_add(lasts.as_secs());
        let text = serde_json::to_string(&Told { names, until })?;
        self.0.write_all_at(format!("{text:<LENGTH$}").as_bytes(), 0)
    }

    /// Lets the other processes in.
    pub(super) fn leave(self, left: Left) {
        let (names, lasts) = match left {
            Left::Answered => (false, Duration::ZERO),
            Left::Unanswered => (false, CLOSED),
            Left::Named => (true, NAMED),
        };
        // If it cannot be written, what was written first holds: the lane stays closed for longer than it must.
        let _ = self.write(names, lasts);
    }
}
