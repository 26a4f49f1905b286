//! The last step: variables are expanded, paths made whole, and the result is a plan that can be run as it is.
//!
//! Only servers that will run are looked at. An unset variable of a disabled server is nobody's problem.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rialto_http::client::{Endpoint, Remote};
use rialto_hub::plan::{Plan, Process, ServerPlan, Transport};
use rialto_hub::sandbox::Sandbox;

use crate::config::Config;
use crate::config::choice::Profile;
use crate::config::env_file;
use crate::config::expand::{expand, home_relative};
use crate::config::fields::Text;
use crate::config::problem::Report;
use crate::config::server::{Reach, ServerEntry};
use crate::config::settings::Settings;
use crate::environment::Environment;
use crate::remotes::Remotes;

/// Builds the plan of everything that is enabled.
pub(crate) fn plan(config: &Config, environment: &Environment, report: &mut Report) -> Plan {
    let remotes = Remotes::of(environment);
    let enabled = config.servers.iter().filter(|entry| entry.is_enabled());
    let servers = enabled
        .filter_map(|entry| Expander { entry, environment, report: &mut *report }.server(&config.settings, &remotes))
        .collect();
    around(servers, &config.settings)
}

/// The plan for one command given on the command line.
pub(crate) fn plan_of_command(command: &[String], sandbox: Option<Sandbox>, settings: &Settings) -> Option<Plan> {
    let (program, args) = command.split_first()?;
    let process = Process { program: program.clone(), args: args.to_vec(), sandbox, ..Process::default() };
    Some(of_one(ServerPlan::over(name_of_program(program), Transport::Process(process)), settings))
}

/// The plan for one address given on the command line.
pub(crate) fn plan_of_remote(remote: Remote, settings: &Settings) -> Plan {
    let host = remote.endpoint.url().host_str().unwrap_or_default().to_owned();
    of_one(ServerPlan::over(plain_name(&host), Transport::Http(Box::new(remote))), settings)
}

fn of_one(mut server: ServerPlan, settings: &Settings) -> Plan {
    server.era = settings.era.value;
    server.timeout = Duration::from_secs(settings.timeout_secs.value);
    server.max_timeout = Duration::from_secs(settings.max_timeout_secs.value).max(server.timeout);
    around(vec![server], settings)
}

fn around(servers: Vec<ServerPlan>, settings: &Settings) -> Plan {
    Plan {
        servers,
        prefix: settings.prefix.value,
        startup_grace: Duration::from_millis(settings.startup_grace_ms.value),
    }
}

/// A server's name from its program: the file stem, with everything but letters, digits, `_` and `-` made a single `-`.
fn name_of_program(program: &str) -> String {
    let stem = Path::new(program).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    plain_name(&stem)
}

fn plain_name(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "server".to_owned() } else { words.join("-") }
}

/// Where one remote server is, and what is said about logins there; `None` after reporting what is wrong, or if it is not
/// remote.
pub(crate) fn address_of(
    entry: &ServerEntry,
    environment: &Environment,
    report: &mut Report,
) -> Option<(Endpoint, rialto_http::client::oauth::Settings)> {
    let Reach::Address(address) = &entry.reach else { return None };
    let mut expander = Expander { entry, environment, report };
    let (endpoint, settings) = (expander.endpoint(address), expander.login());
    Some((endpoint?, settings?))
}

/// Expands the fields of one server.
struct Expander<'a> {
    entry: &'a ServerEntry,
    environment: &'a Environment,
    report: &'a mut Report,
}

