//! `.gitignore` and `.ignore`, as git reads the former; the latter counts for more.

use crate::beneath::Folder;

const FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The largest such file that is read.
const MAX_SIZE: u64 = 1 << 20;

/// The rules of one folder, in order.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The folder's path with a slash at its end, or nothing.
    below: String,
    rules: Vec<Rule>,
}

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    pattern: Vec<u8>,
    /// Counts from the folder; otherwise the pattern is for names at any depth.
    anchored: bool,
    only_folders: bool,
    keeps: bool,
}

impl Rules {
    pub(super) fn of(folder: &Folder, below: &str) -> Self {
        let mut rules = Vec::new();
        for file in FILES {
            // One that is a link or cannot be read says nothing, as in git.
            let bytes = folder.read(file, MAX_SIZE).unwrap_or_default();
            rules.extend(bytes.split(|byte| *byte == b'\n').filter_map(Rule::read));
        }
        Self { below: below.to_owned(), rules }
    }

    /// Whether a path is ignored. The rules of the innermost folder count first, and of those the last.
    pub(super) fn ignore(all: &[Self], path: &str, is_folder: bool) -> bool {
        for rules in all.iter().rev() {
            let Some(path) = path.strip_prefix(&rules.below) else { continue };
            if let Some(rule) = rules.rules.iter().rev().find(|rule| rule.fits(path, is_folder)) {
                return !rule.keeps;
            }
        }
        false
    }
}

impl Rule {
    fn read(line: &[u8]) -> Option<Self> {
        let mut line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(b"#") {
            return None;
        }
        // Spaces at the end do not count, unless the first of them is escaped.
        while let Some(shorter) = line.strip_suffix(b" ") {
            let slashes = shorter.iter().rev().take_while(|byte| **byte == b'\\').count();
            if slashes % 2 == 1 {
                break;
            }
            line = shorter;
        }
        let keeps = line.starts_with(b"!");
        let line = if keeps { &line[1..] } else { line };
        let only_folders = line.ends_with(b"/");
        let line = line.strip_suffix(b"/").unwrap_or(line);
        let anchored = line.contains(&b'/');
        let pattern = line.strip_prefix(b"/").unwrap_or(line).to_vec();
        (!pattern.is_empty()).then_some(Self { pattern, anchored, only_folders, keeps })
    }

    fn fits(&self, path: &str, is_folder: bool) -> bool {
        if self.only_folders && !is_folder {
            return false;
        }
        let text = if self.anchored { path } else { path.rsplit('/').next().unwrap_or(path) };
        // A pattern with many stars could be tried in more ways than anybody has time for.
        let mut patience = 100_000;
        fits(&self.pattern, text.as_bytes(), &mut patience)
    }
}

/// Whether a pattern fits the whole text: `*` and `?` stop at slashes, `**` between slashes does not.
fn fits(pattern: &[u8], text: &[u8], patience: &mut u32) -> bool {
    *patience = patience.saturating_sub(1);
    if *patience == 0 {
        return false;
    }
    match pattern {
        [] => text.is_empty(),
        // The beginning, or a slash before, has been seen by whoever got here.
        [b'*', b'*', b'/', rest @ ..] => {
            fits(rest, text, patience)
                || text.iter().enumerate().any(|(at, byte)| *byte == b'/' && fits(rest, &text[at + 1..], patience))
        }
        [b'/', b'*', b'*'] => text.len() > 1 && text[0] == b'/',
        [b'/', b'*', b'*', b'/', ..] => text.first() == Some(&b'/') && fits(&pattern[1..], &text[1..], patience),
        [b'*', rest @ ..] => {
            let rest = &rest[rest.iter().take_while(|byte| **byte == b'*').count()..];
            let most = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
            (0..=most).any(|at| fits(rest, &text[at..], patience))
        }
        [b'?', rest @ ..] => text.first().is_some_and(|byte| *byte != b'/') && fits(rest, &text[1..], patience),
        [b'[', rest @ ..] => match (class(rest, text.first()), text) {
            (Some((true, after)), [byte, more @ ..]) if *byte != b'/' => fits(after, more, patience),
            _ => false,
        },
        [b'\\', byte, rest @ ..] => text.first() == Some(byte) && fits(rest, &text[1..], patience),
        [byte, rest @ ..] => text.first() == Some(byte) && fits(rest, &text[1..], patience),
    }
}

/// Whether a byte is in the class that `pattern` begins with, and what comes after; `None` if it does not end.
fn class<'a>(pattern: &'a [u8], byte: Option<&u8>) -> Option<(bool, &'a [u8])> {
    let byte = *byte?;
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let mut rest = if negated { &pattern[1..] } else { pattern };
    let mut found = false;
    let mut first = true;
    loop {
        let (low, after) = match rest {
            [b']', after @ ..] if !first => return Some((found != negated, after)),
            [b'\\', low, after @ ..] | [low, after @ ..] => (*low, after),
            [] => return None,
        };
        first = false;
        let (high, after) = match after {
            [b'-', b'\\', high, after @ ..] => (*high, after),
            [b'-', high, after @ ..] if *high != b']' => (*high, after),
            _ => (low, after),
        };
        found |= (low..=high).contains(&byte);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::{Rule, Rules};

    fn rules(below: &str, text: &str) -> Rules {
        let rules = text.split('\n').filter_map(|line| Rule::read(line.as_bytes())).collect();
        Rules { below: below.to_owned(), rules }
    }

    #[test]
    fn the_last_rule_of_the_innermost_folder_counts() {
        let all = [rules("", "*.md\n!keep.md\n/build/\n"), rules("docs/", "!a.md\n")];
        for (path, expected) in [
            ("x.md", true),
            ("keep.md", false),
            ("docs/a.md", false),
            ("docs/b.md", true),
            ("docs/keep.md", false),
            ("x.txt", false),
        ] {
            assert_eq!(Rules::ignore(&all, path, false), expected, "{path}");
        }
        assert!(Rules::ignore(&all, "build", true));
        assert!(!Rules::ignore(&all, "build", false));
        assert!(!Rules::ignore(&all, "docs/build", true));
    }

    #[test]
    fn patterns_with_many_stars_end() {
        let all = [rules("", "*a*a*a*a*a*a*a*a*a*a*a*a*b")];
        assert!(!Rules::ignore(&all, &"a".repeat(200), false));
    }
}
