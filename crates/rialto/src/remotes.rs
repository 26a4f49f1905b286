//! What remote servers are reached with: one pool of connections and one place for tokens, for all of them.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use rialto_http::client::oauth::{Authorizer, Browser, Settings, Vault};
use rialto_http::client::{Agent, Endpoint, Options, Remote};

use crate::environment::Environment;
use crate::paths::Directories;

/// The name of the file in the state folder.
pub(crate) const TOKENS: &str = "tokens.json";

/// Makes remote servers out of their addresses.
pub(crate) struct Remotes {
    options: Options,
    agent: OnceCell<Agent>,
    tokens: Option<PathBuf>,
}

impl Remotes {
    pub(crate) fn of(environment: &Environment) -> Self {
        let options = Options::from_variables(|name| environment.raw(name).map(ToOwned::to_owned));
        let tokens = Directories::find(environment).map(|directories| directories.state.join(TOKENS));
        Self { options, agent: OnceCell::new(), tokens }
    }

    fn agent(&self) -> Result<Agent, String> {
        if let Some(agent) = self.agent.get() {
            return Ok(agent.clone());
        }
        let agent = Agent::new(&self.options).map_err(|error| error.to_string())?;
        Ok(self.agent.get_or_init(|| agent).clone())
    }

    /// Where tokens are kept; without a home directory, only for as long as the process lives.
    pub(crate) fn vault(&self) -> Vault {
        self.tokens.clone().map_or_else(Vault::in_memory, Vault::in_file)
    }

    /// A server. `called` is what a person calls it on the command line.
    pub(crate) fn remote(
        &self,
        endpoint: Endpoint,
        settings: Settings,
        called: &str,
        browser: Option<Browser>,
    ) -> Result<Remote, String> {
        let agent = self.agent()?;
        // Where the user's own headers say who asks, nobody has to log in.
        if endpoint.has_authorization() {
            return Ok(Remote::new(endpoint, agent));
        }
        let authorizer = self.authorizer(&endpoint, settings, called, browser)?;
        Ok(Remote { endpoint, agent, authorizer: Some(authorizer) })
    }

    /// Who logs in at a server.
    pub(crate) fn authorizer(
        &self,
        endpoint: &Endpoint,
        settings: Settings,
        called: &str,
        browser: Option<Browser>,
    ) -> Result<Arc<Authorizer>, String> {
        let is_plain = called.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c));
        let called = if is_plain { called.to_owned() } else { format!("'{}'", called.replace('\'', "'\\''")) };
        let hint = format!("rialto auth login {called}");
        Ok(Authorizer::new(endpoint, self.agent()?, self.vault(), settings, browser, &hint))
    }
}
