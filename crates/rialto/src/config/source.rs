//! One configuration file as text, and exact places in it for messages.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::config::mask;

/// Larger files are refused unread. Hosts that keep their history beside `mcpServers` reach several megabytes.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// Characters of a line shown around the fault; a minified file is one very long line.
const EXCERPT_BEFORE: usize = 60;
const EXCERPT_AFTER: usize = 40;

/// Why a file is read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Named by `--config` or `RIALTO_CONFIG`.
    Given,
    Project,
    User,
    /// Named by `import` in another file.
    Imported,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Given => "given file",
            Role::Project => "project file",
            Role::User => "user file",
            Role::Imported => "imported file",
        }
    }
}

/// A file that could not be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) name: String,
    pub(crate) reason: String,
    pub(crate) hint: Option<&'static str>,
}

/// A file that has been read.
pub(crate) struct Source {
    pub(crate) role: Role,
    /// How messages call it: as typed, or relative to the current directory when it lies below.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A line and column, counted from one, in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Source {
    pub(crate) fn new(role: Role, path: PathBuf, name: String, text: String) -> Self {
        Self { role, name, path, text }
    }

    /// Reads a file. `directory` is the current one: it makes relative paths whole and names short.
    pub(crate) fn read(role: Role, path: &Path, directory: &Path) -> Result<Self, Unreadable> {
        let whole = directory.join(path);
        let name = path.strip_prefix(directory).unwrap_or(path).display().to_string();
        let refuse = |reason: String, hint| Unreadable { name: name.clone(), reason, hint };
        let unreadable = |error: std::io::Error| {
            let missing = error.kind() == ErrorKind::NotFound;
            refuse(error.to_string(), missing.then_some("check the path, or write a first file: rialto config init"))
        };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&whole).map_err(unreadable)?;
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(refuse("it is larger than 64 MiB".to_owned(), None));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(role, whole, name, text)),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
                Err(refuse(format!("line {line} is not valid UTF-8"), Some("save the file as UTF-8")))
            }
        }
    }

    /// The directory that relative paths in this file start from: its own, or the workspace above an editor's folder.
    pub(crate) fn base(&self) -> &Path {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let of_an_editor = folder.file_name().is_some_and(|name| name == ".vscode" || name == ".cursor");
        if of_an_editor { folder.parent().unwrap_or(folder) } else { folder }
    }

    pub(crate) fn place(&self, offset: usize) -> Place {
        let (line_start, _) = self.line_around(offset);
        let line = self.text[..line_start].matches('\n').count() + 1;
        let column = self.text[line_start..self.floor(offset)].chars().filter(|c| *c != '\u{feff}').count() + 1;
        Place { file: self.name.clone(), line, column }
    }

    /// The line at fault with carets below. Values are masked, because this text ends up in logs and bug reports.
    pub(crate) fn excerpt(&self, span: &Range<usize>) -> Option<String> {
        let before = &self.text[..self.floor(span.start)];
        let inside_block = |mark: &str| before.matches(mark).count() % 2 == 1;
        if inside_block("\"\"\"") || inside_block("'''") {
            // Lines of a multi-line string have no quotes to tell values from keys.
            return None;
        }
        let (line_start, line_end) = self.line_around(span.start);
        let place = self.place(span.start);
        let line = self.text[line_start..line_end].trim_start_matches('\u{feff}').replace(['\t', '\r'], " ");
        let masked: Vec<char> = mask::line(&line).chars().collect();
        let caret = place.column - 1;
        let stop = self.floor(span.end.min(line_end)).max(self.floor(span.start));
        let length = self.text[self.floor(span.start)..stop].chars().count().clamp(1, EXCERPT_AFTER);

        let from = caret.saturating_sub(EXCERPT_BEFORE);
        let to = masked.len().min(caret + EXCERPT_AFTER);
        let window: String = masked.get(from..to).unwrap_or_default().iter().collect();
        let (lead, tail) = (if from > 0 { "…" } else { "" }, if to < masked.len() { "…" } else { "" });
        let margin = " ".repeat(place.line.to_string().len());
        let indent = " ".repeat(caret - from + lead.chars().count());
        let shown = format!("{lead}{window}{tail}");
        let first = format!("  {} | {shown}", place.line);
        Some(format!(
            "{}\n  {margin} | {indent}{}\n",
            first.trim_end(),
            "^".repeat(length.min(to.saturating_sub(caret).max(1)))
        ))
    }

    /// The nearest character boundary at or before an offset.
    fn floor(&self, offset: usize) -> usize {
        let mut floor = offset.min(self.text.len());
        while !self.text.is_char_boundary(floor) {
            floor -= 1;
        }
        floor
    }

    fn line_around(&self, offset: usize) -> (usize, usize) {
        let offset = self.floor(offset);
        let start = self.text[..offset].rfind('\n').map_or(0, |position| position + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |position| offset + position);
        (start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::{Role, Source};

    fn source(text: &str) -> Source {
        Source::new(Role::Given, "/project/a.json".into(), "a.json".to_owned(), text.to_owned())
    }

    #[test]
    fn places_count_characters_from_one() {
        let source = source("{\n  \"é\": x\n}");
        let offset = source.text.find('x').unwrap();
        assert_eq!(source.place(offset).to_string(), "a.json:2:8");
        assert_eq!(source.place(999).to_string(), "a.json:3:2");
    }

    #[test]
    fn excerpt_points_at_the_fault_and_hides_values() {
        let source = source("{\n  \"TOKEN\": \"hunter2\" \"x\"\n}");
        let start = source.text.find("\"x\"").unwrap();
        assert_eq!(
            source.excerpt(&(start..start + 3)).unwrap(),
            "  2 |   \"TOKEN\": \"•••••••\" \"•\"\n    |                      ^^^\n"
        );
    }

    #[test]
    fn excerpt_of_a_long_line_is_a_window() {
        let source = source(&format!("{}!{}", " ".repeat(5000), " 1,".repeat(5000)));
        let excerpt = source.excerpt(&(5000..5001)).unwrap();
        assert!(excerpt.lines().all(|line| line.chars().count() < 120), "{excerpt}");
        assert!(excerpt.contains("! 1, 1,"), "{excerpt}");
    }

    #[test]
    fn any_span_can_be_shown() {
        let source = source("\u{feff}é = \"😀\"\r\n\tx = 'y'\n\n\"\"");
        for start in 0..source.text.len() + 3 {
            for end in start..source.text.len() + 3 {
                source.place(start);
                assert!(source.excerpt(&(start..end)).unwrap().contains('^'));
            }
        }
    }

    #[test]
    fn no_excerpt_from_inside_a_multi_line_string() {
        let source = source("a = \"\"\"\nsecret\n\"\"\"");
        assert_eq!(source.excerpt(&(9..10)), None);
    }
}
