//! One text for one JSON value, whoever wrote it, and its hash: members sorted by key, no white space (after RFC 8785).

use serde_json::Value;

/// The SHA-256 of some bytes, in hex.
pub fn sha256(bytes: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
    hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of a value.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            // By UTF-16 units, as the RFC asks; it differs from the order of bytes beyond the basic plane.
            sorted.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        // `2.0` and `2` are the same number.
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                out.push_str(&(float as i64).to_string());
            }
            _ => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::{sha256, text};
    use serde_json::{Value, json};

    #[test]
    fn equal_values_have_equal_texts() {
        let cases = [
            (
                r#"{"b":1,"a":[1.0,2,0.5],"c":{"z":null,"y":"\u00e4"}}"#,
                r#"{"a":[1,2,0.5],"b":1,"c":{"y":"ä","z":null}}"#,
            ),
            (r#"{"\ud83d\ude00":1,"\ufb33":2}"#, "{\"😀\":1,\"\u{fb33}\":2}"),
            (r#"" \" \\ \n \/ ""#, r#"" \" \\ \n / ""#),
        ];
        for (written, expected) in cases {
            assert_eq!(text(&serde_json::from_str::<Value>(written).unwrap()), expected);
        }
        assert_ne!(text(&json!({ "a": "1" })), text(&json!({ "a": 1 })));
    }

    #[test]
    fn hashes_are_those_of_the_standard() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
