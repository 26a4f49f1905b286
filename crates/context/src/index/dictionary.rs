//! Terms, and for each the places that have it and how often: sorted, in few bytes, without a pointer.

use super::{long_number, number};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

/// Collects terms; the places must come in order.
#[derive(Debug, Default)]
pub(super) struct DictionaryBuilder {
    /// Terms that fit into a number, which are nearly all: looking one up then touches one place in memory, not three.
    short: HashMap<u128, u32, Folded>,
    long: HashMap<Box<str>, u32>,
    lists: Vec<List>,
    /// The lists of the terms of the place that is being read.
    read: Vec<u32>,
}

/// A term of up to 15 bytes as a number: its bytes, and its length in the last.
fn packed(term: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..term.len()).filter(|_| term.len() < 16)?.copy_from_slice(term.as_bytes());
    bytes[15] = term.len() as u8;
    Some(u128::from_le_bytes(bytes))
}

fn unpacked(number: u128) -> String {
    let bytes = number.to_le_bytes();
    String::from_utf8_lossy(&bytes[..usize::from(bytes[15])]).into_owned()
}

/// A quick hash for packed terms: one multiplication, with secrets that differ in each process.
#[derive(Debug, Clone)]
struct Folded(u64, u64);

impl Default for Folded {
    fn default() -> Self {
        let secret = || RandomState::new().build_hasher().finish();
        Self(secret(), secret())
    }
}

impl BuildHasher for Folded {
    type Hasher = FoldedHasher;

    fn build_hasher(&self) -> FoldedHasher {
        FoldedHasher { secrets: (self.0, self.1), hash: 0 }
    }
}

struct FoldedHasher {
    secrets: (u64, u64),
    hash: u64,
}

impl Hasher for FoldedHasher {
    fn write_u128(&mut self, number: u128) {
        let left = (number as u64 ^ self.secrets.0) ^ self.hash;
        let right = (number >> 64) as u64 ^ self.secrets.1;
        let product = u128::from(left) * u128::from(right);
        self.hash = (product >> 64) as u64 ^ product as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

/// The places of one term.
#[derive(Debug, Default)]
struct List {
    /// The place after the last.
    next: u32,
    bytes: Vec<u8>,
}

impl DictionaryBuilder {
    /// Takes a term of the place that is being read.
    pub(super) fn add(&mut self, term: &str) {
        let next = super::small(self.lists.len());
        let list = match packed(term) {
            Some(number) => *self.short.entry(number).or_insert(next),
            None => match self.long.get(term) {
                Some(list) => *list,
                None => *self.long.entry(term.into()).or_insert(next),
            },
        };
        if list == next {
            self.lists.push(List::default());
        }
        self.read.push(list);
    }

    /// The place has been read; says how many terms it has. Places come in order.
    pub(super) fn end(&mut self, place: u32) -> usize {
        self.read.sort_unstable();
        for equal in self.read.chunk_by(PartialEq::eq) {
            let list = &mut self.lists[equal[0] as usize];
            write_varint(&mut list.bytes, place - list.next);
            write_varint(&mut list.bytes, super::small(equal.len()));
            list.next = place + 1;
        }
        let count = self.read.len();
        self.read.clear();
        count
    }

    /// Appends everything and says where it stands.
    pub(super) fn write(self, out: &mut Vec<u8>) -> Dictionary {
        let short = self.short.into_iter().map(|(number, list)| (unpacked(number).into_boxed_str(), list));
        let mut terms: Vec<(Box<str>, u32)> = short.chain(self.long).collect();
        terms.sort_unstable();
        let start = out.len();
        out.extend_from_slice(&super::small(terms.len()).to_le_bytes());
        let mut end = 0_u64;
        for (term, _) in &terms {
            end += term.len() as u64;
            out.extend_from_slice(&end.to_le_bytes());
        }
        let mut end = 0_u64;
        for (_, list) in &terms {
            end += self.lists[*list as usize].bytes.len() as u64;
            out.extend_from_slice(&end.to_le_bytes());
        }
        for (term, _) in &terms {
            out.extend_from_slice(term.as_bytes());
        }
        for (_, list) in &terms {
            out.extend_from_slice(&self.lists[*list as usize].bytes);
        }
        // It has just been written.
        Dictionary::find(out, start).map_or_else(Dictionary::default, |(dictionary, _)| dictionary)
    }
}

/// Where a dictionary stands in an index.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Dictionary {
    count: usize,
    term_ends: usize,
    list_ends: usize,
    terms: usize,
    lists: usize,
}

impl Dictionary {
    /// Finds the dictionary at `start`, and where it ends.
    pub(super) fn find(bytes: &[u8], start: usize) -> Option<(Self, usize)> {
        let count = number(bytes, start)? as usize;
        let term_ends = start + 4;
        let list_ends = term_ends.checked_add(count.checked_mul(8)?)?;
        let terms = list_ends.checked_add(count * 8)?;
        let last = |ends: usize| if count == 0 { Some(0) } else { long_number(bytes, ends + (count - 1) * 8) };
        let lists = terms.checked_add(usize::try_from(last(term_ends)?).ok()?)?;
        let end = lists.checked_add(usize::try_from(last(list_ends)?).ok()?)?;
        (end <= bytes.len()).then_some((Self { count, term_ends, list_ends, terms, lists }, end))
    }

