//! The secret that clients of the gateway show.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::identity::data_directory;
use crate::output;
use crate::secret_file::{self, What};
use crate::talk::{Format, Talk};

/// The name of the file in the directory of what must be kept.
const FILE: &str = "gateway-token";

/// Bytes of randomness in a token.
const LENGTH: usize = 32;

/// No shorter secret is taken.
const MIN_LENGTH: usize = 16;

/// Reads the token in `file`, or the one of this user; makes one if there is none. Gives where it is, too.
pub(super) fn load(file: Option<&Path>, environment: &Environment) -> Result<(Arc<str>, PathBuf), Failure> {
    let path = match file {
        Some(file) => file.to_owned(),
        None => data_directory(environment)?.join(FILE),
    };
    let token = match secret_file::read(&path, What::Token)? {
        Some(token) => token,
        None => {
            let token = random()?;
            match secret_file::write(&path, What::Token, &token) {
                Ok(()) => token,
                // Another process may have made one meanwhile: that one counts.
                Err(failure) => secret_file::read(&path, What::Token)?.ok_or(failure)?,
            }
        }
    };
    if token.len() < MIN_LENGTH || token.contains(|c: char| !c.is_ascii_graphic()) {
        return Err(Failure::config(format!("`{}` holds no token", path.display()))
            .code("token_invalid")
            .hint(format!("it must hold one line of at least {MIN_LENGTH} visible ASCII characters")));
    }
    Ok((token.into(), path))
}

/// Shows the token of this user.
pub(super) fn print(environment: &Environment, talk: &Talk) -> Outcome {
    let (token, _) = load(None, environment)?;
    match talk.format {
        Format::Text => output::text(&format!("{token}\n")),
        Format::Json => output::json(&serde_json::json!({ "token": &*token })),
    }
}

fn random() -> Result<String, Failure> {
    let mut bytes = [0_u8; LENGTH];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if !filled.is_ok_and(|count| count == LENGTH) {
        return Err(Failure::unexpected("cannot draw random numbers"));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
