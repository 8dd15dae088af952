//! Admission: namespaces, runtime classes, Pod Security. The words are the plugins'.

use serde_json::{Value, json};

use super::refusal::Refusal;
use super::resources::Resource;
use super::rules::{at, text};
use super::security;
use super::store::Store;

/// The namespace has to exist and to be active.
///
/// # Errors
/// 404 when it is absent, 403 when it is being terminated.
pub(super) fn namespace(store: &Store, resource: &Resource, name: &str, namespace: &str) -> Result<(), Refusal> {
    let Some(object) = store.get(&("namespaces", String::new(), namespace.to_owned())) else {
        let message = format!("namespaces {namespace:?} not found");
        return Err(Refusal::new(404, "NotFound", &message, json!({"name": namespace, "kind": "namespaces"})));
    };
    let terminating = object["status"]["phase"] == "Terminating" || !object["metadata"]["deletionTimestamp"].is_null();
    if !terminating {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut refusal = Refusal::forbidden(resource, name, &why);
    let cause = format!("namespace {namespace} is being terminated");
    refusal.body["details"]["causes"] = json!([{"reason": "NamespaceTerminating", "message": cause, "field": "metadata.namespace"}]);
    Err(refusal)
}

/// A pod's runtime class and priority class have to be registered.
///
/// # Errors
/// 403 when it is not.
pub(super) fn mutating(store: &Store, resource: &Resource, name: &str, object: &Value) -> Result<(), Refusal> {
    let class = text(object, &["spec", "runtimeClassName"]);
    let known = store.get(&("runtimeclasses", String::new(), class.to_owned())).is_some();
    if resource.plural == "pods" && !class.is_empty() && !known {
        return Err(Refusal::forbidden(resource, name, &format!("pod rejected: RuntimeClass {class:?} not found")));
    }
    let class = text(object, &["spec", "priorityClassName"]);
    let known = class.starts_with("system-") || store.get(&("priorityclasses", String::new(), class.to_owned())).is_some();
    if resource.plural == "pods" && !class.is_empty() && !known {
        return Err(Refusal::forbidden(resource, name, &format!("no PriorityClass with name {class} was found")));
    }
    Ok(())
}

/// A pod in a namespace that enforces `restricted` has to comply.
///
/// # Errors
/// 403 when it does not.
pub(super) fn validating(store: &Store, resource: &Resource, name: &str, object: &Value) -> Result<(), Refusal> {
    let namespace = text(object, &["metadata", "namespace"]).to_owned();
    let enforced = store
        .get(&("namespaces", String::new(), namespace))
        .is_some_and(|namespace| at(namespace, &["metadata", "labels", "pod-security.kubernetes.io/enforce"]) == "restricted");
    match security::violation(&object["spec"]).filter(|_| enforced && resource.plural == "pods") {
        Some(why) => Err(Refusal::forbidden(resource, name, &why)),
        None => Ok(()),
    }
}
