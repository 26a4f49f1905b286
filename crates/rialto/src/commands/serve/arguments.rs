//! What `rialto serve` can be told, and the plan that becomes of it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use nostr::prelude::{Keys, PublicKey, RelayUrl};
use rialto_hub::plan::{Plan as HubPlan, ServerPlan, Transport};
use rialto_payment::secret::Secret;
use rialto_provider::limits::Limits;
use rialto_provider::plan::{Access, DEFAULT_WINDOW, Ending, Plan};
use rialto_wire::dvmcp::request::OpenJobs;
use rialto_wire::service::Wire;

use crate::commands::gateway::SettingFlags;
use crate::commands::serve::prices::{PriceFlags, Sweep, Tariff};
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::identity::Identity;
use crate::ledger;
use crate::one_server::OneServer;
use crate::relays::{LOCAL, RelayFlags};
use crate::wires::WireName;

const EXAMPLES: &str = "\
Examples:
  rialto serve -- npx -y @modelcontextprotocol/server-everything
  rialto serve --name weather --about 'Forecasts' --relay wss://relay.example -- ./weather-server
  rialto serve --config mcp.json --tool 'search*'         Several servers, some of their tools
  rialto serve --private npub1… -- ./home-automation      For certain people only, not announced

Then, anywhere:
  rialto find
  rialto call weather forecast city=Venice";

/// Offer MCP servers on Nostr
///
/// Announces the tools, takes requests from relays, runs them, answers. Needs no domain, no open port and no account. Without
/// --relay it starts a relay of its own on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Name of the service, under which others find it; it never changes [default: from the command]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// One sentence on what the service does
    #[arg(long, value_name = "TEXT", default_value = "")]
    about: String,

    #[command(flatten)]
    relays: RelayFlags,

    /// Where the built-in relay listens, if no relay is given; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = LOCAL)]
    listen: SocketAddr,

    /// How the service can be called: announced, by jobs of data vending machines (dvmcp); by a manifest and encrypted
    /// direct messages (manifest)
    #[arg(long, value_name = "WIRES", value_delimiter = ',', default_value = "dvmcp,manifest")]
    wire: Vec<WireName>,

    /// Only this key may use the service, and it is not announced; may be repeated
    #[arg(long, value_name = "KEY")]
    private: Vec<String>,

    /// This key may not use the service; may be repeated
    #[arg(long, value_name = "KEY")]
    deny: Vec<String>,

    /// Offer only this tool (`*` stands for anything); may be repeated
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,

    /// Do not offer this tool; may be repeated
    #[arg(long, value_name = "NAME")]
    hide_tool: Vec<String>,

    /// File with the key to sign with; made if it is not there
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Leave the announcement when the service stops
    #[arg(long)]
    stay: bool,

    /// Take requests that name no provider
    #[arg(long)]
    open_jobs: bool,

    /// Requests a minute of one customer; 0 for any number
    #[arg(long, value_name = "N", default_value_t = Limits::default().rate_per_key)]
    rate_per_key: u32,

    /// Requests a minute of all customers; 0 for any number
    #[arg(long, value_name = "N", default_value_t = Limits::default().rate)]
    rate: u32,

    /// Tools that run at once for one customer
    #[arg(long, value_name = "N", default_value_t = Limits::default().running_per_key, value_parser = at_least_one)]
    max_running_per_key: usize,

    /// Tools that run at once
    #[arg(long, value_name = "N", default_value_t = Limits::default().running, value_parser = at_least_one)]
    max_running: usize,

    /// Database that several machines serving with one key share: env:NAME or file:PATH with its address (postgres://…)
    /// [default: a file of its own]
    #[arg(long, value_name = "ADDRESS")]
    ledger: Option<String>,

    #[command(flatten)]
    prices: PriceFlags,

    #[command(flatten)]
    settings: SettingFlags,

    #[command(flatten)]
    one: OneServer,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a number of at least 1".to_owned())
}

/// Everything about the service that does not depend on the servers.
pub(super) struct Service {
    keys: Keys,
    name: Option<String>,
    about: String,
    wires: BTreeSet<Wire>,
    access: Access,
    limits: Limits,
    open_jobs: OpenJobs,
    ending: Ending,
    tools: Vec<String>,
    hidden: Vec<String>,
    record: PathBuf,
    tariff: Tariff,
    /// The address of the wallet that is paid.
    pub(super) wallet: Option<Secret>,
    /// The address of the database that is shared.
    pub(super) ledger: Option<Secret>,
    pub(super) sweep: Option<Sweep>,
}

impl Arguments {
    pub(super) fn key(&self) -> Option<&Path> {
        self.key.as_deref()
    }

    pub(super) fn relays(&self, environment: &Environment) -> Result<Vec<RelayUrl>, Failure> {
        self.relays.chosen(environment)
    }

