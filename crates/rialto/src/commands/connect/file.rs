//! Changes a host's file: reads it, decides, edits the text, checks what came out, and only then writes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::entry::Entry;
use super::host::Host;
use super::{backup, edit_json, edit_toml};
use crate::config::document::{self, Language};
use crate::config::problem::Report;
use crate::config::source::{Role, Source};
use crate::config::tree::{Member, Node};
use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwrite {
    Yes,
    No,
}

/// What became of the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    Nothing,
    AlreadyThere,
    Done { backup: Option<PathBuf> },
}

pub(super) struct Edit<'a> {
    pub(super) host: Host,
    pub(super) entry: &'a Entry,
    pub(super) path: &'a Path,
    pub(super) directory: &'a Path,
    pub(super) overwrite: Overwrite,
}

impl Edit<'_> {
    pub(super) fn write(&self) -> Result<Written, Failure> {
        let old = self.read()?;
        match self.new_text(old.as_ref())? {
            None => Ok(Written::AlreadyThere),
            Some(new) => {
                let old = old.as_ref().map(|source| source.text.as_str());
                Ok(Written::Done { backup: backup::replace(self.path, old, &new)? })
            }
        }
    }

    /// Everything but the writing.
    pub(super) fn rehearse(&self) -> Result<Written, Failure> {
        let old = self.read()?;
        Ok(if self.new_text(old.as_ref())?.is_some() { Written::Nothing } else { Written::AlreadyThere })
    }

    /// The file as it is; `None` if there is none.
    fn read(&self) -> Result<Option<Source>, Failure> {
        match std::fs::metadata(self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        let mut report = Report::default();
        let source = Source::read(Role::Given, self.path, self.directory);
        match source.map_err(|unreadable| report.unreadable(&unreadable)) {
            Ok(source) => Ok(Some(source)),
            Err(()) => Err(report.into_result().err().unwrap_or_else(|| self.cannot_edit())),
        }
    }

    /// The file as it should be; `None` if it is that already.
    fn new_text(&self, old: Option<&Source>) -> Result<Option<String>, Failure> {
        let language = self.host.language();
        let Some(source) = old.filter(|source| !source.text.trim_start_matches('\u{feff}').trim().is_empty()) else {
            return Ok(Some(self.entry.document(self.host)));
        };
        let tree = parse(source, language)?;
        let list = tree.get(self.host.key());
        if let Some(wrong) = [Some(&tree), list].into_iter().flatten().find(|node| node.members().is_none()) {
            let place = source.place(wrong.span.start);
            return Err(Failure::config(format!("{place}: expected an object, not {}", wrong.kind()))
                .hint("mend the file by hand; nothing was changed"));
        }
        let existing = list.and_then(|list| list.get(&self.entry.name));
        match existing {
            Some(existing) if self.entry.is_said_by(existing, self.host) => return Ok(None),
            Some(_) if self.overwrite == Overwrite::No => return Err(self.is_taken()),
            _ => {}
        }
        let new = match language {
            Language::Json => edit_json::with_entry(&source.text, &tree, self.host, self.entry),
            Language::Toml => edit_toml::with_entry(&source.text, existing, self.entry),
        };
        self.check(&tree, source, &new).map(|()| Some(new))
    }

    /// The new text must say what the old one said, and the entry. A bug or an unusual file must not cost anybody theirs.
    fn check(&self, old: &Node, source: &Source, new: &str) -> Result<(), Failure> {
        let new = Source::new(Role::Given, source.path.clone(), source.name.clone(), new.to_owned());
        let tree = parse(&new, self.host.language()).map_err(|_| self.cannot_edit())?;
        let entry = tree.get(self.host.key()).and_then(|list| list.get(&self.entry.name));
        let has_entry = entry.is_some_and(|entry| self.entry.is_said_by(entry, self.host));
        let others = |tree: &Node| self.others(tree);
        if has_entry && others(old) == others(&tree) { Ok(()) } else { Err(self.cannot_edit()) }
    }

    /// What a file says apart from the entry.
    fn others(&self, tree: &Node) -> Vec<String> {
        let members = |node: &Node| node.members().unwrap_or_default().to_vec();
        let is_list = |member: &Member| member.key == self.host.key();
        let (lists, rest): (Vec<Member>, Vec<Member>) = members(tree).into_iter().partition(is_list);
        let servers = lists.iter().flat_map(|list| members(&list.node)).filter(|server| server.key != self.entry.name);
        rest.into_iter().chain(servers).map(|member| format!("{:?}: {}", member.key, plain(&member.node))).collect()
    }

    fn is_taken(&self) -> Failure {
        let name = &self.entry.name;
        Failure::config(format!("`{name}` is already in `{}` and says something else", self.path.display()))
            .code("entry_exists")
            .hint("replace it:        add --force\ntake another name: add --name NAME")
    }

    fn cannot_edit(&self) -> Failure {
        Failure::config(format!("cannot edit `{}` without losing something; nothing was changed", self.path.display()))
            .hint(format!("rialto connect {} …    without --write shows what to put there by hand", self.host.word()))
    }
}

fn parse(source: &Source, language: Language) -> Result<Node, Failure> {
    let mut report = Report::default();
    match document::read(source, language, &mut report) {
        Some(tree) => Ok(tree),
        None => Err(report.into_result().err().unwrap_or_else(|| Failure::config("the file cannot be read"))),
    }
}

/// A value without its places.
fn plain(node: &Node) -> String {
    use crate::config::tree::Value;
    match &node.value {
        Value::List(items) => format!("{:?}", items.iter().map(plain).collect::<Vec<_>>()),
        Value::Object(members) => {
            let members = members.iter().map(|member| (&member.key, plain(&member.node)));
            format!("{:?}", members.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}
