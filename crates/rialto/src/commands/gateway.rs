//! `rialto gateway`: many MCP servers behind one endpoint.

mod http;
mod reload;
mod token;

use std::path::PathBuf;

use clap::Args;
use rialto_hub::Hub;
use rialto_hub::event::{Event, Events};
use rialto_hub::guard::{Guard, MAX_DEPTH};
use rialto_hub::plan::{EraChoice, Plan, Prefix, Process, Transport};
use rialto_hub::sandbox;
use rialto_mcp::serve::serve;
use rialto_mcp::stdio;

use crate::commands::gateway::reload::HangUp;
use crate::commands::{current_directory, guard, wait_for};
use crate::config::planning;
use crate::config::problem::Report;
use crate::config::settings::{GRACE_MILLISECONDS, Layer, Origin, SECONDS, Traced};
use crate::config::{Config, Request, Scope, choice, load};
use crate::environment::Environment;
use crate::failure::{Failure, Outcome};
use crate::one_server::OneServer;
use crate::signals::Stop;
use crate::talk::{Aside, Talk, Tone};

const EXAMPLES: &str = "\
Examples:
  rialto gateway --stdio -- npx -y some-server
  rialto gateway --stdio --url https://mcp.example.com/mcp --header 'X-Api-Key: ${KEY}'
  rialto gateway --stdio --config claude_desktop_config.json
  rialto gateway --stdio --config a.json --config b.json --prefix conflict
  rialto gateway --stdio                      The servers of rialto.toml and of the user's file
  rialto gateway --http                       The same for many clients, at http://127.0.0.1:7400/mcp
  rialto gateway --print-token                What they show as bearer token

In an MCP host:
  {\"mcpServers\": {\"rialto\": {\"command\": \"rialto\", \"args\": [\"gateway\", \"--stdio\"]}}}";

/// Run MCP servers and offer them as one
///
/// Reads the `mcpServers` file of any MCP host as it is, the `servers` of VS Code, and rialto.toml. One server that
/// fails does not take the others with it. When one of these files changes, only the servers that changed are
/// exchanged; a gateway without a terminal reads them on SIGHUP, too.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Serve one MCP host over standard input and output
    #[arg(long)]
    stdio: bool,

    #[command(flatten)]
    http: http::Flags,

    #[command(flatten)]
    settings: SettingFlags,

    #[command(flatten)]
    one: OneServer,
}

/// Flags that set what files and variables may set as well.
#[derive(Debug, Clone, Args)]
pub(crate) struct SettingFlags {
    /// File with servers, read instead of the project and user file; may be repeated, the last one wins
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    /// When names get their server in front [default: always; never for a single CMD]
    #[arg(long, value_name = "WHEN", value_parser = choice::parser::<Prefix>())]
    prefix: Option<Prefix>,

    /// Protocol era for servers that do not set their own [default: auto]
    #[arg(long, value_name = "ERA", value_parser = choice::parser::<EraChoice>())]
    era: Option<EraChoice>,

    /// How long lists wait for servers that are still starting [default: 2000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(GRACE_MILLISECONDS))]
    startup_grace_ms: Option<u64>,

    /// How long one call may take without a sign of life [default: 60]
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(SECONDS))]
    timeout_secs: Option<u64>,

    /// How long progress may extend one call at most [default: 600]
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(SECONDS))]
    max_timeout_secs: Option<u64>,
}

impl SettingFlags {
    /// The top layer.
    pub(crate) fn layer(&self) -> Layer {
        fn flag<T: Copy>(value: Option<T>, name: &'static str) -> Option<Traced<T>> {
            value.map(|value| Traced::new(value, Origin::Flag(name)))
        }
        Layer {
            prefix: flag(self.prefix, "--prefix"),
            era: flag(self.era, "--era"),
            startup_grace_ms: flag(self.startup_grace_ms, "--startup-grace-ms"),
            timeout_secs: flag(self.timeout_secs, "--timeout-secs"),
            max_timeout_secs: flag(self.max_timeout_secs, "--max-timeout-secs"),
        }
    }
}

pub(crate) fn run(arguments: Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let Arguments { stdio, http, settings, one } = arguments;
    if http.print_token {
        return token::print(environment, talk);
    }
    let typed = match (stdio, http.address) {
        (true, None) => "rialto gateway --stdio",
        (false, Some(_)) => "rialto gateway --http",
        (true, Some(_)) => {
            return Err(Failure::usage(
                "a gateway serves one host over --stdio, or many clients over --http, not both",
            ));
        }
        (false, None) => {
            return Err(Failure::usage("how should an MCP host reach the gateway?")
                .hint("rialto gateway --stdio\nrialto gateway --http"));
        }
    };
    refuse_loops()?;
    let sources = Sources { typed, one, settings, environment };
    let (plan, paths) = sources.plan(talk)?;
    let names: Vec<&str> = plan.servers.iter().map(|server| server.name.as_str()).collect();
    talk.verbose(&format!("servers: {}", names.join(", ")));
    wait_for(async {
        if stdio {
            return gateway_stdio(plan, &sources, paths, *talk).await;
        }
        http::serve(http, plan, &sources, paths, *talk).await
    })
}

