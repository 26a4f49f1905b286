//! What a compiled schema is made of: for each subschema what it asserts and which other subschemas it applies, to the
//! same value or to a part of it.

use std::collections::HashMap;

use jsonschema::{Draft, Validator};
use serde_json::Value;

/// The number of a subschema in its program.
pub(super) type Id = usize;

/// One subschema.
pub(super) enum Node {
    Anything,
    Nothing,
    Keywords(Box<Keywords>),
}

/// Inclusive limits of a count; the widest allow everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { least: 0, most: u64::MAX }
    }
}

/// The names of types as they stand in schemas, in the order of their bits in [`Types`].
pub(super) const TYPES: [&str; 7] = ["boolean", "integer", "number", "string", "array", "object", "null"];

/// A set of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(pub(super) u8);

impl Types {
    pub(super) fn has(self, name: &str) -> bool {
        TYPES.iter().position(|known| *known == name).is_some_and(|bit| self.0 & (1 << bit) != 0)
    }

    /// Whether `value` is of one of them. Since draft 6, `1.0` is an integer.
    pub(super) fn include(self, value: &Value, draft: Draft) -> bool {
        match value {
            Value::Null => self.has("null"),
            Value::Bool(_) => self.has("boolean"),
            Value::Number(number) => {
                let is_whole = || draft > Draft::Draft4 && number.as_f64().is_some_and(|number| number.fract() == 0.0);
                self.has("number") || (self.has("integer") && (!number.is_f64() || is_whole()))
            }
            Value::String(_) => self.has("string"),
            Value::Array(_) => self.has("array"),
            Value::Object(_) => self.has("object"),
        }
    }
}

/// Keywords that concern one value and none of its parts, checked by the crate.
pub(super) struct Leaf {
    pub(super) validator: Validator,
    /// Values in `enum` and `const`, each of which may be compared.
    pub(super) values: u32,
    /// Steps for each byte of a text, when a pattern or format reads it.
    pub(super) per_byte: u32,
}

pub(super) struct Contains {
    pub(super) item: Id,
    pub(super) count: Bounds,
}

pub(super) struct Condition {
    pub(super) condition: Id,
    pub(super) then: Option<Id>,
    pub(super) otherwise: Option<Id>,
}

#[derive(Default)]
pub(super) struct Keywords {
    // About the value alone.
    pub(super) types: Option<Types>,
    pub(super) required: Vec<String>,
    pub(super) dependent_required: Vec<(String, Vec<String>)>,
    pub(super) length: Bounds,
    pub(super) item_count: Bounds,
    pub(super) member_count: Bounds,
    pub(super) is_unique: bool,
    pub(super) leaf: Option<Leaf>,

    // Other schemas for the same value.
    pub(super) reference: Vec<Id>,
    pub(super) all_of: Vec<Id>,
    pub(super) any_of: Vec<Id>,
    pub(super) one_of: Vec<Id>,
    pub(super) not: Option<Id>,
    pub(super) condition: Option<Condition>,
    pub(super) dependent: Vec<(String, Id)>,

    // Schemas for parts of the value.
    pub(super) properties: Vec<(String, Id)>,
    /// Which names `properties` has.
    pub(super) known: HashMap<String, Id>,
    pub(super) patterns: Vec<(Leaf, Id)>,
    pub(super) additional_properties: Option<Id>,
    pub(super) property_names: Option<Id>,
    pub(super) prefix_items: Vec<Id>,
    pub(super) items: Option<Id>,
    pub(super) contains: Option<Contains>,
    pub(super) unevaluated_properties: Option<Id>,
    pub(super) unevaluated_items: Option<Id>,
}

impl Keywords {
    /// Subschemas that see the same value. A loop of these would never end.
    pub(super) fn beside(&self) -> impl Iterator<Item = Id> {
        let condition = self.condition.iter().flat_map(|c| [Some(c.condition), c.then, c.otherwise]).flatten();
        let lists = [&self.reference, &self.all_of, &self.any_of, &self.one_of].into_iter().flatten().copied();
        lists.chain(self.not).chain(condition).chain(self.dependent.iter().map(|(_, id)| *id))
    }

    /// Subschemas that see a part of the value. A loop of these ends with the value.
    pub(super) fn below(&self) -> impl Iterator<Item = Id> {
        let named = self.properties.iter().map(|(_, id)| *id).chain(self.patterns.iter().map(|(_, id)| *id));
        let rest = [
            self.additional_properties,
            self.property_names,
            self.items,
            self.contains.as_ref().map(|contains| contains.item),
            self.unevaluated_properties,
            self.unevaluated_items,
        ];
        named.chain(self.prefix_items.iter().copied()).chain(rest.into_iter().flatten())
    }

    /// Whether it matters here what other keywords have seen of the value.
    pub(super) fn is_tracking(&self) -> bool {
        self.unevaluated_properties.is_some() || self.unevaluated_items.is_some()
    }
}
