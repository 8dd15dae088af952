//! A session's objects as they are sent: the claim, the pod, the Service (sessions.md, "What a session is" and "Rules"). Pure.

use serde_json::{Value, json};

use super::labels::SessionScheme;
use crate::config::{Sessions, Settings};
use crate::ids::{HostName, RecordId, SessionId, Tenant, Word};
use crate::kube::manifest::{Placement, USER, digest, locked, place};

/// For which session an object is made, and by which step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOrder {
    /// Which.
    pub id: SessionId,
    /// Whose it is.
    pub tenant: Tenant,
    /// The step that asked for it.
    pub step: RecordId,
    /// Attempts that were sent for the step so far; the next one has the number after.
    pub attempts: u32,
}

/// Makes the objects of the sessions of one daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTemplate {
    /// The names of their labels.
    pub scheme: SessionScheme,
    sessions: Box<Sessions>,
}

impl SessionTemplate {
    /// The template of these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { scheme: SessionScheme::new(settings), sessions: settings.sessions.clone() }
    }

    /// The container's name.
    #[must_use]
    pub fn container(&self) -> &str {
        &self.sessions.container
    }

    /// The port that a session serves.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.sessions.port
    }

    /// The claim.
    #[must_use]
    pub fn claim(&self, order: &SessionOrder, name: &Word) -> Value {
        let mut spec = json!({
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": self.sessions.claim_size}},
        });
        if !self.sessions.storage_class.is_empty() {
            spec["storageClassName"] = json!(self.sessions.storage_class);
        }
        self.object("PersistentVolumeClaim", order, name.as_str(), spec)
    }

    /// The Service.
    #[must_use]
    pub fn service(&self, order: &SessionOrder, name: &Word) -> Value {
        let port = self.sessions.port;
        let spec = json!({
            "type": "ClusterIP",
            "selector": self.scheme.service_selector(&order.id),
            "ports": [{"name": "session", "protocol": "TCP", "port": port, "targetPort": port}],
        });
        self.object("Service", order, name.as_str(), spec)
    }

    /// The pod.
    #[must_use]
    pub fn pod(&self, order: &SessionOrder, name: &HostName, claim: &Word) -> Value {
        let sessions = &self.sessions;
        let mut spec = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": sessions.grace_s,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": [
                {"name": "workspace", "persistentVolumeClaim": {"claimName": claim.as_str()}},
                {"name": "tmp", "emptyDir": {"sizeLimit": sessions.tmp_size}},
            ],
            "containers": [self.container_spec()],
        });
        place(
            &mut spec,
            &Placement {
                runtime_class: &sessions.runtime_class,
                priority_class: &sessions.priority_class,
                image_pull_secrets: &sessions.image_pull_secrets,
                node_selector: &sessions.node_selector,
                tolerations: &sessions.tolerations,
            },
        );
        self.object("Pod", order, name.as_str(), spec)
    }

    fn container_spec(&self) -> Value {
        let sessions = &self.sessions;
        json!({
            "name": sessions.container,
            "image": sessions.image,
            "ports": [{"name": "session", "protocol": "TCP", "containerPort": sessions.port}],
            "securityContext": locked(),
            "resources": {
                // Disk is limited and not asked for: no node has room for every pod's worst case.
                "requests": {"cpu": sessions.cpu, "memory": sessions.memory, "ephemeral-storage": "0"},
                "limits": {
                    "cpu": sessions.cpu_limit,
                    "memory": sessions.memory_limit,
                    "ephemeral-storage": sessions.ephemeral_storage,
                },
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
            // Often, because a caller waits for it; for how long, the plan says.
            "readinessProbe": {"tcpSocket": {"port": sessions.port}, "periodSeconds": 1, "failureThreshold": 3},
            "volumeMounts": [
                {"name": "workspace", "mountPath": "/workspace"},
                {"name": "tmp", "mountPath": "/tmp"},
            ],
        })
    }

    fn object(&self, kind: &str, order: &SessionOrder, name: &str, spec: Value) -> Value {
        let mut object = json!({
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {
                "name": name,
                "labels": self.scheme.labels(&order.id, &order.tenant),
                "annotations": self.scheme.annotations(order.step),
            },
            "spec": spec,
        });
        let digest = digest(&self.scheme.scheme, &object);
        object["metadata"]["annotations"][self.scheme.scheme.key("digest")] = Value::String(digest);
        object
    }
}
