//! Reads JSON and rejects objects with duplicate names.
//!
//! RFC 8259, section 4, does not define which of two members with the same name counts, and parsers differ.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Reads a JSON text.
///
/// # Errors
/// Returns an error if the text is not JSON, or if an object in it has a duplicate name.
pub(super) fn parse_unique(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = UniqueKeys.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Builds a value and checks the names in each object.
struct UniqueKeys;

impl<'de> DeserializeSeed<'de> for UniqueKeys {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
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

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(UniqueKeys)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(UniqueKeys)?;
            if all.contains_key(&name) {
                return Err(A::Error::custom(format!("duplicate name `{name}` in an object")));
            }
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_unchanged() {
        let text = r#"{"a": [1, -2, 0.5, "é\u0000", null, true], "b": {"a": {}}, "c": 18446744073709551615}"#;
        assert_eq!(parse_unique(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        assert!(parse_unique(br#"{"a": 1} 2"#).is_err());
    }

    #[test]
    fn duplicate_names_are_rejected() {
        let error = parse_unique(br#"{"x": [{"count": 1, "state": {"r0": 0, "r0": 1}}]}"#).unwrap_err();
        assert!(error.to_string().starts_with("duplicate name `r0` in an object"), "{error}");
    }
}
