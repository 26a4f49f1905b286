//! Configuration: from flags, variables and files to a checked [`rialto_hub::plan::Plan`].
//!
//! The files of this folder are the steps: [`source`] reads a file, [`document`] makes a [`tree`] of it, [`rialto_file`]
//! and [`host_file`] take servers and [`settings`] out of the tree, this file puts the layers on top of each other, and
//! [`planning`] expands variables and checks what is left. Everything wrong is collected in a [`problem::Report`].

pub(crate) mod choice;
pub(crate) mod document;
mod env_file;
mod expand;
mod fields;
mod host_file;
pub(crate) mod json;
pub(crate) mod mask;
pub(crate) mod planning;
pub(crate) mod problem;
mod rialto_file;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rialto_hub::plan::Prefix;

use crate::config::document::Language;
use crate::config::problem::Report;
use crate::config::server::ServerEntry;
use crate::config::settings::{Layer, Settings};
use crate::config::source::{Role, Source};
use crate::environment::{self, Environment};
use crate::paths::{Directories, find_project_file};

/// What is asked for on the command line, and where.
pub(crate) struct Request<'a> {
    pub(crate) environment: &'a Environment,
    /// The current directory.
    pub(crate) directory: &'a Path,
    pub(crate) flags: Layer,
    /// Files named by flags or arguments. They replace the project and user file.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) scope: Scope,
}

/// How much of the files matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    /// The one server is on the command line: files give settings only, and imports stay unread.
    SettingsOnly,
}

/// Everything that was configured, in layers already merged.
pub(crate) struct Config {
    pub(crate) settings: Settings,
    /// Files that hold servers keep their order: user file first, then project file; imports before the importing file.
    pub(crate) servers: Vec<ServerEntry>,
    /// Servers that were left out because nothing here speaks as they do.
    pub(crate) skipped: usize,
    /// The names of the files that were read, lowest layer first.
    pub(crate) files: Vec<String>,
    /// The same as paths, those included that could not be read.
    pub(crate) paths: Vec<PathBuf>,
}

/// Reads all layers. What is wrong goes to `report`, and the rest is returned all the same.
pub(crate) fn load(request: &Request<'_>, report: &mut Report) -> Config {
    let files = chosen_files(request);
    let environment_layer = Layer::of_environment(request.environment, report);
    let mut stack = Stack {
        request,
        layer: Layer::default(),
        servers: Vec::new(),
        skipped: 0,
        files: Vec::new(),
        paths: Vec::new(),
    };
    for (role, path) in &files {
        stack.add(*role, path, report);
    }
    let layer = request.flags.clone().over(environment_layer).over(stack.layer);
    let default_prefix = match request.scope {
        Scope::Everything => Prefix::default(),
        // One server alone cannot clash with another.
        Scope::SettingsOnly => Prefix::Never,
    };
    let Stack { servers, skipped, files, paths, .. } = stack;
    Config { settings: Settings::complete(layer, default_prefix), servers, skipped, files, paths }
}

/// Expands variables in text from elsewhere than a file; says what is wrong and what to do about it.
pub(crate) fn expand_text(text: &str, environment: &Environment, folder: &Path) -> Result<String, (String, String)> {
    expand::expand(text, environment, folder).map_err(|error| (error.message, error.hint))
}

/// The files to read, lowest layer first.
fn chosen_files(request: &Request<'_>) -> Vec<(Role, PathBuf)> {
    let from_variable =
        || request.environment.raw(environment::CONFIG).map(|value| std::env::split_paths(value).collect());
    let given: Option<Vec<PathBuf>> =
        if request.files.is_empty() { from_variable() } else { Some(request.files.clone()) };
    if let Some(given) = given {
        return given.into_iter().filter(|path| !path.as_os_str().is_empty()).map(|path| (Role::Given, path)).collect();
    }
    let home = request.environment.home();
    let user = Directories::find(request.environment).map(|directories| directories.user_file());
    let user = user.filter(|path| path.exists()).map(|path| (Role::User, path));
    let project = find_project_file(request.directory, home.as_deref()).map(|path| (Role::Project, path));
    user.into_iter().chain(project).collect()
}

/// The files read so far, the later ones on top.
struct Stack<'a> {
    request: &'a Request<'a>,
    layer: Layer,
    servers: Vec<ServerEntry>,
    skipped: usize,
    files: Vec<String>,
    paths: Vec<PathBuf>,
}

impl Stack<'_> {
    fn add(&mut self, role: Role, path: &Path, report: &mut Report) {
        self.paths.push(self.request.directory.join(path));
        let source = match Source::read(role, path, self.request.directory) {
            Ok(source) => Arc::new(source),
            Err(unreadable) => return report.unreadable(&unreadable),
        };
        self.files.push(source.name.clone());
        let language = Language::of(&source);
        let Some(tree) = document::read(&source, language, report) else { return };
        match language {
            Language::Json => self.add_host_file(&source, &tree, report),
            Language::Toml => {
                let file = rialto_file::read(&source, &tree, report);
                let below = std::mem::take(&mut self.layer);
                self.layer = file.layer.over(below);
                if self.request.scope == Scope::Everything {
                    for import in &file.imports {
                        self.add_import(&source, import, report);
                    }
                    self.add_servers(file.servers, report);
                }
            }
        }
    }

    fn add_host_file(&mut self, source: &Arc<Source>, tree: &tree::Node, report: &mut Report) {
        let file = host_file::read(source, tree, report);
        if self.request.scope == Scope::Everything {
            self.skipped += file.skipped;
            self.add_servers(file.servers, report);
        }
    }

    fn add_import(&mut self, importer: &Arc<Source>, import: &fields::Text, report: &mut Report) {
        let environment = self.request.environment;
        let path = match expand::expand(&import.text, environment, importer.base()) {
            Ok(path) => importer.base().join(expand::home_relative(&path, environment)),
            Err(error) => return report.error_with_hint(importer, &import.span, error.message, error.hint),
        };
        self.paths.push(self.request.directory.join(&path));
        let source = match Source::read(Role::Imported, &path, self.request.directory) {
            Ok(source) => Arc::new(source),
            Err(unreadable) => {
                let message = format!("cannot import `{}`: {}", unreadable.name, unreadable.reason);
                return report.error(importer, &import.span, message);
            }
        };
        if Language::of(&source) == Language::Toml {
            let message = "`import` reads files with `mcpServers` in JSON only";
            return report.error(importer, &import.span, message);
        }
        self.files.push(source.name.clone());
        if let Some(tree) = document::read(&source, Language::Json, report) {
            self.add_host_file(&source, &tree, report);
        }
    }

    /// A server with a name that exists already takes the place of the earlier one.
    fn add_servers(&mut self, servers: Vec<ServerEntry>, report: &mut Report) {
        for server in servers {
            if server.name.is_empty() {
                report.error(&server.source, &server.span, "a server needs a name");
                continue;
            }
            match self.servers.iter_mut().find(|earlier| earlier.name == server.name) {
                None => self.servers.push(server),
                Some(earlier) => {
                    let place = earlier.source.place(earlier.span.start);
                    let message = format!("server `{}` replaces the one from {place}", server.name);
                    report.warning(&server.source, &server.span, message, None);
                    *earlier = server;
                }
            }
        }
    }
}
