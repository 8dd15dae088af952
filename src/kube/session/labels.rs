//! Whose object it is, among the objects of sessions: the labels that we write, and the judgement of those that we read.

use std::collections::BTreeMap;

use crate::config::{Profile, Settings};
use crate::ids::{RecordId, SessionId, Tenant};
use crate::kube::labels::{KIND_SESSION, KIND_SESSION_POLICY, MANAGED_BY, Ownership, Scheme};
use crate::kube::view::Meta;

/// The value of the seed's label `app`, which the profile `poimen` writes besides ours.
const SEED_APP: &str = "pi-session";

/// The names of the labels of sessions, and the values that mark what is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionScheme {
    /// The names that they share with everything else of ours.
    pub scheme: Scheme,
    poimen: bool,
}

impl SessionScheme {
    /// The scheme of these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { scheme: Scheme::new(settings), poimen: settings.profile == Profile::Poimen }
    }

    /// What a list or watch of any sort of their objects asks for.
    #[must_use]
    pub fn selector(&self) -> String {
        let labels = self.scheme.instance_labels(KIND_SESSION);
        let pairs: Vec<String> = labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(",")
    }

    /// The labels of a session's claim, pod or Service.
    #[must_use]
    pub fn labels(&self, id: &SessionId, tenant: &Tenant) -> BTreeMap<String, String> {
        let mut labels = self.scheme.instance_labels(KIND_SESSION);
        labels.insert(self.scheme.key("tenant"), tenant.to_string());
        labels.extend(self.service_selector(id));
        labels
    }

    /// The labels that a session's Service selects its pod by: no other session's pod has them.
    #[must_use]
    pub fn service_selector(&self, id: &SessionId) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([
            (self.scheme.key("instance"), self.scheme.instance().to_owned()),
            (self.scheme.key("kind"), KIND_SESSION.to_owned()),
            (self.scheme.key("session"), id.to_string()),
        ]);
        if self.poimen {
            labels.extend([("app".to_owned(), SEED_APP.to_owned()), ("session-id".to_owned(), id.to_string())]);
        }
        labels
    }

    /// The annotations of such an object, without the manifest's digest.
    #[must_use]
    pub fn annotations(&self, step: RecordId) -> BTreeMap<String, String> {
        BTreeMap::from([(self.scheme.key("step"), step.to_string())])
    }

    /// The labels that the NetworkPolicy selects all pods of sessions by; the profile `poimen` covers the seed's too.
    #[must_use]
    pub fn pod_selector(&self) -> BTreeMap<String, String> {
        if self.poimen { BTreeMap::from([("app".to_owned(), SEED_APP.to_owned())]) } else { self.scheme.instance_labels(KIND_SESSION) }
    }

    /// The labels of that NetworkPolicy.
    #[must_use]
    pub fn policy_labels(&self) -> BTreeMap<String, String> {
        self.scheme.instance_labels(KIND_SESSION_POLICY)
    }

    /// Its name.
    #[must_use]
    pub fn policy_name(&self) -> String {
        if self.poimen { "pi-session-sandbox".to_owned() } else { format!("wharf-sessions-{}", self.scheme.instance()) }
    }

    /// Whose object this is, by its labels: managed-by, instance, world, kind and a session's id all match, or it is not ours.
    #[must_use]
    pub fn ownership(&self, meta: &Meta) -> Ownership<SessionId> {
        let label = |name: &str| meta.label(&self.scheme.key(name));
        if label("managed-by") != Some(MANAGED_BY) || label("kind") != Some(KIND_SESSION) {
            return Ownership::Foreign;
        }
        let ours = self.scheme.instance_labels(KIND_SESSION);
        if !ours.iter().all(|(key, value)| meta.label(key) == Some(value.as_str())) {
            return Ownership::OursOtherInstance;
        }
        match SessionId::new(label("session").unwrap_or_default()) {
            Ok(id) => Ownership::Ours(id),
            Err(bad) => Ownership::Unreadable { why: bad.to_string() },
        }
    }

    /// Whose session it says it is; `None` when it does not, or no tenant can be read.
    #[must_use]
    pub fn tenant(&self, meta: &Meta) -> Option<Tenant> {
        Tenant::new(meta.label(&self.scheme.key("tenant"))?).ok()
    }
}
