//! Terms, and for each the places that have it and how often: sorted, in few bytes, without a pointer.

use super::{long_number, number};
use std::collections::HashMap;
use std::ops::Range;

/// Collects terms; the places must come in order.
#[derive(Debug, Default)]
pub(super) struct DictionaryBuilder {
    places: HashMap<Box<str>, u32>,
    lists: Vec<List>,
}

/// The places of one term. The last one may still be counted.
#[derive(Debug, Default)]
struct List {
    place: u32,
    count: u32,
    /// The place before, plus one.
    written: u32,
    bytes: Vec<u8>,
}

impl List {
    fn flush(&mut self) {
        if self.count > 0 {
            write_varint(&mut self.bytes, self.place - self.written);
            write_varint(&mut self.bytes, self.count);
            self.written = self.place + 1;
            self.count = 0;
        }
    }
}

impl DictionaryBuilder {
    pub(super) fn add(&mut self, term: &str, place: u32) {
        let index = match self.places.get(term) {
            Some(index) => *index as usize,
            None => {
                let index = self.lists.len();
                self.places.insert(term.into(), super::small(index));
                self.lists.push(List::default());
                index
            }
        };
        let list = &mut self.lists[index];
        if list.place != place {
            list.flush();
            list.place = place;
        }
        list.count += 1;
    }

    /// Appends everything and says where it stands.
    pub(super) fn write(mut self, out: &mut Vec<u8>) -> Dictionary {
        let mut terms: Vec<(Box<str>, u32)> = self.places.into_iter().collect();
        terms.sort_unstable();
        self.lists.iter_mut().for_each(List::flush);
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
    use super::{read_varint, write_varint};

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
