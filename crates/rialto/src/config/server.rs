//! One configured server, as written: the common result of every kind of file.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rialto_http::client::Way;
use rialto_hub::plan::EraChoice;

use crate::config::choice::Profile;
use crate::config::fields::Text;
use crate::config::settings::{Origin, Traced};
use crate::config::source::Source;

/// How a server is reached.
#[derive(Clone)]
pub(crate) enum Reach {
    Command(Text),
    Address(Text),
}

/// What is said about logins at a remote server.
#[derive(Clone, Default)]
pub(crate) struct Login {
    pub(crate) client_id: Option<Text>,
    pub(crate) client_secret: Option<Text>,
    /// The address of a document that describes us.
    pub(crate) client_metadata: Option<Text>,
    pub(crate) scopes: Option<Vec<Text>>,
    pub(crate) port: Option<Traced<u64>>,
}

/// A server before its variables are expanded.
#[derive(Clone)]
pub(crate) struct ServerEntry {
    pub(crate) name: String,
    pub(crate) source: Arc<Source>,
    /// Where its name stands.
    pub(crate) span: Range<usize>,
    pub(crate) reach: Reach,
    pub(crate) args: Vec<Text>,
    pub(crate) env: Vec<(String, Text)>,
    /// A file with more variables; those in `env` win.
    pub(crate) env_file: Option<Text>,
    pub(crate) cwd: Option<Text>,
    pub(crate) sandbox: Option<Traced<Profile>>,
    /// What it may read in its sandbox.
    pub(crate) sandbox_read: Vec<Text>,
    pub(crate) sandbox_network: Option<Traced<bool>>,
    /// Sent with every request to a remote server.
    pub(crate) headers: Vec<(String, Text)>,
    pub(crate) way: Way,
    pub(crate) login: Login,
    pub(crate) enabled: Option<Traced<bool>>,
    pub(crate) era: Option<Traced<EraChoice>>,
    pub(crate) allow: Vec<Text>,
    pub(crate) deny: Vec<Text>,
    pub(crate) timeout: Option<Traced<Duration>>,
    pub(crate) max_timeout: Option<Traced<Duration>>,
}

impl ServerEntry {
    pub(crate) fn new(name: &str, source: &Arc<Source>, span: Range<usize>, reach: Reach) -> Self {
        Self {
            name: name.to_owned(),
            source: Arc::clone(source),
            span,
            reach,
            args: Vec::new(),
            env: Vec::new(),
            env_file: None,
            cwd: None,
            sandbox: None,
            sandbox_read: Vec::new(),
            sandbox_network: None,
            headers: Vec::new(),
            way: Way::default(),
            login: Login::default(),
            enabled: None,
            era: None,
            allow: Vec::new(),
            deny: Vec::new(),
            timeout: None,
            max_timeout: None,
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.as_ref().is_none_or(|enabled| enabled.value)
    }

    /// The origin of something at `span` in this server's file.
    pub(crate) fn origin(&self, span: &Range<usize>) -> Origin {
        Origin::File(Arc::clone(&self.source), span.start)
    }
}
