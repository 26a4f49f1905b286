//! `rialto doctor`: looks at everything that can be wrong, and says how to put it right.

mod check;
mod servers;

use clap::Args;
use rialto_relay::information::Limits;
use rialto_relay::probe::{Probe, probe};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::commands::{current_directory, wait_for};
use crate::config::problem::Report;
use crate::config::settings::Layer;
use crate::config::{Request, Scope, load, planning};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::paths::Directories;
use crate::relays::{RelayFlags, local};
use crate::remotes;
use crate::talk::{Format, Talk};
use check::{Check, Finding};

const EXAMPLES: &str = "\
Examples:
  rialto doctor
  rialto doctor --relay wss://relay.example --relay wss://other.example
  rialto doctor --json | jq 'select(.status != \"ok\")'";

/// How long each step with a relay may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seconds by which clocks may differ before requests are taken for stale.
const MAX_SKEW: i64 = 30;

/// Relays that take less than this make results come in parts.
const COMFORTABLE: usize = 64 * 1024;

/// Check this installation, its relays and its servers
///
/// Tries the binary, the configuration, key files, the clock, each relay (connect, write, read back, limits) and each
/// configured server. Ends with 0 if nothing is broken.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    relays: RelayFlags,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, talk: &Talk) -> Outcome {
    let mut doctor = Doctor { format: talk.format, broken: 0 };
    doctor.note(&binary())?;
    for finding in key_files(environment) {
        doctor.note(&finding)?;
    }
    let plan = {
        let (plan, finding) = configuration(environment)?;
        doctor.note(&finding)?;
        plan
    };
    let given = arguments.relays.chosen(environment)?;
    let relays = if given.is_empty() { vec![local()?] } else { given.clone() };
    wait_for(async {
        for url in &relays {
            let found = Box::pin(probe(url, PATIENCE)).await;
            for finding in relay(url.as_str_without_trailing_slash(), &found, given.is_empty()) {
                doctor.note(&finding)?;
            }
        }
        if let Some(plan) = plan {
            for finding in servers::check(plan).await? {
                doctor.note(&finding)?;
            }
        }
        doctor.end()
    })
}

struct Doctor {
    format: Format,
    broken: usize,
}

impl Doctor {
    fn note(&mut self, finding: &Finding) -> Outcome {
        self.broken += usize::from(finding.check == Check::Broken);
        match self.format {
            Format::Text => output::text(&finding.to_text()),
            Format::Json => output::json(&finding.to_json()),
        }
    }

    fn end(&self) -> Outcome {
        match self.broken {
            0 => Ok(()),
            1 => Err(Failure::new(Exit::Unreachable, "one thing is broken").code("doctor")),
            many => Err(Failure::new(Exit::Unreachable, format!("{many} things are broken")).code("doctor")),
        }
    }
}

fn binary() -> Finding {
    let version = env!("CARGO_PKG_VERSION");
    match std::env::current_exe() {
        Ok(path) => Finding::ok("binary", &path.display().to_string(), &format!("rialto {version}")),
        Err(error) => Finding::broken("binary", "rialto", "binary_unknown", &error.to_string())
            .hint("hosts need the absolute path of this program; start it by its path"),
    }
}

fn key_files(environment: &Environment) -> Vec<Finding> {
    let Some(directories) = Directories::find(environment) else {
        let words = "there is no home directory to keep keys in";
        return vec![Finding::broken("key", "-", "no_home", words).hint("set HOME or XDG_DATA_HOME")];
    };
    let keys = ["key", "customer-key"].map(|name| secret_file("key", &directories.data.join(name)));
    let tokens = secret_file("tokens", &directories.state.join(remotes::TOKENS));
    keys.into_iter().chain([tokens]).collect()
}

fn secret_file(what: &'static str, file: &Path) -> Finding {
    let name = file.display().to_string();
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok(what, &name, "not there yet; it is made when it is needed")
        }
        Err(error) => Finding::broken(what, &name, "key_unreadable", &error.to_string()),
        Ok(about) if about.permissions().mode() & 0o077 != 0 => {
            Finding::broken(what, &name, "key_exposed", "others can read it").hint(format!("chmod 600 {name}"))
        }
        Ok(_) => Finding::ok(what, &name, "only you can read it"),
    }
}

