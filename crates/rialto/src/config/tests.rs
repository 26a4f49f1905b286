//! Whole files in, plans out: what the servers will really be started with.

use std::path::Path;
use std::time::Duration;

use rialto_http::client::Way;
use rialto_hub::plan::{EraChoice, Plan, Prefix, Process, ServerPlan, Transport};

use super::planning::{plan, plan_of_command};
use super::problem::Report;
use super::settings::Layer;
use super::{Request, Scope, load};
use crate::environment::Environment;

const VARIABLES: [(&str, &str); 2] = [("HOME", "/people/ada"), ("TOKEN", "hunter2")];

/// Plans one file. `[DIR]` in the answer stands for its directory.
fn planned(directory: &Path, name: &str, text: &str) -> Plan {
    std::fs::create_dir_all(directory.join(name).parent().unwrap()).unwrap();
    std::fs::write(directory.join(name), text).unwrap();
    let environment = Environment::of(&VARIABLES);
    let request = Request {
        environment: &environment,
        directory,
        flags: Layer::default(),
        files: vec![name.into()],
        scope: Scope::Everything,
    };
    let mut report = Report::default();
    let config = load(&request, &mut report);
    let plan = plan(&config, &environment, &mut report);
    report.into_result().map_err(|failure| failure.to_json()).unwrap();
    plan
}

fn process(server: &ServerPlan) -> &Process {
    let Transport::Process(process) = &server.transport else { panic!("{server:?}") };
    process
}

fn pairs(plan: &Plan, server: usize) -> Vec<(&str, &str)> {
    process(&plan.servers[server]).env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn rialto_toml_reaches_the_plan_whole() {
    let directory = tempfile::tempdir().unwrap();
    let text = r#"
prefix = "conflict"
era = "modern"
startup_grace_ms = 5
timeout_secs = 7
max_timeout_secs = 70

[servers.zebra]
command = "./bin/${ZEBRA:-zebra}"
args = ["--token", "${TOKEN}", "$${LITERAL}", 8080]
env = { A = "${TOKEN}", B = "" }
cwd = "sub"
era = "legacy"
allow = ["read_*"]
deny = ["read_secret"]
timeout_secs = 90

[servers.ant]
command = "ant"
cwd = "~/work"
"#;
    let plan = planned(directory.path(), "rialto.toml", text);
    assert_eq!((plan.prefix, plan.startup_grace), (Prefix::Conflict, Duration::from_millis(5)));
    let [zebra, ant] = plan.servers.as_slice() else { panic!("two servers expected: {plan:?}") };
    assert_eq!(zebra.name, "zebra");
    assert_eq!(Path::new(&process(zebra).program), directory.path().join("bin/zebra"));
    assert_eq!(process(zebra).args, ["--token", "hunter2", "${LITERAL}", "8080"]);
    assert_eq!(pairs(&plan, 0), [("A", "hunter2"), ("B", "")]);
    assert_eq!(process(zebra).cwd, Some(directory.path().join("sub")));
    assert_eq!((zebra.era, ant.era), (EraChoice::Legacy, EraChoice::Modern));
    assert_eq!((&zebra.allow[..], &zebra.deny[..]), (&["read_*".to_owned()][..], &["read_secret".to_owned()][..]));
    // A longer timeout of one server lifts its maximum.
    assert_eq!((zebra.timeout, zebra.max_timeout), (Duration::from_secs(90), Duration::from_secs(90)));
    assert_eq!((ant.timeout, ant.max_timeout), (Duration::from_secs(7), Duration::from_secs(70)));
    assert_eq!(
        (process(ant).program.as_str(), process(ant).cwd.as_deref()),
        ("ant", Some(Path::new("/people/ada/work")))
    );
}

#[test]
fn mcp_servers_of_hosts_reach_the_plan() {
    let directory = tempfile::tempdir().unwrap();
    let text = r#"{
  // Cline counts seconds, Claude Code milliseconds.
  "globalShortcut": "",
  "mcpServers": {
    "zebra": {"command": "uvx", "args": ["zebra"], "timeout": 30, "autoApprove": ["x"], "env": {"PORT": 80, "NO": null}},
    "ant": {"command": "${TOKEN}", "timeout": 2500, "excludeTools": ["rm"], "includeTools": ["ls"]},
    "off": {"command": "${UNSET_AND_UNUSED}", "disabled": true},
    "odd name ✓": {"command": "x", "disabled": false,},
  },
}"#;
    let plan = planned(directory.path(), "claude_desktop_config.json", text);
    let names: Vec<&str> = plan.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["zebra", "ant", "odd name ✓"]);
    assert_eq!(pairs(&plan, 0), [("PORT", "80")]);
    assert_eq!(plan.servers[0].timeout, Duration::from_secs(30));
    assert_eq!(plan.servers[1].timeout, Duration::from_millis(2500));
    assert_eq!(process(&plan.servers[1]).program, "hunter2");
    assert_eq!((&plan.servers[1].allow[0], &plan.servers[1].deny[0]), (&"ls".to_owned(), &"rm".to_owned()));
}

