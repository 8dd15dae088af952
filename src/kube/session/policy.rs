//! The NetworkPolicy of all pods of sessions (sessions.md, "Rules"), and whether another policy widens it.
//!
//! Ingress from the front end alone, on the port; egress to DNS and to the API gateway, and nowhere else.

use serde_json::{Value, json};

use super::labels::SessionScheme;
use crate::config::{Sessions, Settings};
use crate::ids::{SessionId, Tenant};
use crate::kube::convert::Odd;
use crate::kube::manifest::{digest, pairs};
use crate::kube::policy::{Confirmed, means_the_same, port};
use crate::kube::view::Meta;

/// A NetworkPolicy of the namespace, as far as sessions are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySeen {
    /// Its name.
    pub name: String,
    /// The version that was seen.
    pub resource_version: u64,
    /// What it is to them.
    pub is: PolicyIs,
}

/// What a NetworkPolicy is to sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyIs {
    /// Ours, as the settings say.
    Confirmed,
    /// Ours, and changed or going.
    Changed,
    /// One of our name that is somebody else's.
    Foreign,
    /// Another that selects their pods.
    Widening,
    /// Nothing.
    Other,
}

/// Makes and judges the NetworkPolicy of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPolicy {
    scheme: SessionScheme,
    sessions: Box<Sessions>,
}

impl SessionPolicy {
    /// The policy of these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { scheme: SessionScheme::new(settings), sessions: settings.sessions.clone() }
    }

    /// What a policy of the namespace is to sessions.
    ///
    /// # Errors
    /// When it has no name, or no version that is a number.
    pub fn seen(&self, meta: &Meta, whole: &Value) -> Result<PolicySeen, Odd> {
        let name = meta.name.clone().ok_or_else(|| Odd::new(meta, "metadata.name is none"))?;
        let resource_version = meta.version().ok_or_else(|| Odd::new(meta, "metadata.resourceVersion is no number"))?;
        let is = if name == self.name() {
            match (self.is_ours(meta), !meta.deleting() && self.is_same(whole)) {
                (false, _) => PolicyIs::Foreign,
                (true, true) => PolicyIs::Confirmed,
                (true, false) => PolicyIs::Changed,
            }
        } else if self.is_widened_by(whole) {
            PolicyIs::Widening
        } else {
            PolicyIs::Other
        };
        Ok(PolicySeen { name, resource_version, is })
    }

    /// Whether another policy of the namespace may select a pod of a session: what it allows is allowed besides.
    #[must_use]
    pub fn is_widened_by(&self, other: &Value) -> bool {
        if other.pointer("/metadata/name").and_then(Value::as_str) == Some(self.name().as_str()) {
            return false;
        }
        let nothing = json!({});
        let selector = other.pointer("/spec/podSelector").unwrap_or(&nothing);
        let wanted = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let labels = wanted.map(|(key, value)| self.may_have(key, Some(&[value.as_str().unwrap_or_default()])));
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        labels.chain(expressions.map(|expression| self.may_fit(expression))).all(|may| may)
    }

    fn may_fit(&self, expression: &Value) -> bool {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        match expression.get("operator").and_then(Value::as_str) {
            Some("In") => self.may_have(key, Some(&values)),
            Some("Exists") => self.may_have(key, None),
            Some("DoesNotExist") => !self.may_have(key, None),
            Some("NotIn") => self.fixed(key).is_none_or(|value| !values.contains(&value.as_str())),
            // One that this build does not know may mean anything.
            _ => true,
        }
    }

    /// The value that a label has on every pod of a session; `None` when there is no such label, or each has its own.
    fn fixed(&self, key: &str) -> Option<String> {
        let one = self.scheme.labels(&sample("a"), &sample_tenant("a"));
        let other = self.scheme.labels(&sample("b"), &sample_tenant("b"));
        one.get(key).filter(|value| other.get(key) == Some(value)).cloned()
    }

    /// Whether a pod of a session may have that label, with one of these values.
    fn may_have(&self, key: &str, values: Option<&[&str]>) -> bool {
        let has = self.scheme.labels(&sample("a"), &sample_tenant("a")).contains_key(key);
        let fits = |value: &String| values.is_none_or(|values| values.contains(&value.as_str()));
        has && self.fixed(key).is_none_or(|value| fits(&value))
    }

    fn ingress(&self) -> Vec<Value> {
        let sessions = &self.sessions;
        // A rule without a peer would allow everybody.
        if sessions.frontend_selector.is_empty() {
            return Vec::new();
        }
        let mut from = json!({"podSelector": {"matchLabels": pairs(&sessions.frontend_selector)}});
        if !sessions.frontend_namespace.is_empty() {
            from["namespaceSelector"] = json!({"matchLabels": pairs(&sessions.frontend_namespace)});
        }
        vec![json!({"from": [from], "ports": [port("TCP", sessions.port)]})]
    }

    fn egress(&self) -> Vec<Value> {
        let sessions = &self.sessions;
        let mut rules = Vec::new();
        let mut dns: Vec<Value> = sessions.dns_blocks.iter().map(|block| json!({"ipBlock": {"cidr": block}})).collect();
        dns.extend(pods_of(&sessions.dns_namespace, &sessions.dns_selector));
        if !dns.is_empty() {
            rules.push(json!({"to": dns, "ports": [port("TCP", 53), port("UDP", 53)]}));
        }
        if let Some(gateway) = pods_of(&sessions.gateway_namespace, &sessions.gateway_selector)
            && !sessions.gateway_ports.is_empty()
        {
            let ports: Vec<Value> = sessions.gateway_ports.iter().map(|number| port("TCP", *number)).collect();
            rules.push(json!({"to": [gateway], "ports": ports}));
        }
        rules
    }
}

impl Confirmed for SessionPolicy {
    fn name(&self) -> String {
        self.scheme.policy_name()
    }

    fn object(&self) -> Value {
        let mut object = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": self.name(), "labels": self.scheme.policy_labels()},
            "spec": {
                "podSelector": {"matchLabels": self.scheme.pod_selector()},
                "policyTypes": ["Egress", "Ingress"],
                "ingress": self.ingress(),
                "egress": self.egress(),
            },
        });
        let digest = digest(&self.scheme.scheme, &object);
        object["metadata"]["annotations"] = json!({self.scheme.scheme.key("digest"): digest});
        object
    }

    /// By the digest besides: what this build does not know how to read is repaired too.
    fn is_same(&self, there: &Value) -> bool {
        let wanted = self.object();
        let digest = |object: &Value| object["metadata"]["annotations"][self.scheme.scheme.key("digest")].clone();
        digest(there) == digest(&wanted) && means_the_same(there, &wanted)
    }

    fn is_ours(&self, meta: &Meta) -> bool {
        self.scheme.policy_labels().iter().all(|(key, value)| meta.label(key) == Some(value.as_str()))
    }
}

/// Pods of a namespace, by their labels or all of them; `None` without a namespace: everybody's is nobody's.
fn pods_of(namespace: &[String], selector: &[String]) -> Option<Value> {
    let mut peer = json!({"namespaceSelector": {"matchLabels": pairs(namespace)}});
    if !selector.is_empty() {
        peer["podSelector"] = json!({"matchLabels": pairs(selector)});
    }
    (!namespace.is_empty()).then_some(peer)
}

fn sample(name: &str) -> SessionId {
    SessionId::new(name).expect("a letter is an id")
}

fn sample_tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("a letter is a name")
}
