//! Cuts a document into chunks: one for each heading, and several where a section is long.
//!
//! Headings are lines that begin with one to six `#`, outside of fenced code. A section that is longer than [`MOST`] is cut
//! at the last blank line before that, or at the last line end. Chunks cover the text in order and without a gap, but for
//! those that are blank.

use std::ops::Range;

/// The most bytes that a chunk has, unless a single line has more: about a thousand tokens.
const MOST: usize = 4000;

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) range: Range<usize>,
    /// Counted from one.
    pub(crate) first_line: usize,
    pub(crate) last_line: usize,
    /// Where the headings above it and its own are, outermost first. Their text would be as long for each chunk as the
    /// longest line somebody made a heading.
    pub(crate) headings: Vec<Range<usize>>,
}

/// A fence that is open: its character and how many of it.
type Fence = (u8, usize);

/// Cuts a document.
pub(crate) fn split(content: &str) -> Vec<Chunk> {
    let mut cutter = Cutter::default();
    let mut fence: Option<Fence> = None;
    let mut trail: Vec<(usize, Range<usize>)> = Vec::new();
    for line in content.split_inclusive('\n') {
        let found = if fence.is_none() { heading(line) } else { None };
        fence = after(fence, line);
        if let Some((level, title)) = found {
            cutter.close(content, &trail);
            trail.retain(|(above, _)| *above < level);
            trail.push((level, cutter.at + title.start..cutter.at + title.end));
        } else if cutter.at + line.len() - cutter.start > MOST {
            cutter.cut(content, &trail);
        }
        cutter.take(line);
    }
    cutter.close(content, &trail);
    cutter.chunks
}

/// Collects lines into chunks.
#[derive(Debug)]
struct Cutter {
    chunks: Vec<Chunk>,
    start: usize,
    first_line: usize,
    at: usize,
    line: usize,
    /// After the last blank line: where the next chunk could begin.
    pause: Option<(usize, usize)>,
}

impl Default for Cutter {
    fn default() -> Self {
        Self { chunks: Vec::new(), start: 0, first_line: 1, at: 0, line: 1, pause: None }
    }
}

impl Cutter {
    fn take(&mut self, line: &str) {
        self.at += line.len();
        self.line += 1;
        if line.trim().is_empty() {
            self.pause = Some((self.at, self.line));
        }
    }

    /// Ends the chunk here.
    fn close(&mut self, content: &str, trail: &[(usize, Range<usize>)]) {
        self.end_at(content, trail, (self.at, self.line));
    }

    /// Ends the chunk at the last blank line, or here.
    fn cut(&mut self, content: &str, trail: &[(usize, Range<usize>)]) {
        let here = (self.at, self.line);
        let place = self.pause.filter(|(at, _)| *at > self.start).unwrap_or(here);
        self.end_at(content, trail, place);
    }

    fn end_at(&mut self, content: &str, trail: &[(usize, Range<usize>)], (at, line): (usize, usize)) {
        if !content[self.start..at].trim().is_empty() {
            let headings = trail.iter().map(|(_, title)| title.clone()).collect();
            let (first_line, last_line) = (self.first_line, line - 1);
            self.chunks.push(Chunk { range: self.start..at, first_line, last_line, headings });
        }
        (self.start, self.first_line, self.pause) = (at, line, None);
    }
}

/// The line without up to three spaces before it; more make it code.
fn dedented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then_some(text)
}

/// The level of a heading, and where in the line its title is.
fn heading(line: &str) -> Option<(usize, Range<usize>)> {
    let text = dedented(line)?;
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && (rest.trim().is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| {
        let title = rest.trim();
        let bare = title.trim_end_matches('#');
        // Closing marks count only if they stand apart.
        let title = if bare.is_empty() || bare.ends_with([' ', '\t']) { bare.trim_end() } else { title };
        let start = line.len() - rest.trim_start().len();
        (level, start..start + title.len())
    })
}

/// Whether a fence is open after this line.
fn after(fence: Option<Fence>, line: &str) -> Option<Fence> {
    let Some(text) = dedented(line) else { return fence };
    let Some(mark) = text.bytes().next().filter(|mark| matches!(mark, b'`' | b'~')) else { return fence };
    let count = text.bytes().take_while(|byte| *byte == mark).count();
    let rest = &text[count..];
    match fence {
        None if count >= 3 && !(mark == b'`' && rest.contains('`')) => Some((mark, count)),
        Some((open, least)) if open == mark && count >= least && rest.trim().is_empty() => None,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, split};

    fn shown(content: &str) -> Vec<(String, usize, usize, String)> {
        let show = |chunk: super::Chunk| {
            let headings: Vec<&str> = chunk.headings.into_iter().map(|place| &content[place]).collect();
            (content[chunk.range].to_owned(), chunk.first_line, chunk.last_line, headings.join(" / "))
        };
        split(content).into_iter().map(show).collect()
    }

    fn row(text: &str, first: usize, last: usize, headings: &str) -> (String, usize, usize, String) {
        (text.to_owned(), first, last, headings.to_owned())
    }

    #[test]
    fn a_chunk_for_each_heading() {
        assert_eq!(
            shown("intro\n\n# A #\ntext\n## B\n\n### C#\nmore\n# D"),
            [
                row("intro\n\n", 1, 2, ""),
                row("# A #\ntext\n", 3, 4, "A"),
                row("## B\n\n", 5, 6, "A / B"),
                row("### C#\nmore\n", 7, 8, "A / B / C#"),
                row("# D", 9, 9, "D"),
            ]
        );
        assert_eq!(shown(""), []);
        assert_eq!(shown(" \n\n"), []);
        assert_eq!(shown("#no\n    # code\n####### seven\n"), [row("#no\n    # code\n####### seven\n", 1, 3, "")]);
    }

    #[test]
    fn headings_in_fences_are_code() {
        let text = "# A\n```sh\n# comment\n```\n~~~~\n# x\n~~~\n# y\n~~~~~\n# B\n";
        assert_eq!(shown(text), [row(&text[..text.len() - 4], 1, 9, "A"), row("# B\n", 10, 10, "B")]);
    }

    #[test]
    fn long_sections_are_cut_at_blank_lines() {
        let paragraph = format!("{}\n\n", "word ".repeat(300));
        let text = format!("# A\n{}", paragraph.repeat(5));
        let chunks = split(&text);
        assert_eq!(chunks.len(), 3);
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk.range.len() <= MOST && chunk.headings.len() == 1 && chunk.headings[0] == (2..3))
        );
        let whole: String = chunks.iter().map(|chunk| &text[chunk.range.clone()]).collect();
        assert_eq!(whole, text);
        assert_eq!((chunks[1].first_line, chunks[1].last_line, chunks[2].first_line), (6, 9, 10));
        // Without a blank line, at a line end; without a line end, not at all.
        assert_eq!(split(&"line of text\n".repeat(1000)).len(), 4);
        assert_eq!(split(&"x".repeat(3 * MOST)).len(), 1);
    }
}
