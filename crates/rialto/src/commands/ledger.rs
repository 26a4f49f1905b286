//! `rialto ledger`: looks at what `rialto serve` remembers of jobs and money, while it may be running.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use nostr::prelude::{PublicKey, Timestamp};
use rialto_ledger::check::{Finding, check};
use rialto_ledger::export::{CSV_HEADER, More, export};
use rialto_ledger::look::{Look, Source};
use rialto_ledger::sqlite;
use rialto_payment::secret::Secret;
use serde_json::{Value, json};

use crate::commands::wait_for;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::identity::{self, Role};
use crate::ledger;
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto ledger check
  rialto ledger export --format csv > jobs.csv";

const CHECK_EXAMPLES: &str = "\
Examples:
  rialto ledger check
  rialto ledger check --json
  rialto ledger check --ledger env:LEDGER";

const EXPORT_EXAMPLES: &str = "\
Examples:
  rialto ledger export > jobs.jsonl
  rialto ledger export --format csv > jobs.csv";

/// Look at the jobs and the money that a service remembers
///
/// `rialto serve` may run meanwhile; it is not disturbed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check that everything adds up; the exit code is 1 if it does not
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Place),
    /// Write all jobs with their quotes and credits; never what opens a payment, nor what was said
    #[command(after_help = EXPORT_EXAMPLES)]
    Export {
        #[command(flatten)]
        place: Place,
        /// One JSON object in each line, or a table
        #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Shape::Json)]
        format: Shape,
    },
}

#[derive(Debug, Args)]
struct Place {
    /// The service's public key, or the file with its key; by default the one that `rialto serve` uses
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// A PostgreSQL database instead of the data directory: postgres://…, env:NAME or file:PATH
    #[arg(long, value_name = "ADDRESS")]
    ledger: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shape {
    Json,
    Csv,
}

/// Where the ledger is that is meant.
enum Found {
    Directory(PathBuf),
    Database(Secret, [u8; 32]),
}

impl Place {
    fn find(&self, environment: &Environment) -> Result<Found, Failure> {
        let key = self.public_key(environment)?;
        if let Some(text) = &self.ledger {
            return Ok(Found::Database(ledger::address(text, environment)?, key.to_bytes()));
        }
        let directory = identity::data_directory(environment)?.join("jobs").join(key.to_hex());
        if sqlite::file(&directory).exists() {
            return Ok(Found::Directory(directory));
        }
        Err(Failure::usage("there is no ledger of this key").code("ledger_missing").hint("rialto serve    makes one"))
    }

    fn public_key(&self, environment: &Environment) -> Result<PublicKey, Failure> {
        if let Some(key) = self.key.as_deref().and_then(|text| PublicKey::parse(text).ok()) {
            return Ok(key);
        }
        let file = self.key.as_deref().map(Path::new);
        let Some(keys) = identity::existing(Role::Provider, file, environment)? else {
            let words = match file {
                // What was typed may be a secret key; it is not repeated.
                Some(_) => "this is neither a public key nor a file with a key",
                None => "there is no key yet, so there is no ledger",
            };
            return Err(Failure::usage(words).code("key_missing").hint("rialto serve    makes a key and a ledger"));
        };
        Ok(keys.public_key())
    }
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    match &arguments.action {
        Action::Check(place) => {
            let found = place.find(environment)?;
            wait_for(check_it(found, *talk))
        }
        Action::Export { place, format } => {
            let found = place.find(environment)?;
            wait_for(export_it(found, *format))
        }
    }
}

async fn open(found: &Found) -> Result<Look, Failure> {
    let source = match found {
        Found::Directory(path) => Source::Sqlite(path),
        Found::Database(address, key) => Source::Postgres { address, key },
    };
    Look::open(source).await.map_err(|error| ledger::failure(&error))
}

async fn check_it(found: Found, talk: Talk) -> Outcome {
    let look = open(&found).await?;
    let report = check(&look, Timestamp::now().as_secs()).await.map_err(|error| ledger::failure(&error))?;
    let count = report.findings.len();
    match talk.format {
        Format::Json => {
            let finding = |finding: &Finding| {
                let Finding { kind, id, words } = finding;
                json!({ "kind": kind, "id": id, "message": words })
            };
            let findings: Vec<Value> = report.findings.iter().map(finding).collect();
            output::json(&json!({ "jobs": report.jobs, "findings": findings }))?;
        }
        Format::Text => {
            let row = |finding: &Finding| {
                vec![finding.kind.to_owned(), finding.id.clone().unwrap_or_default(), finding.words.clone()]
            };
            let rows: Vec<Vec<String>> = report.findings.iter().map(row).collect();
            output::text(&output::table(&rows))?;
            if count == 0 {
                talk.info(&format!("{} jobs, and everything adds up", report.jobs));
            }
        }
    }
    if count == 0 {
        return Ok(());
    }
    let words = if count == 1 { "one thing".to_owned() } else { format!("{count} things") };
    Err(Failure::new(Exit::Unexpected, format!("{words} in the ledger should not be so"))
        .code("ledger_unsound")
        .hint("keep a copy of the ledger before anything else"))
}

async fn export_it(found: Found, shape: Shape) -> Outcome {
    let look = open(&found).await?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut failed = None;
    if shape == Shape::Csv {
        failed = writeln!(out, "{CSV_HEADER}").err();
    }
    let exported = export(&look, |record| {
        let line = match shape {
            Shape::Json => serde_json::to_string(&record).map_err(std::io::Error::other),
            Shape::Csv => Ok(record.csv()),
        };
        match line.and_then(|line| writeln!(out, "{line}")) {
            Ok(()) => More::Yes,
            Err(error) => {
                failed.get_or_insert(error);
                More::No
            }
        }
    });
    exported.await.map_err(|error| ledger::failure(&error))?;
    match failed.or_else(|| out.flush().err()) {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::unexpected("cannot write to standard output").because(&error))
        }
        _ => Ok(()),
    }
}
