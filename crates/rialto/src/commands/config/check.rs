//! `rialto config check`: everything that can be said about the configuration without starting anything.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::commands::current_directory;
use crate::config::problem::{Problem, Report};
use crate::config::settings::Layer;
use crate::config::{Request, Scope, load, planning};
use crate::environment::Environment;
use crate::failure::Outcome;
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto config check
  rialto config check claude_desktop_config.json .vscode/mcp.json
  rialto config check --json rialto.toml";

/// Check the configuration without starting anything
///
/// Reads the given files, or the project and user file, expands variables, and reports every error with its place.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Files to check instead of the project and user file
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let directory = current_directory()?;
    let request = Request {
        environment,
        directory: &directory,
        flags: Layer::default(),
        files: arguments.files,
        scope: Scope::Everything,
    };
    let mut report = Report::default();
    let config = load(&request, &mut report);
    let plan = planning::plan(&config, environment, &mut report);
    let warnings = report.into_result()?;
    let names: Vec<&str> = plan.servers.iter().map(|server| server.name.as_str()).collect();
    match talk.format {
        Format::Json => output::json(&json!({
            "files": config.files,
            "servers": names,
            "disabled": config.servers.len() - plan.servers.len(),
            "skipped": config.skipped,
            "warnings": warnings.iter().map(Problem::line).collect::<Vec<_>>(),
        })),
        Format::Text => {
            for warning in &warnings {
                talk.warn(&warning.line());
            }
            let files = if config.files.is_empty() { "no file".to_owned() } else { config.files.join(", ") };
            let servers = match names.len() {
                0 => "no server to run".to_owned(),
                1 => format!("1 server: {}", names[0]),
                count => format!("{count} servers: {}", names.join(", ")),
            };
            output::text(&format!("ok: {files}: {servers}\n"))
        }
    }
}
