//! Deleting: preconditions, grace, finalizers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::body::Answer;
use super::call::Call;
use super::object::Object;
use super::read::key_of;
use super::refusal::Refusal;
use super::resources::Resource;
use super::rules::{list, text};
use super::selector::Selector;
use super::store::Key;
use super::write::is_over;
use super::{Inner, State, stamps};

/// What a delete asks for.
#[derive(Debug, Clone, Default)]
pub(super) struct DeleteOptions {
    pub(super) uid: Option<String>,
    pub(super) version: Option<String>,
    pub(super) grace_s: Option<i64>,
    pub(super) dry: bool,
}

impl DeleteOptions {
    /// From the body, which may be empty, and the query.
    pub(super) fn parse(call: &Call, body: &Value) -> Self {
        let precondition = |field: &str| body["preconditions"][field].as_str().map(str::to_owned);
        let query = call.parameter("gracePeriodSeconds").and_then(|text| text.parse().ok());
        // A negative grace is the shortest one.
        let grace_s = body["gracePeriodSeconds"].as_i64().or(query).map(|grace_s| if grace_s < 0 { 1 } else { grace_s });
        Self {
            uid: precondition("uid"),
            version: precondition("resourceVersion"),
            grace_s,
            dry: call.is_dry() || !list(body, &["dryRun"]).is_empty(),
        }
    }
}

impl Inner {
    pub(super) fn delete(&self, call: &Call, body: &[u8]) -> Result<Answer, Refusal> {
        let body = options_of(body)?;
        let mut state = self.lock();
        let (object, gone) = self.delete_one(&mut state, call.resource, &key_of(call), &DeleteOptions::parse(call, &body))?;
        let answer = if call.resource.graceful || !gone {
            Answer::of(200, object.clone())
        } else {
            let mut details = json!({"name": call.name, "kind": call.resource.plural, "uid": object["metadata"]["uid"]});
            if !call.resource.group.is_empty() {
                details["group"] = json!(call.resource.group);
            }
            Answer::success(200, details)
        };
        Ok(answer.about(object))
    }

    pub(super) fn delete_collection(&self, call: &Call, body: &[u8]) -> Result<Answer, Refusal> {
        let options = DeleteOptions::parse(call, &options_of(body)?);
        let selector = Selector::parse(call.parameter("labelSelector"), call.parameter("fieldSelector"))?;
        let mut state = self.lock();
        let selected = state.store.list(call.resource.plural, call.namespace.as_deref());
        let selected: Vec<Key> = selected.filter(|(_, object)| selector.matches(object)).map(|(key, _)| key.clone()).collect();
        let mut items = Vec::new();
        for key in selected {
            items.push(self.delete_one(&mut state, call.resource, &key, &options)?.0.value().clone());
        }
        let revision = state.store.revision().to_string();
        let kind = format!("{}List", call.resource.kind);
        let metadata = json!({"resourceVersion": revision});
        Ok(Answer::json(200, &json!({"kind": kind, "apiVersion": call.resource.api_version(), "metadata": metadata, "items": items})))
    }

    /// Begins or completes the deletion of an object. Returns its last state and whether it is gone.
    pub(super) fn delete_one(
        &self,
        state: &mut State,
        resource: &'static Resource,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<(Arc<Object>, bool), Refusal> {
        let current = state.store.get(key).ok_or_else(|| Refusal::not_found(resource, &key.2))?.clone();
        preconditions(resource, &key.2, &current, options)?;
        let marked = if resource.graceful { self.mark_graceful(&current, options.grace_s) } else { self.mark(&current) };
        let Some(marked) = marked else { return Ok((current, false)) };
        if options.dry {
            return Ok((Arc::new(Object::new(marked)), false));
        }
        let over = is_over(&marked);
        // A pod's end is seen twice: marked with no grace left, then gone. Other kinds just go.
        let last = if resource.graceful || !over { state.put(key.clone(), marked) } else { current };
        if over { Ok((state.remove(key).unwrap_or(last), true)) } else { Ok((last, false)) }
    }

