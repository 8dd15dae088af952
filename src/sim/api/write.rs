//! Writing: create, update, patch; and what every write goes through.

use std::sync::{Arc, PoisonError};

use serde_json::{Map, Value, json};

use super::body::Answer;
use super::call::Call;
use super::decode::drop_unknown;
use super::merge::{self, PatchKind};
use super::object::Object;
use super::read::key_of;
use super::refusal::{Cause, Refusal};
use super::resources::Resource;
use super::rules::{list, text, validate_metadata, validate_metadata_update};
use super::{Inner, State, admission, quantity, stamps};

/// Metadata the server owns: an update cannot change it.
const OWNED: [&str; 7] = ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "namespace", "name"];

const OTHER_NAMESPACE: &str = "the namespace of the provided object does not match the namespace sent on the request";

impl Inner {
    pub(super) fn create(&self, call: &Call, body: &[u8]) -> Result<Answer, Refusal> {
        let mut object = parse(call.resource, body)?;
        let unknown = shape(call.resource, &mut object, call)?;
        if !call.resource.stored {
            let reviewer = self.reviewer.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(Answer::json(201, &reviewer.answer(call.resource, object)));
        }
        self.insert(call, &mut self.lock(), object, unknown)
    }

    fn insert(&self, call: &Call, state: &mut State, mut object: Value, unknown: Vec<String>) -> Result<Answer, Refusal> {
        let resource = call.resource;
        self.place(call, &mut object, state)?;
        let name = text(&object, &["metadata", "name"]).to_owned();
        if resource.has_status
            && resource.plural != "nodes"
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        (resource.defaults)(&mut object);
        let status = (resource.first_status)(&object);
        if !status.is_null() {
            object["status"] = status;
        }
        admission::mutating(&state.store, resource, &name, &object)?;
        let mut causes = validate_metadata(&object);
        causes.extend((resource.validate)(&object));
        if !causes.is_empty() {
            return Err(Refusal::invalid(resource, &name, &causes));
        }
        admission::validating(&state.store, resource, &name, &object)?;
        let key = (resource.plural, call.namespace.clone().unwrap_or_default(), name.clone());
        if state.store.get(&key).is_some() {
            return Err(Refusal::already_exists(resource, &name));
        }
        let stored = if call.is_dry() { Arc::new(Object::new(object)) } else { state.put(key, object) };
        let mut answer = Answer::of(201, stored);
        answer.unknown = unknown;
        Ok(answer)
    }

