//! What the hub is asked to run: checked, complete, free of text to interpret.
//!
//! Configuration files, flags and environment variables become a [`Plan`] before anything starts; whatever can be wrong
//! with them has been reported by then.

use crate::sandbox::Sandbox;
use rialto_http::client::Remote;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long lists and the handshake wait for servers that are still starting, counted from the first client's coming.
/// Node and Python servers need one to two seconds; a server that needs longer joins later with a list-changed.
pub const DEFAULT_STARTUP_GRACE: Duration = Duration::from_secs(2);

/// How long one call may take without any sign of life. The same minute that MCP hosts allow.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How long progress may extend one call at most.
pub const DEFAULT_MAX_CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// Everything that one hub runs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// In the order in which their tools are listed.
    pub servers: Vec<ServerPlan>,
    pub prefix: Prefix,
    pub startup_grace: Duration,
}

/// When a tool's or prompt's name gets its server's name in front (`server__tool`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefix {
    #[default]
    Always,
    /// Only where two servers offer the same name.
    Conflict,
    /// Never: the first server that offers a name owns it.
    Never,
}

/// One MCP server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerPlan {
    /// The key in the configuration; also the prefix of its tools.
    pub name: String,
    pub transport: Transport,
    pub era: EraChoice,
    /// Tool names (as the server spells them, `*` as wildcard) that are visible. Empty: all.
    pub allow: Vec<String>,
    /// Tool names that are hidden even when allowed.
    pub deny: Vec<String>,
    pub timeout: Duration,
    pub max_timeout: Duration,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// It is a child of ours and speaks over its standard input and output.
    Process(Process),
    /// It runs elsewhere and speaks over HTTP.
    Http(Box<Remote>),
}

/// A program that is a server.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Process {
    pub program: String,
    pub args: Vec<String>,
    /// Given to the child beside the small allow-list it inherits. Values may be secrets and are never printed.
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    /// What keeps it from doing harm, if anything does.
    pub sandbox: Option<Sandbox>,
}

/// Which protocol era is spoken to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraChoice {
    /// The client's era first, the other one when the server does not know it.
    #[default]
    Auto,
    /// Only `initialize` (2024-11-05 … 2025-11-25).
    Legacy,
    /// Only `server/discover` (2026-07-28).
    Modern,
}

impl ServerPlan {
    /// A server started by `program args…`, with every other setting at its default.
    pub fn new(name: impl Into<String>, program: impl Into<String>, args: Vec<String>) -> Self {
        let process = Process { program: program.into(), args, ..Process::default() };
        Self::over(name, Transport::Process(process))
    }

    /// A server reached this way, with every other setting at its default.
    pub fn over(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            era: EraChoice::Auto,
            allow: Vec::new(),
            deny: Vec::new(),
            timeout: DEFAULT_CALL_TIMEOUT,
            max_timeout: DEFAULT_MAX_CALL_TIMEOUT,
        }
    }
}

impl std::fmt::Debug for ServerPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerPlan")
            .field("name", &self.name)
            .field("transport", &self.transport)
            .field("era", &self.era)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Transport::Process(process) => process.fmt(f),
            Transport::Http(remote) => remote.endpoint.fmt(f),
        }
    }
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Arguments and environment values often hold tokens: only their number and names are shown.
        f.debug_struct("Process")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .field("sandbox", &self.sandbox)
            .finish()
    }
}
