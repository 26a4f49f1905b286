//! The terms of search: lower case, runs of letters and digits, and each character of scripts that have no spaces.

use crate::words;

/// Scripts whose words stand together: a character is a term of its own.
fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Calls `take` for each term of a text, in order.
pub(crate) fn each(text: &str, mut take: impl FnMut(&str)) {
    let text = words::lower(text);
    let mut start = None;
    for (place, character) in text.char_indices() {
        let alone = stands_alone(character);
        if character.is_alphanumeric() && !alone {
            start.get_or_insert(place);
            continue;
        }
        if let Some(start) = start.take() {
            take(&text[start..place]);
        }
        if alone {
            take(&text[place..place + character.len_utf8()]);
        }
    }
    if let Some(start) = start {
        take(&text[start..]);
    }
}

/// The different terms of a query, in byte order.
pub(crate) fn distinct(query: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each(query, |term| terms.push(term.to_owned()));
    terms.sort_unstable();
    terms.dedup();
    terms
}

#[cfg(test)]
mod tests {
    use super::{distinct, each};

    #[test]
    fn terms() {
        for (text, expected) in [
            ("Path-traversal, protection)!", vec!["path", "traversal", "protection"]),
            ("context_resolve v0.1", vec!["context", "resolve", "v0", "1"]),
            ("Straße ÄÖÜ ½", vec!["straße", "äöü", "½"]),
            ("東京tower", vec!["東", "京", "tower"]),
            ("towerカ", vec!["tower", "カ"]),
            ("— …", vec![]),
        ] {
            let mut found = Vec::new();
            each(text, |term| found.push(term.to_owned()));
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(distinct("b a B"), ["a", "b"]);
    }
}
