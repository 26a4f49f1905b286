//! What is kept of a cache so that a query costs what it matches: for each word the documents that have it, how often.
//!
//! An index is one run of bytes, the same in memory and on disk, so that a stored one is ready as soon as it is read. It is a
//! function of the cache's ids and contents and of nothing else; the contents themselves are not in it.

mod dictionary;
mod smallest;
pub(crate) mod store;

pub(crate) use dictionary::Dictionary;

use crate::digest::{self, Hash};
use crate::search;
use crate::words;
use dictionary::DictionaryBuilder;
use smallest::Smallest;

/// Changes whenever the bytes would mean something else.
const FORMAT: &[u8; 16] = b"rialto context 1";

/// How long the hash at the end is.
const HASH: usize = 32;

/// Format, Unicode version, fingerprint, two sums, and the number of documents and chunks.
const HEADER: usize = FORMAT.len() + 4 + HASH + 8 + 4 + 4;

const DOCUMENT_ROW: usize = 12;
const CHUNK_ROW: usize = 12;

/// An index over one cache.
#[derive(Debug)]
pub(crate) struct Index {
    bytes: Box<[u8]>,
    documents: usize,
    chunks: usize,
    /// How many terms all chunks have together.
    chunk_terms: u64,
    words: Dictionary,
    search: Dictionary,
    smallest: Smallest,
}

/// What is known of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DocumentRow {
    pub(crate) tokens: u32,
    pub(crate) words: u32,
    /// The first of its chunks.
    pub(crate) first_chunk: u32,
}

/// What is known of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkRow {
    pub(crate) document: u32,
    pub(crate) tokens: u32,
    /// How many search terms it has.
    pub(crate) terms: u32,
}

/// Takes documents in the order of the cache and makes an index of them.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    documents: Vec<DocumentRow>,
    chunks: Vec<ChunkRow>,
    chunk_terms: u64,
    words: DictionaryBuilder,
    search: DictionaryBuilder,
}

