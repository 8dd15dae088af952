//! Whose object it is: the labels and annotations that we write, and the judgement of those that we read. Knows no HTTP.

use std::collections::BTreeMap;

use super::view::Meta;
use crate::config::{Profile, Settings};
use crate::ids::{AppId, PackageDigest, RecordId};

/// The value of the label `managed-by` on everything of ours.
pub const MANAGED_BY: &str = "wharfinger";

/// The value of the label `kind` on everything that belongs to an app.
pub const KIND_APP: &str = "app";

/// The value of the label `kind` on the NetworkPolicy of all apps.
pub const KIND_POLICY: &str = "policy";

/// The value of the label `kind` on everything that belongs to a session.
pub const KIND_SESSION: &str = "session";

/// The value of the label `kind` on the NetworkPolicy of all sessions.
pub const KIND_SESSION_POLICY: &str = "session-policy";

/// Whose object it is (DESIGN.md, "Whose object is it").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership<T = AppId> {
    /// Ours, of that app or session: all labels match, and of an app the annotation.
    Ours(T),
    /// Not made by a wharfinger.
    Foreign,
    /// Made by a wharfinger of another instance or world.
    OursOtherInstance,
    /// Ours by its labels, but whose it is cannot be read.
    Unreadable {
        /// What is wrong with it.
        why: String,
    },
}

/// The names of our labels and annotations, and the values that mark what is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    domain: String,
    world: String,
    instance: String,
    profile: Profile,
}

impl Scheme {
    /// The scheme of these settings. The profile `pinecall` has the seed's label domain; an empty instance is the world.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let domain = match settings.profile {
            Profile::Wharf | Profile::Poimen => settings.pod.label_domain.clone(),
            Profile::Pinecall => "pinecall.io".to_owned(),
        };
        let instance = if settings.instance.is_empty() { &settings.world } else { &settings.instance };
        Self { domain, world: settings.world.clone(), instance: instance.clone(), profile: settings.profile }
    }

    /// Whose objects are ours.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// A label's or annotation's whole key, for example `wharfinger.dev/app`.
    #[must_use]
    pub fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.domain)
    }

    /// Whether a key is one of ours: extra labels from the settings may not set it.
    #[must_use]
    pub fn is_our_key(&self, key: &str) -> bool {
        key.strip_prefix(&self.domain).is_some_and(|rest| rest.starts_with('/'))
    }

    /// What a list or watch asks for. The profile `pinecall` also sees what the seed made.
    #[must_use]
    pub fn selector(&self) -> String {
        match self.profile {
            Profile::Wharf | Profile::Poimen => {
                format!("{}={MANAGED_BY},{}={},{}", self.key("managed-by"), self.key("instance"), self.instance, self.key("app"))
            }
            Profile::Pinecall => format!("{},{}={}", self.key("app"), self.key("world"), self.world),
        }
    }

    /// The labels of an app's pod or Secret.
    #[must_use]
    pub fn labels(&self, app: &AppId, release: u64) -> BTreeMap<String, String> {
        let mut labels = self.instance_labels(KIND_APP);
        labels.insert(self.key("app"), app.stamp());
        labels.insert(self.key("release"), release.to_string());
        labels
    }

    /// The labels of everything of this instance.
    #[must_use]
    pub fn instance_labels(&self, kind: &str) -> BTreeMap<String, String> {
        BTreeMap::from([
            (self.key("managed-by"), MANAGED_BY.to_owned()),
            (self.key("instance"), self.instance.clone()),
            (self.key("world"), self.world.clone()),
            (self.key("kind"), kind.to_owned()),
        ])
    }

    /// The annotations of an app's pod or Secret, without the manifest digest.
    #[must_use]
    pub fn annotations(&self, app: &AppId, step: RecordId, sha256: Option<&PackageDigest>) -> BTreeMap<String, String> {
        let mut annotations = BTreeMap::from([(self.key("app"), app.to_string()), (self.key("step"), step.to_string())]);
        if let Some(sha256) = sha256 {
            annotations.insert(self.key("sha256"), sha256.to_string());
        }
        annotations
    }

    /// A selector, as a NetworkPolicy writes it, of all app pods of this instance.
    #[must_use]
    pub fn pod_selector(&self) -> serde_json::Value {
        match self.profile {
            Profile::Wharf | Profile::Poimen => serde_json::json!({"matchLabels": self.instance_labels(KIND_APP)}),
            Profile::Pinecall => serde_json::json!({
                "matchLabels": {self.key("world"): self.world},
                "matchExpressions": [{"key": self.key("app"), "operator": "Exists"}],
            }),
        }
    }

    /// Whose object this is, by its labels and annotations.
    #[must_use]
    pub fn ownership(&self, meta: &Meta) -> Ownership {
        let label = |name: &str| meta.label(&self.key(name));
        let ours = (label("instance"), label("world")) == (Some(self.instance.as_str()), Some(self.world.as_str()));
        let made_by_seed = self.profile == Profile::Pinecall
            && (label("managed-by"), label("instance")) == (None, None)
            && label("world") == Some(self.world.as_str())
            && label("app").is_some();
        match label("managed-by") {
            Some(MANAGED_BY) if ours => {}
            Some(MANAGED_BY) => return Ownership::OursOtherInstance,
            _ if made_by_seed => {}
            _ => return Ownership::Foreign,
        }
        let Some(name) = meta.annotation(&self.key("app")) else {
            return Ownership::Unreadable { why: format!("no annotation {}", self.key("app")) };
        };
        match AppId::parse(name) {
            Ok(app) if label("app") == Some(app.stamp().as_str()) => Ownership::Ours(app),
            Ok(_) => Ownership::Unreadable { why: format!("label {} is not the stamp of its annotation", self.key("app")) },
            Err(bad) => Ownership::Unreadable { why: bad.to_string() },
        }
    }

    /// Whether a list by our labels shows every Secret of ours: the seed's bear none.
    #[must_use]
    pub fn labels_every_secret(&self) -> bool {
        self.profile != Profile::Pinecall
    }

    /// Whether a Secret is that app's. Under the profile `pinecall` a Secret that bears no label, no annotation and no owner is
    /// the seed's: it wrote nothing but the name.
    #[must_use]
    pub fn owns_secret(&self, meta: &Meta, app: &AppId) -> bool {
        let bare = meta.labels.as_ref().is_none_or(BTreeMap::is_empty)
            && meta.annotations.as_ref().is_none_or(BTreeMap::is_empty)
            && meta.owner_references.as_ref().is_none_or(Vec::is_empty);
        (self.profile == Profile::Pinecall && bare) || self.ownership(meta) == Ownership::Ours(app.clone())
    }

    /// Whether the NetworkPolicy is this instance's own.
    #[must_use]
    pub fn owns_policy(&self, meta: &Meta) -> bool {
        self.instance_labels(KIND_POLICY).iter().all(|(key, value)| meta.label(key) == Some(value.as_str()))
    }
}