    /// A pod's deletion: it may only be brought forward. `None` when it stays as it is.
    fn mark_graceful(&self, current: &Value, asked_s: Option<i64>) -> Option<Value> {
        let metadata = &current["metadata"];
        let mut object = current.clone();
        if let Some(marked) = metadata["deletionTimestamp"].as_str() {
            let (former_s, grace_s) = (metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0), asked_s?);
            if grace_s >= former_s {
                return None;
            }
            let begun_us = stamps::parse(marked).unwrap_or_default() - former_s * 1_000_000;
            object["metadata"]["deletionTimestamp"] = json!(stamps::seconds(begun_us + grace_s * 1_000_000));
            object["metadata"]["deletionGracePeriodSeconds"] = json!(grace_s);
            return Some(object);
        }
        let own_s = current["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
        let unscheduled = text(current, &["spec", "nodeName"]).is_empty();
        let ended = matches!(text(current, &["status", "phase"]), "Failed" | "Succeeded");
        let grace_s = match asked_s.unwrap_or(own_s) {
            _ if unscheduled || ended => 0,
            grace_s => grace_s,
        };
        self.stamp_deletion(&mut object, grace_s);
        Some(object)
    }

    /// The deletion of what has no grace: only finalizers hold it.
    fn mark(&self, current: &Value) -> Option<Value> {
        if !current["metadata"]["deletionTimestamp"].is_null() {
            return None;
        }
        let mut object = current.clone();
        self.stamp_deletion(&mut object, 0);
        Some(object)
    }

    fn stamp_deletion(&self, object: &mut Value, grace_s: i64) {
        let metadata = &mut object["metadata"];
        metadata["deletionTimestamp"] = json!(stamps::seconds(self.options.clock.now_us() + grace_s * 1_000_000));
        metadata["deletionGracePeriodSeconds"] = json!(grace_s);
        if let Some(generation) = metadata.get("generation").and_then(Value::as_i64) {
            metadata["generation"] = json!(generation + 1);
        }
    }
}

pub(super) fn preconditions(resource: &Resource, name: &str, current: &Value, options: &DeleteOptions) -> Result<(), Refusal> {
    let known = &current["metadata"];
    if let Some(uid) = options.uid.as_ref().filter(|uid| known["uid"] != **uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then \
             recreated",
            text(known, &["uid"])
        );
        return Err(Refusal::delete_conflict(resource, name, &why));
    }
    if let Some(version) = options.version.as_ref().filter(|version| known["resourceVersion"] != **version) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might \
             have been modified",
            text(known, &["resourceVersion"])
        );
        return Err(Refusal::delete_conflict(resource, name, &why));
    }
    Ok(())
}

pub(super) fn options_of(body: &[u8]) -> Result<Value, Refusal> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    let unread = |error: serde_json::Error| Refusal::bad_request(&format!("couldn't get version/kind; json parse error: {error}"));
    let options: Value = serde_json::from_slice(body).map_err(unread)?;
    let dry = options["dryRun"].clone();
    if !dry.is_null() && dry != json!([]) && dry != json!(["All"]) {
        return Err(bad_option("DeleteOptions", "dryRun", &format!("{dry}: supported values: \"All\"")));
    }
    let policy = &options["propagationPolicy"];
    if !policy.is_null() && !["Foreground", "Background", "Orphan"].iter().any(|known| policy == known) {
        let why = format!("{policy}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
        return Err(bad_option("DeleteOptions", "propagationPolicy", &why));
    }
    Ok(options)
}

/// 422 of an option that is none.
pub(super) fn bad_option(kind: &str, field: &str, why: &str) -> Refusal {
    let message = format!("Unsupported value: {why}");
    let cause = json!({"reason": "FieldValueNotSupported", "message": message, "field": field});
    let details = json!({"group": "meta.k8s.io", "kind": kind, "causes": [cause]});
    Refusal::new(422, "Invalid", &format!("{kind}.meta.k8s.io \"\" is invalid: {field}: {message}"), details)
}
