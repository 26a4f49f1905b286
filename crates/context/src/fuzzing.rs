//! What fuzzing tries and nobody else may call: the files of a cache, which strangers may have written.

use crate::digest;
use crate::index::Index;
use crate::manifest::{Manifest, document_file};
use crate::selection::select;
use crate::words::terms;

/// A manifest that is read can be written and read again, and no file that it names lies anywhere else.
pub fn manifest(bytes: &[u8]) {
    let Ok(read) = Manifest::read(bytes) else { return };
    let again = Manifest::read(&read.to_json());
    assert!(again.is_ok_and(|again| again == read), "it can be written and read");
    for entry in &read.documents {
        if let Some(name) = document_file(&entry.file) {
            assert!(!name.contains(['/', '\\']) && !name.starts_with('.'), "{name}");
        }
    }
}

/// An index whose hash is right and whose inside is anything: whatever is selected by it is within the budget, and is there.
pub fn index(inside: &[u8], query: &str, budget: u64) {
    let fingerprint = [7; 32];
    let mut bytes = crate::index::opening(&fingerprint);
    bytes.extend_from_slice(inside);
    let hash = digest::hash(&bytes);
    bytes.extend_from_slice(&hash);
    let Some(index) = Index::read(bytes, &fingerprint) else { return };
    let terms = terms(query);
    let chosen = select(&index, &terms, budget);
    assert!(chosen.iter().all(|choice| choice.place < index.len()));
    assert!(chosen.iter().map(|choice| choice.tokens).sum::<u64>() <= budget);
    for term in &terms {
        let _ = index.chunks_with(term).count();
    }
}