#[test]
fn vscode_files_reach_the_plan() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(".env"), "A=file\nB='from file'\n").unwrap();
    let text = r#"{
  "inputs": [],
  "servers": {
    "one": {
      "type": "stdio",
      "command": "${workspaceFolder}/run",
      "args": ["${userHome}", "${env:TOKEN}"],
      "envFile": "${workspaceFolder}/.env",
      "env": {"A": "own"}
    }
  }
}"#;
    let plan = planned(directory.path(), ".vscode/mcp.json", text);
    assert_eq!(Path::new(&process(&plan.servers[0]).program), directory.path().join("run"));
    assert_eq!(process(&plan.servers[0]).args, ["/people/ada", "hunter2"]);
    assert_eq!(pairs(&plan, 0), [("A", "own"), ("B", "from file")]);
}

#[test]
fn remote_servers_reach_the_plan() {
    let directory = tempfile::tempdir().unwrap();
    let text = r#"{"mcpServers": {
  "plain": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
  "typed": {"type": "streamable-http", "url": "http://127.0.0.1:${PORT:-80}/mcp", "oauth": {"clientId": "me"}},
  "old": {"type": "sse", "serverUrl": "https://a.example/sse"}
}}"#;
    let plan = planned(directory.path(), "mcp.json", text);
    let remotes: Vec<_> = plan
        .servers
        .iter()
        .map(|server| match &server.transport {
            Transport::Http(remote) => remote,
            Transport::Process(_) => panic!("{server:?}"),
        })
        .collect();
    let urls: Vec<&str> = remotes.iter().map(|remote| remote.endpoint.url().as_str()).collect();
    assert_eq!(urls, ["https://a.example/mcp", "http://127.0.0.1/mcp", "https://a.example/sse"]);
    let ways: Vec<Way> = remotes.iter().map(|remote| remote.endpoint.way()).collect();
    assert_eq!(ways, [Way::Streamable, Way::Streamable, Way::Sse]);
    // Whoever brings a header of their own does not log in.
    let logins: Vec<bool> = remotes.iter().map(|remote| remote.authorizer.is_some()).collect();
    assert_eq!(logins, [false, true, true]);
    assert!(!format!("{plan:?}").contains("hunter2"));
}

#[test]
fn one_command_makes_a_plan_without_prefix() {
    let directory = tempfile::tempdir().unwrap();
    // Its servers and imports are not looked at, its settings are.
    let text = "timeout_secs = 5\nimport = ['missing.json']\n[servers.x]\ncommand = '${UNSET}'\n";
    std::fs::write(directory.path().join("rialto.toml"), text).unwrap();
    let environment = Environment::of(&[]);
    let request = Request {
        environment: &environment,
        directory: directory.path(),
        flags: Layer::default(),
        files: Vec::new(),
        scope: Scope::SettingsOnly,
    };
    let mut report = Report::default();
    let config = load(&request, &mut report);
    let command = ["/opt/my.server".to_owned(), "--flag".to_owned()];
    let plan = plan_of_command(&command, None, &config.settings).unwrap();
    assert!(report.into_result().is_ok());
    assert_eq!(plan.prefix, Prefix::Never);
    let server = &plan.servers[0];
    assert_eq!((server.name.as_str(), process(server).program.as_str()), ("my", "/opt/my.server"));
    assert_eq!((process(server).args.as_slice(), server.timeout), (&["--flag".to_owned()][..], Duration::from_secs(5)));
}

#[test]
fn the_template_of_config_init_knows_every_key() {
    let template = include_str!("../commands/config/template.toml");
    let is_setting = |line: &&str| line.starts_with('[') || line.contains(" = ");
    let uncommented = |line: &str| line.strip_prefix("# ").unwrap_or(line).to_owned();
    let lines: Vec<String> = template.lines().map(uncommented).collect();
    let settings: Vec<&str> = lines.iter().map(String::as_str).filter(is_setting).collect();
    let import = "import = [\"~/.cursor/mcp.json\"]";
    assert!(settings.contains(&import));
    let text = settings.join("\n").replace(import, "").replace("${NOTES_API_TOKEN}", "${TOKEN}");
    let directory = tempfile::tempdir().unwrap();
    let plan = planned(directory.path(), "rialto.toml", &text);
    assert_eq!(plan.servers.len(), 3);
    let known = super::rialto_file::KEYS.iter().chain(&super::rialto_file::SERVER_KEYS);
    for key in known.chain(&super::rialto_file::OAUTH_KEYS) {
        assert!(text.contains(key) || import.contains(key), "`{key}` is not explained");
    }
}
