//! Random schemas: none breaks us, and about all that we take, the crate on its own has the same opinion.

use proptest::collection::{btree_map, vec};
use proptest::prelude::{
    BoxedStrategy, Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::Schema;
use super::super::keywords::TYPES;
use super::opinion;

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..5).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(2.5)),
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[abc]", inner, 0..3).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Unoptimised code takes a millisecond for each.
const CASES: u32 = if cfg!(debug_assertions) { 1_000 } else { 50_000 };

/// What may stand in `$schema`; nothing means the newest.
const DRAFTS: &[&str] = &[
    "",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
];

/// One of `names` with a value.
fn keyword(names: &'static [&'static str], value: BoxedStrategy<Value>) -> BoxedStrategy<(String, Value)> {
    (select(names), value).prop_map(|(name, value)| (name.to_owned(), value)).boxed()
}

/// Schemas with every keyword, in any combination.
fn json_schema() -> impl Strategy<Value = Value> {
    let types = vec(select(&TYPES[..]), 1..3).prop_map(|mut types| {
        types.dedup();
        json!(types)
    });
    let leaf = prop_oneof![
        keyword(&["type"], types.boxed()),
        keyword(&["const"], json_value().boxed()),
        keyword(&["enum"], vec(json_value(), 1..4).prop_map(Value::from).boxed()),
        keyword(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"], (-1..4).prop_map(Value::from).boxed()),
        keyword(&["multipleOf"], Just(json!(2)).boxed()),
        keyword(
            &[
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "minProperties",
                "maxProperties",
                "minContains",
                "maxContains"
            ],
            (0..3).prop_map(Value::from).boxed(),
        ),
        keyword(&["pattern"], Just(json!("^a|b$")).boxed()),
        keyword(&["uniqueItems"], any::<bool>().prop_map(Value::from).boxed()),
        keyword(&["required"], vec("[abc]", 0..1).prop_map(|names| json!(names)).boxed()),
        keyword(&["dependentRequired"], Just(json!({"a": ["b"]})).boxed()),
        keyword(&["$ref"], Just(json!("#/definitions/d")).boxed()),
    ];
    let object = |entries: Vec<(String, Value)>| Value::Object(entries.into_iter().collect());
    let flat = prop_oneof![any::<bool>().prop_map(Value::from), vec(leaf.clone(), 1..3).prop_map(object)];
    flat.prop_recursive(3, 24, 3, move |inner| {
        let list = vec(inner.clone(), 1..3).prop_map(Value::from);
        let named = btree_map("[abc]", inner.clone(), 0..3).prop_map(|m| Value::Object(m.into_iter().collect()));
        let single = &[
            "not",
            "if",
            "then",
            "else",
            "additionalProperties",
            "propertyNames",
            "items",
            "contains",
            "unevaluatedProperties",
            "unevaluatedItems",
        ];
        let deep = prop_oneof![
            keyword(&["anyOf", "oneOf", "allOf", "prefixItems"], list.boxed()),
            keyword(&["properties", "patternProperties", "dependentSchemas"], named.boxed()),
            keyword(single, inner.boxed()),
        ];
        vec(prop_oneof![1 => leaf.clone(), 3 => deep], 1..4).prop_map(object)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_crate_has_the_same_opinion(schema in json_schema(), definition in json_schema(), value in json_value(), draft in select(DRAFTS)) {
        let mut schema = schema;
        if let Value::Object(members) = &mut schema {
            members.insert("definitions".to_owned(), json!({"d": definition}));
            if !draft.is_empty() {
                members.insert("$schema".to_owned(), json!(draft));
            }
        }
        let theirs = jsonschema::options().offline().build(&schema);
        match Schema::compile(schema.to_string().as_bytes()) {
            Ok(ours) => {
                let theirs = theirs.expect("a schema that we take");
                prop_assert_eq!(ours.check(&value).map_err(|misfit| misfit.message).is_ok(), theirs.is_valid(&value), "{} {}", schema, value);
            }
            // Only loops, which the crate lets end somehow.
            Err(refused) => prop_assert!(theirs.is_err() || refused.reason.contains("leads back"), "{} {}", refused, schema),
        }
    }

    #[test]
    fn any_json_is_a_schema_or_is_refused(keys in vec("[a-z$]{1,6}|type|items|\\$ref|\\$id|properties|allOf|required|enum|pattern|format", 1..4), schema in json_value(), value in json_value()) {
        let wrapped = keys.iter().fold(schema, |inner, key| json!({ key: inner }));
        let _ = opinion(&wrapped.to_string(), &value);
    }

    #[test]
    fn any_bytes_are_refused_or_not(bytes in vec(any::<u8>(), 0..40)) {
        let _ = Schema::compile(&bytes);
    }
}
