//! Request ids: kept as they were written, compared by what they mean.

use crate::json;
use bytes::Bytes;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::BuildHasher;

/// An id exactly as its sender wrote it: a JSON string or integer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id(Bytes);

impl Id {
    /// Takes a JSON value as an id, if it may be one.
    pub fn read(value: Bytes) -> Option<Self> {
        let is_string = value.first() == Some(&b'"');
        let digits = value.strip_prefix(b"-").unwrap_or(&value);
        let is_integer = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        (is_string || is_integer).then_some(Self(value))
    }

    pub fn number(number: u64) -> Self {
        Self(Bytes::copy_from_slice(Decimal::new(number).as_json()))
    }

    /// The JSON text of the id.
    pub fn as_json(&self) -> &[u8] {
        &self.0
    }

    /// The number that one of our own ids is. Peers that turn numbers into strings are understood, too.
    pub fn as_number(&self) -> Option<u64> {
        let text = self.0.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(&self.0);
        std::str::from_utf8(text).ok()?.parse().ok()
    }

    pub fn key(&self) -> IdKey {
        if let Some(text) = json::string(&self.0) {
            return IdKey::Text(text.into());
        }
        let number = std::str::from_utf8(&self.0).ok().and_then(|text| text.parse().ok());
        number.map_or_else(|| IdKey::Long(self.0.as_ref().into()), IdKey::Number)
    }
}

/// One of our own ids in digits, without a trip to the allocator.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    pub number: u64,
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    pub fn new(number: u64) -> Self {
        let mut digits = [b'0'; 20];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return Self { number, digits, start };
            }
        }
    }

    pub fn as_json(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

/// What an id means, so that `"a"` and `"\u0061"` are the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IdKey {
    Number(i64),
    Text(Box<str>),
    /// An integer beyond 64 bits.
    Long(Box<[u8]>),
}

/// The ids that a session has seen, in bounded memory.
///
/// Integers are kept as ranges: clients count upwards, so one range is the usual case, and it is exact. Of other ids the
/// latest [`History::MAX_TEXTS`] are remembered. What is forgotten may be used again unnoticed.
#[derive(Debug, Default)]
pub struct History {
    /// First to last, both included.
    ranges: BTreeMap<i64, i64>,
    texts: HashSet<u64>,
    order: VecDeque<u64>,
    hasher: RandomState,
}

impl History {
    pub const MAX_RANGES: usize = 1024;
    pub const MAX_TEXTS: usize = 4096;

    /// Remembers an id; says whether it is new.
    pub fn insert(&mut self, key: &IdKey) -> bool {
        match key {
            IdKey::Number(number) => self.insert_number(*number),
            IdKey::Text(_) | IdKey::Long(_) => self.insert_text(self.hasher.hash_one(key)),
        }
    }

    fn insert_number(&mut self, number: i64) -> bool {
        let below = self.ranges.range(..=number).next_back().map(|(first, last)| (*first, *last));
        if below.is_some_and(|(_, last)| last >= number) {
            return false;
        }
        let first = match below {
            Some((first, last)) if last.checked_add(1) == Some(number) => first,
            _ => number,
        };
        let above = number.checked_add(1).and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, above.unwrap_or(number));
        if self.ranges.len() > Self::MAX_RANGES {
            self.ranges.pop_first();
        }
        true
    }

    fn insert_text(&mut self, hash: u64) -> bool {
        if !self.texts.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > Self::MAX_TEXTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Decimal, History, Id, IdKey};
    use bytes::Bytes;
    use std::collections::HashSet;

    fn id(text: &'static str) -> Option<Id> {
        Id::read(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn what_may_be_an_id() {
        for good in ["0", "-7", "\"\"", "\"a\"", "123456789012345678901234567890"] {
            assert!(id(good).is_some(), "{good}");
        }
        for bad in ["null", "true", "1.5", "1e3", "[]", "{}", "-", ""] {
            assert!(id(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn compared_by_meaning() {
        assert_eq!(id("\"a\"").unwrap().key(), id("\"\\u0061\"").unwrap().key());
        assert_ne!(id("\"1\"").unwrap().key(), id("1").unwrap().key());
        assert_eq!(id("\"12\"").unwrap().as_number(), Some(12));
    }

    #[test]
    fn digits() {
        for number in [0, 7, 10, 99, 1_234_567_890, u64::MAX] {
            assert_eq!(Decimal::new(number).as_json(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn history_is_exact_for_integers_in_any_order() {
        let mut history = History::default();
        let mut seen = HashSet::new();
        let mut number: i64 = 7;
        for _ in 0..5000 {
            number = (number * 1_103_515_245 + 12345) % 700;
            assert_eq!(history.insert(&IdKey::Number(number)), seen.insert(number), "{number}");
        }
        for extreme in [i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            assert!(history.insert(&IdKey::Number(extreme)));
            assert!(!history.insert(&IdKey::Number(extreme)));
        }
    }

    #[test]
    fn history_is_bounded() {
        let mut history = History::default();
        for number in 0..100_000_i64 {
            assert!(history.insert(&IdKey::Number(number)));
        }
        assert_eq!(history.ranges.len(), 1);
        for number in 0..10_000_i64 {
            history.insert(&IdKey::Number(1_000_000 + number * 2));
            history.insert(&IdKey::Text(format!("id-{number}").into()));
        }
        assert_eq!(history.ranges.len(), History::MAX_RANGES);
        assert_eq!(history.texts.len(), History::MAX_TEXTS);
        assert!(!history.insert(&IdKey::Text("id-9999".into())));
    }
}
