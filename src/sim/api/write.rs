//! Writing: create, update, patch; and what every write goes through.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::body::Answer;
use super::call::Call;
use super::decode::drop_unknown;
use super::merge::{self, PatchKind};
use super::read::key_of;
use super::refusal::{Cause, Refusal};
use super::resources::Resource;
use super::rules::{list, text, validate_metadata, validate_metadata_update};
use super::{Inner, State, admission, stamps};

/// Metadata the server owns: an update cannot change it.
const OWNED: [&str; 7] = ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "namespace", "name"];

impl Inner {
    pub(super) fn create(&self, call: &Call, body: &[u8]) -> Result<Answer, Refusal> {
        let resource = call.resource;
        let mut object = parse(resource, body)?;
        let unknown = shape(resource, &mut object, call)?;
        let mut state = self.lock();
        self.place(call, &mut object, &state)?;
        let name = text(&object, &["metadata", "name"]).to_owned();
        if resource.has_status
            && resource.plural != "nodes"
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        (resource.defaults)(&mut object);
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
        let stored = if call.is_dry() { Arc::new(object) } else { state.put(key, object) };
        let mut answer = Answer::json(201, &stored).about(stored);
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
            return Err(Refusal::unsorted("resourceVersion should not be set on objects to be created"));
        }
        let metadata = &mut object["metadata"];
        if let Some(namespace) = &call.namespace {
            let given = text(metadata, &["namespace"]);
            if !given.is_empty() && given != namespace {
                let why = "the namespace of the provided object does not match the namespace sent on the request";
                return Err(Refusal::bad_request(why));
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
        let given = text(&object, &["metadata", "name"]);
        if !given.is_empty() && given != call.name {
            let why = format!("the name of the object ({given}) does not match the name on the URL ({})", call.name);
            return Err(Refusal::bad_request(&why));
        }
        let mut state = self.lock();
        let current = state.store.get(&key_of(call)).ok_or_else(|| Refusal::not_found(call.resource, &call.name))?;
        same_uid(call.resource, &call.name, current, &object["metadata"])?;
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
        let patch: Value = serde_json::from_slice(body).map_err(|error| Refusal::bad_request(&error.to_string()))?;
        let mut state = self.lock();
        let current = state.store.get(&key_of(call)).ok_or_else(|| Refusal::not_found(call.resource, &call.name))?;
        let mut object = Value::clone(current);
        merge::apply(&mut object, &patch, kind);
        let unknown = shape(call.resource, &mut object, call)?;
        let mut answer = self.replace(call, &mut state, object)?;
        answer.unknown = unknown;
        Ok(answer)
    }

    fn replace(&self, call: &Call, state: &mut State, mut object: Value) -> Result<Answer, Refusal> {
        let resource = call.resource;
        let key = key_of(call);
        let current = state.store.get(&key).ok_or_else(|| Refusal::not_found(resource, &call.name))?.clone();
        same_version(resource, &call.name, &current, &object["metadata"])?;
        let uid = text(&object, &["metadata", "uid"]).to_owned();
        let version = object["metadata"]["resourceVersion"].clone();
        keep_owned(&current, &mut object);
        if call.subresource == "status" {
            let status = object["status"].take();
            let metadata = object["metadata"].take();
            object = Value::clone(&current);
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
        object["metadata"]["resourceVersion"] = version;
        causes.extend(validate_metadata_update(resource, &current, &object));
        if !uid.is_empty() && current["metadata"]["uid"] != *uid {
            causes.push(Cause::invalid_text("metadata.uid", &uid, "field is immutable"));
        }
        causes.extend((resource.validate)(&object));
        causes.extend((resource.validate_update)(&current, &object));
        if !causes.is_empty() {
            return Err(Refusal::invalid(resource, &call.name, &causes));
        }
        if resource.has_generation && object["spec"] != current["spec"] {
            object["metadata"]["generation"] = json!(current["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        object["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        let stored = if object == *current {
            current
        } else if call.is_dry() {
            Arc::new(object)
        } else if is_over(&object) {
            state.put(key.clone(), object);
            state.remove(&key).ok_or_else(|| Refusal::not_found(resource, &call.name))?
        } else {
            state.put(key, object)
        };
        Ok(Answer::json(200, &stored).about(stored))
    }
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

/// The uid that an update names has to be the object's. To a patch it is a field that cannot be changed.
fn same_uid(resource: &Resource, name: &str, current: &Value, given: &Value) -> Result<(), Refusal> {
    let known = &current["metadata"];
    let uid = text(given, &["uid"]);
    if !uid.is_empty() && known["uid"] != *uid {
        let path = format!("/registry/{}/{}/{name}", resource.plural, text(known, &["namespace"]));
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
             precondition: {uid}, UID in object meta: {}",
            text(known, &["uid"])
        );
        return Err(Refusal::conflict(resource, name, &why));
    }
    Ok(())
}

/// The resourceVersion that a write names has to be the object's.
fn same_version(resource: &Resource, name: &str, current: &Value, given: &Value) -> Result<(), Refusal> {
    let known = &current["metadata"];
    let version = text(given, &["resourceVersion"]);
    if !version.is_empty() && known["resourceVersion"] != *version {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(resource, name, why));
    }
    Ok(())
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
            let why = format!("the {field} of the provided object ({given}) does not match the expected {field} ({value})");
            return Err(Refusal::bad_request(&why));
        }
    }
    Ok(object)
}

/// Checks the shape and drops what the kind does not have; `fieldValidation=Strict` refuses instead.
fn shape(resource: &Resource, object: &mut Value, call: &Call) -> Result<Vec<String>, Refusal> {
    let Some(decode) = resource.decode else { return Ok(Vec::new()) };
    let (version, kind) = (resource.version, resource.kind);
    let known = decode(object)
        .map_err(|error| Refusal::bad_request(&format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}")))?;
    let unknown = drop_unknown(object, &known);
    if call.parameter("fieldValidation") == Some("Strict") && !unknown.is_empty() {
        let fields: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        let why = format!("{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}", fields.join(", "));
        return Err(Refusal::bad_request(&why));
    }
    Ok(unknown)
}
