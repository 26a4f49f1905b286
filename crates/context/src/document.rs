//! One document: a file's text, its id and its hash.

use crate::digest::{self, Hash};
use crate::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A document as it stands in a cache. The order of the fields is the order in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub id: String,
    pub version: String,
    /// The path as it was found on disk.
    pub source: String,
    pub content: String,
    pub metadata: BTreeMap<String, Value>,
}

/// What metadata may hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Number(i64),
    Text(String),
}

impl Document {
    /// A document from a file: `source` is its path below the folder that is ingested.
    pub fn new(source: &str, content: String) -> Self {
        let version = digest::versioned(&digest::hash(content.as_bytes()));
        Self { id: id_of(source), version, source: source.to_owned(), content, metadata: BTreeMap::new() }
    }

    /// The bytes of its file in a cache.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Strings, numbers and a map with string keys cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a document that must be the one that is expected.
    pub(crate) fn read(bytes: &[u8], id: &str, version: &Hash) -> Result<Self, String> {
        let document: Self = serde_json::from_slice(bytes).map_err(|error| format!("not a document: {error}"))?;
        if document.id != id {
            return Err(format!("holds the document `{}`", document.id));
        }
        let content = digest::hash(document.content.as_bytes());
        if content != *version || digest::read_version(&document.version) != Some(content) {
            return Err("its content is not what its hash says".to_owned());
        }
        Ok(document)
    }
}

/// The id of a file: its path with forward slashes, in lower case.
pub(crate) fn id_of(source: &str) -> String {
    let path = source.replace('\\', "/");
    let mut path = path.as_str();
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    words::lower(path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Document, id_of};
    use crate::digest;

    #[test]
    fn ids() {
        for (source, id) in [
            ("Guide.md", "guide.md"),
            ("a/B/C.md", "a/b/c.md"),
            ("./a.md", "a.md"),
            ("././a.md", "a.md"),
            ("a\\B.md", "a/b.md"),
            (".\\a.md", "a.md"),
            (".hidden/x.md", ".hidden/x.md"),
            ("ÄRGER/ΟΔΟΣ.md", "ärger/οδοσ.md"),
            ("a/./b.md", "a/./b.md"),
        ] {
            assert_eq!(id_of(source), id, "{source}");
        }
    }

    #[test]
    fn the_file_is_compact_and_escapes_only_what_it_must() {
        let document = Document::new("A.md", "\u{feff}x\r\n\t\"\\\u{8}\u{c}\u{1}\u{1f}\u{7f}\u{2028}/é".to_owned());
        let text = String::from_utf8(document.to_json()).unwrap();
        let version = digest::versioned(&digest::hash(document.content.as_bytes()));
        assert_eq!(
            text,
            format!(
                "{{\"id\":\"a.md\",\"version\":\"{version}\",\"source\":\"A.md\",\"content\":\"\u{feff}x\\r\\n\\t\\\"\\\\\\b\\f\\u0001\\u001f\u{7f}\u{2028}/é\",\"metadata\":{{}}}}"
            )
        );
    }

    #[test]
    fn only_the_expected_document_is_read() {
        let document = Document::new("a.md", "one".to_owned());
        let hash = digest::hash(b"one");
        let read = |text: &str| Document::read(text.as_bytes(), "a.md", &hash);
        let text = String::from_utf8(document.to_json()).unwrap();
        assert_eq!(read(&text).unwrap(), document);
        assert!(read(&text.replace("{}", r#"{"a":"b","n":-3}"#)).is_ok());
        for wrong in [
            text.replace("a.md", "b.md"),
            text.replace("one", "two"),
            text.replace("sha256:", "sha512:"),
            text.replace("{}", r#"{"a":1.5}"#),
            text.replace("{}", r#"{"a":true}"#),
            text.replace(",\"metadata\":{}", ""),
            text[1..].to_owned(),
        ] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}