/// Where the servers to run are written; read again when that changes.
struct Sources<'a> {
    typed: &'static str,
    one: OneServer,
    settings: SettingFlags,
    environment: &'a Environment,
}

impl Sources<'_> {
    /// The servers to run now, and the files that say so.
    fn plan(&self, talk: &Talk) -> Result<(Plan, Vec<PathBuf>), Failure> {
        read_plan(self.typed, &self.one, self.settings.clone(), self.environment, talk)
    }
}

/// A configuration that leads to this command itself would start processes without end.
pub(crate) fn refuse_loops() -> Outcome {
    if rialto_hub::guard::depth() >= MAX_DEPTH {
        return Err(Failure::config(format!(
            "this gateway is behind {MAX_DEPTH} others: does its configuration lead to itself?"
        ))
        .code("gateway_loop")
        .hint("rialto config show    lists the servers; none of them should start this gateway"));
    }
    Ok(())
}

/// Serves one MCP host on standard input and output until it goes away.
async fn gateway_stdio(plan: Plan, sources: &Sources<'_>, paths: Vec<PathBuf>, talk: Talk) -> Outcome {
    let guard = new_guard()?;
    let (aside, last_words) = Aside::new(talk);
    let hub = Hub::start(plan, guard, Events::new(move |event| tell(&aside, &event)));
    let reloading = reload::watch(&hub, sources, paths, HangUp::Ends, talk);
    let mut stop = Stop::listen()?;
    let served = tokio::select! {
        served = serve(hub.clone(), stdio::streams()) => served,
        failed = reloading => return failed,
        () = stop.asked() => Ok(()),
    };
    // If servers do not end in time, the guard ends them.
    stop.or(hub.stop()).await;
    drop(hub);
    last_words.wait();
    served.map_err(|error| Failure::unexpected("the connection to the MCP host failed").because(&error))
}

/// The process that ends children when this one can no longer do so.
pub(crate) fn new_guard() -> Result<Guard, Failure> {
    let guard = std::env::current_exe().and_then(|program| Guard::new(program, guard::NAME));
    guard.map_err(|error| Failure::unexpected("cannot watch over child processes").because(&error))
}

pub(crate) fn tell(aside: &Aside, event: &Event) {
    let tone = match event {
        Event::Ready { .. } => Tone::Verbose,
        Event::Stderr { .. } => Tone::Info,
        _ => Tone::Warn,
    };
    // Names and lines come from files and servers; none of them may steer the terminal.
    let line =
        event.to_string().chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    aside.say(tone, line);
}

/// The servers to run: the one on the command line, or the configured ones. `typed` is how the command was called, for hints.
pub(crate) fn make_plan(
    typed: &str,
    one: &OneServer,
    settings: SettingFlags,
    environment: &Environment,
    talk: &Talk,
) -> Result<Plan, Failure> {
    Ok(read_plan(typed, one, settings, environment, talk)?.0)
}

/// The same, with the files that were read.
fn read_plan(
    typed: &str,
    one: &OneServer,
    settings: SettingFlags,
    environment: &Environment,
    talk: &Talk,
) -> Result<(Plan, Vec<PathBuf>), Failure> {
    let scope = if one.is_given() { Scope::SettingsOnly } else { Scope::Everything };
    let directory = current_directory()?;
    let flags = settings.layer();
    let request = Request { environment, directory: &directory, flags, files: settings.config, scope };
    let mut report = Report::default();
    let config = load(&request, &mut report);
    for file in &config.files {
        talk.verbose(&format!("configuration: {file}"));
    }
    let plan = match one.remote(environment)? {
        Some(remote) => planning::plan_of_remote(remote, &config.settings),
        None => planning::plan_of_command(&one.command, one.sandbox(&directory), &config.settings)
            .unwrap_or_else(|| planning::plan(&config, environment, &mut report)),
    };
    for warning in report.into_result()? {
        talk.warn(&warning.line());
    }
    if plan.servers.is_empty() {
        return Err(nothing_to_run(typed, &config));
    }
    refuse_unprotected(&plan)?;
    Ok((plan, config.paths))
}

/// A server that should be confined and cannot be is not run at all.
fn refuse_unprotected(plan: &Plan) -> Outcome {
    for server in &plan.servers {
        if let Transport::Process(Process { sandbox: Some(sandbox), .. }) = &server.transport {
            sandbox::check(sandbox).map_err(|why| {
                Failure::config(format!("the sandbox of server `{}` cannot be had", server.name))
                    .cause(why)
                    .code("sandbox")
            })?;
        }
    }
    Ok(())
}

fn nothing_to_run(typed: &str, config: &Config) -> Failure {
    let hint = format!(
        "name a server:  {typed} -- npx -y some-server\n\
         or a file:      {typed} --config claude_desktop_config.json\n\
         or write one:   rialto config init"
    );
    let disabled = config.servers.len();
    let failure = match (disabled, config.skipped) {
        (0, 0) => Failure::config("no server is configured"),
        (disabled, skipped) => {
            Failure::config(format!("no server is left to run: {disabled} disabled, {skipped} skipped"))
        }
    };
    failure.code("no_server").hint(hint)
}
