//! `rialto man`: the manual, generated from the same definitions as the help.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_mangen::Man;
use serde_json::json;

use crate::cli::Cli;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto man | man -l -
  rialto man --dir ~/.local/share/man/man1";

/// Print the manual page, or write the pages of all commands
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Write one page per command into this directory, which is created if needed
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, talk: &Talk) -> Outcome {
    let Some(directory) = &arguments.dir else {
        let mut page = Vec::new();
        render(&Man::new(Cli::command()), &mut page)?;
        return output::bytes(&page);
    };
    let failed = |error: std::io::Error| {
        Failure::unexpected(format!("cannot write manual pages to `{}`", directory.display())).because(&error)
    };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut written = Vec::new();
    write_pages(&command, directory, &mut written)?;
    match talk.format {
        Format::Json => output::json(&json!({ "written": written })),
        Format::Text => {
            talk.info(&format!("wrote {} pages to {}", written.len(), directory.display()));
            Ok(())
        }
    }
}

/// Writes the page of a command and of everything below it. Hidden commands have none.
fn write_pages(command: &clap::Command, directory: &Path, written: &mut Vec<PathBuf>) -> Outcome {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, directory, written)?;
    }
    let man = Man::new(command.clone());
    let path = directory.join(man.get_filename());
    let mut page = Vec::new();
    render(&man, &mut page)?;
    std::fs::write(&path, page)
        .map_err(|error| Failure::unexpected(format!("cannot write `{}`", path.display())).because(&error))?;
    written.push(path);
    Ok(())
}

fn render(man: &Man, page: &mut Vec<u8>) -> Outcome {
    man.render(page).map_err(|error| Failure::unexpected("cannot make the manual page").because(&error))
}
