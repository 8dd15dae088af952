//! The table of resources: what the API server knows of each kind. A new kind is one line. Knows no request and no storage.

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::Value;

use super::decode::Shape;
use super::refusal::Cause;
use super::{claim_rules, lease_rules, pod_rules, policy_rules, rules, secret_rules, service_rules};

/// One kind of object. The plural names it everywhere; it is unique in [`RESOURCES`].
#[derive(Debug)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural, lower case: the path segment.
    pub plural: &'static str,
    /// Kind, camel case.
    pub kind: &'static str,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// Whether `status` is a subresource of its own.
    pub has_status: bool,
    /// Whether `metadata.generation` counts changes of the spec.
    pub has_generation: bool,
    /// Whether an update may leave out the resourceVersion.
    pub unconditional_update: bool,
    /// Whether objects are kept; reviews are only answered.
    pub stored: bool,
    /// Whether an update of what is not there creates it.
    pub create_on_update: bool,
    /// Whether objects are deleted with a grace period: pods alone.
    pub graceful: bool,
    /// Checks the body's shape; `None` takes any object.
    pub(super) shape: Option<Shape>,
    /// Fills in what the server fills in, before validation.
    pub defaults: fn(&mut Value),
    /// The status of a new object; null for none.
    pub first_status: fn(&Value) -> Value,
    /// What is wrong with an object, besides its metadata.
    pub validate: fn(&Value) -> Vec<Cause>,
    /// What may not change from the first to the second.
    pub validate_update: fn(&Value, &Value) -> Vec<Cause>,
}

impl Resource {
    const fn plain(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
        namespaced: bool,
        shape: Option<Shape>,
    ) -> Self {
        Self {
            group,
            version,
            plural,
            kind,
            namespaced,
            has_status: false,
            has_generation: false,
            unconditional_update: true,
            stored: true,
            create_on_update: false,
            graceful: false,
            shape,
            defaults: rules::no_defaults,
            first_status: rules::no_status,
            validate: rules::nothing_wrong,
            validate_update: rules::may_all_change,
        }
    }

    const fn with_status(mut self) -> Self {
        self.has_status = true;
        self
    }

    const fn leases(mut self) -> Self {
        self.unconditional_update = false;
        self.create_on_update = true;
        self.validate = lease_rules::validate;
        self
    }

    const fn reviews(mut self) -> Self {
        self.stored = false;
        self
    }

    const fn policies(mut self) -> Self {
        self.has_generation = true;
        self.defaults = policy_rules::defaults;
        self.validate = policy_rules::validate;
        self
    }

    const fn pods(mut self) -> Self {
        self.graceful = true;
        self.has_status = true;
        self.has_generation = true;
        self.defaults = pod_rules::defaults;
        self.first_status = pod_rules::first_status;
        self.validate = pod_rules::validate;
        self.validate_update = pod_rules::validate_update;
        self
    }

    const fn secrets(mut self) -> Self {
        self.defaults = secret_rules::defaults;
        self.validate = secret_rules::validate;
        self.validate_update = secret_rules::validate_update;
        self
    }

    const fn claims(mut self) -> Self {
        self.has_status = true;
        self.defaults = claim_rules::defaults;
        self.first_status = claim_rules::first_status;
        self.validate = claim_rules::validate;
        self.validate_update = claim_rules::validate_update;
        self
    }

    const fn services(mut self) -> Self {
        self.has_status = true;
        self.defaults = service_rules::defaults;
        self.first_status = service_rules::first_status;
        self.validate = service_rules::validate;
        self.validate_update = service_rules::validate_update;
        self
    }

    const fn namespaces(mut self) -> Self {
        self.has_status = true;
        self.defaults = rules::namespace_defaults;
        self.first_status = rules::namespace_status;
        self.validate = rules::validate_namespace;
        self
    }

    /// `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The plural as messages name it: with the group, if it has one.
    #[must_use]
    pub fn qualified(&self) -> String {
        qualify(self.plural, self.group)
    }

    /// The kind as messages name it: with the group, if it has one.
    #[must_use]
    pub fn qualified_kind(&self) -> String {
        qualify(self.kind, self.group)
    }
}

fn qualify(word: &str, group: &str) -> String {
    if group.is_empty() { word.to_owned() } else { format!("{word}.{group}") }
}

/// Every kind the embedded API server serves.
pub static RESOURCES: &[Resource] = &[
    Resource::plain("", "v1", "pods", "Pod", true, Some(Shape::of::<Pod>())).pods(),
    Resource::plain("", "v1", "secrets", "Secret", true, Some(Shape::of::<Secret>())).secrets(),
    Resource::plain("", "v1", "namespaces", "Namespace", false, Some(Shape::of::<Namespace>())).namespaces(),
    Resource::plain("", "v1", "nodes", "Node", false, Some(Shape::of::<Node>())).with_status(),
    Resource::plain("", "v1", "events", "Event", true, Some(Shape::of::<Event>())),
    Resource::plain("", "v1", "services", "Service", true, Some(Shape::of::<Service>())).services(),
    Resource::plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, Some(Shape::of::<PersistentVolumeClaim>())).claims(),
    Resource::plain("coordination.k8s.io", "v1", "leases", "Lease", true, Some(Shape::of::<Lease>())).leases(),
    Resource::plain("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true, Some(Shape::of::<NetworkPolicy>())).policies(),
    Resource::plain("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false, Some(Shape::of::<TokenReview>())).reviews(),
    Resource::plain(
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        false,
        Some(Shape::of::<SelfSubjectAccessReview>()),
    )
    .reviews(),
    Resource::plain("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false, Some(Shape::of::<PriorityClass>())),
    Resource::plain("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false, Some(Shape::of::<RuntimeClass>())),
];

/// The resource of a path, or of its plural alone when `group` is `None`.
#[must_use]
pub(super) fn find(group: Option<(&str, &str)>, plural: &str) -> Option<&'static Resource> {
    RESOURCES
        .iter()
        .find(|known| known.plural == plural && group.is_none_or(|(group, version)| known.group == group && known.version == version))
}