/// A size or number that a document of at most [`crate::cache::MAX_DOCUMENT`] bytes has.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Builder {
    pub(crate) fn add(&mut self, content: &str) {
        let place = small(self.documents.len());
        words::lower(content).split_whitespace().for_each(|word| self.words.add(word));
        let count = self.words.end(place);
        let tokens = small(content.len().div_ceil(4));
        self.documents.push(DocumentRow { tokens, words: small(count), first_chunk: small(self.chunks.len()) });
        for chunk in search::chunk::split(content) {
            let text = &content[chunk.range];
            let chunk_place = small(self.chunks.len());
            search::terms::each(text, |term| self.search.add(term));
            let count = self.search.end(chunk_place);
            self.chunk_terms += count as u64;
            self.chunks.push(ChunkRow { document: place, tokens: small(text.len().div_ceil(4)), terms: small(count) });
        }
    }

    pub(crate) fn finish(self, fingerprint: &Hash) -> Index {
        let mut bytes = opening(fingerprint);
        bytes.extend_from_slice(&self.chunk_terms.to_le_bytes());
        bytes.extend_from_slice(&small(self.documents.len()).to_le_bytes());
        bytes.extend_from_slice(&small(self.chunks.len()).to_le_bytes());
        for row in &self.documents {
            for number in [row.tokens, row.words, row.first_chunk] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        for row in &self.chunks {
            for number in [row.document, row.tokens, row.terms] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        let words = self.words.write(&mut bytes);
        let search = self.search.write(&mut bytes);
        let hash = digest::hash(&bytes);
        bytes.extend_from_slice(&hash);
        let (documents, chunks) = (self.documents.len(), self.chunks.len());
        let smallest = Smallest::over(self.documents.iter().map(|row| row.tokens));
        Index {
            bytes: bytes.into_boxed_slice(),
            documents,
            chunks,
            chunk_terms: self.chunk_terms,
            words,
            search,
            smallest,
        }
    }
}

/// What every index of these documents begins with.
pub(crate) fn opening(fingerprint: &Hash) -> Vec<u8> {
    let mut bytes = FORMAT.to_vec();
    bytes.extend_from_slice(&unicode());
    bytes.extend_from_slice(fingerprint);
    bytes
}

/// The tables that lower case and white space follow. Others would give other words.
fn unicode() -> [u8; 4] {
    let (major, minor, update) = char::UNICODE_VERSION;
    [0, major, minor, update]
}

pub(super) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn long_number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl Index {
    /// Reads an index of exactly these documents; anything else, or a damaged one, is as good as none.
    pub(crate) fn read(bytes: Vec<u8>, fingerprint: &Hash) -> Option<Self> {
        let end = bytes.len().checked_sub(HASH)?;
        if digest::hash(&bytes[..end]) != bytes[end..] {
            return None;
        }
        let rest = bytes.strip_prefix(FORMAT)?.strip_prefix(&unicode())?;
        if rest.get(..HASH)? != fingerprint {
            return None;
        }
        let chunk_terms = long_number(rest, HASH)?;
        let documents = number(rest, HASH + 8)? as usize;
        let chunks = number(rest, HASH + 12)? as usize;
        let after = HEADER + documents * DOCUMENT_ROW + chunks * CHUNK_ROW;
        let (words, after) = Dictionary::find(&bytes, after)?;
        let (search, after) = Dictionary::find(&bytes, after)?;
        if after != end {
            return None;
        }
        let bytes = bytes.into_boxed_slice();
        let mut index =
            Self { bytes, documents, chunks, chunk_terms, words, search, smallest: Smallest::over(std::iter::empty()) };
        index.smallest = Smallest::over((0..documents).map(|place| index.document(place).tokens));
        Some(index)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash over everything that selection depends on; it stands at the end.
    pub(crate) fn hash(&self) -> Hash {
        let mut hash = [0; HASH];
        hash.copy_from_slice(&self.bytes[self.bytes.len() - HASH..]);
        hash
    }

    pub(crate) fn len(&self) -> usize {
        self.documents
    }

    fn numbers(&self, at: usize) -> [u32; 3] {
        [0, 4, 8].map(|offset| number(&self.bytes, at + offset).unwrap_or(0))
    }

    pub(crate) fn document(&self, place: usize) -> DocumentRow {
        let [tokens, words, first_chunk] = self.numbers(HEADER + place * DOCUMENT_ROW);
        DocumentRow { tokens, words, first_chunk }
    }

    pub(crate) fn chunk(&self, place: usize) -> ChunkRow {
        let [document, tokens, terms] = self.numbers(HEADER + self.documents * DOCUMENT_ROW + place * CHUNK_ROW);
        ChunkRow { document, tokens, terms }
    }

    pub(crate) fn chunks(&self) -> usize {
        self.chunks
    }

    pub(crate) fn chunk_terms(&self) -> u64 {
        self.chunk_terms
    }

    /// The documents that have a word, in order, with how often.
    pub(crate) fn documents_with(&self, word: &str) -> impl Iterator<Item = (u32, u32)> {
        self.words.postings(&self.bytes, word)
    }

    /// The chunks that have a search term, in order, with how often.
    pub(crate) fn chunks_with(&self, term: &str) -> impl Iterator<Item = (u32, u32)> {
        self.search.postings(&self.bytes, term)
    }

    /// The first document from `from` on that costs at most `tokens`.
    pub(crate) fn next_within(&self, from: usize, tokens: u64) -> Option<usize> {
        self.smallest.next_within(from, u32::try_from(tokens).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{Builder, Index};

    #[test]
    fn what_is_stored_is_what_was_built() {
        let mut builder = Builder::default();
        for content in ["one two two", "", "# Two\ntwo three"] {
            builder.add(content);
        }
        let built = builder.finish(&[7; 32]);
        let read = Index::read(built.bytes().to_vec(), &[7; 32]).unwrap();
        for index in [&built, &read] {
            assert_eq!(index.documents_with("two").collect::<Vec<_>>(), [(0, 2), (2, 2)]);
            assert_eq!(index.documents_with("#").collect::<Vec<_>>(), [(2, 1)]);
            assert_eq!(index.documents_with("four").count(), 0);
            assert_eq!(index.chunks_with("two").collect::<Vec<_>>(), [(0, 2), (1, 2)]);
            assert_eq!((index.document(0).tokens, index.document(0).words), (3, 3));
            assert_eq!((index.chunk(1).document, index.chunk(1).terms, index.chunk_terms()), (2, 3, 6));
        }
    }

    #[test]
    fn a_damaged_or_foreign_index_is_not_read() {
        let mut builder = Builder::default();
        builder.add("one two");
        let bytes = builder.finish(&[7; 32]).bytes().to_vec();
        assert!(Index::read(bytes.clone(), &[8; 32]).is_none());
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert!(Index::read(damaged, &[7; 32]).is_none(), "{place}");
            assert!(Index::read(bytes[..place].to_vec(), &[7; 32]).is_none(), "{place}");
        }
    }
}
