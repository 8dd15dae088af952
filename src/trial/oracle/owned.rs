//! Invariant 5: every delete carries the uid it was decided on, every replacement uid and version, and what is not ours is never
//! changed.

use super::Found;
use super::pods::is_ours;
use super::view::{View, is_exempt};
use crate::sim::api::Entry;

pub(super) fn judge(view: &View, entry: &Entry) -> Vec<Found> {
    if is_exempt(entry) {
        return Vec::new();
    }
    let what = format!("{} {} {}", entry.verb, entry.resource, entry.name);
    let mut found = Vec::new();
    let uid = entry.uid_precondition.as_deref().unwrap_or_default();
    match entry.verb {
        "delete" if uid.is_empty() => found.push((5, format!("{what} was sent without a uid"))),
        "update" if uid.is_empty() || entry.version_precondition.as_deref().unwrap_or_default().is_empty() => {
            found.push((5, format!("{what} was sent without uid and resourceVersion")));
        }
        "patch" | "deletecollection" => found.push((5, format!("{what}: the daemon never does that"))),
        _ => {}
    }
    if entry.namespace != view.promises.namespace {
        found.push((5, format!("{what} was sent for the namespace {:?}", entry.namespace)));
    }
    // The last change of that name is the request's own: what came before it was somebody else's hand.
    let change = view.pending.iter().rev().find(|stored| stored.resource == entry.resource && stored.name == entry.name);
    let object = change.filter(|_| entry.changed()).and_then(|stored| stored.before.as_ref().or(stored.after.as_ref()));
    if let Some(object) = object.filter(|object| !is_ours(object, &view.promises)) {
        let labels = &object["metadata"]["labels"];
        found.push((5, format!("{what} changed an object that is not ours: its labels are {labels}")));
    }
    found
}
