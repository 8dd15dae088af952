//! A stored object: never changed, written as JSON once however often it is sent.

use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;

/// An object at one resourceVersion.
#[derive(Debug)]
pub struct Object {
    value: Value,
    json: OnceLock<Bytes>,
}

impl Object {
    /// This object.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Self { value, json: OnceLock::new() }
    }

    /// The object to read.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The object as it is sent.
    #[must_use]
    pub fn json(&self) -> Bytes {
        self.json.get_or_init(|| self.value.to_string().into()).clone()
    }
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}
