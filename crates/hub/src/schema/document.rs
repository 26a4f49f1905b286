//! The text of a schema and where its references lead.
//!
//! A place is a stretch of the text, which keeps the order that the author wrote and tells places apart that look
//! alike. References are resolved within the text only; there is nothing here that could open a file or a connection.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use rialto_mcp::json::{self, Members};

use super::Refused;
use super::message::shortened;

/// A stretch of the document that holds one JSON value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) range: Range<usize>,
    /// The schema with an `$id` that this one is part of: where `#` leads from here.
    pub(super) resource: Range<usize>,
}

/// The members of an object by name.
type Parts = HashMap<String, Range<usize>>;

#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) text: &'a [u8],
    /// The keyword that names a schema, which was `id` once.
    id: &'static str,
    /// Objects that references have led through, by their start. Without it each reference would read the text again.
    objects: RefCell<HashMap<usize, Rc<Parts>>>,
    /// Places that have a name, by it.
    named: OnceCell<HashMap<String, Vec<Range<usize>>>>,
}

impl<'a> Document<'a> {
    pub(super) fn new(text: &'a [u8], id: &'static str) -> Self {
        Self { text, id, objects: RefCell::default(), named: OnceCell::new() }
    }

    pub(super) fn root(&self) -> Place {
        let range = 0..self.text.len();
        Place { range: range.clone(), resource: range }
    }

    pub(super) fn is_root(&self, place: &Place) -> bool {
        place.resource == (0..self.text.len())
    }

    pub(super) fn raw(&self, range: &Range<usize>) -> &'a [u8] {
        &self.text[range.clone()]
    }

    /// The members of an object in the order of the text; `None` if it is no object.
    pub(super) fn members(&self, range: &Range<usize>) -> Option<Vec<(Cow<'a, str>, Range<usize>)>> {
        let members = Members::of(self.raw(range)).map(|member| {
            let member = member.ok()?;
            Some((member.name(), within(range, &member.value)))
        });
        members.collect()
    }

    /// The elements of an array; `None` if it is no array.
    pub(super) fn elements(&self, range: &Range<usize>) -> Option<Vec<Range<usize>>> {
        let elements = json::elements(self.raw(range)).ok()?;
        Some(elements.iter().map(|element| within(range, element)).collect())
    }

    /// Whether an object names itself, so that references within it count from it.
    pub(super) fn is_resource(&self, range: &Range<usize>) -> bool {
        let id = self.parts(range).get(self.id).map(|id| self.raw(id));
        id.and_then(json::string).is_some_and(|id| !id.starts_with('#'))
    }

    /// The place that `reference` names when it stands in `from`.
    pub(super) fn resolve(&self, reference: &str, from: &Place) -> Result<Place, Refused> {
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if name.is_empty() {
            from.resource.clone()
        } else {
            let outside = || format!("`$ref` to `{}` leads outside of the schema", shortened(reference));
            let found = self.named(name).iter().find(|range| self.is_resource(range));
            found.cloned().ok_or_else(|| Refused::because(outside()))?
        };
        let start = Place { range: resource.clone(), resource };
        let fragment = percent_decoded(fragment);
        let found = match fragment.strip_prefix('/') {
            _ if fragment.is_empty() => Some(start),
            Some(pointer) => self.descend(start, pointer),
            None => {
                let anchors = self.named(&format!("#{fragment}")).iter();
                let mut here = anchors.filter(|range| start.range.start <= range.start && range.end <= start.range.end);
                here.next().map(|range| Place { range: range.clone(), resource: start.resource.clone() })
            }
        };
        found.ok_or_else(|| Refused::because(format!("`$ref` to `{}` leads nowhere", shortened(reference))))
    }

    fn descend(&self, mut place: Place, pointer: &str) -> Option<Place> {
        for segment in pointer.split('/') {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            place.range = self.parts(&place.range).get(&segment)?.clone();
            if self.is_resource(&place.range) {
                place.resource = place.range.clone();
            }
        }
        Some(place)
    }

    /// The parts of an object by name, or of an array by position.
    fn parts(&self, range: &Range<usize>) -> Rc<Parts> {
        let mut objects = self.objects.borrow_mut();
        let parts = objects.entry(range.start).or_insert_with(|| {
            let members = self.members(range).into_iter().flatten().map(|(name, part)| (name.into_owned(), part));
            let elements = self.elements(range).into_iter().flatten().enumerate();
            Rc::new(members.chain(elements.map(|(index, part)| (index.to_string(), part))).collect())
        });
        Rc::clone(parts)
    }

    /// The objects with this name, in the order of the text. Anchors start with `#`.
    fn named(&self, name: &str) -> &[Range<usize>] {
        let named = self.named.get_or_init(|| {
            let mut named = HashMap::new();
            self.collect_names(&self.root().range, &mut named);
            named
        });
        named.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn collect_names(&self, range: &Range<usize>, named: &mut HashMap<String, Vec<Range<usize>>>) {
        for (key, value) in self.members(range).into_iter().flatten() {
            let prefix = match key.as_ref() {
                "$anchor" | "$dynamicAnchor" => Some("#"),
                key => (key == self.id).then_some(""),
            };
            if let (Some(prefix), Some(name)) = (prefix, json::string(self.raw(&value))) {
                named.entry(format!("{prefix}{}", name.trim_end_matches('#'))).or_default().push(range.clone());
            }
            self.collect_names(&value, named);
        }
        for element in self.elements(range).into_iter().flatten() {
            self.collect_names(&element, named);
        }
    }
}

fn within(outer: &Range<usize>, inner: &Range<usize>) -> Range<usize> {
    outer.start + inner.start..outer.start + inner.end
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
