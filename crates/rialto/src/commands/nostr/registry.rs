//! `rialto nostr registry`: the list of tools, and whether a server keeps its rules.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use rialto_consumer::text;
use rialto_mcp::client::{Client, Host, Opening};
use rialto_mcp::error::Error;
use rialto_mcp::message::{Notification, Request};
use rialto_mcp::outlet::outlet;
use rialto_mcp::peer::Profile;
use rialto_mcp::pending::{Patience, Reason};
use rialto_mcp::reply::Answer;
use rialto_mcp::serve::{Streams, serve};
use rialto_nostr_tools::conformance::{self, Level, Report};
use rialto_nostr_tools::registry::nip_name;
use rialto_nostr_tools::{Activate, Keyring, Material, Options, Passphrase, Server, Session};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use super::failure;
use crate::commands::wait_for;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::talk::{Format, Talk};

const EXAMPLES: &str = "\
Examples:
  rialto nostr registry list
  rialto nostr registry check
  rialto nostr registry check --server npx -y some-nostr-server";

const LIST_EXAMPLES: &str = "\
Examples:
  rialto nostr registry list
  rialto nostr registry list --json            The whole registry, with all schemas";

const CHECK_EXAMPLES: &str = "\
Examples:
  rialto nostr registry check
  rialto nostr registry check --json
  rialto nostr registry check --server npx -y some-nostr-server";

/// How long a server may take to introduce itself. `npx` and `uvx` fetch packages first.
const START: Patience = Patience { silence: Duration::from_secs(60), total: Duration::from_secs(60) };

/// The newest version whose errors are those that the standard names.
const VERSION: &str = "2025-06-18";

/// List the canonical tools, or check a server against them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the tools
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Check whether a server keeps the rules: names, schemas, input validation, outputs that fit
    ///
    /// Ends with 0 if no rule is broken, else with 5. Of a server that is not ours, tools that change something are called
    /// only without what they need, and tools that read only if they ask no relay.
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        /// The MCP server to check, with its arguments; it speaks over standard input and output [default: ours]
        #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true)]
        server: Vec<String>,
    },
}

pub(crate) fn run(arguments: &Arguments, talk: &Talk) -> Outcome {
    match &arguments.action {
        Action::List => list(talk),
        Action::Check { server } => {
            let report = match server.split_first() {
                Some((program, rest)) => wait_for_value(check_other(program, rest))?,
                None => wait_for_value(check_ours())?,
            };
            tell(&report, talk)
        }
    }
}

fn list(talk: &Talk) -> Outcome {
    if talk.format == Format::Json {
        return output::json(&rialto_nostr_tools::registry::document());
    }
    let mut rows: Vec<Vec<String>> = vec![["TOOL", "STATUS", "NIP", "TITLE"].iter().map(ToString::to_string).collect()];
    for tool in rialto_nostr_tools::tools() {
        let about = tool.about;
        let nips: Vec<String> = about.nips.iter().map(|nip| nip_name(*nip)).collect();
        rows.push(vec![about.name.to_owned(), about.status.name().to_owned(), nips.join(" "), about.title.to_owned()]);
    }
    output::text(&output::table(&rows))
}

/// Drives something that gives a value.
fn wait_for_value<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut value = None;
    wait_for(async {
        value = Some(work.await?);
        Ok(())
    })?;
    value.ok_or_else(|| Failure::unexpected("there is no outcome"))
}

/// Answers a server that asks something: nobody is here to ask.
struct Nobody;

impl Host for Nobody {
    async fn request(&self, request: Request, _reason: Reason) -> Answer {
        Answer::Error(Error::method_not_found(request.method()))
    }

    async fn notification(&self, _note: Notification) {}

    fn stray(&self, _text: &[u8]) {}
}

async fn check_streams(
    input: impl AsyncWrite + Send + Unpin + 'static,
    output: impl AsyncRead + Send + Unpin + 'static,
) -> Result<Report, Failure> {
    let (outlet, drain) = outlet();
    tokio::spawn(drain.pump(input));
    let client = Client::new(outlet);
    tokio::spawn({
        let client = client.clone();
        async move {
            let _ = client.run(&Arc::new(Nobody), output).await;
            client.close("the server has ended");
        }
    });
    let params = json!({
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": { "name": "rialto-registry-check", "version": env!("CARGO_PKG_VERSION") },
    });
    let profile = Profile::from_initialize(params.to_string().as_bytes());
    let profile = profile.map_err(|error| Failure::unexpected("cannot introduce the check").because(&error))?;
    let unreachable = |words: &str| Failure::new(Exit::Unreachable, words.to_owned());
    let welcome = client.introduce(&profile, Opening::LegacyThenModern, START).await;
    welcome.map_err(|error| unreachable("the server does not answer").because(&error))?;
    conformance::check(&client).await.map_err(|words| unreachable("the server cannot be checked").cause(words))
}

async fn check_other(program: &str, arguments: &[String]) -> Result<Report, Failure> {
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Failure::new(Exit::Unreachable, format!("`{program}` cannot be started")).because(&error))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Failure::unexpected("the server has no pipes"));
    };
    check_streams(input, output).await
}

/// A folder that is there for as long as it is checked.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind is an empty keyring with a key that nobody uses.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Our own server, with keys of its own: those of the user are not for trying things out.
async fn check_ours() -> Result<Report, Failure> {
    let scratch = Scratch(std::env::temp_dir().join(format!("rialto-registry-check-{}", std::process::id())));
    let told = |error: rialto_nostr_tools::Failure| failure(&error);
    let ring = Keyring::open(&scratch.0, Passphrase::none()).map_err(told)?;
    // The examples name it.
    ring.add("work", &Material::generate(), 0, Activate::Yes).map_err(told)?;
    let session = Session::open(Options::new(&scratch.0)).map_err(told)?;
    let (ours, theirs) = tokio::io::duplex(1024 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let streams =
        Streams { reader: Box::pin(reader), writer: Box::pin(writer), closed: Box::pin(std::future::pending()) };
    tokio::spawn(serve(Arc::new(Server::new(session)), streams));
    let (output, input) = tokio::io::split(ours);
    check_streams(input, output).await
}

fn tell(report: &Report, talk: &Talk) -> Outcome {
    let errors = report.findings.iter().filter(|finding| finding.level == Level::Error).count();
    if talk.format == Format::Json {
        let mut told = serde_json::to_value(report).unwrap_or_default();
        told["conformant"] = report.is_conformant().into();
        output::json(&told)?;
    } else {
        let rows: Vec<Vec<String>> = report
            .findings
            .iter()
            .map(|finding| {
                let level = if finding.level == Level::Error { "error" } else { "warning" };
                let tool = text::one_line(finding.tool.as_deref().unwrap_or("-"));
                let message = text::one_line(&finding.message);
                vec![level.to_owned(), finding.rule.name().to_owned(), tool, message]
            })
            .collect();
        output::text(&output::table(&rows))?;
        let warnings = report.findings.len() - errors;
        talk.info(&format!(
            "{} tools of the registry, {} calls: {errors} errors, {warnings} warnings",
            report.tools, report.calls
        ));
    }
    if report.is_conformant() {
        return Ok(());
    }
    Err(Failure::new(Exit::ToolSaidNo, "the server does not keep the rules of the registry").code("not_conformant"))
}
