//! Filters: what a subscription asks for.
//!
//! They are read more strictly than most libraries do. A filter that is only half understood would return events that
//! nobody asked for, so an unknown field is refused instead of ignored.

use serde_json::{Map, Value};

use super::event::{Bytes32, Event, parse_hex};
use super::search::Search;

/// One filter: every field that is present must fit. Lists are sorted.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) ids: Option<Vec<Bytes32>>,
    pub(super) authors: Option<Vec<Bytes32>>,
    pub(super) kinds: Option<Vec<u16>>,
    pub(super) tags: Vec<(u8, Vec<Box<str>>)>,
    pub(super) since: Option<u64>,
    pub(super) until: Option<u64>,
    pub(super) limit: Option<usize>,
    pub(super) search: Option<Search>,
}

impl Filter {
    /// Reads a filter; the error has a standard prefix.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fields: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| format!("invalid: a filter cannot be read: {error}"))?;
        let mut filter = Self::default();
        for (name, value) in &fields {
            filter.set(name, value)?;
        }
        Ok(filter)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let invalid = |what: &str| format!("invalid: `{}` in a filter must be {what}", shortened(name));
        match name {
            "ids" => self.ids = Some(list(value, hex_value).ok_or_else(|| invalid("a list of 64 hex digits"))?),
            "authors" => self.authors = Some(list(value, hex_value).ok_or_else(|| invalid("a list of 64 hex digits"))?),
            "kinds" => self.kinds = Some(list(value, kind_value).ok_or_else(|| invalid("a list of kinds"))?),
            "since" => self.since = Some(value.as_u64().ok_or_else(|| invalid("seconds"))?),
            "until" => self.until = Some(value.as_u64().ok_or_else(|| invalid("seconds"))?),
            "limit" => {
                let limit = value.as_u64().ok_or_else(|| invalid("a number"))?;
                self.limit = Some(usize::try_from(limit).unwrap_or(usize::MAX));
            }
            "search" => self.search = Some(Search::parse(value.as_str().ok_or_else(|| invalid("a text"))?)),
            _ => match name.as_bytes() {
                [b'#', letter] if letter.is_ascii_alphabetic() => {
                    self.tags.push((*letter, list(value, text_value).ok_or_else(|| invalid("a list of texts"))?));
                }
                _ => return Err(format!("unsupported: filter field `{}`", shortened(name))),
            },
        }
        Ok(())
    }

    /// Whether an event fits, apart from `limit`.
    pub(super) fn matches(&self, event: &Event) -> bool {
        fn holds<T: Ord>(list: Option<&Vec<T>>, value: &T) -> bool {
            list.is_none_or(|list| list.binary_search(value).is_ok())
        }
        self.since.is_none_or(|since| event.created_at >= since)
            && self.until.is_none_or(|until| event.created_at <= until)
            && holds(self.kinds.as_ref(), &event.kind)
            && holds(self.authors.as_ref(), &event.author)
            && holds(self.ids.as_ref(), &event.id)
            && self.tags.iter().all(|(letter, wanted)| {
                event.values(*letter).any(|value| wanted.binary_search_by(|wanted| (**wanted).cmp(value)).is_ok())
            })
            && self.search.as_ref().is_none_or(|search| search.matches(event))
    }

    /// How many ids, authors, kinds, tag values and words it holds, which is what it costs to keep.
    pub(super) fn size(&self) -> usize {
        self.ids.as_ref().map_or(0, Vec::len)
            + self.authors.as_ref().map_or(0, Vec::len)
            + self.kinds.as_ref().map_or(0, Vec::len)
            + self.tags.iter().map(|(_, values)| values.len()).sum::<usize>()
            + self.search.as_ref().map_or(0, Search::size)
    }
}

/// Enough of a name that a stranger chose to recognise it.
fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(32).collect()
}

/// Reads, sorts and removes doubles.
fn list<T: Ord>(value: &Value, item: fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    let mut items = value.as_array()?.iter().map(item).collect::<Option<Vec<T>>>()?;
    items.sort_unstable();
    items.dedup();
    Some(items)
}

fn hex_value(value: &Value) -> Option<Bytes32> {
    parse_hex(value.as_str()?)
}

fn kind_value(value: &Value) -> Option<u16> {
    u16::try_from(value.as_u64()?).ok()
}

fn text_value(value: &Value) -> Option<Box<str>> {
    value.as_str().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn what_is_not_understood_is_refused() {
        let cases = [
            ("[]", "invalid: a filter cannot be read"),
            ("{\"ids\":[\"abc\"]}", "invalid: `ids`"),
            ("{\"authors\":{}}", "invalid: `authors`"),
            ("{\"kinds\":[65536]}", "invalid: `kinds`"),
            ("{\"kinds\":[-1]}", "invalid: `kinds`"),
            ("{\"since\":-1}", "invalid: `since`"),
            ("{\"until\":1.5}", "invalid: `until`"),
            ("{\"limit\":\"1\"}", "invalid: `limit`"),
            ("{\"search\":1}", "invalid: `search`"),
            ("{\"#e\":[1]}", "invalid: `#e`"),
            ("{\"#ee\":[]}", "unsupported: filter field `#ee`"),
            ("{\"#1\":[]}", "unsupported: filter field `#1`"),
            ("{\"&t\":[]}", "unsupported: filter field `&t`"),
        ];
        for (text, expected) in cases {
            let error = Filter::parse(text).err().unwrap_or_default();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let upper = format!("{{\"ids\":[\"{}\"]}}", "AB".repeat(32));
        assert!(Filter::parse(&upper).is_err());
    }
}
