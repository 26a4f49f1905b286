//! Schemas, values and what is said about them.

mod hostile;
mod random;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Schema;

/// What is said: nothing if all is well, `refused: …`, or `pointer: message`.
fn opinion(schema: &str, value: &Value) -> String {
    match Schema::compile(schema.as_bytes()).map(|schema| schema.check(value)) {
        Err(refused) => format!("refused: {refused}"),
        Ok(Ok(())) => String::new(),
        Ok(Err(misfit)) => format!("{}: {}", misfit.pointer, misfit.message),
    }
}

#[track_caller]
fn check(schema: &str, cases: &[(Value, &str)]) {
    for (value, expected) in cases {
        assert_eq!(opinion(schema, value), *expected, "{schema} {value}");
    }
}

#[track_caller]
fn check_refused(schema: &str, reason: &str) {
    let start = Instant::now();
    assert_eq!(opinion(schema, &Value::Null), format!("refused: {reason}"), "{:.300}", schema);
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(2), "took {taken:?} to refuse");
}

#[test]
fn no_schema_and_the_plainest_allow_everything() {
    for schema in ["", "  \n", "true", "{}", " {} "] {
        check(schema, &[(json!(null), ""), (json!({"a": [1]}), "")]);
    }
    check("false", &[(json!(1), ": the value is not allowed")]);
}

#[test]
fn a_tool_as_pydantic_writes_it() {
    let schema = r##"{
        "type": "object", "title": "forecastArguments",
        "$defs": {"Unit": {"enum": ["celsius", "fahrenheit"], "type": "string"}},
        "properties": {
            "city": {"title": "City", "type": "string", "minLength": 1, "maxLength": 5},
            "days": {"default": 3, "type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"$ref": "#/$defs/Unit", "default": "celsius"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            "tags": {"items": {"type": "string", "pattern": "^[a-z]+$"}, "type": "array", "maxItems": 2}
        },
        "required": ["city", "days"]
    }"##;
    check(
        schema,
        &[
            (json!({"city": "Bern", "days": 2, "unit": "celsius", "note": null, "tags": ["a"], "x": 1}), ""),
            (json!([]), ": the value must be an object"),
            (json!({"days": "two"}), ": `city` is missing"),
            (json!({"city": 1}), ": `days` is missing"),
            (json!({"city": "", "days": 99}), "/city: `city` must have at least 1 character"),
            (json!({"city": "Zürich", "days": 1}), "/city: `city` must have at most 5 characters"),
            (json!({"city": "Genève", "days": 1.5}), "/city: `city` must have at most 5 characters"),
            (json!({"city": "Bern", "days": 1.5}), "/days: `days` must be an integer"),
            (json!({"city": "Bern", "days": 0}), "/days: `days` must be at least 1"),
            (json!({"city": "Bern", "days": 15}), "/days: `days` must be at most 14"),
            (json!({"city": "Bern", "days": 1, "unit": "k"}), "/unit: `unit` must be one of `celsius`, `fahrenheit`"),
            (json!({"city": "Bern", "days": 1, "note": 5}), "/note: `note` must be a string or null"),
            (
                json!({"city": "Bern", "days": 1, "tags": ["a", "B"]}),
                "/tags/1: item 2 of `tags` does not match the pattern `^[a-z]+$`",
            ),
            (json!({"city": "Bern", "days": 1, "tags": ["a", "b", "c"]}), "/tags: `tags` must have at most 2 items"),
        ],
    );
}

#[test]
fn a_tool_as_zod_writes_it() {
    let schema = r##"{
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false,
        "properties": {
            "z/path": {"type": "string", "format": "uri"},
            "edits": {"type": "array", "minItems": 1, "items": {"type": "object", "additionalProperties": false,
                "properties": {"old": {"type": "string"}, "new": {"$ref": "#/properties/edits/items/properties/old"}},
                "required": ["old", "new"]}},
            "mode": {"const": "fast"},
            "kind": {"anyOf": [
                {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
                {"type": "string"}]}
        },
        "required": ["edits"]
    }"##;
    let ok = json!([{"old": "a", "new": "b"}]);
    check(
        schema,
        &[
            (json!({"z/path": "file:///a", "edits": ok, "mode": "fast", "kind": {"a": 1}}), ""),
            (json!({"edits": []}), "/edits: `edits` must have at least 1 item"),
            (json!({"edits": [{"old": "a"}]}), "/edits/0: `new` is missing"),
            (json!({"edits": [{"old": "a", "new": 1}]}), "/edits/0/new: `new` must be a string"),
            (json!({"edits": [{"old": "a", "new": "b", "c~/": 1}]}), "/edits/0/c~0~1: `c~/` is not a known field"),
            (json!({"edits": ok, "z/path": "no uri"}), "/z~1path: `z/path` is not a valid `uri`"),
            (json!({"edits": ok, "mode": "slow"}), "/mode: `mode` must be `fast`"),
            (json!({"edits": ok, "kind": {"a": "x"}}), "/kind/a: `a` must be a number"),
            (json!({"edits": ok, "kind": 1}), "/kind: `kind` must be a string or an object"),
        ],
    );
}

