//! `rialto context build`: a folder of Markdown files becomes a cache.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use rialto_context::build::{Existing, Flush, IgnoreFiles, Plan, Step, build};
use serde_json::json;

use super::{failure, store};
use crate::environment::Environment;
use crate::failure::Outcome;
use crate::output;
use crate::talk::{Format, Level, Listener, Talk, write_talk};

const EXAMPLES: &str = "\
Examples:
  rialto context build --sources docs --cache caches/docs
  rialto context build --sources . --cache caches/project --ignore-files
  rialto context build --sources docs --cache caches/docs --force";

/// How often progress is shown.
const PACE: Duration = Duration::from_millis(100);

/// Build a cache from a folder
///
/// Takes every .md file below the folder, hidden ones included. The cache appears all at once: a build that fails or is
/// interrupted leaves what was there. With --force, what has not changed is taken over from the old cache, and a folder that
/// is not a cache is never replaced.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The folder whose documents are taken
    #[arg(long, value_name = "DIR")]
    sources: PathBuf,

    /// The folder that becomes the cache
    #[arg(long, value_name = "DIR")]
    cache: PathBuf,

    /// Replace a cache that is there
    #[arg(long)]
    force: bool,

    /// Leave out what .gitignore and .ignore files in the folder say
    #[arg(long)]
    ignore_files: bool,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let plan = Plan {
        sources: arguments.sources.clone(),
        cache: arguments.cache.clone(),
        existing: if arguments.force { Existing::Replace } else { Existing::Keep },
        ignore_files: if arguments.ignore_files { IgnoreFiles::Respect } else { IgnoreFiles::Disregard },
        flush: Flush::Once,
        created_at: SystemTime::now(),
    };
    let mut progress = Progress::new(talk);
    let built = build(&plan, &mut |step| progress.take(step));
    progress.end();
    let built = built.map_err(|error| {
        let exists = error.detail.as_ref().is_some_and(|detail| detail.ends_with("it is there already"));
        let failure = failure(error);
        if exists { failure.hint("--force replaces a cache") } else { failure }
    })?;
    if let Some(store) = store(environment) {
        built.store(&store);
    }
    for path in &built.skipped {
        talk.warn(&format!("left out, because it is a link that leads nowhere or outside: {path}"));
    }
    talk.info(&format!("Built cache: {} documents, version {}", built.documents, built.cache_version));
    talk.verbose(&format!("{} documents were taken over from the old cache", built.reused));
    match talk.format {
        Format::Json => output::json(&json!({
            "cache_version": built.cache_version,
            "document_count": built.documents,
            "reused": built.reused,
            "skipped": built.skipped,
        })),
        Format::Text => Ok(()),
    }
}

/// One line on a terminal that is written over and over.
struct Progress {
    is_shown: bool,
    found: usize,
    last: Instant,
    has_line: bool,
}

impl Progress {
    fn new(talk: &Talk) -> Self {
        let is_shown =
            Listener::of_stderr() == Listener::Terminal && talk.format == Format::Text && talk.level >= Level::Info;
        Self { is_shown, found: 0, last: Instant::now(), has_line: false }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Found(found) => self.found = found,
            Step::Written(done) if self.is_shown && self.last.elapsed() >= PACE => {
                self.last = Instant::now();
                self.has_line = true;
                write_talk(&format!("\r{done} of {} documents", self.found));
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        if self.has_line {
            write_talk("\r\u{1b}[K");
        }
    }
}
