//! The words of version 0: the whole text in lower case, cut at white space, nothing else.
//!
//! Both are Unicode's and come from the standard library, whose tables are those of [`char::UNICODE_VERSION`]. Punctuation
//! belongs to its word: `guide.` is not `guide`.

use std::borrow::Cow;

/// The text in lower case.
pub(crate) fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.to_lowercase())
}

/// The terms of a query: in order, repeated ones as often as they stand there.
pub(crate) fn terms(query: &str) -> Vec<String> {
    lower(query).split_whitespace().map(ToOwned::to_owned).collect()
}

/// What a text counts against a budget: a quarter of its bytes, rounded up.
pub fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::{terms, tokens};

    #[test]
    fn white_space_is_unicode_white_space() {
        let apart = [
            '\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{85}', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2003}',
            '\u{2028}', '\u{2029}', '\u{202f}', '\u{205f}', '\u{3000}',
        ];
        for space in apart {
            assert_eq!(terms(&format!("a{space}b")), ["a", "b"], "{space:?}");
        }
        for letter in ['\u{1c}', '\u{1f}', '\u{180e}', '\u{200b}', '\u{2060}', '\u{feff}', '.', '-', '_'] {
            assert_eq!(terms(&format!("a{letter}b")), [format!("a{letter}b")], "{letter:?}");
        }
    }

    #[test]
    fn case_is_unicode_case_and_accents_stay() {
        let cases = [
            ("HELLO World", vec!["hello", "world"]),
            ("ÄÖÜ ẞ", vec!["äöü", "ß"]),
            // The last sigma of a word has a letter of its own.
            ("ΟΔΟΣ ΣΑΣ", vec!["οδος", "σας"]),
            // One capital becomes two characters.
            ("İ", vec!["i\u{307}"]),
            // Composed and decomposed letters stay different.
            ("É E\u{301}", vec!["é", "e\u{301}"]),
            ("  \n ", vec![]),
            ("guide. guide", vec!["guide.", "guide"]),
            ("b a b", vec!["b", "a", "b"]),
        ];
        for (text, expected) in cases {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn tokens_are_quarters_of_bytes() {
        for (text, expected) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("語", 1), ("語語", 2), ("語語語", 3)]
        {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }
}