#[test]
fn order_is_that_of_the_schema() {
    let schema = r#"{"properties":{"z":{"type":"null"},"a":{"type":"null"}},"required":["y","b"]}"#;
    check(
        schema,
        &[(json!({"z": 1, "a": 1, "y": 0, "b": 0}), "/z: `z` must be null"), (json!({"z": 1}), ": `y` is missing")],
    );
}

#[test]
fn all_the_other_keywords() {
    let cases = [
        (r#"{"exclusiveMinimum":1}"#, json!(1), ": the value must be more than 1"),
        (r#"{"exclusiveMaximum":1}"#, json!(1), ": the value must be less than 1"),
        (r#"{"multipleOf":0.01}"#, json!(0.075), ": the value must be a multiple of 0.01"),
        (r#"{"multipleOf":0.01}"#, json!(0.07), ""),
        (r#"{"uniqueItems":true}"#, json!([1, 2, 1.0]), "/2: item 3 of the value appears twice"),
        (r#"{"uniqueItems":true}"#, json!([{"a": 1, "b": 2}, {"b": 2}, 1, "1", true]), ""),
        (r#"{"minProperties":2}"#, json!({"a": 1}), ": the value must have at least 2 fields"),
        (r#"{"propertyNames":{"maxLength":1}}"#, json!({"ab": 1}), ": `ab` is not a name that fields may have here"),
        (
            r#"{"patternProperties":{"^n":{"type":"number"}},"additionalProperties":{"type":"null"}}"#,
            json!({"n1": 1, "x": null}),
            "",
        ),
        (r#"{"patternProperties":{"^n":{"type":"number"}}}"#, json!({"n1": ""}), "/n1: `n1` must be a number"),
        (r#"{"contains":{"type":"null"}}"#, json!([1]), ": the value must have at least 1 item of its kind"),
        (
            r#"{"contains":{"type":"null"},"maxContains":1}"#,
            json!([null, null]),
            ": the value must have at most 1 item of its kind",
        ),
        (
            r#"{"prefixItems":[true,{"type":"null"}],"items":false}"#,
            json!([1, null, 2]),
            "/2: item 3 of the value is not allowed",
        ),
        (r#"{"not":{"type":"null"}}"#, json!(null), ": the value has a form that is not allowed"),
        (r#"{"oneOf":[{"minimum":1},{"minimum":2}]}"#, json!(3), ": the value fits more than one of its forms"),
        (r#"{"anyOf":[{"minimum":3},{"const":1}]}"#, json!(2), ": the value fits none of its forms"),
        (
            r#"{"if":{"type":"string"},"then":{"minLength":2},"else":{"minimum":2}}"#,
            json!(1),
            ": the value must be at least 2",
        ),
        (r#"{"dependentRequired":{"a":["b"]}}"#, json!({"a": 1}), ": `b` is missing, which `a` needs"),
        (r#"{"dependentSchemas":{"a":{"required":["b"]}}}"#, json!({"a": 1}), ": `b` is missing"),
        (
            r#"{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}"#,
            json!({"a": 1, "b": 2}),
            "/b: `b` is not a known field",
        ),
        (
            r#"{"anyOf":[{"prefixItems":[true]}],"unevaluatedItems":{"type":"null"}}"#,
            json!([1, 2]),
            "/1: item 2 of the value must be null",
        ),
        (r#"{"enum":[1,2,3,4,5,6,7,8,9]}"#, json!(0), ": the value is not one of the 9 allowed values"),
        (
            r#"{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}"#,
            json!(1),
            ": the value must be more than 1",
        ),
        (
            r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"}"#,
            json!(1.0),
            ": the value must be an integer",
        ),
        (
            r#"{"$schema":"http://json-schema.org/draft-06/schema#","items":[{"type":"null"}],"additionalItems":false}"#,
            json!([null, 1]),
            "/1: item 2 of the value is not allowed",
        ),
        (
            r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"$recursiveRef":"#"}},"additionalProperties":false}"##,
            json!({"a": {"b": 1}}),
            "/a/b: `b` is not a known field",
        ),
        (
            r#"{"$schema":"http://json-schema.org/draft-07/schema","dependencies":{"a":["b"],"c":{"required":["d"]}}}"#,
            json!({"c": 1}),
            ": `d` is missing",
        ),
        // Up to draft 7 a reference hides what stands beside it.
        (
            r##"{"$schema":"http://json-schema.org/draft-07/schema","definitions":{"x":true},"properties":{"a":{"$ref":"#/definitions/x","type":"null"}}}"##,
            json!({"a": 1}),
            "",
        ),
        (
            r##"{"$defs":{"x":true},"properties":{"a":{"$ref":"#/$defs/x","type":"null"}}}"##,
            json!({"a": 1}),
            "/a: `a` must be null",
        ),
    ];
    for (schema, value, expected) in cases {
        check(schema, &[(value, expected)]);
    }
}

#[test]
fn references_inside_of_the_schema() {
    let null = json!({"a": null});
    let cases = [
        r##"{"$defs":{"~/%":{"type":"null"}},"properties":{"a":{"$ref":"#/$defs/~0~1%25"}}}"##,
        r##"{"$defs":{"x":{"$anchor":"here","type":"null"}},"properties":{"a":{"$ref":"#here"}}}"##,
        r##"{"$defs":{"x":{"$dynamicAnchor":"here","type":"null"}},"properties":{"a":{"$dynamicRef":"#here"}}}"##,
        r##"{"$id":"https://a.example/b","$defs":{"x":{"type":"null"}},"properties":{"a":{"$ref":"https://a.example/b#/$defs/x"}}}"##,
        r##"{"$defs":{"x":{"$id":"T","$defs":{"y":{"type":"null"}},"$ref":"#/$defs/y"}},"properties":{"a":{"$ref":"T"}}}"##,
        r##"{"prefixItems":[{"type":"null"}],"properties":{"a":{"$ref":"#/prefixItems/0"}}}"##,
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"$id":"#here","type":"null"}},"properties":{"a":{"$ref":"#here"}}}"##,
    ];
    for schema in cases {
        check(schema, &[(null.clone(), ""), (json!({"a": 1}), "/a: `a` must be null")]);
    }
}

#[test]
fn nothing_is_fetched() {
    for reference in [
        "http://127.0.0.1:9/x",
        "https://a.example/x#/y",
        "file:///etc/passwd",
        "other.json",
        "//a.example",
        "json-schema:///x",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let reason = format!("`$ref` to `{reference}` leads outside of the schema");
        check_refused(&json!({"properties": {"a": {"$ref": reference}}}).to_string(), &reason);
        check_refused(&json!({"$dynamicRef": reference}).to_string(), &reason);
    }
    check_refused(r##"{"$ref":"#/$defs/x"}"##, "`$ref` to `#/$defs/x` leads nowhere");
    check_refused(r##"{"$ref":"#x"}"##, "`$ref` to `#x` leads nowhere");
    check_refused(r##"{"$schema":"https://a.example/schema"}"##, "`$schema` names no draft from 4 to 2020-12");
}

#[test]
fn what_is_no_schema_is_refused() {
    let cases = [
        ("[]", "the schema is neither an object nor a boolean"),
        ("null", "the schema is neither an object nor a boolean"),
        ("{", "the schema is not JSON: EOF while parsing an object at line 1 column 1"),
        (r#"{"type":"strin"}"#, "the schema is not valid at `/type`"),
        (r#"{"properties":{"a":{"required":true}}}"#, "the schema is not valid at `/properties/a/required`"),
        (r#"{"properties":{"a":true,"b":1}}"#, "the schema is not valid at `/properties/b`"),
        (r#"{"properties":{"a":true},"properties":{}}"#, "the key `properties` appears twice in the schema"),
        (r##"{"x":{"required":5},"$ref":"#/x"}"##, "`required` in the schema has the wrong form"),
        (r##"{"x":{"items":5},"$ref":"#/x"}"##, "a subschema is neither an object nor a boolean"),
        (r##"{"x":{"minimum":"5"},"$ref":"#/x"}"##, "the schema is not valid: `/minimum`"),
    ];
    for (schema, reason) in cases {
        check_refused(schema, reason);
    }
}

#[test]
fn nothing_of_the_value_is_repeated() {
    let secret = "hunter2-hunter2";
    for schema in [
        json!({"properties": {"a": {"type": "number"}}}),
        json!({"properties": {"a": {"enum": ["x"]}}}),
        json!({"properties": {"a": {"const": "x"}}}),
        json!({"properties": {"a": {"maxLength": 1}}}),
        json!({"properties": {"a": {"pattern": "^x$"}}}),
        json!({"properties": {"a": {"format": "date"}}, "$schema": "http://json-schema.org/draft-07/schema"}),
        json!({"properties": {"a": {"not": {}}}}),
        json!({"additionalProperties": false}),
    ] {
        let said = opinion(&schema.to_string(), &json!({ "a": secret }));
        assert!(!said.is_empty() && !said.contains("hunter2"), "{schema}: {said}");
    }
    assert_eq!(format!("{:?}", Schema::compile(b"{\"const\":\"x\"}").unwrap()), "Schema { .. }");
}
