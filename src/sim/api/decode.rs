//! Checks that a body has the shape of its kind, and finds the fields the kind does not have. Knows no storage.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Decodes an object and gives it back as the kind understands it, or says what does not fit.
pub(super) type Decode = fn(&Value) -> Result<Value, String>;

/// The [`Decode`] of a typed kind.
///
/// # Errors
/// When a field has the wrong type.
pub(super) fn decode_as<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let typed: T = T::deserialize(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// Removes from `given` every field that `known` lacks, as the server does, and returns their paths.
pub(super) fn drop_unknown(given: &mut Value, known: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    prune(given, known, "", &mut paths);
    paths
}

fn prune(given: &mut Value, known: &Value, path: &str, paths: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            given.retain(|key, value| {
                // A kind that leaves out nulls and defaults says nothing about their field.
                let kept = known.contains_key(key) || value.is_null() || is_empty(value);
                if !kept {
                    paths.push(join(path, key));
                }
                kept
            });
            for (key, value) in given {
                if let Some(known) = known.get(key) {
                    prune(value, known, &join(path, key), paths);
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            for (index, (value, known)) in given.iter_mut().zip(known).enumerate() {
                prune(value, known, &format!("{path}[{index}]"), paths);
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
