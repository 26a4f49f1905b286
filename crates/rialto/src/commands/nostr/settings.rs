//! What `rialto mcp nostr` and `rialto nostr` are told alike: where everything is, and how secrets are sealed.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use nostr::prelude::{Kind, RelayUrl};
use rialto_nostr_tools::{Guard, Home, Keyring, Options, Passphrase};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::failure;
use crate::environment::{self, Environment};
use crate::failure::Failure;
use crate::identity::data_directory;
use crate::relays::{self, RelayFlags};
use crate::suggest::nearest;

/// The folder of the Nostr tools.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Folder {
    /// Where keys and settings are kept [default: `nostr` in the data directory, see `rialto paths`]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

impl Folder {
    pub(crate) fn path(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        match &self.directory {
            Some(directory) => std::path::absolute(directory)
                .map_err(|error| Failure::usage("--directory names no folder").because(&error)),
            None => Ok(data_directory(environment)?.join("nostr")),
        }
    }
}

/// The folder, and what opens sealed keys in it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Place {
    #[command(flatten)]
    pub(crate) folder: Folder,

    /// File whose first line seals secret keys (NIP-49) [env: RIALTO_NOSTR_PASSPHRASE, the passphrase itself]
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// What a passphrase is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To open what is sealed.
    Open,
    /// To seal: a slip of the finger would lock its owner out, so it is asked for twice.
    Seal,
}

impl Place {
    /// The passphrase that was given; none if none was.
    pub(crate) fn passphrase(&self, environment: &Environment) -> Result<Passphrase, Failure> {
        if let Some(file) = &self.passphrase_file {
            return Passphrase::from_file(file).map_err(|error| failure(&error));
        }
        let given = environment.raw(environment::NOSTR_PASSPHRASE);
        Ok(given.map_or_else(Passphrase::none, |text| Passphrase::new(&text.to_string_lossy())))
    }

    /// The same, but on a terminal its owner is asked.
    pub(crate) fn passphrase_or_ask(&self, environment: &Environment, purpose: Purpose) -> Result<Passphrase, Failure> {
        let given = self.passphrase(environment)?;
        if given.is_set() {
            return Ok(given);
        }
        let typed = ask("Passphrase: ")?;
        if typed.is_empty() {
            return Err(Failure::usage("the passphrase is empty"));
        }
        if purpose == Purpose::Seal && ask("Again: ")? != typed {
            return Err(Failure::usage("the two passphrases differ"));
        }
        Ok(Passphrase::new(&typed))
    }

    pub(crate) fn keyring(&self, environment: &Environment) -> Result<Keyring, Failure> {
        self.keyring_with(environment, self.passphrase(environment)?)
    }

    pub(crate) fn keyring_with(&self, environment: &Environment, passphrase: Passphrase) -> Result<Keyring, Failure> {
        Keyring::open(&self.folder.path(environment)?, passphrase).map_err(|error| failure(&error))
    }
}

