//! Compares the reports of two sessions.

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::Value;

/// Longer values are cut: the path says where to look.
const SHOWN: usize = 300;

pub(crate) fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON report ({error}): {text}"))
}

/// What differs, one line per place; empty when the reports are equal byte by byte.
pub(crate) fn differences(direct: &str, through: &str) -> String {
    let mut found = String::new();
    if direct != through {
        compare("$", Some(&parse(direct)), Some(&parse(through)), &mut found);
        if found.is_empty() {
            let lines = direct.lines().zip(through.lines()).find(|(direct, through)| direct != through);
            let _ = writeln!(found, "equal as JSON, but written differently: {lines:?}");
        }
    }
    found
}

fn compare(path: &str, direct: Option<&Value>, through: Option<&Value>, found: &mut String) {
    match (direct, through) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                compare(&format!("{path}.{key}"), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                compare(&format!("{path}[{index}]"), a.get(index), b.get(index), found);
            }
        }
        _ if direct == through => {}
        _ => {
            let _ = writeln!(found, "{path}\n    directly: {}\n    through:  {}", shown(direct), shown(through));
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "(absent)".into() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[test]
fn differences_name_the_place_and_both_values() {
    let found = differences(r#"{"a":[1,{"b":2}],"c":0}"#, r#"{"a":[1,{"b":3}]}"#);
    assert_eq!(found, "$.a[1].b\n    directly: 2\n    through:  3\n$.c\n    directly: 0\n    through:  (absent)\n");
    assert_eq!(differences("{}", "{}"), "");
}
