//! Invariant 8: no pod before its NetworkPolicy is confirmed, nor without its runtime class.

use super::Found;
use super::view::{SECOND_US, View};
use crate::sim::api::{DAEMON, Entry};
use crate::trial::history::{Happening, Moment};

/// Between the reading that confirms the policy and the create that follows it, an environment can be fetched and put: what
/// another does to the policy meanwhile is not the daemon's fault.
const CONFIRMED_US: i64 = 180 * SECOND_US;

/// What is known of the policies.
#[derive(Debug, Default)]
pub(super) struct Fences {
    /// The policy's name and what its spec was when the daemon last wrote it.
    written: Option<(String, serde_json::Value)>,
    /// Since when it is not there, or not as it was written; `None` while it is.
    broken_us: Option<i64>,
}

impl Fences {
    pub(super) fn see(&mut self, view: &View, moment: &Moment) -> Vec<Found> {
        match &moment.what {
            Happening::Stored(stored) if stored.resource == "networkpolicies" => {
                if let Some((name, spec)) = &self.written
                    && *name == stored.name
                {
                    let same = stored.after.as_ref().is_some_and(|after| after["spec"] == *spec);
                    self.broken_us = if same { None } else { self.broken_us.or(Some(moment.time_us)) };
                }
                Vec::new()
            }
            Happening::Requested(entry) if entry.user == DAEMON && entry.changed() => self.changed(view, entry),
            _ => Vec::new(),
        }
    }

    fn changed(&mut self, view: &View, entry: &Entry) -> Vec<Found> {
        let object = view.pending.iter().rev().find(|stored| stored.resource == entry.resource && stored.name == entry.name);
        let Some(object) = object.and_then(|stored| stored.after.as_ref()) else { return Vec::new() };
        if entry.resource == "networkpolicies" {
            self.written = Some((entry.name.clone(), object["spec"].clone()));
            self.broken_us = None;
        }
        if entry.resource != "pods" || entry.verb != "create" {
            return Vec::new();
        }
        let mut found = Vec::new();
        let class = object["spec"]["runtimeClassName"].as_str().unwrap_or_default();
        if class != view.promises.runtime_class {
            found.push((8, format!("the pod {} was made with the runtime class {class:?}", entry.name)));
        }
        if self.written.is_none() {
            found.push((8, format!("the pod {} was made before there was a NetworkPolicy", entry.name)));
        } else if self.broken_us.is_some_and(|since_us| entry.asked_us - since_us > CONFIRMED_US) {
            found.push((8, format!("the pod {} was made though the NetworkPolicy is not what the daemon had made it", entry.name)));
        }
        found
    }
}