/// Reads the configuration; the plan is absent if there is none, or it is wrong.
fn configuration(environment: &Environment) -> Result<(Option<rialto_hub::plan::Plan>, Finding), Failure> {
    let directory = current_directory()?;
    let (flags, scope) = (Layer::default(), Scope::Everything);
    let request = Request { environment, directory: &directory, flags, files: Vec::new(), scope };
    let mut report = Report::default();
    let config = load(&request, &mut report);
    let plan = planning::plan(&config, environment, &mut report);
    let files = config.files.join(", ");
    let finding = match report.into_result() {
        Err(failure) => {
            let words = failure.to_text(crate::talk::Paint::Never);
            let first = words.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            return Ok((None, Finding::broken("config", &files, "config_invalid", &first).hint("rialto config check")));
        }
        Ok(_) if config.files.is_empty() => Finding::ok("config", "-", "none; everything is at its default"),
        Ok(warnings) => {
            let words = format!("{} servers, {} warnings", plan.servers.len(), warnings.len());
            Finding::ok("config", &files, &words)
        }
    };
    Ok(((!plan.servers.is_empty()).then_some(plan), finding))
}

fn relay(url: &str, found: &Probe, is_default: bool) -> Vec<Finding> {
    let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1000.0);
    let connected = match &found.connected {
        Ok(time) => time,
        Err(reason) if is_default => {
            let words = format!("no relay was named, and there is none on this machine ({reason})");
            let finding = Finding::worth_a_look("relay", url, "relay_none", &words);
            return vec![finding.hint("rialto relay    or    rialto doctor --relay wss://relay.example")];
        }
        Err(reason) => return vec![Finding::broken("relay", url, "relay_unreachable", reason)],
    };
    let mut findings = Vec::new();
    match (&found.wrote, &found.read_back) {
        (Some(Ok(write)), Some(Ok(read))) => {
            let words = format!("connect {}, write {}, read back {}", ms(*connected), ms(*write), ms(*read));
            findings.push(Finding::ok("relay", url, &words));
        }
        (Some(Err(reason)), _) => {
            let words = format!("it does not take what we write: {reason}");
            findings.push(Finding::broken("relay", url, "relay_refuses", &words));
        }
        (_, Some(Err(reason))) => findings.push(Finding::broken("relay", url, "relay_loses", reason)),
        _ => findings.push(Finding::broken("relay", url, "relay_silent", "it did not answer")),
    }
    if let Some(Limits { message: Some(limit), .. }) = found.limits.filter(|limits| limits.message < Some(COMFORTABLE))
    {
        let words = format!("it takes messages of {limit} bytes; larger results come in parts, or not at all");
        findings.push(Finding::worth_a_look("relay", url, "relay_small", &words));
    }
    if let Some(ahead) = found.ahead {
        findings.push(if ahead.abs() <= MAX_SKEW {
            Finding::ok("clock", url, &format!("differs by {} s", ahead.abs()))
        } else {
            let words = format!("this machine is {} s {}", ahead.abs(), if ahead > 0 { "behind" } else { "ahead" });
            Finding::broken("clock", url, "clock_skew", &words).hint("set the clock: requests would be taken for stale")
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{relay, secret_file};
    use rialto_relay::probe::Probe;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    #[test]
    fn each_trouble_has_its_code() {
        let good = Probe {
            connected: Ok(Duration::ZERO),
            wrote: Some(Ok(Duration::ZERO)),
            read_back: Some(Ok(Duration::ZERO)),
            limits: None,
            ahead: Some(0),
        };
        let codes = |probe: &Probe, is_default: bool| {
            relay("ws://a", probe, is_default).iter().map(|finding| finding.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(&good, false), ["ok", "ok"]);
        assert_eq!(codes(&Probe { ahead: Some(-90), ..good.clone() }, false), ["ok", "clock_skew"]);
        let gone = Probe { connected: Err("refused".into()), ..good.clone() };
        assert_eq!(codes(&gone, false), ["relay_unreachable"]);
        assert_eq!(codes(&gone, true), ["relay_none"]);
        assert_eq!(
            codes(&Probe { wrote: Some(Err("no".into())), ahead: None, ..good.clone() }, false),
            ["relay_refuses"]
        );
        assert_eq!(codes(&Probe { read_back: Some(Err("no".into())), ahead: None, ..good }, false), ["relay_loses"]);
    }

    #[test]
    fn an_exposed_key_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        assert_eq!(secret_file("key", &file).code, "ok");
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(secret_file("key", &file).code, "key_exposed");
    }
}
