//! Other servers without another process: reads the configuration again when it changes.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rialto_hub::{Hub, Reloaded};
use tokio::signal::unix::SignalKind;

use crate::commands::gateway::Sources;
use crate::failure::Outcome;
use crate::signals::hear;
use crate::talk::Talk;

/// How often it is looked whether a file has changed.
const PAUSE: Duration = Duration::from_secs(1);

/// What of a file changes with its content.
type Stamp = Option<(SystemTime, u64, u64)>;

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
    };
    paths.iter().map(stamp).collect()
}

/// What SIGHUP means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HangUp {
    /// That whoever started us has gone, which ends us.
    Ends,
    /// That the files should be read now.
    Reloads,
}

/// Keeps the hub as the files say, for ever. A configuration that is wrong changes nothing.
pub(super) async fn watch(
    hub: &Arc<Hub>,
    sources: &Sources<'_>,
    mut paths: Vec<PathBuf>,
    hang_up: HangUp,
    talk: Talk,
) -> Outcome {
    let mut asked = match hang_up {
        HangUp::Reloads => Some(hear(SignalKind::hangup())?),
        HangUp::Ends => None,
    };
    let mut known = stamps(&paths);
    loop {
        let hung_up = async {
            match &mut asked {
                Some(asked) => asked.recv().await,
                None => std::future::pending().await,
            }
        };
        let is_asked = tokio::select! {
            _ = hung_up => true,
            () = tokio::time::sleep(PAUSE) => false,
        };
        if !is_asked {
            if stamps(&paths) == known {
                continue;
            }
            rest(&paths).await;
        }
        match sources.plan(&talk) {
            Ok((plan, files)) => {
                paths = files;
                tell(&hub.reload(plan), &talk);
            }
            Err(failure) => {
                let text = failure.to_text(crate::talk::Paint::Never);
                let text = text.trim_start_matches("error: ").trim_end();
                talk.warn(&format!("the servers stay as they are, because the configuration is wrong: {text}"));
            }
        }
        known = stamps(&paths);
    }
}

/// Whoever writes a file may not have finished: waits until nothing changes.
async fn rest(paths: &[PathBuf]) {
    let mut now = stamps(paths);
    loop {
        tokio::time::sleep(PAUSE / 10).await;
        let later = stamps(paths);
        if later == now {
            return;
        }
        now = later;
    }
}

fn tell(reloaded: &Reloaded, talk: &Talk) {
    if reloaded.is_empty() {
        return talk.verbose("the configuration was read again; no server has changed");
    }
    let parts = [("added", &reloaded.added), ("changed", &reloaded.changed), ("removed", &reloaded.removed)];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(word, names)| format!("{word} {}", names.join(", ")))
        .collect();
    talk.info(&format!("the configuration has changed: {}", parts.join("; ")));
}
