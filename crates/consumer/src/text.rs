//! Text from strangers, made fit for a terminal and for a model.
//!
//! What nobody can see must not be there: control characters and escape sequences that steer a terminal, marks that turn
//! the direction of writing around, and characters of no width that hide words from people but not from models.

use serde_json::Value;

/// The longest description that a model is given.
pub const MAX_DESCRIPTION: usize = 4 * 1024;

/// The longest name that is shown.
pub const MAX_NAME: usize = 128;

/// Removes what cannot be seen. Line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut characters),
            '\u{9b}' => skip_control_sequence(&mut characters),
            '\n' | '\t' => out.push(character),
            // A terminal goes back to the beginning of the line and writes over it.
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            hidden if is_hidden(hidden) => {}
            other => out.push(other),
        }
    }
    out
}

/// JSON with everything that cannot be seen written as an escape: it means the same, and steers no terminal.
pub fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            // Such a one stands between tokens: in a string it would be an escape already.
            '\r' => out.push(' '),
            hidden if is_hidden(hidden) => {
                for unit in hidden.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// The same on a single line.
pub fn one_line(text: &str) -> String {
    let visible = visible(text);
    let words: Vec<&str> = visible.split_whitespace().collect();
    words.join(" ")
}

/// The same, with the white space before it.
pub fn one_line_keeping_indent(text: &str) -> String {
    let rest = text.trim_start_matches(' ');
    format!("{}{}", &text[..text.len() - rest.len()], visible(rest).replace(['\n', '\t'], " "))
}

/// A name fit to be shown.
pub fn name(text: &str) -> String {
    limited(&one_line(text), MAX_NAME)
}

/// At most this many bytes, cut between characters.
pub fn limited(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

/// Whether the text is a name that can be shown as it is.
pub fn is_plain_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(|c| is_hidden(c) || c.is_whitespace())
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// What follows an escape character and belongs to it.
fn skip_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.peek() {
        Some('[') => {
            characters.next();
            skip_control_sequence(characters);
        }
        // These carry text of any length, up to a bell or a string terminator; but never beyond the line.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(character) = characters.next_if(|character| *character != '\n') {
                match character {
                    '\u{7}' | '\u{9c}' => return,
                    '\u{1b}' => {
                        characters.next_if_eq(&'\\');
                        return;
                    }
                    _ => {}
                }
            }
        }
        Some(' '..='~') => {
            characters.next();
        }
        _ => {}
    }
}

/// Parameters, then one letter.
fn skip_control_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while characters.next_if(|character| (' '..='?').contains(character)).is_some() {}
    characters.next_if(|character| ('@'..='~').contains(character));
}

/// A tool's definition, or any other, fit for a model: `None` if it is already.
pub fn cleaned(definition: &Value) -> Option<Value> {
    let mut clean = definition.clone();
    clean_value(&mut clean, "");
    (clean != *definition).then_some(clean)
}

fn clean_value(value: &mut Value, key: &str) {
    match value {
        // A regular expression is read by programs, and changing it changes what it allows.
        Value::String(_) if key == "pattern" => {}
        Value::String(text) => {
            *text = visible(text);
            if matches!(key, "description" | "title") {
                *text = limited(text, MAX_DESCRIPTION);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean_value(item, key)),
        Value::Object(members) => {
            if members.keys().any(|key| visible(key) != *key) {
                *members = std::mem::take(members).into_iter().map(|(key, value)| (visible(&key), value)).collect();
            }
            for (key, value) in members.iter_mut() {
                clean_value(value, key);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DESCRIPTION, cleaned, escaped, is_plain_name, limited, name, one_line, visible};
    use serde_json::json;

    #[test]
    fn what_cannot_be_seen_goes() {
        let cases = [
            ("plain, ünï and 漢字 🙂", "plain, ünï and 漢字 🙂"),
            ("a\u{1b}[31;1mred\u{1b}[0m", "ared"),
            ("a\u{9b}2Jb", "ab"),
            ("a\u{1b}]0;title\u{7}b", "ab"),
            ("a\u{1b}]8;;http://evil\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink"),
            ("a\u{1b}]never closed\nnext", "a\nnext"),
            ("a\u{1b}cb", "ab"),
            ("safe\rDANGER", "safe\nDANGER"),
            ("one\r\ntwo\tthree", "one\ntwo\tthree"),
            ("a\u{202e}gnp.exe\u{202c}", "agnp.exe"),
            ("a\u{200b}b\u{200d}c\u{feff}", "abc"),
            ("a\u{e0041}\u{e0042}b\u{e01ef}", "ab"),
            ("a\u{0}\u{8}\u{7f}b", "ab"),
        ];
        for (text, expected) in cases {
            assert_eq!(visible(text), expected, "{text:?}");
        }
        assert_eq!(one_line(" a\n\n b\u{2028}c "), "a bc");
    }

    #[test]
    fn escaped_json_means_the_same_and_shows_everything() {
        let value = json!({ "a\u{202e}": ["\u{9b}31m\u{7f}", "\u{e0041}", "ü 🙂"] });
        let text = escaped(&format!("{value}\r\n"));
        assert_eq!(visible(&text), text);
        assert!(text.contains("ü 🙂") && text.contains("\\udb40\\udc41"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(limited("äää", 6), "äää");
        assert_eq!(limited("ääää", 6), "ä…");
        assert!(name(&"n".repeat(500)).len() <= 128);
        assert!(
            is_plain_name("get-weather.v2")
                && !is_plain_name("a b")
                && !is_plain_name("")
                && !is_plain_name("a\u{200b}")
        );
    }

    #[test]
    fn definitions_are_cleaned_everywhere_but_in_patterns() {
        let clean = json!({ "name": "a", "description": "b\nc", "inputSchema": { "properties": { "x": { "pattern": "\u{200b}" } } } });
        assert_eq!(cleaned(&clean), None);
        let dirty = json!({
            "name": "a", "description": format!("b\u{1b}[1m{}", "d".repeat(9000)),
            "inputSchema": { "properties": { "x\u{200b}": { "enum": ["e\u{202e}"], "title": "t\u{0}" } } },
        });
        let clean = cleaned(&dirty).unwrap();
        assert_eq!(clean["inputSchema"], json!({ "properties": { "x": { "enum": ["e"], "title": "t" } } }));
        assert!(clean["description"].as_str().unwrap().len() <= MAX_DESCRIPTION);
    }
}
