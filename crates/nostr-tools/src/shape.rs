//! What values look like, as JSON Schema that every client reads the same way: no references, one type each, and what is
//! optional is not required, rather than null.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A type whose values can be described.
pub(crate) trait Shape {
    /// Whether a member of this type must be there.
    const REQUIRED: bool = true;

    fn schema() -> Value;
}

impl Shape for String {
    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Shape for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl Shape for i64 {
    fn schema() -> Value {
        json!({ "type": "integer" })
    }
}

impl Shape for u64 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0 })
    }
}

impl Shape for u16 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX })
    }
}

impl Shape for u8 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u8::MAX })
    }
}

/// Anything at all.
impl Shape for Value {
    fn schema() -> Value {
        json!({})
    }
}

impl<T: Shape> Shape for Option<T> {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

/// The schema of an object with these members.
pub(crate) fn object(members: Vec<(&str, bool, Value, &str)>) -> Value {
    let required: Vec<&str> = members.iter().filter(|(_, required, ..)| *required).map(|(name, ..)| *name).collect();
    let properties: Map<String, Value> = members
        .into_iter()
        .map(|(name, _, mut schema, description)| {
            schema["description"] = description.trim().into();
            (name.to_owned(), schema)
        })
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Takes away the nulls that stand for optional members: some clients send them, and nobody should get them.
pub(crate) fn without_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
            let properties = schema.get("properties").and_then(Value::as_object);
            members.retain(|name, member| {
                let is_known = properties.is_some_and(|properties| properties.contains_key(name));
                !(member.is_null() && is_known && !is_required(name))
            });
            for (name, member) in members {
                if let Some(schema) = properties.and_then(|properties| properties.get(name)) {
                    without_nulls(member, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| without_nulls(item, schema));
            }
        }
        _ => {}
    }
}

/// For tools that take nothing.
#[derive(Clone, serde::Deserialize)]
pub(crate) struct Nothing {}

impl Shape for Nothing {
    fn schema() -> Value {
        object(Vec::new())
    }
}

/// A struct with a description of each member, and its schema. A `secret struct` can be read only.
macro_rules! record {
    ($(#[doc = $about:literal])* secret struct $name:ident { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)* }) => {
        $crate::shape::record! { @as [serde::Deserialize] $(#[doc = $about])* struct $name { $($(#[doc = $doc])+ $field: $type,)* } }
    };
    ($(#[doc = $about:literal])* struct $name:ident { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)* }) => {
        $crate::shape::record! { @as [Clone, serde::Serialize, serde::Deserialize] $(#[doc = $about])* struct $name { $($(#[doc = $doc])+ $field: $type,)* } }
    };
    (@as [$($derive:path),+] $(#[doc = $about:literal])* struct $name:ident { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)* }) => {
        $(#[doc = $about])*
        #[derive($($derive),+)]
        pub(crate) struct $name {
            $($(#[doc = $doc])+ pub(crate) $field: $type,)*
        }

        impl $crate::shape::Shape for $name {
            fn schema() -> serde_json::Value {
                $crate::shape::object(vec![$((
                    stringify!($field),
                    <$type as $crate::shape::Shape>::REQUIRED,
                    <$type as $crate::shape::Shape>::schema(),
                    concat!($($doc,)+),
                ),)*])
            }
        }
    };
}

/// One of several words.
macro_rules! choice {
    ($(#[doc = $about:literal])* enum $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub(crate) enum $name {
            $($(#[doc = $doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $crate::shape::Shape for $name {
            fn schema() -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": [$($word),+] })
            }
        }
    };
}

pub(crate) use {choice, record};

#[cfg(test)]
mod tests {
    use super::{Shape, without_nulls};
    use serde_json::json;

    choice! {
        enum Colour { Red = "red", Blue = "blue", }
    }

    record! {
        struct Inner {
            /// How many.
            count: u8,
        }
    }

    record! {
        struct Outer {
            /// A text.
            text: String,
            /// Its colour.
            colour: Option<Colour>,
            /// What is in it.
            inner: Vec<Inner>,
        }
    }

    #[test]
    fn structs_have_schemas() {
        let inner = json!({
            "type": "object",
            "properties": { "count": { "type": "integer", "minimum": 0, "maximum": 255, "description": "How many." } },
            "required": ["count"],
        });
        assert_eq!(
            Outer::schema(),
            json!({
                "type": "object",
                "properties": {
                    "text": { "type": "string", "description": "A text." },
                    "colour": { "type": "string", "enum": ["red", "blue"], "description": "Its colour." },
                    "inner": { "type": "array", "items": inner, "description": "What is in it." },
                },
                "required": ["text", "inner"],
            })
        );
    }

    #[test]
    fn nulls_that_stand_for_nothing_go() {
        let mut value = json!({ "text": null, "colour": null, "other": null, "inner": [{ "count": 1 }] });
        without_nulls(&mut value, &Outer::schema());
        assert_eq!(value, json!({ "text": null, "other": null, "inner": [{ "count": 1 }] }));
    }
}
