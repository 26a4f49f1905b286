//! Files that hold one secret each: readable by their owner alone, never half written, never repeated in a message.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::exit::Exit;
use crate::failure::Failure;

/// No such file is longer.
const MAX_FILE: u64 = 4096;

/// What the secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Key,
    Token,
    Wallet,
    Ledger,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Key => "key",
            What::Token => "token",
            What::Wallet => "wallet",
            What::Ledger => "ledger",
        }
    }

    fn exposed(self) -> &'static str {
        match self {
            What::Key => "key_exposed",
            What::Token => "token_exposed",
            What::Wallet => "wallet_exposed",
            What::Ledger => "ledger_exposed",
        }
    }
}

/// The secret in a file; `None` if there is no such file.
pub(crate) fn read(path: &Path, what: What) -> Result<Option<String>, Failure> {
    let (name, file) = (what.name(), path.display());
    let unreadable =
        |error: &std::io::Error| Failure::unexpected(format!("cannot read the {name} file `{file}`")).because(error);
    let opened = match fs::File::open(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let mode = opened.metadata().map_err(|error| unreadable(&error))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(Failure::new(Exit::NotAllowed, format!("others can read the {name} file `{file}`"))
            .code(what.exposed())
            .hint(format!("chmod 600 {file}")));
    }
    let mut text = String::new();
    // A file that is no text holds no secret of ours.
    let _ = opened.take(MAX_FILE).read_to_string(&mut text);
    Ok(Some(text.trim().to_owned()))
}

/// Writes a new file. Fails if there is one already.
pub(crate) fn write(path: &Path, what: What, secret: &str) -> Result<(), Failure> {
    // Never half a secret: a new name first, then the real one.
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    let make = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(format!("{secret}\n").as_bytes())?;
        file.sync_all()?;
        fs::hard_link(&draft, path)
    };
    let made = make();
    let _ = fs::remove_file(&draft);
    let message = || format!("cannot write the {} file `{}`", what.name(), path.display());
    made.map_err(|error| Failure::unexpected(message()).because(&error))
}
