//! Reading: get, list in consistent pages, and the opening of a watch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Inner;
use super::body::{Answer, Content, list_head, write_object};
use super::call::Call;
use super::object::Object;
use super::refusal::Refusal;
use super::selector::Selector;
use super::store::{Key, Store};
use super::watch::{Watch, WatchRequest};

/// The most items of a page when none is asked for: none.
const UNLIMITED: usize = usize::MAX;

impl Inner {
    pub(super) fn get(&self, call: &Call, metadata_only: bool) -> Result<Answer, Refusal> {
        let object = self.lock().store.get(&key_of(call)).cloned();
        let object = object.ok_or_else(|| Refusal::not_found(call.resource, &call.name))?;
        let mut body = Vec::new();
        if metadata_only {
            write_object(&mut body, &object, true, false);
        }
        let body = if metadata_only { body.into() } else { object.json() };
        Ok(Answer { code: 200, content: Content::Json(body), object: None, unknown: Vec::new() })
    }

    pub(super) fn list(&self, call: &Call, metadata_only: bool) -> Result<Answer, Refusal> {
        let selector = Selector::parse(call.parameter("labelSelector"), call.parameter("fieldSelector"))?;
        let state = self.lock();
        let page = Page::read(call, &state.store)?;
        drop(state);
        let (kind, api_version) = list_head(call.resource, metadata_only);
        let mut items = Vec::new();
        let (mut taken, mut left, mut last) = (0, 0, None);
        for (key, object) in &page.objects {
            if taken == page.limit {
                left += 1;
            } else if selector.matches(object) {
                if taken > 0 {
                    items.push(b',');
                }
                write_object(&mut items, object, metadata_only, true);
                taken += 1;
                last = Some(key);
            }
        }
        let mut metadata = json!({"resourceVersion": page.revision.to_string()});
        if let Some(last) = last.filter(|_| left > 0) {
            // The token vouches for the list's revision even when what is left does not match the selector.
            metadata["continue"] = json!(token(i64::try_from(page.revision).unwrap_or(i64::MAX), last));
            if selector.is_empty() {
                metadata["remainingItemCount"] = json!(left);
            }
        }
        let mut body = format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{metadata},\"items\":[").into_bytes();
        body.extend_from_slice(&items);
        body.extend_from_slice(b"]}\n");
        Ok(Answer { code: 200, content: Content::Json(body.into()), object: None, unknown: Vec::new() })
    }

    pub(super) fn watch(self: &Arc<Self>, user: &str, call: &Call, metadata_only: bool) -> Result<Answer, Refusal> {
        let selector = Selector::parse(call.parameter("labelSelector"), call.parameter("fieldSelector"))?;
        let version = call.parameter("resourceVersion").unwrap_or_default();
        let from: u64 = if version.is_empty() { 0 } else { version.parse().map_err(|_| invalid_version(version))? };
        let asked = call.parameter("sendInitialEvents") == Some("true");
        let bookmarks = call.parameter("allowWatchBookmarks").is_some_and(|value| value == "true" || value == "1");
        let request = WatchRequest {
            user: user.to_owned(),
            resource: call.resource,
            namespace: call.namespace.clone(),
            selector,
            metadata_only,
            initial: asked || from == 0,
            // As of 1.36, a watch without a resourceVersion that takes bookmarks is a streamed list.
            marked: bookmarks && (asked || version.is_empty()),
            from,
            bookmarks,
            timeout: call.parameter("timeoutSeconds").and_then(|text| text.parse().ok()).map(Duration::from_secs),
        };
        let mut state = self.lock();
        if !request.initial && from < state.store.floor() {
            return Err(Refusal::watch_expired(from, state.store.floor()));
        }
        let watch = Watch::open(self, &mut state, request);
        drop(state);
        Ok(Answer { code: 200, content: Content::Watch(Box::new(watch)), object: None, unknown: Vec::new() })
    }
}

