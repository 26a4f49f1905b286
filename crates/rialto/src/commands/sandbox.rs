//! `rialto __sandbox`: gives up its rights and becomes a server. Hidden: only rialto starts it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use rialto_hub::sandbox::{Sandbox, become_program};

use crate::failure::{Failure, Outcome};

/// Run a program in a sandbox
#[derive(Args)]
pub(crate) struct Arguments {
    /// The folder that the program has to itself
    #[arg(long)]
    folder: PathBuf,
    /// What it may read
    #[arg(long)]
    read: Vec<PathBuf>,
    /// It may use the network
    #[arg(long)]
    network: bool,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl std::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Arguments may hold secrets.
        f.debug_struct("Arguments").field("folder", &self.folder).finish_non_exhaustive()
    }
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Arguments { folder, read, network, command } = arguments;
    Err(Failure::unexpected(become_program(&Sandbox { read, network }, &folder, &command)).code("sandbox"))
}
