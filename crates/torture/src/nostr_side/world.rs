//! A world of its own for each test: homes that begin empty, and everything that is started in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::actor;
use super::process::Process;

pub struct World {
    directory: tempfile::TempDir,
}

/// A running provider, and what it said when it was ready.
pub struct Provider {
    pub process: Process,
    pub ready: Value,
    pub pubkey: String,
}

impl World {
    pub fn new() -> Self {
        Self { directory: tempfile::Builder::new().prefix("rialto-e2e").tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A home directory, made when it is first asked for.
    pub fn home(&self, who: &str) -> PathBuf {
        let home = self.path().join(who);
        fs::create_dir_all(&home).unwrap();
        home
    }

    /// `rialto` as this person would start it.
    pub fn command(&self, who: &str, arguments: &[&str]) -> Command {
        let home = self.home(who);
        let mut command = Command::new(crate::rialto());
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .current_dir(&home);
        command
    }

    pub fn rialto(&self, who: &str, arguments: &[&str]) -> Process {
        Process::start(&mut self.command(who, arguments))
    }

    /// Our own relay, and its address.
    pub fn relay(&self) -> (Process, String) {
        let process = self.rialto("relay", &["relay", "--listen", "127.0.0.1:0", "--json"]);
        let url = process.json_line("url")["url"].as_str().unwrap().to_owned();
        (process, url)
    }

    /// Starts a provider in front of the actor, and waits until it is ready. Its home stays over restarts.
    #[track_caller]
    pub fn serve(&self, relays: &[&str], flags: &[&str]) -> Provider {
        self.serve_actor(relays, flags, &[])
    }

    /// The same, with options for the actor.
    #[track_caller]
    pub fn serve_actor(&self, relays: &[&str], flags: &[&str], options: &[&str]) -> Provider {
        let program = std::env::current_exe().unwrap();
        let mut server = vec![program.to_str().unwrap(), actor::ACTOR, self.path().to_str().unwrap()];
        server.extend_from_slice(options);
        self.serve_command("provider", relays, flags, &server)
    }

    /// Starts a provider in front of any server.
    #[track_caller]
    pub fn serve_command(&self, who: &str, relays: &[&str], flags: &[&str], server: &[&str]) -> Provider {
        let mut arguments = vec!["serve", "--json"];
        relays.iter().for_each(|relay| arguments.extend(["--relay", relay]));
        arguments.extend_from_slice(flags);
        arguments.push("--");
        arguments.extend_from_slice(server);
        let process = self.rialto(who, &arguments);
        let ready = process.json_line("ready")["ready"].clone();
        let pubkey = ready["pubkey"].as_str().unwrap_or_else(|| panic!("no pubkey in {ready}")).to_owned();
        Provider { process, ready, pubkey }
    }

    /// What the actor did until now, one line for each execution.
    pub fn effects(&self) -> Vec<String> {
        fs::read_to_string(self.path().join(actor::EFFECTS)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// The same, and when: milliseconds since 1970.
    pub fn runs(&self) -> Vec<(u64, String)> {
        let text = fs::read_to_string(self.path().join(actor::TIMES)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(at, effect)| (at.parse().unwrap(), effect.to_owned())).collect()
    }

    /// How often the actor did this.
    pub fn times(&self, effect: &str) -> usize {
        self.effects().iter().filter(|line| *line == effect).count()
    }

    /// Waits until the actor has done this.
    #[track_caller]
    pub fn wait_for_effect(&self, effect: &str) {
        super::log::until(&format!("the effect {effect}"), super::PATIENCE, || self.times(effect) > 0);
    }

    /// Waits until a call of `gate` has been answered.
    #[track_caller]
    pub fn wait_until_finished(&self, effect: &str) {
        let finished = || fs::read_to_string(self.path().join(actor::FINISHED)).unwrap_or_default();
        super::log::until(&format!("{effect} is finished"), super::PATIENCE, || {
            finished().lines().any(|line| line == effect)
        });
    }

    /// Lets calls of the tool `gate` with this name go through.
    pub fn open_gate(&self, name: &str) {
        fs::write(self.path().join(format!("gate-{name}")), "").unwrap();
    }

    /// The process of the actor that was started last.
    pub fn actor_pid(&self) -> i32 {
        fs::read_to_string(self.path().join(actor::PID)).unwrap().parse().unwrap()
    }
}
