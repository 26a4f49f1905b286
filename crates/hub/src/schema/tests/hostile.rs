//! Schemas and values that are made to take for ever.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::{MAX_DEPTH, MAX_TEXT, Schema};
use super::{check, check_refused, opinion};

#[test]
fn patterns_run_in_linear_time_or_not_at_all() {
    for pattern in ["^(?=a)", "a(?!b)", "(?<=a)b", "(?<!a)b", r"(a)\1", r"(?<n>a)\k<n>"] {
        let reason = format!("the pattern `{pattern}` looks around or back, which may take for ever");
        check_refused(&json!({ "pattern": pattern }).to_string(), &reason);
        check_refused(&json!({"patternProperties": {pattern: true}}).to_string(), &reason);
    }
    let large = "(a{100}){100}{100}";
    check_refused(
        &json!({ "pattern": large }).to_string(),
        &format!("the pattern `{large}` is too large or not a regular expression"),
    );
    let many: serde_json::Map<String, Value> = (0..101).map(|n| (format!("x{n}y[ab]"), json!(true))).collect();
    check_refused(&json!({"patternProperties": many}).to_string(), "the schema has more than 100 different patterns");
    // The classic that takes ages in a backtracking engine.
    check(
        r#"{"pattern":"^(a+)+$"}"#,
        &[(json!("a".repeat(50_000) + "b"), ": the value does not match the pattern `^(a+)+$`")],
    );
    check(r#"{"pattern":"^\\d{4}-\\w+\\/\\S$"}"#, &[(json!("2025-ab/x"), "")]);
}

/// `levels` of a definition that asks for the next one twice.
fn doubled(levels: usize, keyword: &str) -> String {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        definitions.insert(format!("l{level}"), json!({keyword: [next, next]}));
    }
    definitions.insert(format!("l{levels}"), json!({"type": "null"}));
    json!({"$defs": definitions, "$ref": "#/$defs/l0"}).to_string()
}

#[test]
fn bombs_are_refused_before_they_run() {
    for levels in [22, 27, 40] {
        for keyword in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            check_refused(&doubled(levels, keyword), "the schema needs more than 10000 steps");
        }
    }
    check(&doubled(9, "anyOf"), &[(json!(null), ""), (json!(1), ": the value fits none of its forms")]);
}

#[test]
fn loops_on_the_same_value_are_refused() {
    let endless = [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"},{"$ref":"#"}]}"##,
        r##"{"not":{"$ref":"#"}}"##,
        r##"{"$dynamicRef":"#"}"##,
        r##"{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},true]},"b":{"if":true,"then":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}"##,
        // The way down to `b` comes first and must not hide the way beside.
        r##"{"properties":{"x":{"$ref":"#/$defs/b"}},"allOf":[{"$ref":"#/$defs/b"}],"$defs":{"b":{"allOf":[{"$ref":"#"}]}}}"##,
    ];
    for schema in endless {
        check_refused(schema, "a `$ref` leads back to itself without an end");
    }
    let chain: serde_json::Map<String, Value> =
        (0..400).map(|n| (format!("l{n}"), json!({"$ref": format!("#/$defs/l{}", (n + 1).min(399))}))).collect();
    check_refused(
        &json!({"$defs": chain, "$ref": "#/$defs/l0"}).to_string(),
        "the references of the schema are chained longer than 256",
    );
}