/// Asks for something secret on the terminal, without showing what is typed.
pub(crate) fn ask(prompt: &str) -> Result<String, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage("a passphrase is needed, and there is no terminal to ask on")
            .hint("--passphrase-file FILE, or the variable RIALTO_NOSTR_PASSPHRASE"));
    }
    crate::talk::write_talk(prompt);
    let _ = std::io::stderr().flush();
    let before = tcgetattr(&stdin).ok();
    if let Some(mut quiet) = before.clone() {
        quiet.local_modes.remove(LocalModes::ECHO);
        // What is typed is then seen, which is no reason not to go on.
        let _ = tcsetattr(&stdin, OptionalActions::Now, &quiet);
    }
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    if let Some(before) = before {
        let _ = tcsetattr(&stdin, OptionalActions::Now, &before);
        crate::talk::write_talk("\n");
    }
    read.map_err(|error| Failure::unexpected("the terminal cannot be read").because(&error))?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Everything that `rialto mcp nostr` can be told.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    relays: RelayFlags,

    /// Keep the secrets of new keys in the keyring of the system, instead of in files
    #[arg(long)]
    keyring: bool,

    /// How long a remote signer (NIP-46) may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=600))]
    signer_timeout: u64,

    /// Offer only tools that read; nothing is changed, signed or published
    #[arg(long, help_heading = "Limits")]
    read_only: bool,

    /// Offer only these tools; `*` stands for anything and `nostr_` may be left out; may be repeated
    #[arg(long, value_name = "TOOL", help_heading = "Limits")]
    allow_tool: Vec<String>,

    /// Do not offer these tools; may be repeated
    #[arg(long, value_name = "TOOL", help_heading = "Limits")]
    deny_tool: Vec<String>,

    /// Sign only events of these kinds; may be repeated
    #[arg(long, value_name = "KIND", help_heading = "Limits")]
    allow_kind: Vec<u16>,

    /// Use only these relays, whoever names others, a remote signer included; may be repeated
    #[arg(long, value_name = "URL", help_heading = "Limits")]
    allow_relay: Vec<String>,

    /// How many calls may change, sign or publish something in a minute [default: any number]
    #[arg(long, value_name = "N", help_heading = "Limits", value_parser = clap::value_parser!(u32).range(1..))]
    writes_per_minute: Option<u32>,

    /// Ask the user, through the MCP host, before anything is changed, signed or published
    #[arg(long, help_heading = "Limits")]
    confirm: bool,

    /// Let the model upload files from below this folder [default: none]
    #[arg(long, value_name = "DIR", help_heading = "Limits")]
    files: Option<PathBuf>,

    /// Let the model see and give secret keys
    #[arg(long, help_heading = "Limits")]
    allow_secrets: bool,
}

impl Settings {
    pub(crate) fn options(&self, environment: &Environment) -> Result<Options, Failure> {
        let parse = |text: &String| relays::parse(text);
        let allowed: Vec<RelayUrl> = self.allow_relay.iter().map(parse).collect::<Result<_, _>>()?;
        let guard = Guard {
            is_read_only: self.read_only,
            allows_secrets: self.allow_secrets,
            allowed_tools: self.allow_tool.clone(),
            denied_tools: self.deny_tool.clone(),
            kinds: self.allow_kind.iter().copied().map(Kind::from).collect(),
            relays: allowed.clone(),
            writes_per_minute: self.writes_per_minute,
            asks_before_writing: self.confirm,
            files: self.files.as_deref().map(opened).transpose()?,
        };
        if let Some(unknown) = guard.unknown_tools().first() {
            let names: Vec<&str> = rialto_nostr_tools::tools().iter().map(|tool| tool.about.name).collect();
            let short = names.iter().filter_map(|name| name.strip_prefix("nostr_"));
            let meant = nearest(unknown, names.iter().copied().chain(short));
            let failure = Failure::usage(format!("there is no tool `{unknown}`")).code("tool_unknown");
            return Err(failure.hint(match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "rialto nostr registry list    shows all tools".to_owned(),
            }));
        }
        let mut chosen = self.relays.chosen(environment)?;
        // Who allows some relays and names none wants to use those.
        if chosen.is_empty() {
            chosen = allowed;
        }
        Ok(Options {
            directory: self.place.folder.path(environment)?,
            relays: chosen,
            guard,
            passphrase: self.place.passphrase(environment)?,
            home: if self.keyring { Home::System } else { Home::Files },
            signer_patience: Duration::from_secs(self.signer_timeout),
        })
    }
}

/// A folder that may be read, by its real name.
fn opened(folder: &Path) -> Result<PathBuf, Failure> {
    let found = folder.canonicalize().ok().filter(|found| found.is_dir());
    found.ok_or_else(|| Failure::usage(format!("--files: there is no folder {}", folder.display())))
}