    /// Part `place` of the parts whose ends stand at `ends`.
    fn part<'a>(&self, bytes: &'a [u8], ends: usize, base: usize, place: usize) -> &'a [u8] {
        let at = |place: usize| long_number(bytes, ends + place * 8).and_then(|end| usize::try_from(end).ok());
        let range: Option<Range<usize>> = (|| {
            let start = if place == 0 { 0 } else { at(place - 1)? };
            Some(base + start..base + at(place)?)
        })();
        range.and_then(|range| bytes.get(range)).unwrap_or_default()
    }

    /// The places that have `term`, in order, with how often.
    pub(crate) fn postings<'a>(&self, bytes: &'a [u8], term: &str) -> Postings<'a> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match self.part(bytes, self.term_ends, self.terms, middle).cmp(term.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    return Postings { bytes: self.part(bytes, self.list_ends, self.lists, middle), next: 0 };
                }
            }
        }
        Postings { bytes: &[], next: 0 }
    }
}

/// Places and counts, as they are read.
#[derive(Debug, Clone)]
pub(crate) struct Postings<'a> {
    bytes: &'a [u8],
    next: u32,
}

impl Iterator for Postings<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        let gap = read_varint(&mut self.bytes)?;
        let count = read_varint(&mut self.bytes)?;
        let place = self.next.checked_add(gap)?;
        self.next = place.checked_add(1)?;
        Some((place, count))
    }
}

fn write_varint(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{DictionaryBuilder, packed, read_varint, unpacked, write_varint};

    #[test]
    fn terms_of_every_length_are_found() {
        let terms: Vec<String> = (0..40).map(|length| "ä-x".chars().cycle().take(length).collect()).collect();
        let mut builder = DictionaryBuilder::default();
        for (place, term) in terms.iter().enumerate().filter(|(place, _)| place % 2 == 0) {
            builder.add(term);
            builder.add(term);
            assert_eq!(builder.end(place as u32), 2);
            assert_eq!(packed(term).is_some(), term.len() < 16);
            assert!(packed(term).is_none_or(|number| unpacked(number) == *term));
        }
        builder.add("a\0");
        builder.end(99);
        let mut bytes = Vec::new();
        let dictionary = builder.write(&mut bytes);
        for (place, term) in terms.iter().enumerate() {
            let expected = if place % 2 == 0 { vec![(place as u32, 2)] } else { vec![] };
            assert_eq!(dictionary.postings(&bytes, term).collect::<Vec<_>>(), expected, "{term}");
        }
        assert_eq!(dictionary.postings(&bytes, "a").count(), 0);
        assert_eq!(dictionary.postings(&bytes, "a\0").count(), 1);
    }

    #[test]
    fn numbers_of_every_size() {
        for number in [0, 1, 127, 128, 16_383, 16_384, 1 << 21, 1 << 28, u32::MAX] {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, number);
            assert_eq!(read_varint(&mut bytes.as_slice()), Some(number));
            assert_eq!(read_varint(&mut &bytes[..bytes.len() - 1]), None);
        }
    }
}