    pub(super) fn service(
        &self,
        identity: &Identity,
        record: PathBuf,
        environment: &Environment,
    ) -> Result<Service, Failure> {
        if let Some(name) = &self.name
            && (name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control))
        {
            return Err(Failure::usage("a service's name has 1 to 64 characters"));
        }
        let tariff = self.prices.read()?;
        let wallet = self.prices.wallet(&tariff, environment)?;
        let keys = |texts: &[String]| texts.iter().map(|text| public_key(text)).collect::<Result<_, _>>();
        Ok(Service {
            keys: identity.keys.clone(),
            name: self.name.clone(),
            about: self.about.clone(),
            wires: self.wire.iter().map(|wire| wire.0).collect(),
            access: Access { allow: keys(&self.private)?, deny: keys(&self.deny)? },
            limits: Limits {
                rate_per_key: self.rate_per_key,
                rate: self.rate,
                running_per_key: self.max_running_per_key,
                running: self.max_running,
                ..Limits::default()
            },
            open_jobs: if self.open_jobs { OpenJobs::Taken } else { OpenJobs::Ignored },
            ending: if self.stay { Ending::Stay } else { Ending::Withdraw },
            tools: self.tool.clone(),
            hidden: self.hide_tool.clone(),
            record,
            tariff,
            wallet,
            sweep: self.prices.sweep()?,
            ledger: self.ledger.as_deref().map(|text| ledger::address(text, environment)).transpose()?,
        })
    }

    pub(super) fn rest(self) -> (SettingFlags, OneServer, SocketAddr) {
        (self.settings, self.one, self.listen)
    }
}

fn public_key(text: &str) -> Result<PublicKey, Failure> {
    PublicKey::parse(text).map_err(|_| {
        let words = format!("`{text}` is no public key");
        // Somebody's secret key would be in the shell's history already; at least it is not repeated here.
        let words = if text.starts_with("nsec") { "this is a secret key, not a public one".to_owned() } else { words };
        Failure::usage(words).code("key_invalid").hint("npub1… or 64 hexadecimal digits")
    })
}

impl Service {
    /// Hides what is not to be offered.
    pub(super) fn restrict(&self, hub: &mut HubPlan) -> Outcome {
        for server in &mut hub.servers {
            if !self.tools.is_empty() {
                server.allow.clone_from(&self.tools);
            }
            server.deny.extend(self.hidden.iter().cloned());
        }
        Ok(())
    }

    pub(super) fn plan(self, hub: &HubPlan) -> Plan {
        let name = self.name.unwrap_or_else(|| match hub.servers.as_slice() {
            [only] => name_of(only),
            _ => "tools".to_owned(),
        });
        let longest = hub.servers.iter().map(|server| server.max_timeout).max();
        Plan {
            keys: self.keys,
            id: name.clone(),
            name,
            about: self.about,
            wires: self.wires,
            access: self.access,
            limits: self.limits,
            window: DEFAULT_WINDOW,
            timeout: longest.unwrap_or(Duration::from_secs(600)),
            open_jobs: self.open_jobs,
            ending: self.ending,
            relays: Vec::new(),
            record: self.record,
            prices: self.tariff.prices,
            idempotent: self.tariff.idempotent,
            quote: self.tariff.quote,
        }
    }
}

/// What a server is called if nobody says: what is run, not what runs it.
fn name_of(server: &ServerPlan) -> String {
    const RUNNERS: [&str; 12] =
        ["npx", "bunx", "uvx", "pnpm", "node", "python", "python3", "bun", "deno", "uv", "docker", "rialto"];
    const VERBS: [&str; 6] = ["run", "dlx", "exec", "x", "mcp", "tool"];
    let stem = |text: &str| {
        let base = text.rsplit('/').next().unwrap_or(text);
        let base = base.split('@').find(|part| !part.is_empty()).unwrap_or(base);
        Path::new(base).file_stem().map_or_else(|| base.to_owned(), |stem| stem.to_string_lossy().into_owned())
    };
    let Transport::Process(process) = &server.transport else { return server.name.clone() };
    let program = stem(&process.program);
    if !RUNNERS.contains(&program.as_str()) {
        return server.name.clone();
    }
    let is_word = |arg: &&String| !arg.starts_with('-') && !VERBS.contains(&arg.as_str());
    process.args.iter().find(is_word).map_or(server.name.clone(), |arg| stem(arg))
}

#[cfg(test)]
mod tests {
    use super::name_of;
    use rialto_hub::plan::ServerPlan;

    #[test]
    fn a_service_is_named_after_what_is_run() {
        let cases = [
            ("npx -y @modelcontextprotocol/server-everything", "server-everything"),
            ("npx -y some-server@1.2.3", "some-server"),
            ("python3 weather/server.py --port 1", "server"),
            ("uvx mcp-server-time", "mcp-server-time"),
            ("rialto mcp example", "example"),
            ("/opt/bin/weather --x", "weather"),
            ("npx", "npx"),
        ];
        for (line, expected) in cases {
            let words: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
            let name = std::path::Path::new(&words[0]).file_stem().unwrap().to_string_lossy().into_owned();
            let server = ServerPlan::new(name, words[0].clone(), words[1..].to_vec());
            assert_eq!(name_of(&server), expected, "{line}");
        }
    }
}
