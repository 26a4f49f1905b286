//! `rialto paths`: where files live on this machine.

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::commands::current_directory;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::paths::{Directories, PROJECT_FILE, find_project_file};
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto paths
  rialto paths --json
  XDG_CONFIG_HOME=/etc/rialto rialto paths";

/// Print where files live
///
/// Nothing is created. The project file is the nearest rialto.toml from the current directory upward.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {}

pub(crate) fn run(environment: &Environment, talk: &Talk) -> Outcome {
    let directories = Directories::find(environment).ok_or_else(|| {
        Failure::config("there is no home directory: HOME is not set").hint("HOME=/some/directory rialto paths")
    })?;
    let project = find_project_file(&current_directory()?, environment.home().as_deref());
    let user = directories.user_file();
    match talk.format {
        Format::Json => output::json(&json!({
            "config": directories.config,
            "data": directories.data,
            "state": directories.state,
            "cache": directories.cache,
            "user_file": user,
            "user_file_exists": user.exists(),
            "project_file": project,
        })),
        Format::Text => {
            let row = |name: &str, path: &Path, note: &str| vec![name.to_owned(), format!("{}{note}", path.display())];
            let missing = if user.exists() { "" } else { " (not there)" };
            let project = match &project {
                Some(path) => row("project file", path, ""),
                None => vec!["project file".to_owned(), format!("none ({PROJECT_FILE} not found from here upward)")],
            };
            output::text(&output::table(&[
                row("config", &directories.config, ""),
                row("data", &directories.data, ""),
                row("state", &directories.state, ""),
                row("cache", &directories.cache, ""),
                row("user file", &user, missing),
                project,
            ]))
        }
    }
}
