//! Patches: JSON merge, and strategic merge for the lists that have merge keys. Pure.

use serde_json::{Map, Value};

/// How a patch's lists are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchKind {
    /// RFC 7386: lists are replaced.
    Merge,
    /// Lists with a merge key are merged by it.
    Strategic,
}

/// Lists with a merge key, wherever they stand; all others are replaced whole.
const MERGE_KEYS: [(&str, &str); 10] = [
    ("conditions", "type"),
    ("addresses", "type"),
    ("hostIPs", "ip"),
    ("podIPs", "ip"),
    ("ownerReferences", "uid"),
    ("containers", "name"),
    ("initContainers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("volumeMounts", "mountPath"),
];

/// Applies a patch in place.
pub(super) fn apply(target: &mut Value, patch: &Value, kind: PatchKind) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else if let (PatchKind::Strategic, Some(merge_key), Some(items)) = (kind, merge_key(key), change.as_array()) {
            let list = fields.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
            merge_list(list, items, merge_key);
        } else if kind == PatchKind::Strategic && key == "finalizers" {
            merge_finalizers(fields, change);
        } else if kind == PatchKind::Merge || !key.starts_with('$') {
            apply(fields.entry(key.clone()).or_insert(Value::Null), change, kind);
        }
    }
}

fn merge_key(list: &str) -> Option<&'static str> {
    MERGE_KEYS.iter().find(|(name, _)| *name == list).map(|(_, key)| *key)
}

fn merge_list(list: &mut Value, items: &[Value], key: &str) {
    let Some(list) = list.as_array_mut() else {
        *list = Value::Array(items.to_vec());
        return;
    };
    let mut fresh_ones = Vec::new();
    for item in items {
        let position = list.iter().position(|known| known[key] == item[key]);
        match (item["$patch"].as_str(), position) {
            (Some("delete"), Some(position)) => {
                list.remove(position);
            }
            (Some("delete"), None) => {}
            (_, Some(position)) => {
                if let Some(known) = list.get_mut(position) {
                    apply(known, item, PatchKind::Strategic);
                }
            }
            (_, None) => {
                let mut fresh = Value::Null;
                apply(&mut fresh, item, PatchKind::Strategic);
                fresh_ones.push(fresh);
            }
        }
    }
    // What a patch adds comes before what was there.
    list.splice(0..0, fresh_ones);
}

fn merge_finalizers(fields: &mut Map<String, Value>, change: &Value) {
    let list = fields.entry("finalizers".to_owned()).or_insert_with(|| Value::Array(Vec::new()));
    for name in change.as_array().into_iter().flatten() {
        if let Some(list) = list.as_array_mut()
            && !list.contains(name)
        {
            list.push(name.clone());
        }
    }
}
