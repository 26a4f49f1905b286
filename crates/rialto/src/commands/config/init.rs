//! `rialto config init`: writes a first `rialto.toml` that explains itself.

use std::io::{ErrorKind, Write};

use clap::Args;
use serde_json::json;

use crate::commands::current_directory;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::paths::PROJECT_FILE;
use crate::talk::{Format, Talk};

const TEMPLATE: &str = include_str!("template.toml");

const EXAMPLES: &str = "\
Examples:
  rialto config init
  rialto config init --force && rialto config check";

/// Write a first rialto.toml in the current directory
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Replace a file that is already there
    #[arg(long)]
    force: bool,
}

/// The template, with the full path of this binary where its name alone would not be found.
fn template() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&path).any(|directory| directory.join("rialto").is_file());
    let own = std::env::current_exe().ok().filter(|_| !is_found);
    match own.as_deref().and_then(std::path::Path::to_str) {
        // A JSON string is a TOML string, too.
        Some(own) => TEMPLATE.replace("command = \"rialto\"", &format!("command = {}", json!(own))),
        None => TEMPLATE.to_owned(),
    }
}

pub(crate) fn run(arguments: &Arguments, talk: &Talk) -> Outcome {
    let path = current_directory()?.join(PROJECT_FILE);
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    if arguments.force {
        options.create(true).truncate(true);
    } else {
        // Creating and checking is one step, so that nothing is ever overwritten by a race.
        options.create_new(true);
    }
    let written = options.open(&path).and_then(|mut file| file.write_all(template().as_bytes()));
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(Failure::usage(format!("`{PROJECT_FILE}` is already here"))
                .code("file_exists")
                .hint("look at it:   rialto config check\nreplace it:   rialto config init --force"));
        }
        Err(error) => return Err(Failure::unexpected(format!("cannot write `{}`", path.display())).because(&error)),
    }
    match talk.format {
        Format::Json => output::json(&json!({ "written": path })),
        Format::Text => {
            talk.info(&format!("wrote {PROJECT_FILE}; next: rialto config check"));
            Ok(())
        }
    }
}
