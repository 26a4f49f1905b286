//! What is measured: our server and gateway, and their counterparts built from the official SDKs.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::Failure;

/// How many calls a measurement takes: enough for a stable figure, few enough that slow subjects end today.
#[derive(Clone, Copy)]
pub enum Speed {
    Native,
    Node,
    Python,
}

#[derive(Clone)]
pub struct Subject {
    pub name: &'static str,
    pub command: Vec<String>,
    pub speed: Speed,
    /// The file whose absence means that the subject is not installed.
    pub needs: PathBuf,
}

pub const OUR_SERVER: &str = "rialto mcp example";
pub const OUR_GATEWAY: &str = "rialto gateway → rmcp echo";
pub const OUR_BOTH: &str = "rialto gateway → rialto mcp example";
pub const SDKS: [&str; 5] = [
    "rmcp 3.8.0, stdio_pipes()",
    "rmcp 3.8.0, stdio()",
    "TypeScript SDK 1.32.2",
    "TypeScript SDK 2.4.0",
    "Python SDK 2.3.0",
];
pub const RMCP_PROXIES: [&str; 2] = ["typed rmcp proxy, 1 thread → rmcp echo", "typed rmcp proxy, threads → rmcp echo"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Builds the product as it is released and says where the binary is.
pub fn build_rialto() -> Result<PathBuf, Failure> {
    Ok(build(&["--package", "rialto"])?.join("rialto"))
}

/// Builds something of ours as it is released and says into which folder.
pub fn build(what: &[&str]) -> Result<PathBuf, Failure> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = root().join("Cargo.toml");
    let mut building = Command::new(&cargo);
    let built =
        building.args(["build", "--release", "--quiet", "--manifest-path"]).arg(&manifest).args(what).status()?;
    if !built.success() {
        return Err(format!("{} does not build", what.join(" ")).into());
    }
    let metadata = Command::new(&cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path"])
        .arg(&manifest)
        .stderr(Stdio::inherit())
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let target = metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
    Ok(Path::new(target).join("release"))
}

/// Where the peers are installed, by `interop/setup` and by the Nostr benchmark.
pub fn peers() -> PathBuf {
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    let cache = || env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    env::var_os("MCP_PEERS").map_or_else(|| cache().join("rialto-peers"), PathBuf::from)
}

pub fn all(rialto: &Path) -> Vec<Subject> {
    let peers = peers();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let own = text(rialto);
    let rmcp = |name: &str| peers.join("rmcp/target/release").join(name);
    let node = |script: &str| peers.join("node").join(script);
    let python = peers.join("python/venv/bin/python");
    let echo = text(&rmcp("echo"));
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|&word| word.into()).collect() };
    let subject =
        |name, speed, needs: &Path, command: Vec<String>| Subject { name, command, speed, needs: needs.to_owned() };
    let native = |name, needs: &Path, command: &[&str]| subject(name, Speed::Native, needs, words(command));
    let script =
        |name, speed, program: &str, script: &Path| subject(name, speed, script, words(&[program, &text(script)]));
    let gateway = [own.as_str(), "gateway", "--stdio", "--prefix", "never", "--"];
    let proxy = text(&rmcp("proxy"));
    vec![
        native(OUR_SERVER, rialto, &[&own, "mcp", "example"]),
        native(SDKS[0], &rmcp("echo"), &[&echo]),
        native(SDKS[1], &rmcp("echo"), &[&echo, "--blocking-stdio"]),
        script(SDKS[2], Speed::Node, "node", &node("echo-v1.mjs")),
        script(SDKS[3], Speed::Node, "node", &node("echo-v2.mjs")),
        script(SDKS[4], Speed::Python, &text(&python), &peers.join("python/echo.py")),
        native(OUR_GATEWAY, &rmcp("echo"), &[&gateway[..], &[&echo]].concat()),
        native(RMCP_PROXIES[0], &rmcp("proxy"), &[&proxy, "--", &echo]),
        native(RMCP_PROXIES[1], &rmcp("proxy"), &[&proxy, "--threads", "--", &echo]),
        native(OUR_BOTH, rialto, &[&gateway[..], &[&own, "mcp", "example"]].concat()),
    ]
}
