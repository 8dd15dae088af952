//! Validation of what all kinds share: names, labels, annotations. The words are the API server's. Pure.

use serde_json::{Map, Value, json};

use super::refusal::Cause;
use crate::ids::is_dns_label;

const LABEL_WORDS: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
                           with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                           '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                               start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                               '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE_WORDS: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
                                 start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
                                 for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const KEY_WORDS: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
/// The most bytes of all annotations of an object together.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Leaves an object as it is.
pub(super) fn no_defaults(_object: &mut Value) {}

/// Finds nothing wrong.
#[must_use]
pub(super) fn nothing_wrong(_object: &Value) -> Vec<Cause> {
    Vec::new()
}

/// Allows every change.
#[must_use]
pub(super) fn may_all_change(_old: &Value, _new: &Value) -> Vec<Cause> {
    Vec::new()
}

/// A namespace carries its own name as a label.
pub(super) fn namespace_defaults(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    object["spec"]["finalizers"] = json!(["kubernetes"]);
}

/// A new namespace is active.
pub(super) fn namespace_status(_object: &Value) -> Value {
    json!({"phase": "Active"})
}

/// A new object without a status.
pub(super) fn no_status(_object: &Value) -> Value {
    Value::Null
}

/// A namespace's name is a label, not a subdomain.
#[must_use]
pub(super) fn validate_namespace(object: &Value) -> Vec<Cause> {
    label_causes("metadata.name", text(object, &["metadata", "name"]))
}

/// What is wrong with an object's metadata.
#[must_use]
pub(super) fn validate_metadata(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, &["metadata", "name"]);
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        causes.extend(subdomain_causes("metadata.name", name));
    }
    for (key, value) in entries(object, &["metadata", "labels"]) {
        causes.extend(key_causes("metadata.labels", key));
        causes.extend(label_value_causes("metadata.labels", value.as_str().unwrap_or_default()));
    }
    for (index, finalizer) in list(object, &["metadata", "finalizers"]).iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid_text(&format!("metadata.finalizers[{index}]"), name, why));
        }
    }
    let mut size = 0;
    for (key, value) in entries(object, &["metadata", "annotations"]) {
        causes.extend(key_causes("metadata.annotations", &key.to_lowercase()));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_MAX {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_MAX));
    }
    causes
}

/// What may not change in an object's metadata.
#[must_use]
pub(super) fn validate_metadata_update(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "creationTimestamp"] {
        if old["metadata"][field] != new["metadata"][field] {
            let value = new["metadata"][field].to_string();
            causes.push(Cause::invalid(&format!("metadata.{field}"), &value, "field is immutable"));
        }
    }
    causes
}

/// A DNS-1123 label.
#[must_use]
pub(super) fn label_causes(field: &str, value: &str) -> Vec<Cause> {
    if value.is_empty() {
        vec![Cause::required(field, "")]
    } else if value.len() > 63 {
        vec![Cause::invalid_text(field, value, "must be no more than 63 characters")]
    } else if is_dns_label(value, 63) {
        Vec::new()
    } else {
        vec![Cause::invalid_text(field, value, LABEL_WORDS)]
    }
}

/// A DNS-1123 subdomain.
#[must_use]
pub(super) fn subdomain_causes(field: &str, value: &str) -> Vec<Cause> {
    if value.len() > 253 {
        vec![Cause::invalid_text(field, value, "must be no more than 253 characters")]
    } else if is_subdomain(value) {
        Vec::new()
    } else {
        vec![Cause::invalid_text(field, value, SUBDOMAIN_WORDS)]
    }
}

/// Whether it is a DNS-1123 subdomain.
#[must_use]
pub(super) fn is_subdomain(value: &str) -> bool {
    value.len() <= 253 && value.split('.').all(|part| is_dns_label(part, 253))
}

/// A label's or annotation's key.
pub(super) fn key_causes(field: &str, key: &str) -> Vec<Cause> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let mut causes = Vec::new();
    if name.contains('/') {
        let words = KEY_WORDS.replace("name part", "a valid label key");
        let why = format!("{words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
        return vec![Cause::invalid_text(field, key, &why)];
    }
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            causes.push(Cause::invalid_text(field, key, "prefix part must be non-empty"));
        } else if !is_subdomain(prefix) {
            causes.push(Cause::invalid_text(field, key, &format!("prefix part {SUBDOMAIN_WORDS}")));
        }
    }
    if name.is_empty() {
        causes.push(Cause::invalid_text(field, key, "name part must be non-empty"));
    } else if name.len() > 63 {
        causes.push(Cause::invalid_text(field, key, "name part must be no more than 63 bytes"));
    }
    if !is_label_text(name) {
        causes.push(Cause::invalid_text(field, key, KEY_WORDS));
    }
    causes
}

/// A label's value.
pub(super) fn label_value_causes(field: &str, value: &str) -> Vec<Cause> {
    if value.len() > 63 {
        vec![Cause::invalid_text(field, value, "must be no more than 63 bytes")]
    } else if value.is_empty() || is_label_text(value) {
        Vec::new()
    } else {
        vec![Cause::invalid_text(field, value, LABEL_VALUE_WORDS)]
    }
}

fn is_label_text(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Sets a field that is not there.
pub(super) fn set(object: &mut Value, key: &str, value: Value) {
    if object[key].is_null() {
        object[key] = value;
    }
}

/// Takes a field away.
pub(super) fn remove(object: &mut Value, key: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(key);
    }
}

/// The list of this name, to change its items.
pub(super) fn list_mut<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// The text at a path, or nothing.
#[must_use]
pub(super) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// The list at a path, or nothing.
#[must_use]
pub(super) fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path).as_array().map_or(&[], Vec::as_slice)
}

/// The map at a path, or nothing.
pub(super) fn entries<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    at(object, path).as_object().into_iter().flat_map(Map::iter)
}

/// What is at a path; null when nothing is.
#[must_use]
pub(super) fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(object, |value, key| value.get(key).unwrap_or(&Value::Null))
}