/// Where a call's object is.
pub(super) fn key_of(call: &Call) -> Key {
    (call.resource.plural, call.namespace.clone().unwrap_or_default(), call.name.clone())
}

struct Page {
    objects: BTreeMap<Key, Arc<Object>>,
    revision: u64,
    limit: usize,
}

impl Page {
    fn read(call: &Call, store: &Store) -> Result<Self, Refusal> {
        let limit = call.parameter("limit").and_then(|text| text.parse().ok()).filter(|limit| *limit > 0);
        let namespace = call.namespace.as_deref();
        let version = call.parameter("resourceVersion");
        let exact = |revision| store.list_at(call.resource.plural, namespace, revision);
        let now = || store.list(call.resource.plural, namespace).map(|(key, object)| (key.clone(), object.clone())).collect();
        if let Some(given) = call.parameter("continue") {
            return Self::go_on(given, version, limit.unwrap_or(UNLIMITED), store, exact, now);
        }
        let matching = call.parameter("resourceVersionMatch");
        let Some(version) = version else {
            if matching.is_some() {
                return Err(match_without_version());
            }
            return Ok(Self { objects: now(), revision: store.revision(), limit: limit.unwrap_or(UNLIMITED) });
        };
        let revision: u64 =
            version.parse().map_err(|_| Refusal::bad_request(&format!("invalid resource version: {}", unparsed(version))))?;
        if revision > store.revision() {
            return Err(Refusal::too_large(revision, store.revision()));
        }
        if revision > 0 && (matching == Some("Exact") || (matching.is_none() && limit.is_some())) {
            let objects = exact(revision).ok_or_else(Refusal::list_expired)?;
            return Ok(Self { objects, revision, limit: limit.unwrap_or(UNLIMITED) });
        }
        // A list that may be stale comes from the cache, which knows no pages.
        let limit = if revision == 0 { UNLIMITED } else { limit.unwrap_or(UNLIMITED) };
        Ok(Self { objects: now(), revision: store.revision(), limit })
    }

    fn go_on(
        given: &str,
        version: Option<&str>,
        limit: usize,
        store: &Store,
        exact: impl Fn(u64) -> Option<BTreeMap<Key, Arc<Object>>>,
        now: impl Fn() -> BTreeMap<Key, Arc<Object>>,
    ) -> Result<Self, Refusal> {
        if version.is_some_and(|version| version != "0") {
            return Err(Refusal::bad_request("specifying resource version is not allowed when using continue"));
        }
        let bad = || Refusal::bad_request("invalid continue token: continue key is not valid");
        let (revision, namespace, name) = parse_token(given).ok_or_else(bad)?;
        let (mut objects, revision) = match u64::try_from(revision) {
            Ok(revision) => match exact(revision) {
                Some(objects) => (objects, revision),
                None => return Err(Refusal::continue_expired(&token_at(-1, &namespace, &name))),
            },
            Err(_) => (now(), store.revision()),
        };
        objects.retain(|key, _| (key.1.as_str(), key.2.as_str()) > (namespace.as_str(), name.as_str()));
        Ok(Self { objects, revision, limit })
    }
}

fn token(revision: i64, last: &Key) -> String {
    token_at(revision, &last.1, &last.2)
}

fn token_at(revision: i64, namespace: &str, name: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": format!("{namespace}/{name}")});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn parse_token(token: &str) -> Option<(i64, String, String)> {
    let token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (namespace, name) = token["start"].as_str()?.split_once('/')?;
    Some((token["rv"].as_i64()?, namespace.to_owned(), name.to_owned()))
}

fn invalid_version(version: &str) -> Refusal {
    Refusal::new(500, "", &unparsed(version), Value::Null)
}

fn unparsed(version: &str) -> String {
    format!("resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax")
}

fn match_without_version() -> Refusal {
    let why = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
    let message = format!("ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: {why}");
    let cause = json!({"reason": "FieldValueForbidden", "message": why, "field": "resourceVersionMatch"});
    Refusal::new(422, "Invalid", &message, json!({"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}))
}
