//! Checks that a body has the shape of its kind, and finds the fields the kind does not have. Knows no storage.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How bodies of a kind are checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Says what does not fit.
    pub(super) check: fn(&Value) -> Result<(), String>,
    /// Gives the object back as the kind understands it, or says what does not fit.
    pub(super) decode: fn(&Value) -> Result<Value, String>,
}

impl Shape {
    /// The shape of a typed kind.
    pub(super) const fn of<T: DeserializeOwned + Serialize>() -> Self {
        Self { check: check_as::<T>, decode: decode_as::<T> }
    }
}

fn check_as<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
    T::deserialize(value).map(drop).map_err(|error| error.to_string())
}

fn decode_as<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let typed: T = T::deserialize(value).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// Removes from `given` what the server does not store: nulls, empty lists, and every field that `known` lacks. Returns the
/// paths of the last.
pub(super) fn drop_unknown(given: &mut Value, known: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    prune(given, known, "", &mut paths);
    paths
}

fn prune(given: &mut Value, known: &Value, path: &str, paths: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            given.retain(|key, value| {
                let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
                let unknown = !empty && !known.contains_key(key) && !value.as_object().is_some_and(serde_json::Map::is_empty);
                if unknown {
                    paths.push(join(path, key));
                }
                !empty && !unknown
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

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
