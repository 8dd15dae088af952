//! Secrets: what the server fills in and refuses. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::refusal::Cause;
use super::rules::{entries, text};

/// The most bytes of a secret's values together.
const SIZE_MAX: usize = 1 << 20;
const KEY_WORDS: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  \
                         or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// `stringData` becomes `data`; the type is Opaque unless said.
pub(super) fn defaults(object: &mut Value) {
    let given = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    for (key, value) in given.as_ref().into_iter().flat_map(|given| entries(given, &[])) {
        object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
    if text(object, &["type"]).is_empty() {
        object["type"] = json!("Opaque");
    }
}

/// Keys and the size.
#[must_use]
pub(super) fn validate(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut size = 0;
    for (key, value) in entries(object, &["data"]) {
        let field = format!("data[{key}]");
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if key.is_empty() || key.len() > 253 || !key.bytes().all(allowed) {
            let why = if key.len() > 253 { "must be no more than 253 characters" } else { KEY_WORDS };
            causes.push(Cause::invalid_text(&field, key, why));
        } else if key == "." || key == ".." {
            causes.push(Cause::invalid_text(&field, key, &format!("must not be '{key}'")));
        } else if key.starts_with("..") {
            causes.push(Cause::invalid_text(&field, key, "must not start with '..'"));
        }
        size += STANDARD.decode(value.as_str().unwrap_or_default()).map_or(0, |bytes| bytes.len());
    }
    for key in ["tls.crt", "tls.key"] {
        if text(object, &["type"]) == "kubernetes.io/tls" && object["data"][key].is_null() {
            causes.push(Cause::required(&format!("data[{key}]"), ""));
        }
    }
    if size > SIZE_MAX {
        causes.push(Cause::too_long("data", SIZE_MAX));
    }
    causes
}

/// The type never changes; an immutable secret not at all.
#[must_use]
pub(super) fn validate_update(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if old["type"] != new["type"] {
        causes.push(Cause::invalid_text("type", text(new, &["type"]), "field is immutable"));
    }
    for field in ["immutable", "data"] {
        if old["immutable"] == json!(true) && old[field] != new[field] {
            causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
    causes
}
