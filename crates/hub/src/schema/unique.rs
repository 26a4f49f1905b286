//! Values as texts that are equal when the values are.
//!
//! With these, equal items are found by hashing, in one pass whatever the items look like.

use serde_json::Value;

/// Writes equal values as equal texts: `1` and `1.0` are the same number, and members have no order.
pub(super) fn write_canonical(text: &mut String, value: &Value) {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                text.push_str(&(float as i64).to_string());
            }
            _ => text.push_str(&number.to_string()),
        },
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(text, item);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| name.as_str());
            text.push('{');
            for (name, member) in sorted {
                text.push_str(&Value::String(name.clone()).to_string());
                text.push(':');
                write_canonical(text, member);
                text.push(',');
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}
