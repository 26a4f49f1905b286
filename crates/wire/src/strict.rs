//! JSON from strangers, read strictly: a key that stands twice means different things to different readers, so it means
//! nothing to us, and nesting is bounded.

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, de};
use serde_json::{Map, Number, Value};
use std::fmt;

/// How deeply values may nest.
pub const MAX_DEPTH: usize = 64;

/// Reads one JSON value.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Level(0).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// A value at this depth.
#[derive(Clone, Copy)]
struct Level(usize);

impl Level {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if self.0 < MAX_DEPTH { Ok(Self(self.0 + 1)) } else { Err(E::custom("nested too deeply")) }
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is too large"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let deeper = self.deeper()?;
        let mut values = Vec::new();
        while let Some(value) = array.next_element_seed(deeper)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let deeper = self.deeper()?;
        let mut members = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let value = object.next_value_seed(deeper)?;
            if members.contains_key(&key) {
                return Err(A::Error::custom("a key stands twice"));
            }
            members.insert(key, value);
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DEPTH, parse};

    #[test]
    fn ambiguous_and_deep_values_are_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(
            parse(r#"{"a":[1,-2,0.5,"x",null,true]}"#).unwrap().to_string(),
            r#"{"a":[1,-2,0.5,"x",null,true]}"#
        );
        assert!(parse(r#"{"a":1,"\u0061":2}"#).unwrap_err().to_string().contains("twice"));
        assert!(parse(r#"[{"b":{"a":1,"a":1}}]"#).is_err());
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(parse(&nested(MAX_DEPTH + 1)).unwrap_err().to_string().contains("deeply"));
        for bad in ["", "{", "[1,]", "1 2", "nul", "\"\\ud800\"", "1e999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
