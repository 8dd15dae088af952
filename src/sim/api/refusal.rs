//! Refusals: the Status bodies of the API server, with the words of the recorded ones. Knows no storage.

use std::time::Duration;

use serde_json::{Value, json};

use super::resources::Resource;

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldValueRequired`, ...
    pub reason: &'static str,
    /// The message, without the field.
    pub message: String,
    /// The field's path.
    pub field: String,
}

impl Cause {
    /// A value that is not allowed.
    #[must_use]
    pub fn invalid(field: &str, value: &str, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self { reason: "FieldValueInvalid", message, field: field.to_owned() }
    }

    /// A string value that is not allowed.
    #[must_use]
    pub fn invalid_text(field: &str, value: &str, why: &str) -> Self {
        Self::invalid(field, &format!("{value:?}"), why)
    }

    /// A missing value.
    #[must_use]
    pub fn required(field: &str, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.to_owned() }
    }

    /// A value that occurs twice.
    #[must_use]
    pub fn duplicate(field: &str, value: &str) -> Self {
        Self { reason: "FieldValueDuplicate", message: format!("Duplicate value: {value:?}"), field: field.to_owned() }
    }

    /// A name that refers to nothing.
    #[must_use]
    pub fn not_found(field: &str, value: &str) -> Self {
        Self { reason: "FieldValueNotFound", message: format!("Not found: {value:?}"), field: field.to_owned() }
    }

    /// A value that is none of the `supported`.
    #[must_use]
    pub fn unsupported(field: &str, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
        let message = format!("Unsupported value: {value:?}: supported values: {}", supported.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.to_owned() }
    }

    /// A change that is not allowed.
    #[must_use]
    pub fn forbidden(field: &str, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.to_owned() }
    }

    /// A value that is too long.
    #[must_use]
    pub fn too_long(field: &str, max: usize) -> Self {
        let message = format!("Too long: may not be more than {max} bytes");
        Self { reason: "FieldValueTooLong", message, field: field.to_owned() }
    }
}

/// An answer that says no.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// HTTP status.
    pub code: u16,
    /// The Status body.
    pub body: Value,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// How long the server takes to say it.
    pub after: Duration,
}

impl Refusal {
    /// Any Status body; `details` is left out when null.
    #[must_use]
    pub fn new(code: u16, reason: &str, message: &str, details: Value) -> Self {
        let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message});
        if !reason.is_empty() {
            body["reason"] = json!(reason);
        }
        if !details.is_null() {
            body["details"] = details;
        }
        body["code"] = json!(code);
        Self { code, body, headers: Vec::new(), after: Duration::ZERO }
    }

    /// 400.
    #[must_use]
    pub fn bad_request(message: &str) -> Self {
        Self::new(400, "BadRequest", message, Value::Null)
    }

    /// 404 of an object.
    #[must_use]
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        Self::new(404, "NotFound", &message, details(resource.plural, resource.group, name))
    }

    /// 404 of a path.
    #[must_use]
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource", json!({}))
    }

    /// 405.
    #[must_use]
    pub fn method() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", json!({}))
    }

    /// 415.
    #[must_use]
    pub fn media_type() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type", json!({}))
    }

    /// 415 of a body.
    #[must_use]
    pub fn body_type() -> Self {
        let message = "the body of the request was in an unknown format - accepted media types include: application/json, \
                       application/yaml, application/vnd.kubernetes.protobuf";
        Self::new(415, "UnsupportedMediaType", message, Value::Null)
    }

    /// 409 of a name that is taken.
    #[must_use]
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::new(409, "AlreadyExists", &message, details(resource.plural, resource.group, name))
    }

    /// 409 of a precondition on the object, in the words of updates.
    #[must_use]
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::new(409, "Conflict", &message, details(resource.plural, resource.group, name))
    }

    /// 409 of a precondition, in the words of deletes: they name the kind.
    #[must_use]
    pub fn delete_conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified_kind());
        Self::new(409, "Conflict", &message, details(resource.kind, resource.group, name))
    }

    /// 403 by admission.
    #[must_use]
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", &message, details(resource.plural, resource.group, name))
    }

    /// 422 with its causes; one alone is not bracketed.
    #[must_use]
    pub fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let text = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut details = details(resource.kind, resource.group, name);
        details["causes"] =
            causes.iter().map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field})).collect();
        Self::new(422, "Invalid", &format!("{} {name:?} is invalid: {text}", resource.qualified_kind()), details)
    }

    /// 500.
    #[must_use]
    pub fn internal(message: &str) -> Self {
        Self::new(500, "InternalError", message, json!({"causes": [{"message": message}]}))
    }

    /// 500 of an error that the real server does not sort either.
    #[must_use]
    pub fn unsorted(message: &str) -> Self {
        Self::new(500, "", message, Value::Null)
    }

    /// 410 of an exact list that is too old.
    #[must_use]
    pub fn list_expired() -> Self {
        Self::new(410, "Expired", "The resourceVersion for the provided list is too old.", Value::Null)
    }

    /// 410 of a page; `fresh` is the token with which an inconsistent list may go on.
    #[must_use]
    pub fn continue_expired(fresh: &str) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
                       without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
                       results. Continuing with the provided token results in an inconsistent list - objects that were created, \
                       modified, or deleted between the time the first chunk was returned and now may show up in the list.";
        let mut refusal = Self::new(410, "Expired", message, Value::Null);
        refusal.body["metadata"] = json!({"continue": fresh});
        refusal
    }

    /// 410 of a watch, sent as an ERROR event.
    #[must_use]
    pub fn watch_expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", &format!("too old resource version: {asked} ({oldest})"), Value::Null)
    }

    /// 504 of a list that is not old enough yet, given after three seconds.
    #[must_use]
    pub fn too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let causes = json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]);
        let mut refusal = Self::new(504, "Timeout", &message, json!({"causes": causes, "retryAfterSeconds": 1}));
        refusal.headers.push(("retry-after", "1".to_owned()));
        refusal.after = Duration::from_secs(3);
        refusal
    }
}

fn details(kind: &str, group: &str, name: &str) -> Value {
    let mut details = json!({"kind": kind});
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if !group.is_empty() {
        details["group"] = json!(group);
    }
    details
}
