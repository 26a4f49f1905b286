//! `rialto auth`: logins at remote MCP servers.

use std::io::IsTerminal;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::{Args, Subcommand};
use rialto_http::client::Endpoint;
use rialto_http::client::oauth::{Authorizer, Browser, Entry, Problem, Settings};
use serde_json::json;

use crate::commands::{current_directory, wait_for};
use crate::config::planning::address_of;
use crate::config::problem::Report;
use crate::config::settings::Layer;
use crate::config::{Config, Request, Scope, load};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::one_server::endpoint;
use crate::output;
use crate::remotes::Remotes;
use crate::suggest::nearest;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto auth                                  Where you are logged in
  rialto auth login files                      A server of the configuration
  rialto auth login https://mcp.example.com/mcp
  rialto auth logout files";

const LOGIN_EXAMPLES: &str = "\
Examples:
  rialto auth login files
  rialto auth login files --scope 'read write'
  rialto auth login https://mcp.example.com/mcp --no-browser";

const LOGOUT_EXAMPLES: &str = "\
Examples:
  rialto auth logout files
  rialto auth logout https://mcp.example.com/mcp";

const LIST_EXAMPLES: &str = "\
Examples:
  rialto auth list
  rialto auth list --json";

/// Log in at remote MCP servers
///
/// Opens the server's login page in a browser and waits for its answer on a port of this machine. The tokens are kept in a
/// file that only you can read; gateways renew them by themselves.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Log in at a server
    #[command(after_help = LOGIN_EXAMPLES)]
    Login {
        /// The server: its name in the configuration, or its address
        #[arg(value_name = "SERVER")]
        server: String,

        /// Rights to ask for, in place of those that the server names
        #[arg(long, value_name = "SCOPES")]
        scope: Option<String>,

        /// Only print the address to log in at
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the login at a server
    #[command(after_help = LOGOUT_EXAMPLES)]
    Logout {
        /// The server: its name in the configuration, or its address
        #[arg(value_name = "SERVER")]
        server: String,
    },
    /// List where you are logged in
    #[command(after_help = LIST_EXAMPLES)]
    List,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let remotes = Remotes::of(environment);
    match &arguments.action {
        None | Some(Action::List) => list(&remotes, talk),
        Some(Action::Login { server, scope, no_browser }) => {
            let (endpoint, mut settings) = find(server, environment, talk)?;
            if let Some(scope) = scope {
                settings.scopes = Some(scope.split_whitespace().map(ToOwned::to_owned).collect());
            }
            let can_open = !no_browser && std::io::stderr().is_terminal();
            let browser = browser(*talk, can_open);
            let authorizer = remotes
                .authorizer(&endpoint, settings, server, Some(browser))
                .map_err(|why| Failure::config("remote servers cannot be reached").cause(why))?;
            wait_for(async { authorizer.log_in().await.map_err(|problem| failure(&problem)) })?;
            done(talk, "logged_in", &endpoint, "logged in at")
        }
        Some(Action::Logout { server }) => {
            let (endpoint, _) = find(server, environment, talk)?;
            let vault = remotes.vault();
            if !vault.forget(&Authorizer::key(&endpoint)).map_err(|problem| failure(&problem))? {
                return Err(Failure::usage(format!("you are not logged in at {endpoint}"))
                    .code("no_login")
                    .hint("rialto auth list    shows where you are"));
            }
            done(talk, "logged_out", &endpoint, "logged out at")
        }
    }
}

fn done(talk: &Talk, key: &str, endpoint: &Endpoint, words: &str) -> Outcome {
    match talk.format {
        Format::Json => output::json(&json!({ key: endpoint.to_string() })),
        Format::Text => {
            talk.info(&format!("{words} {endpoint}"));
            Ok(())
        }
    }
}

/// Shows the address, and opens it where somebody is there to see it.
fn browser(talk: Talk, can_open: bool) -> Browser {
    Arc::new(move |url| {
        talk.info(&format!("log in here: {url}"));
        if can_open {
            let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
            // Without one, the address is on the screen.
            let _ = Command::new(opener)
                .arg(url.as_str())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
        }
    })
}

/// The server that is meant: a configured one, or an address.
fn find(server: &str, environment: &Environment, talk: &Talk) -> Result<(Endpoint, Settings), Failure> {
    if server.contains("://") {
        return Ok((endpoint(server, &[], environment)?, Settings::default()));
    }
    let directory = current_directory()?;
    let (flags, scope) = (Layer::default(), Scope::Everything);
    let request = Request { environment, directory: &directory, flags, files: Vec::new(), scope };
    let mut report = Report::default();
    let config = load(&request, &mut report);
    let found = config.servers.iter().find(|entry| entry.name == server);
    let found = found.map(|entry| address_of(entry, environment, &mut report));
    for warning in report.into_result()? {
        talk.verbose(&warning.line());
    }
    match found {
        Some(Some(found)) => Ok(found),
        Some(None) => Err(Failure::usage(format!("server `{server}` is not a remote one")).code("not_remote")),
        None => Err(unknown(server, &config)),
    }
}

fn unknown(server: &str, config: &Config) -> Failure {
    let failure = Failure::usage(format!("no server `{server}` is configured")).code("server_unknown");
    match nearest(server, config.servers.iter().map(|entry| entry.name.as_str())) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
        None => failure.hint("rialto auth login https://…    for a server that is not configured"),
    }
}

fn list(remotes: &Remotes, talk: &Talk) -> Outcome {
    let entries = remotes.vault().list().map_err(|problem| failure(&problem))?;
    match talk.format {
        Format::Json => entries.iter().try_for_each(|entry| output::json(&described(entry))),
        Format::Text if entries.is_empty() => {
            talk.info("you are not logged in anywhere");
            Ok(())
        }
        Format::Text => {
            let row = |entry: &Entry| {
                vec![entry.server.clone(), state(entry).to_owned(), entry.issuer.clone(), entry.scopes.join(" ")]
            };
            output::text(&output::table(&entries.iter().map(row).collect::<Vec<_>>()))
        }
    }
}

fn state(entry: &Entry) -> &'static str {
    match (entry.has_token, entry.can_refresh) {
        (false, _) => "login needed",
        (true, true) => "logged in, renewed by itself",
        (true, false) => "logged in",
    }
}

fn described(entry: &Entry) -> serde_json::Value {
    json!({
        "server": entry.server,
        "issuer": entry.issuer,
        "state": if entry.has_token { "logged_in" } else { "login_needed" },
        "renewable": entry.can_refresh,
        "expires": entry.expires,
        "scopes": entry.scopes,
    })
}

fn failure(problem: &Problem) -> Failure {
    let exit = match problem {
        Problem::Unreachable { .. } | Problem::NoMetadata { .. } => Exit::Unreachable,
        Problem::TooLate(_) => Exit::Timeout,
        Problem::Store(_) | Problem::NoPort(_) => Exit::Unexpected,
        Problem::NoRegistration => Exit::Usage,
        _ => Exit::NotAllowed,
    };
    let failure = Failure::new(exit, problem.to_string()).code("login_failed");
    match problem {
        Problem::NoRegistration => {
            failure.hint("oauth = { client_id = \"…\" }    in the server's table of rialto.toml")
        }
        _ => failure,
    }
}
