//! One server named on the command line, in place of the configured ones.

use std::path::{Path, PathBuf};

use clap::Args;
use rialto_http::client::oauth::Settings;
use rialto_http::client::{Endpoint, Remote, Way};
use rialto_hub::sandbox::Sandbox;

use crate::config::choice::{self, Profile};
use crate::config::expand_text;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::remotes::Remotes;

#[derive(Args)]
pub(crate) struct OneServer {
    /// Address of one remote server, instead of the configured ones
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "command"])]
    pub(crate) url: Option<String>,

    /// Header for the server at --url, such as 'Authorization: Bearer ${TOKEN}'; may be repeated
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub(crate) header: Vec<String>,

    /// Confine CMD: it reads only the system, writes only into a folder of its own and talks to nobody [default: none]
    #[arg(long, value_name = "PROFILE", value_parser = choice::parser::<Profile>(), requires = "command")]
    pub(crate) sandbox: Option<Profile>,

    /// Folder or file that CMD may read in its sandbox; may be repeated
    #[arg(long, value_name = "PATH", requires = "sandbox")]
    pub(crate) sandbox_read: Vec<PathBuf>,

    /// Let CMD use the network in its sandbox
    #[arg(long, requires = "sandbox")]
    pub(crate) sandbox_network: bool,

    /// One server instead of the configured ones; everything after `--` is passed on untouched
    #[arg(last = true, value_name = "CMD", conflicts_with = "config")]
    pub(crate) command: Vec<String>,
}

impl std::fmt::Debug for OneServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Addresses, headers and arguments may hold secrets.
        f.debug_struct("OneServer").field("command", &self.command.first()).finish_non_exhaustive()
    }
}

impl OneServer {
    /// Whether there is one.
    pub(crate) fn is_given(&self) -> bool {
        self.url.is_some() || !self.command.is_empty()
    }

    /// What confines the program, if anything does.
    pub(crate) fn sandbox(&self, directory: &Path) -> Option<Sandbox> {
        let read = self.sandbox_read.iter().map(|path| directory.join(path)).collect();
        (self.sandbox == Some(Profile::Strict)).then_some(Sandbox { read, network: self.sandbox_network })
    }

    /// The remote server, if it is one.
    pub(crate) fn remote(&self, environment: &Environment) -> Result<Option<Remote>, Failure> {
        let Some(url) = &self.url else { return Ok(None) };
        let endpoint = endpoint(url, &self.header, environment)?;
        let called = endpoint.to_string();
        let remote = Remotes::of(environment).remote(endpoint, Settings::default(), &called, None);
        remote.map(Some).map_err(|why| Failure::config("remote servers cannot be reached").cause(why))
    }
}

/// An address with headers as they are typed.
pub(crate) fn endpoint(url: &str, headers: &[String], environment: &Environment) -> Result<Endpoint, Failure> {
    let invalid = |what: &str, why: String| Failure::usage(format!("{what}: {why}")).code("address_invalid");
    let mut endpoint =
        Endpoint::new(url, Way::default()).map_err(|error| invalid("the server's address", error.to_string()))?;
    for header in headers {
        let Some((name, value)) = header.split_once(':') else {
            return Err(Failure::usage("a header needs a name and a value")
                .code("header_invalid")
                .hint("--header 'Name: value'"));
        };
        let value = expand_text(value.trim(), environment, Path::new("."))
            .map_err(|(message, hint)| invalid("--header", message).hint(hint))?;
        endpoint = endpoint.with_header(name.trim(), &value).map_err(|error| invalid("--header", error.to_string()))?;
    }
    Ok(endpoint)
}