    /// Name, namespace, uid and times of a new object.
    fn place(&self, call: &Call, object: &mut Value, state: &State) -> Result<(), Refusal> {
        let resource = call.resource;
        if !object["metadata"].is_object() {
            object["metadata"] = Value::Object(Map::new());
        }
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
            return Err(Refusal::new(500, "", "resourceVersion should not be set on objects to be created", Value::Null));
        }
        let metadata = &mut object["metadata"];
        if let Some(namespace) = &call.namespace {
            let given = text(metadata, &["namespace"]);
            if !given.is_empty() && given != namespace {
                return Err(Refusal::bad_request(OTHER_NAMESPACE));
            }
            metadata["namespace"] = json!(namespace);
        }
        let prefix = text(metadata, &["generateName"]).to_owned();
        if text(metadata, &["name"]).is_empty() && !prefix.is_empty() {
            metadata["name"] = json!(format!("{prefix}{}", stamps::suffix(&self.options.entropy)));
        }
        if let Some(namespace) = &call.namespace {
            admission::namespace(&state.store, resource, text(metadata, &["name"]), namespace)?;
        }
        if let Some(fields) = metadata.as_object_mut() {
            for owned in ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"] {
                fields.remove(owned);
            }
        }
        metadata["uid"] = json!(stamps::uid(&self.options.entropy));
        metadata["creationTimestamp"] = json!(stamps::seconds(self.options.clock.now_us()));
        if resource.has_generation {
            metadata["generation"] = json!(1);
        }
        Ok(())
    }

    pub(super) fn update(&self, call: &Call, body: &[u8]) -> Result<Answer, Refusal> {
        let mut object = parse(call.resource, body)?;
        let unknown = shape(call.resource, &mut object, call)?;
        named_as_asked(call, &object)?;
        let mut state = self.lock();
        if call.resource.create_on_update && state.store.get(&key_of(call)).is_none() {
            return self.insert(call, &mut state, object, unknown);
        }
        let mut answer = self.replace(call, &mut state, object)?;
        answer.unknown = unknown;
        Ok(answer)
    }

    pub(super) fn patch(&self, call: &Call, media_type: &str, body: &[u8]) -> Result<Answer, Refusal> {
        let kind = match media_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => PatchKind::Merge,
            "application/strategic-merge-patch+json" => PatchKind::Strategic,
            _ => return Err(Refusal::media_type()),
        };
        let undecoded = |why: &str| Refusal::bad_request(&format!("error decoding patch: {why}"));
        let patch: Value = serde_json::from_slice(body).map_err(|error| undecoded(&error.to_string()))?;
        if !patch.is_object() {
            return Err(undecoded("json: cannot unmarshal into Go value of type map[string]interface {}"));
        }
        let mut state = self.lock();
        let current = state.store.get(&key_of(call)).ok_or_else(|| Refusal::not_found(call.resource, &call.name))?;
        let mut object = current.value().clone();
        merge::apply(&mut object, &patch, kind);
        named_as_asked(call, &object)?;
        let (uid, known) = (&object["metadata"]["uid"], &current["metadata"]["uid"]);
        if uid != known {
            let cause = Cause::invalid_text("metadata.uid", uid.as_str().unwrap_or_default(), "field is immutable");
            return Err(Refusal::invalid(call.resource, &call.name, &[cause]));
        }
        // Nodes report by the thousand: their words are checked, but not searched for unknown fields.
        let unknown = if call.subresource == "status" {
            let checked = call.resource.shape.map_or(Ok(()), |shape| (shape.check)(&object));
            let why = |error| format!(" \"\" is invalid: patch: Invalid value: {patch}: {error}");
            checked.map_err(|error: String| Refusal::new(422, "Invalid", &why(error), json!({})))?;
            Vec::new()
        } else {
            shape(call.resource, &mut object, call)?
        };
        let mut answer = self.replace(call, &mut state, object)?;
        answer.unknown = unknown;
        answer.object = None;
        Ok(answer)
    }

    fn replace(&self, call: &Call, state: &mut State, mut object: Value) -> Result<Answer, Refusal> {
        let resource = call.resource;
        let key = key_of(call);
        let current = state.store.get(&key).ok_or_else(|| Refusal::not_found(resource, &call.name))?.clone();
        preconditions(resource, &call.name, &current, &object["metadata"])?;
        keep_owned(&current, &mut object);
        if call.subresource == "status" {
            let status = object["status"].take();
            let metadata = object["metadata"].take();
            object = current.value().clone();
            object["metadata"] = metadata;
            object["status"] = status;
        } else {
            if resource.has_status
                && let Some(fields) = object.as_object_mut()
            {
                fields.remove("status");
                fields.extend(current.get("status").map(|status| ("status".to_owned(), status.clone())));
            }
            (resource.defaults)(&mut object);
        }
        let mut causes = validate_metadata(&object);
        causes.extend(validate_metadata_update(&current, &object));
        causes.extend((resource.validate)(&object));
        causes.extend((resource.validate_update)(&current, &object));
        if !causes.is_empty() {
            return Err(Refusal::invalid(resource, &call.name, &causes));
        }
        if resource.has_generation && object["spec"] != current["spec"] {
            object["metadata"]["generation"] = json!(current["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        object["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        let stored = if object == *current.value() {
            current
        } else if call.is_dry() {
            Arc::new(Object::new(object))
        } else if is_over(&object) {
            state.put(key.clone(), object);
            state.remove(&key).ok_or_else(|| Refusal::not_found(resource, &call.name))?
        } else {
            state.put(key, object)
        };
        Ok(Answer::of(200, stored))
    }
}

/// An update's object has the name and namespace of its path.
fn named_as_asked(call: &Call, object: &Value) -> Result<(), Refusal> {
    let (name, namespace) = (text(object, &["metadata", "name"]), text(object, &["metadata", "namespace"]));
    if !name.is_empty() && name != call.name {
        let why = format!("the name of the object ({name}) does not match the name on the URL ({})", call.name);
        return Err(Refusal::bad_request(&why));
    }
    if !namespace.is_empty() && call.namespace.as_ref().is_some_and(|asked| namespace != asked) {
        return Err(Refusal::bad_request(OTHER_NAMESPACE));
    }
    Ok(())
}

/// Whether an object that is being deleted has nothing left that holds it.
pub(super) fn is_over(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let held = !list(metadata, &["finalizers"]).is_empty();
    !metadata["deletionTimestamp"].is_null() && !held && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
}

fn keep_owned(current: &Value, object: &mut Value) {
    for owned in OWNED {
        match current["metadata"].get(owned) {
            Some(value) => object["metadata"][owned] = value.clone(),
            None => {
                if let Some(fields) = object["metadata"].as_object_mut() {
                    fields.remove(owned);
                }
            }
        }
    }
    object["kind"] = current["kind"].clone();
    object["apiVersion"] = current["apiVersion"].clone();
}

/// The uid and resourceVersion that an update names have to be the object's.
fn preconditions(resource: &Resource, name: &str, current: &Value, given: &Value) -> Result<(), Refusal> {
    let known = &current["metadata"];
    let uid = text(given, &["uid"]);
    if !uid.is_empty() && known["uid"] != *uid {
        return Err(uid_conflict(resource, current, uid));
    }
    let version = match text(given, &["resourceVersion"]) {
        "0" => "",
        version => version,
    };
    if version.is_empty() && !resource.unconditional_update {
        let cause = Cause::invalid("metadata.resourceVersion", "0", "must be specified for an update");
        let mut refusal = Refusal::invalid(resource, name, &[cause]);
        // This one names the plural where all others name the kind.
        let message = text(&refusal.body, &["message"]).replacen(&resource.qualified_kind(), &resource.qualified(), 1);
        refusal.body["message"] = json!(message);
        refusal.body["details"]["kind"] = json!(resource.plural);
        return Err(refusal);
    }
    if !version.is_empty() && known["resourceVersion"] != *version {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(resource, name, why));
    }
    Ok(())
}

/// 409 of a write that is bound to another object of the name.
pub(super) fn uid_conflict(resource: &Resource, current: &Value, uid: &str) -> Refusal {
    let known = |field: &str| text(&current["metadata"], &[field]);
    let path = format!("/registry/{}/{}/{}", resource.plural, known("namespace"), known("name"));
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: {uid}, UID in object meta: {}",
        known("uid")
    );
    Refusal::conflict(resource, known("name"), &why)
}

