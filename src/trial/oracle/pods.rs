//! One pod as the API server and its node had it: what it showed, how its processes ended, who made and who deleted it.

use std::sync::Arc;

use serde_json::Value;

use super::Promises;
use crate::sim::api::{DAEMON, Object};

/// How a pod's processes ended, by what its status shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// The app's process ended by itself.
    OwnExit,
    /// Its install ended with a failure.
    Install,
    /// Its process could not be started.
    NotStarted,
    /// Something else ended it: an eviction, its node, a deletion.
    Outside,
}

/// One pod.
#[derive(Debug, Clone)]
pub(super) struct Pod {
    pub(super) uid: String,
    pub(super) name: String,
    /// `org/name`, by its annotation.
    pub(super) app: String,
    /// Its labels are those of our instance.
    pub(super) ours: bool,
    /// As it was last stored.
    pub(super) object: Option<Arc<Object>>,
    pub(super) created_us: i64,
    pub(super) gone_us: Option<i64>,
    /// Who created it, by user.
    pub(super) made_by: String,
    /// Who first deleted it, by user.
    pub(super) deleted_by: Option<String>,
    /// When it was first marked for deletion.
    pub(super) deleting_us: Option<i64>,
    /// When the daemon asked for it to go without a grace.
    pub(super) removed_at_once_us: Option<i64>,
    /// When its processes began to run: the truth.
    pub(super) running_us: Option<i64>,
    /// When they ended: the truth.
    pub(super) exited_us: Option<i64>,
    /// When its status first said that the app runs.
    pub(super) shown_running_us: Option<i64>,
    /// How its status first said that it ended, and when.
    pub(super) shown_end: Option<(Shown, i64)>,
    /// Its status said so while it was not being deleted.
    pub(super) ended_unasked: bool,
}

impl Pod {
    pub(super) fn unseen(uid: &str, name: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            name: name.to_owned(),
            app: String::new(),
            ours: false,
            object: None,
            created_us: 0,
            gone_us: None,
            made_by: String::new(),
            deleted_by: None,
            deleting_us: None,
            removed_at_once_us: None,
            running_us: None,
            exited_us: None,
            shown_running_us: None,
            shown_end: None,
            ended_unasked: false,
        }
    }

    pub(super) fn seen(&mut self, object: &Arc<Object>, promises: &Promises, now_us: i64) {
        if self.object.is_none() {
            self.created_us = now_us;
            self.app = text(&object["metadata"]["annotations"][format!("{}/app", promises.label_domain)]);
            self.ours = is_ours(object, promises);
        }
        let deleting = !object["metadata"]["deletionTimestamp"].is_null();
        if let Some(end) = end_shown(object).filter(|_| self.shown_end.is_none()) {
            self.shown_end = Some((end, now_us));
            self.ended_unasked = !deleting;
        }
        if app_state(object).get("running").is_some() {
            self.shown_running_us.get_or_insert(now_us);
        }
        if deleting {
            self.deleting_us.get_or_insert(now_us);
        }
        self.object = Some(object.clone());
    }

    pub(super) fn exited(&mut self, now_us: i64) {
        self.exited_us.get_or_insert(now_us);
    }

    /// Whether its processes run, whatever its status says.
    pub(super) fn runs(&self) -> bool {
        self.running_us.is_some() && self.exited_us.is_none()
    }

    /// Its node.
    pub(super) fn node(&self) -> &str {
        self.object.as_ref().and_then(|object| object["spec"]["nodeName"].as_str()).unwrap_or_default()
    }

    /// Whether its status says that no node takes it.
    pub(super) fn is_unschedulable(&self) -> bool {
        let conditions = self.object.as_ref().and_then(|object| object["status"]["conditions"].as_array());
        conditions.into_iter().flatten().any(|one| one["type"] == "PodScheduled" && one["status"] == "False")
    }

    /// Whether its node refused it: it ended without any container having begun.
    pub(super) fn is_refused(&self) -> bool {
        let ended = self.shown_end.is_some_and(|(end, _)| end == Shown::Outside);
        ended && self.object.as_ref().is_some_and(|object| object["status"]["containerStatuses"].is_null())
    }

    /// When its app's process ended by itself, if that cannot be excluded.
    pub(super) fn own_exit_us(&self) -> Option<i64> {
        let own = self.shown_end.is_some_and(|(end, _)| end == Shown::OwnExit);
        own.then(|| self.exited_us.or(self.shown_end.map(|(_, at_us)| at_us))).flatten()
    }

    /// The same when nothing else can have been the cause, and the daemon knew it: it was seen ended while nobody had deleted it,
    /// and the daemon then removed it as one that had ended.
    pub(super) fn known_own_exit_us(&self) -> Option<(i64, i64)> {
        let by_us = self.deleted_by.as_deref() == Some(DAEMON) && self.ended_unasked;
        let removed_us = self.removed_at_once_us.filter(|_| by_us)?;
        let shown_us = self.shown_end.map(|(_, at_us)| at_us).filter(|at_us| *at_us <= removed_us)?;
        let exit_us = self.own_exit_us()?;
        Some((exit_us.min(shown_us), removed_us))
    }

    /// The latest time at which its end can have been seen.
    pub(super) fn end_seen_by_us(&self, now_us: i64) -> i64 {
        self.gone_us.unwrap_or(now_us)
    }
}

/// Whether an object bears the labels of our instance.
pub(super) fn is_ours(object: &Value, promises: &Promises) -> bool {
    let label = |name: &str| text(&object["metadata"]["labels"][format!("{}/{name}", promises.label_domain)]);
    label("managed-by") == "wharfinger" && label("instance") == promises.instance && label("world") == promises.world
}

/// The app container's state, by its name.
fn app_state(object: &Value) -> Value {
    let statuses = object["status"]["containerStatuses"].as_array();
    let app = statuses.into_iter().flatten().find(|status| status["name"] == "app");
    app.map(|status| status["state"].clone()).unwrap_or_default()
}

/// How a status says that the pod ended.
fn end_shown(object: &Value) -> Option<Shown> {
    let status = &object["status"];
    let over = matches!(status["phase"].as_str(), Some("Failed" | "Succeeded"));
    let ended = app_state(object)["terminated"].clone();
    let installs = status["initContainerStatuses"].as_array();
    let failed = |one: &&Value| one["state"]["terminated"]["exitCode"].as_i64().is_some_and(|code| code != 0);
    let install = installs.into_iter().flatten().find(failed).map(|one| one["state"]["terminated"].clone());
    if !over && ended.is_null() && install.is_none() {
        return None;
    }
    let disrupted =
        status["conditions"].as_array().into_iter().flatten().any(|one| one["type"] == "DisruptionTarget" && one["status"] == "True");
    let lost = |end: &Value| matches!(end["reason"].as_str(), Some("Unknown" | "ContainerStatusUnknown"));
    let by_node = !text(&status["reason"]).is_empty();
    if disrupted || by_node {
        return Some(Shown::Outside);
    }
    Some(match (ended.is_null(), install) {
        (false, _) if lost(&ended) => Shown::Outside,
        (false, _) if matches!(ended["reason"].as_str(), Some("StartError" | "ContainerCannotRun")) => Shown::NotStarted,
        (false, _) => Shown::OwnExit,
        (true, Some(install)) if lost(&install) => Shown::Outside,
        (true, Some(_)) => Shown::Install,
        (true, None) => Shown::Outside,
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