impl Expander<'_> {
    /// `None` after reporting what is wrong.
    fn server(mut self, settings: &Settings, remotes: &Remotes) -> Option<ServerPlan> {
        let entry = self.entry;
        // Every field is looked at before giving up, so that all problems are reported at once.
        let transport = match &entry.reach {
            Reach::Command(command) => self.process(command).map(Transport::Process),
            Reach::Address(address) => self.remote(address, remotes).map(|remote| Transport::Http(Box::new(remote))),
        };
        let timeout = entry.timeout.as_ref().map(|traced| traced.value);
        let timeout = timeout.unwrap_or(Duration::from_secs(settings.timeout_secs.value));
        let max_timeout = self.max_timeout(timeout, settings);

        let mut plan = ServerPlan::over(&entry.name, transport?);
        plan.era = entry.era.as_ref().map_or(settings.era.value, |traced| traced.value);
        plan.allow = entry.allow.iter().map(|text| text.text.clone()).collect();
        plan.deny = entry.deny.iter().map(|text| text.text.clone()).collect();
        plan.timeout = timeout;
        plan.max_timeout = max_timeout;
        Some(plan)
    }

    fn process(&mut self, command: &Text) -> Option<Process> {
        let program = self.program(command);
        let args: Vec<Option<String>> = self.entry.args.iter().map(|text| self.text(text)).collect();
        let env = self.env();
        let cwd = self.entry.cwd.as_ref().map(|text| self.path(text));
        let cwd = match cwd {
            Some(cwd) => Some(cwd?),
            None => None,
        };
        let sandbox = self.sandbox();
        let args = args.into_iter().collect::<Option<_>>();
        Some(Process { program: program?, args: args?, env: env?, cwd, sandbox: sandbox? })
    }

    /// What confines it; the inner `None` for nothing.
    fn sandbox(&mut self) -> Option<Option<Sandbox>> {
        let entry = self.entry;
        let read: Option<Vec<PathBuf>> = entry.sandbox_read.iter().map(|text| self.path(text)).collect();
        let network = entry.sandbox_network.as_ref().is_some_and(|network| network.value);
        let read = read?;
        Some(match entry.sandbox.as_ref().map(|profile| profile.value) {
            Some(Profile::Strict) => Some(Sandbox { read, network }),
            Some(Profile::None) | None => None,
        })
    }

    /// A server that runs elsewhere, with everything that is said to it.
    fn remote(&mut self, address: &Text, remotes: &Remotes) -> Option<Remote> {
        let (endpoint, settings) = (self.endpoint(address), self.login());
        match remotes.remote(endpoint?, settings?, &self.entry.name, None) {
            Ok(remote) => Some(remote),
            Err(why) => {
                self.report.error(&self.entry.source, &address.span, why);
                None
            }
        }
    }

    fn endpoint(&mut self, address: &Text) -> Option<Endpoint> {
        let entry = self.entry;
        let headers: Vec<_> = entry.headers.iter().map(|(name, text)| (name, text, self.text(text))).collect();
        let expanded = self.text(address)?;
        let mut endpoint = match Endpoint::new(&expanded, entry.way) {
            Ok(endpoint) => endpoint,
            Err(invalid) => {
                self.report.error(&entry.source, &address.span, invalid.to_string());
                return None;
            }
        };
        for (name, text, value) in headers {
            endpoint = match endpoint.with_header(name, &value?) {
                Ok(endpoint) => endpoint,
                Err(invalid) => {
                    self.report.error(&entry.source, &text.span, invalid.to_string());
                    return None;
                }
            };
        }
        Some(endpoint)
    }

    fn login(&mut self) -> Option<rialto_http::client::oauth::Settings> {
        let login = &self.entry.login;
        let mut optional = |text: &Option<Text>| match text {
            Some(text) => self.text(text).map(Some),
            None => Some(None),
        };
        let client_id = optional(&login.client_id);
        let client_secret = optional(&login.client_secret);
        let client_metadata = optional(&login.client_metadata);
        let scopes = match &login.scopes {
            Some(scopes) => scopes.iter().map(|text| self.text(text)).collect::<Option<Vec<_>>>().map(Some),
            None => Some(None),
        };
        let client_metadata = match (client_metadata?, &login.client_metadata) {
            (Some(address), Some(text)) => match address.parse() {
                Ok(url) => Some(url),
                Err(error) => {
                    self.report.error(&self.entry.source, &text.span, format!("not an address: {error}"));
                    return None;
                }
            },
            _ => None,
        };
        let port = login.port.as_ref().and_then(|port| u16::try_from(port.value).ok());
        let (client_id, client_secret, scopes) = (client_id?, client_secret?, scopes?);
        Some(rialto_http::client::oauth::Settings { client_id, client_secret, client_metadata, scopes, port })
    }

    fn text(&mut self, text: &Text) -> Option<String> {
        match expand(&text.text, self.environment, self.entry.source.base()) {
            Ok(expanded) if expanded.contains('\0') => {
                self.report.error(&self.entry.source, &text.span, "text for a program cannot hold a zero byte");
                None
            }
            Ok(expanded) => Some(expanded),
            Err(error) => {
                self.report.error_with_hint(&self.entry.source, &text.span, error.message, error.hint);
                None
            }
        }
    }

    /// A path, where a relative one starts at the file's folder.
    fn path(&mut self, text: &Text) -> Option<PathBuf> {
        let expanded = self.text(text)?;
        Some(self.entry.source.base().join(home_relative(&expanded, self.environment)))
    }

    /// A bare name is searched in `PATH` later; `./program` starts at the file's folder.
    fn program(&mut self, command: &Text) -> Option<String> {
        let expanded = home_relative(&self.text(command)?, self.environment);
        if expanded.trim().is_empty() {
            self.report.error(&self.entry.source, &command.span, "`command` is empty");
            return None;
        }
        if !expanded.contains('/') || Path::new(&expanded).is_absolute() {
            return Some(expanded);
        }
        let relative = expanded.strip_prefix("./").unwrap_or(&expanded);
        Some(self.entry.source.base().join(relative).display().to_string())
    }

    fn env(&mut self) -> Option<BTreeMap<String, String>> {
        let entry = self.entry;
        let mut env = match &entry.env_file {
            Some(file) => self.env_file(file),
            None => Some(BTreeMap::new()),
        };
        for (name, text) in &entry.env {
            match (self.text(text), &mut env) {
                (Some(value), Some(env)) => {
                    env.insert(name.clone(), value);
                }
                _ => env = None,
            }
        }
        env
    }

    fn env_file(&mut self, file: &Text) -> Option<BTreeMap<String, String>> {
        let path = self.path(file)?;
        let shown = path.display();
        let problem = match std::fs::read_to_string(&path) {
            Ok(text) => match env_file::read(&text) {
                Ok(pairs) => return Some(pairs.into_iter().collect()),
                Err(line) => format!("line {line} of `{shown}` is not NAME=value"),
            },
            Err(error) => format!("cannot read `{shown}`: {error}"),
        };
        self.report.error(&self.entry.source, &file.span, problem);
        None
    }

    /// The longest time is never below the ordinary one; where somebody wrote it so, that is said.
    fn max_timeout(&mut self, timeout: Duration, settings: &Settings) -> Duration {
        let (limit, is_default) = match &self.entry.max_timeout {
            Some(traced) => (traced.value, false),
            None => (Duration::from_secs(settings.max_timeout_secs.value), settings.max_timeout_secs.is_default()),
        };
        if limit < timeout && !is_default {
            let message = format!(
                "server `{}`: the maximum timeout ({limit:?}) is below the timeout ({timeout:?}), which is used for both",
                self.entry.name
            );
            self.report.warning(&self.entry.source, &self.entry.span, message, None);
        }
        limit.max(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::name_of_program;

    #[test]
    fn programs_give_plain_names() {
        let cases = [
            ("npx", "npx"),
            ("/opt/tools/my.server.py", "my-server"),
            ("./über server", "ber-server"),
            ("-", "server"),
            ("/", "server"),
            ("mcp--git", "mcp-git"),
        ];
        for (program, expected) in cases {
            assert_eq!(name_of_program(program), expected, "{program}");
        }
    }
}