fn parse(resource: &Resource, body: &[u8]) -> Result<Value, Refusal> {
    let mut object: Value = serde_json::from_slice(body).map_err(|error| {
        let kind = resource.kind;
        let text =
            format!("the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {error}");
        Refusal::bad_request(&text)
    })?;
    let Some(fields) = object.as_object_mut() else {
        return Err(Refusal::bad_request(&format!("the object provided is unrecognized (must be of type {})", resource.kind)));
    };
    for (field, value) in [("kind", resource.kind.to_owned()), ("apiVersion", resource.api_version())] {
        let given = fields.entry(field).or_insert_with(|| json!(value));
        if *given != value {
            let (given, version, kind) = (given.as_str().unwrap_or_default(), resource.version, resource.kind);
            let why = format!(
                "{given} in version {version:?} cannot be handled as a {kind}: converting ({version}.{given}) to (core.{kind}): unknown \
                 conversion"
            );
            return Err(Refusal::bad_request(&why));
        }
    }
    Ok(object)
}

/// Checks the shape and drops what the kind does not have; `fieldValidation=Strict` refuses instead.
fn shape(resource: &Resource, object: &mut Value, call: &Call) -> Result<Vec<String>, Refusal> {
    let Some(shape) = resource.shape else { return Ok(Vec::new()) };
    let (version, kind) = (resource.version, resource.kind);
    let bad = |why: &str| Refusal::bad_request(&format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"));
    let known = (shape.decode)(object).map_err(|error| bad(&error))?;
    if let Some(why) = quantity::malformed(object).filter(|_| resource.plural == "pods") {
        return Err(bad(why));
    }
    let unknown = drop_unknown(object, &known);
    if call.parameter("fieldValidation") == Some("Strict") && !unknown.is_empty() {
        let fields: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        let why = format!("{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}", fields.join(", "));
        return Err(Refusal::bad_request(&why));
    }
    Ok(unknown)
}
