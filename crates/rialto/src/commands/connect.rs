//! `rialto connect`: what an MCP host needs to know to use services, shown or written where the host looks for it.

mod backup;
mod edit_json;
mod edit_toml;
mod entry;
mod file;
mod host;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::commands::current_directory;
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::talk::{Format, Talk};

use entry::Entry;
use file::{Overwrite, Written};
use host::{Host, System};

const EXAMPLES: &str = "\
Examples:
  rialto connect cursor weather                     Show what belongs into Cursor's file
  rialto connect cursor weather --write             Write it there; the old file is kept beside
  rialto connect claude-code weather                Show the command that tells Claude Code
  rialto connect codex weather maps --name places   Two services behind one entry
  rialto connect vscode weather --write --dry-run";

/// Tell an MCP host about services
///
/// The host will start `rialto use SERVICE…` by itself. Without --write nothing is changed. With it, the host's file
/// keeps everything else that is in it, comments included.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The MCP host
    #[arg(value_enum)]
    host: Host,

    /// What to use there, as for `rialto use`
    #[arg(required = true, value_name = "SERVICE")]
    services: Vec<String>,

    /// The entry's name in the host [default: the service's own if it is short, else rialto]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Write the entry into the host's file
    #[arg(long)]
    write: bool,

    /// The host's file, if it is not where it usually is
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,

    /// Replace an entry of the same name that says something else
    #[arg(long, requires = "write")]
    force: bool,

    /// With --write: show the new entry and write nothing
    #[arg(long, requires = "write")]
    dry_run: bool,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let host = arguments.host;
    let entry = Entry::new(arguments.name.as_deref(), own_path()?, &arguments.services)?;
    let directory = current_directory()?;
    let file = match &arguments.file {
        Some(file) => directory.join(file),
        None => host.file(environment, &directory, System::THIS).ok_or_else(no_home)?,
    };
    let written = if arguments.write {
        let overwrite = if arguments.force { Overwrite::Yes } else { Overwrite::No };
        let edit = file::Edit { host, entry: &entry, path: &file, directory: &directory, overwrite };
        if arguments.dry_run { edit.rehearse()? } else { edit.write()? }
    } else {
        Written::Nothing
    };
    match talk.format {
        Format::Json => output::json(&as_json(host, &entry, &file, &written)),
        Format::Text if arguments.write => {
            if written == Written::Nothing {
                output::text(&entry.document(host))?;
            }
            talk.info(&told(host, &entry, &file, &written));
            Ok(())
        }
        Format::Text => {
            output::text(&entry.shown(host))?;
            talk.info(&host.by_hand(&file));
            Ok(())
        }
    }
}

fn as_json(host: Host, entry: &Entry, file: &Path, written: &Written) -> Value {
    let backup = match written {
        Written::Done { backup, .. } => backup.as_deref(),
        _ => None,
    };
    json!({
        "host": host.word(),
        "file": file,
        "name": entry.name,
        "command": entry.command,
        "args": entry.args,
        "config": entry.config(host),
        "written": matches!(written, Written::Done { .. }),
        "backup": backup,
    })
}

fn told(host: Host, entry: &Entry, file: &Path, written: &Written) -> String {
    let (name, file) = (&entry.name, file.display());
    match written {
        Written::Nothing => format!("would write `{name}` into {file}"),
        Written::AlreadyThere => format!("`{name}` is already in {file}: nothing to do"),
        Written::Done { backup: None } => format!("wrote `{name}` into {file}, a new file; next: {}", host.next()),
        Written::Done { backup: Some(backup) } => {
            let next = host.next();
            format!("wrote `{name}` into {file}\nkept the old file as {}\nnext: {next}", backup.display())
        }
    }
}

/// A host starts programs from anywhere, so only the whole path will do.
fn own_path() -> Result<String, Failure> {
    let path = std::env::current_exe().and_then(|path| path.canonicalize());
    let path = path.map_err(|error| Failure::unexpected("cannot find the path of this program").because(&error))?;
    path.into_os_string().into_string().map_err(|path| {
        Failure::unexpected(format!("the path of this program is not valid UTF-8: {}", path.to_string_lossy()))
            .hint("install it somewhere else")
    })
}

fn no_home() -> Failure {
    Failure::config("there is no home directory: HOME is not set").hint("name the host's file with --file PATH")
}
