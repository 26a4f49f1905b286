//! How long a text is on the wire.

/// How many bytes a character takes inside a JSON string.
pub(crate) fn width(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        control if control < ' ' => 6,
        other => other.len_utf8(),
    }
}

/// How many bytes a text takes as a JSON string.
pub fn quoted(text: &str) -> usize {
    2 + text.chars().map(width).sum::<usize>()
}
