//! What only pods have: binding to a node, eviction, logs.

use std::sync::PoisonError;

use serde_json::{Value, json};

use super::body::Answer;
use super::call::Call;
use super::logs::{LogKey, LogRead, cut};
use super::read::key_of;
use super::refusal::Refusal;
use super::remove::{DeleteOptions, options_of, preconditions};
use super::rules::{list, text};
use super::write::uid_conflict;
use super::{Inner, stamps};

impl Inner {
    /// `POST pods/NAME/binding`: gives the pod its node, once.
    pub(super) fn bind(&self, call: &Call, body: &[u8]) -> Result<Answer, Refusal> {
        let body = options_of(body)?;
        let node = text(&body, &["target", "name"]);
        if node.is_empty() {
            return Err(Refusal::new(500, "", "target.name: Required value", Value::Null));
        }
        let kind = text(&body, &["target", "kind"]);
        if !["", "Node"].contains(&kind) {
            let why = format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\"");
            return Err(Refusal::new(500, "", &why, Value::Null));
        }
        let mut state = self.lock();
        let key = key_of(call);
        let current = state.store.get(&key).ok_or_else(|| Refusal::not_found(call.resource, &call.name))?;
        let refused = |why: &str| {
            let message = format!("Operation cannot be fulfilled on pods/binding {:?}: {why}", call.name);
            Refusal::new(409, "Conflict", &message, json!({"name": call.name, "kind": "pods/binding"}))
        };
        let uid = text(&body, &["metadata", "uid"]);
        if !uid.is_empty() && current["metadata"]["uid"] != *uid {
            return Err(uid_conflict(call.resource, current, uid));
        }
        if !current["metadata"]["deletionTimestamp"].is_null() {
            return Err(refused(&format!("pod {} is being deleted, cannot be assigned to a host", call.name)));
        }
        let former = text(current, &["spec", "nodeName"]);
        if !former.is_empty() {
            return Err(refused(&format!("pod {} is already assigned to node {former:?}", call.name)));
        }
        let mut object = current.value().clone();
        object["spec"]["nodeName"] = json!(node);
        let now = stamps::seconds(self.options.clock.now_us());
        set_condition(&mut object, &json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
        if call.is_dry() {
            return Ok(Answer::success(201, Value::Null));
        }
        let stored = state.put(key, object);
        Ok(Answer::success(201, Value::Null).about(stored))
    }

    /// `POST pods/NAME/eviction`: a delete that says so in a condition.
    pub(super) fn evict(&self, call: &Call, body: &[u8]) -> Result<Answer, Refusal> {
        let body = options_of(body)?;
        let named = text(&body, &["metadata", "name"]);
        if !named.is_empty() && named != call.name {
            return Err(Refusal::bad_request("name in URL does not match name in Eviction object"));
        }
        let options = DeleteOptions::parse(call, &body["deleteOptions"]);
        let mut state = self.lock();
        let key = key_of(call);
        let current = state.store.get(&key).ok_or_else(|| Refusal::not_found(call.resource, &call.name))?;
        preconditions(call.resource, &call.name, current, &options)?;
        let mut object = current.value().clone();
        let bound = DeleteOptions { uid: None, version: None, ..options };
        if !bound.dry {
            let now = stamps::seconds(self.options.clock.now_us());
            let condition = json!({"type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
                "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"});
            set_condition(&mut object, &condition);
            state.put(key.clone(), object);
        }
        let (object, _) = self.delete_one(&mut state, call.resource, &key, &bound)?;
        Ok(Answer::success(201, Value::Null).about(object))
    }

    /// `GET pods/NAME/log`.
    pub(super) fn log(&self, call: &Call) -> Result<Answer, Refusal> {
        let pod = self.lock().store.get(&key_of(call)).cloned().ok_or_else(|| Refusal::not_found(call.resource, &call.name))?;
        let names = |kind: &str| -> Vec<String> {
            list(&pod, &["spec", kind]).iter().map(|container| text(container, &["name"]).to_owned()).collect()
        };
        let mains = names("containers");
        let container = match (call.parameter("container"), mains.as_slice()) {
            (Some(asked), _) if mains.iter().chain(&names("initContainers")).any(|name| name == asked) => asked.to_owned(),
            (Some(asked), _) => {
                return Err(Refusal::bad_request(&format!("container {asked} is not valid for pod {}", call.name)));
            }
            (None, [only]) => only.clone(),
            (None, _) => {
                let choice = [names("initContainers"), mains].concat().join(" ");
                let why = format!("a container name must be specified for pod {}, choose one of: [{choice}]", call.name);
                return Err(Refusal::bad_request(&why));
            }
        };
        if text(&pod, &["spec", "nodeName"]).is_empty() {
            return Ok(Answer::text(204, String::new()));
        }
        let uid = text(&pod, &["metadata", "uid"]).to_owned();
        let namespace = call.namespace.clone().unwrap_or_default();
        let key = LogKey { namespace, pod: call.name.clone(), uid, container: container.clone() };
        let source = self.logs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let previous = call.parameter("previous") == Some("true");
        let number = |name: &str| call.parameter(name).and_then(|text| text.parse().ok());
        let read = source.map_or(LogRead::Unreachable, |source| source.read(&key, previous));
        if let Some(why) = read.refusal(&call.name, &container) {
            return Err(Refusal::bad_request(&why));
        }
        match read {
            LogRead::Text(text) => Ok(Answer::text(200, cut(&text, number("tailLines"), number("limitBytes")))),
            LogRead::Waiting(_) | LogRead::NoPrevious | LogRead::Unreachable => {
                let path = format!("/containerLogs/{}/{}/{container}", key.namespace, key.pod);
                Err(Refusal::unsorted(&format!(
                    "Get \"https://192.0.2.2:10250{path}\": dial tcp 192.0.2.2:10250: connect: connection refused"
                )))
            }
        }
    }
}

/// Sets a condition, replacing the one of its type.
fn set_condition(object: &mut Value, condition: &Value) {
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
        conditions.retain(|known| known["type"] != condition["type"]);
        conditions.push(condition.clone());
    }
}
