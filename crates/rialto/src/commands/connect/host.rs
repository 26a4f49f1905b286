//! The MCP hosts: where each keeps its servers, and in which form.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::config::document::Language;
use crate::environment::Environment;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    Vscode,
    Codex,
}

/// What decides about paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    MacOs,
    Other,
}

impl System {
    pub(super) const THIS: Self = if cfg!(target_os = "macos") { System::MacOs } else { System::Other };
}

impl Host {
    /// As typed.
    pub(super) fn word(self) -> &'static str {
        match self {
            Host::ClaudeDesktop => "claude-desktop",
            Host::ClaudeCode => "claude-code",
            Host::Cursor => "cursor",
            Host::Vscode => "vscode",
            Host::Codex => "codex",
        }
    }

    /// The file that the host reads. For Claude Code and VS Code it is the one of the project, which people share;
    /// the private ones are rewritten by these hosts while they run. `None` without a home directory.
    pub(super) fn file(self, environment: &Environment, directory: &Path, system: System) -> Option<PathBuf> {
        let home = || environment.home();
        match (self, system) {
            (Host::ClaudeDesktop, System::MacOs) => {
                Some(home()?.join("Library/Application Support/Claude/claude_desktop_config.json"))
            }
            (Host::ClaudeDesktop, System::Other) => {
                let config = environment.absolute_path("XDG_CONFIG_HOME");
                let config = config.or_else(|| Some(home()?.join(".config")))?;
                Some(config.join("Claude/claude_desktop_config.json"))
            }
            (Host::ClaudeCode, _) => Some(directory.join(".mcp.json")),
            (Host::Cursor, _) => Some(home()?.join(".cursor/mcp.json")),
            (Host::Vscode, _) => Some(directory.join(".vscode/mcp.json")),
            (Host::Codex, _) => {
                let codex = environment.absolute_path("CODEX_HOME");
                Some(codex.or_else(|| Some(home()?.join(".codex")))?.join("config.toml"))
            }
        }
    }

    pub(super) fn language(self) -> Language {
        match self {
            Host::Codex => Language::Toml,
            _ => Language::Json,
        }
    }

    /// The key of the object that holds the servers.
    pub(super) fn key(self) -> &'static str {
        match self {
            Host::ClaudeDesktop | Host::ClaudeCode | Host::Cursor => "mcpServers",
            Host::Vscode => "servers",
            Host::Codex => "mcp_servers",
        }
    }

    /// How to use what was shown.
    pub(super) fn by_hand(self, file: &Path) -> String {
        let file = file.display();
        match self {
            Host::ClaudeCode => format!("type this for yourself, or add --write to put it into {file} for the project"),
            _ => format!("put this into {file}, or add --write"),
        }
    }

    /// What makes the host read its file.
    pub(super) fn next(self) -> &'static str {
        match self {
            Host::ClaudeDesktop => "quit Claude Desktop and start it again",
            Host::ClaudeCode => "start claude here again and allow the server",
            Host::Cursor => "restart Cursor",
            Host::Vscode => "reload the window of VS Code and start the server",
            Host::Codex => "start codex again",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Host, System};
    use crate::environment::Environment;

    #[test]
    fn files_follow_the_system_and_the_variables() {
        let plain = &[("HOME", "/people/ada")][..];
        let moved = &[("HOME", "/people/ada"), ("XDG_CONFIG_HOME", "/etc/ada"), ("CODEX_HOME", "/opt/codex")][..];
        let cases = [
            (Host::ClaudeDesktop, System::Other, plain, "/people/ada/.config/Claude/claude_desktop_config.json"),
            (Host::ClaudeDesktop, System::Other, moved, "/etc/ada/Claude/claude_desktop_config.json"),
            (
                Host::ClaudeDesktop,
                System::MacOs,
                moved,
                "/people/ada/Library/Application Support/Claude/claude_desktop_config.json",
            ),
            (Host::ClaudeCode, System::Other, plain, "/here/.mcp.json"),
            (Host::Cursor, System::MacOs, plain, "/people/ada/.cursor/mcp.json"),
            (Host::Vscode, System::Other, plain, "/here/.vscode/mcp.json"),
            (Host::Codex, System::Other, plain, "/people/ada/.codex/config.toml"),
            (Host::Codex, System::Other, moved, "/opt/codex/config.toml"),
        ];
        for (host, system, variables, expected) in cases {
            let found = host.file(&Environment::of(variables), Path::new("/here"), system);
            assert_eq!(found.as_deref(), Some(Path::new(expected)), "{host:?}");
        }
        assert_eq!(Host::Cursor.file(&Environment::of(&[]), Path::new("/here"), System::Other), None);
    }
}