#[test]
fn trees_are_allowed_and_end_with_the_value() {
    let tree = r##"{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}"##;
    check(
        tree,
        &[
            (json!({"name": "a", "children": [{"name": "b", "children": []}]}), ""),
            (json!({"name": "a", "children": [{"name": "b"}, {}]}), "/children/1: `name` is missing"),
        ],
    );
    // Both alternatives lead to the same part: 2^60 without a memory.
    let both = r##"{"anyOf":[{"type":"object","properties":{"a":{"$ref":"#"}}},{"type":"object","properties":{"a":{"$ref":"#"}}},{"const":1}]}"##;
    let mut value = json!(1);
    let mut wrong = json!(2);
    for _ in 0..60 {
        value = json!({ "a": value });
        wrong = json!({ "a": wrong });
    }
    check(both, &[(value, "")]);
    let start = Instant::now();
    assert_eq!(opinion(both, &wrong), ": the value fits none of its forms");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn size_and_depth_are_limited() {
    let nested = |levels: usize| "{\"not\":".repeat(levels) + "true" + &"}".repeat(levels);
    assert_eq!(opinion(&nested(MAX_DEPTH), &json!(1)), "");
    check_refused(&nested(MAX_DEPTH + 1), "the schema is nested deeper than 64 levels");
    check_refused(&"[".repeat(100_000), "the schema is nested deeper than 64 levels");
    check_refused(&" ".repeat(MAX_TEXT + 1), "the schema is longer than 256 KiB");
    let wide: Vec<Value> = (0..10_001).map(|_| json!(true)).collect();
    check_refused(&json!({"anyOf": wide}).to_string(), "the schema needs more than 10000 steps");
}

/// The worst that values of 128 KiB can do, at most a second each even without optimisation of the code.
#[test]
fn large_values_end_in_time() {
    let options: Vec<Value> = (0..40_000).map(|n| json!(n)).collect();
    let branches: Vec<Value> = (1..5_000).map(|n| json!({ "const": n })).chain([json!(true)]).collect();
    let patterns: Vec<Value> = (0..90).map(|n| json!({"not": {"pattern": format!("[ab]*a[ab]{{{n}}}c")}})).collect();
    let shapes: Vec<Value> = (0..5_000_u32).map(shape).collect();
    let cases = [
        (json!({"items": {"enum": options}}), json!(vec![39_999; 20_000])),
        (json!({"items": {"anyOf": branches}}), json!(vec![-1; 40_000])),
        (json!({"uniqueItems": true}), json!((0..20_000).collect::<Vec<_>>())),
        (json!({"uniqueItems": true}), json!(shapes)),
        (json!({"contains": {"enum": options}}), json!(vec![-1; 40_000])),
        (json!({"allOf": patterns}), json!("ab".repeat(64_000))),
        (json!({"pattern": "[ab]*a[ab]{400}c"}), json!("ab".repeat(64_000))),
        (json!({"format": "regex", "$schema": "http://json-schema.org/draft-07/schema"}), json!("(a|".repeat(40_000))),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}), deep_list(120)),
        (json!({"items": {"allOf": [{"anyOf": [{"oneOf": [{"if": true, "then": {"$ref": "#"}}]}]}]}}), deep_list(120)),
    ];
    for (schema, value) in cases {
        let text = schema.to_string();
        let compiled = Schema::compile(text.as_bytes()).unwrap_or_else(|refused| panic!("{text:.100}: {refused}"));
        let start = Instant::now();
        let result = compiled.check(&value);
        let taken = start.elapsed();
        println!("{taken:?} {:?} {text:.60}", result.map_err(|misfit| misfit.message));
        assert!(taken < Duration::from_secs(10), "{taken:?} for {text:.100}");
    }
}

/// Nested empty lists, a different one for each number: what hashes alike when only the leaves are looked at.
fn shape(number: u32) -> Value {
    (0..16).fold(json!([]), |inner, bit| if number & (1 << bit) == 0 { json!([inner]) } else { json!([inner, []]) })
}

fn deep_list(levels: usize) -> Value {
    (0..levels).fold(json!([]), |inner, _| json!([inner]))
}

#[test]
fn a_value_that_is_too_much_work_is_refused() {
    let options: Vec<Value> = (0..40_000).map(|n| json!(n)).collect();
    let schema = json!({"items": {"enum": options}}).to_string();
    check(&schema, &[(json!(vec![0; 1_000]), ": the value takes too many steps to check"), (json!(vec![0; 50]), "")]);
}
