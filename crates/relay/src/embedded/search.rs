//! NIP-50 at its simplest: every word must occur in the content or in a tag value, whatever its case.
//!
//! There is no index of words. Events are read again from their text, which costs about a microsecond each and only
//! those who search pay for it.

use serde::Deserialize;

use super::event::Event;

#[derive(Debug)]
pub(super) struct Search {
    words: Vec<String>,
}

#[derive(Deserialize)]
struct Readable {
    tags: Vec<Vec<String>>,
    content: String,
}

impl Search {
    /// Words with a colon, such as `language:en`, are extensions that we do not know; the NIP says to ignore them.
    pub(super) fn parse(text: &str) -> Self {
        let words = text.split_whitespace().filter(|word| !is_extension(word));
        Self { words: words.map(str::to_lowercase).collect() }
    }

    pub(super) fn size(&self) -> usize {
        self.words.len()
    }

    pub(super) fn matches(&self, event: &Event) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let Ok(readable) = serde_json::from_str::<Readable>(&event.text) else { return false };
        let content = readable.content.to_lowercase();
        let values = readable.tags.iter().flat_map(|tag| tag.iter().skip(1));
        let values: Vec<String> = values.map(|value| value.to_lowercase()).collect();
        self.words.iter().all(|word| content.contains(word) || values.iter().any(|value| value.contains(word)))
    }
}

/// `key:value`, but not a web address.
fn is_extension(word: &str) -> bool {
    word.split_once(':').is_some_and(|(key, value)| {
        !key.is_empty()
            && !value.is_empty()
            && !value.starts_with("//")
            && key.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}
