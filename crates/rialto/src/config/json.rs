//! A JSON reader that keeps positions and forgives what people write by hand: comments and trailing commas (JSONC).
//!
//! It exists because a message such as `line 7, column 12` is worth more than any hint, and `serde_json` drops the
//! position of everything it has accepted. Depth is limited, and a key that appears twice is an error, because one of
//! the two would silently win.

use std::collections::HashMap;
use std::ops::Range;

use crate::config::tree::{Member, Node, Value};

/// Configuration is a few levels deep; the limit only keeps a hostile file from exhausting the stack.
const DEEPEST: usize = 128;

/// Where reading stopped and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JsonError {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
}

/// Reads one JSON document.
pub(crate) fn read(text: &str) -> Result<Node, JsonError> {
    let mut reader = Reader { text, position: 0 };
    if text.starts_with('\u{feff}') {
        reader.position = '\u{feff}'.len_utf8();
    }
    let node = reader.value(0)?;
    reader.skip_blank()?;
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.unexpected("the end of the file", Some("the file holds more than one JSON value"))),
    }
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    /// Moves past `expected` when it is next.
    fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.position += expected.len_utf8();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Node, JsonError> {
        self.skip_blank()?;
        let start = self.position;
        let value = match self.peek() {
            Some('{' | '[') if depth == DEEPEST => {
                return Err(self.fault(start, format!("nested deeper than {DEEPEST} levels"), None));
            }
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Value::Text(self.string()?),
            Some('-' | '0'..='9') => Value::Number(self.number()?),
            Some(first) if first.is_ascii_alphabetic() => self.word()?,
            Some('\'') => return Err(self.unexpected("a value", Some("JSON text stands in double quotes"))),
            _ => return Err(self.unexpected("a value", None)),
        };
        Ok(Node { span: start..self.position, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.take('{');
        let mut members = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        loop {
            self.skip_blank()?;
            if self.take('}') {
                return Ok(Value::Object(members));
            }
            if !members.is_empty() && !self.take_comma('}')? {
                return Ok(Value::Object(members));
            }
            let start = self.position;
            if self.peek() != Some('"') {
                return Err(self.unexpected("a key in double quotes", Some("every key stands in double quotes")));
            }
            let key = self.string()?;
            let key_span = start..self.position;
            if let Some(first) = seen.insert(key.clone(), start) {
                let line = self.text[..first].matches('\n').count() + 1;
                return Err(JsonError {
                    span: key_span,
                    message: format!("the key `{key}` appears twice, first in line {line}"),
                    hint: Some("remove or rename one of them"),
                });
            }
            self.skip_blank()?;
            if !self.take(':') {
                return Err(self.unexpected("`:` after the key", None));
            }
            members.push(Member { key, key_span, node: self.value(depth + 1)? });
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.take('[');
        let mut items = Vec::new();
        loop {
            self.skip_blank()?;
            if self.take(']') {
                return Ok(Value::List(items));
            }
            if !items.is_empty() && !self.take_comma(']')? {
                return Ok(Value::List(items));
            }
            items.push(self.value(depth + 1)?);
        }
    }

    /// Expects a comma. `false` when the comma was a trailing one and the closing bracket is taken as well.
    fn take_comma(&mut self, close: char) -> Result<bool, JsonError> {
        if !self.take(',') {
            let expected = if close == '}' { "`,` or `}`" } else { "`,` or `]`" };
            let hint = "a comma is missing before this, or a bracket or quote was not closed earlier";
            return Err(self.unexpected(expected, Some(hint)));
        }
        self.skip_blank()?;
        Ok(!self.take(close))
    }

    fn word(&mut self) -> Result<Value, JsonError> {
        let start = self.position;
        let length = self.text[start..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let end = length.map_or(self.text.len(), |length| start + length);
        self.position = end;
        match &self.text[start..end] {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            // The word is not repeated: it may be a token somebody forgot to quote.
            _ => Err(self.fault(start, "expected a value", Some("text stands in double quotes"))),
        }
    }

    fn number(&mut self) -> Result<String, JsonError> {
        let start = self.position;
        let rest = &self.text[start..];
        let length = rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        self.position = start + length;
        let number = &rest[..length];
        // serde_json knows the grammar; only the positions are ours.
        match serde_json::from_str::<&serde_json::value::RawValue>(number) {
            Ok(_) => Ok(number.to_owned()),
            Err(_) => Err(self.fault(start, "not a valid number", None)),
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.position;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                None | Some(b'\n' | b'\r') => {
                    self.position = end.min(bytes.len());
                    let hint = "put a double quote at its end; a line break inside is written \\n";
                    return Err(self.fault(start, "this text is not closed", Some(hint)));
                }
                Some(_) => end += 1,
            }
        }
        self.position = end + 1;
        // serde_json resolves the escapes; a fault in one of them is reported for the whole text.
        serde_json::from_str(&self.text[start..=end]).map_err(|_| {
            let hint = "a backslash is written \\\\, and control characters as \\n, \\t or \\u0000";
            self.fault(start, "this text holds an invalid escape or control character", Some(hint))
        })
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), JsonError> {
        loop {
            let rest = &self.text[self.position..];
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            self.position += rest.len() - trimmed.len();
            let length = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                match trimmed.find("*/") {
                    Some(length) => length + 2,
                    None => return Err(self.unexpected("the end `*/` of this comment", None)),
                }
            } else {
                return Ok(());
            };
            self.position += length;
        }
    }

    /// A fault from `start` up to the current position.
    fn fault(&self, start: usize, message: impl Into<String>, hint: Option<&'static str>) -> JsonError {
        JsonError { span: start..self.position.max(start + 1), message: message.into(), hint }
    }

    fn unexpected(&self, expected: &str, hint: Option<&'static str>) -> JsonError {
        match self.peek() {
            Some(found) => self.fault(self.position, format!("expected {expected}, found `{found}`"), hint),
            None => {
                let hint = "the file is empty or cut off, or a bracket is not closed";
                self.fault(self.position, format!("expected {expected}, the file ends"), Some(hint))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::config::tree::{Node, Value};

    /// Writes a tree back as plain JSON, so that expectations stay readable.
    fn plain(node: &Node) -> String {
        match &node.value {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(text) => text.clone(),
            Value::Text(text) => serde_json::to_string(text).unwrap(),
            Value::List(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(",")),
            Value::Object(members) => {
                let pair = |m: &crate::config::tree::Member| format!("{:?}:{}", m.key, plain(&m.node));
                format!("{{{}}}", members.iter().map(pair).collect::<Vec<_>>().join(","))
            }
        }
    }

    #[test]
    fn reads_json_and_what_people_write_by_hand() {
        let cases = [
            ("{}", "{}"),
            ("\u{feff} [1, -2.50e+3 ,true,null]", "[1,-2.50e+3,true,null]"),
            ("{\"b\":1,\"a\":{\"c\":[]}}", "{\"b\":1,\"a\":{\"c\":[]}}"),
            ("// first\n{ /* in */ \"a\": 1, // last\n}", "{\"a\":1}"),
            ("[1,2,]", "[1,2]"),
            (r#""\u00e9\ud83d\ude00 \"\\\n // no comment""#, "\"é😀 \\\"\\\\\\n // no comment\""),
            ("12345678901234567890123.0", "12345678901234567890123.0"),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(&read(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn faults_carry_their_exact_span() {
        let cases = [
            ("", 0..1, "expected a value, the file ends"),
            ("{\"a\" 1}", 5..6, "expected `:` after the key, found `1`"),
            ("{\"a\":1 \"b\":2}", 7..8, "expected `,` or `}`, found `\"`"),
            ("[1 2]", 3..4, "expected `,` or `]`, found `2`"),
            ("{a:1}", 1..2, "expected a key in double quotes, found `a`"),
            ("{\"a\":1,,}", 7..8, "expected a key in double quotes, found `,`"),
            ("[,]", 1..2, "expected a value, found `,`"),
            ("['a']", 1..2, "expected a value, found `'`"),
            ("[sk_secret]", 1..10, "expected a value"),
            ("[01]", 1..3, "not a valid number"),
            ("[\"abc\n]", 1..5, "this text is not closed"),
            ("[\"abc\\", 1..6, "this text is not closed"),
            ("[\"\\x\"]", 1..5, "this text holds an invalid escape or control character"),
            ("{\"a\":1,\n\"a\":2}", 8..11, "the key `a` appears twice, first in line 1"),
            ("{} {}", 3..4, "expected the end of the file, found `{`"),
            ("/* open", 0..1, "expected the end `*/` of this comment, found `/`"),
        ];
        for (text, span, message) in cases {
            let error = read(text).unwrap_err();
            assert_eq!((error.span, error.message.as_str()), (span, message), "{text}");
        }
    }

    #[test]
    fn depth_is_limited() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read(&deep(128)).is_ok());
        assert_eq!(read(&deep(129)).unwrap_err().message, "nested deeper than 128 levels");
        assert!(read(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn never_panics_on_cut_or_changed_text() {
        let text = "{\"é\":[1,true,\"a\\u00e9\\n\"],/* c */\"b\":{}}";
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            assert!(read(&text[..cut]).is_err());
            for inserted in ['"', '\\', '{', ']', 'é', '\0', '/'] {
                let _ = read(&format!("{}{inserted}{}", &text[..cut], &text[cut..]));
            }
        }
    }
}
