//! The NetworkPolicy of all app pods of one daemon, and whether one that is there means the same (hosted-apps.md, "The pod").
//!
//! No ingress; egress to the resolvers, to the packages, to the gateway, and to the internet without what `egress_deny` names.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::labels::{KIND_POLICY, Scheme};
use super::manifest::{canonical, pairs};
use super::view::Meta;
use crate::config::{Network, Settings};

/// A NetworkPolicy of ours: how it is sent, and whether one that is there is it and means the same.
pub trait Confirmed {
    /// The object's name.
    fn name(&self) -> String;

    /// The object as it is sent.
    fn object(&self) -> Value;

    /// Whether an object of that name is this instance's own.
    fn is_ours(&self, meta: &Meta) -> bool;

    /// Whether an object that is there means the same: what the server fills in, and the order of lists, do not count.
    fn is_same(&self, there: &Value) -> bool {
        means_the_same(there, &self.object())
    }
}

/// Whether two policies mean the same, and bear the same labels.
#[must_use]
pub fn means_the_same(there: &Value, wanted: &Value) -> bool {
    let labels = |object: &Value| object.pointer("/metadata/labels").cloned();
    let spec = |object: &Value| object.get("spec").map(|spec| canonical(&normal(spec)));
    labels(there) == labels(wanted) && spec(there) == spec(wanted)
}

/// Makes and judges the NetworkPolicy of apps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    scheme: Scheme,
    network: Network,
    resolvers: Vec<String>,
}

impl Policy {
    /// The policy of these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { scheme: Scheme::new(settings), network: settings.network.clone(), resolvers: settings.pod.resolvers.clone() }
    }

    fn egress(&self) -> Vec<Value> {
        let mut rules = vec![];
        if !self.resolvers.is_empty() {
            let to: Vec<Value> = self.resolvers.iter().map(|ip| json!({"ipBlock": {"cidr": single(ip)}})).collect();
            rules.push(json!({"to": to, "ports": [port("TCP", 53), port("UDP", 53)]}));
        }
        let network = &self.network;
        if !network.sources_selector.is_empty() {
            rules.push(json!({"to": [pods(&network.sources_selector)], "ports": [port("TCP", network.sources_port)]}));
        }
        let mut gateway: Vec<Value> = network.gateway_egress.iter().map(|cidr| json!({"ipBlock": {"cidr": cidr}})).collect();
        if !network.gateway_selector.is_empty() {
            gateway.push(pods(&network.gateway_selector));
        }
        // A rule without a port would allow every port, one without a peer every peer.
        if !gateway.is_empty() && !network.gateway_ports.is_empty() {
            let ports: Vec<Value> = network.gateway_ports.iter().map(|number| port("TCP", *number)).collect();
            rules.push(json!({"to": gateway, "ports": ports}));
        }
        let (six, four): (Vec<&String>, Vec<&String>) = network.egress_deny.iter().partition(|cidr| cidr.contains(':'));
        rules.push(json!({"to": [internet("0.0.0.0/0", &four), internet("::/0", &six)]}));
        rules
    }
}

impl Confirmed for Policy {
    fn name(&self) -> String {
        format!("wharf-apps-{}", self.scheme.instance())
    }

    fn object(&self) -> Value {
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": self.name(), "labels": self.scheme.instance_labels(KIND_POLICY)},
            "spec": {
                "podSelector": self.scheme.pod_selector(),
                "policyTypes": ["Egress", "Ingress"],
                "egress": self.egress(),
            },
        })
    }

    fn is_ours(&self, meta: &Meta) -> bool {
        self.scheme.owns_policy(meta)
    }
}

fn single(ip: &str) -> String {
    match ip.parse() {
        Ok(IpAddr::V6(_)) => format!("{ip}/128"),
        Ok(IpAddr::V4(_)) => format!("{ip}/32"),
        // Not an address: the API server refuses the policy, and nothing starts.
        Err(_) => ip.to_owned(),
    }
}

/// A port of a rule.
pub(super) fn port(protocol: &str, number: u16) -> Value {
    json!({"protocol": protocol, "port": number})
}

/// Pods by their labels in any namespace: the daemon and the gateway need not be where the apps are.
fn pods(selector: &[String]) -> Value {
    json!({"namespaceSelector": {}, "podSelector": {"matchLabels": pairs(selector)}})
}

fn internet(all: &str, except: &[&String]) -> Value {
    if except.is_empty() { json!({"ipBlock": {"cidr": all}}) } else { json!({"ipBlock": {"cidr": all, "except": except}}) }
}

/// A spec in one form: lists in order, `protocol` said, and no empty `ingress` or `egress` (with both types named, an absent
/// list and an empty one allow nothing). Empty selectors and empty rules stay: they mean everything.
fn normal(spec: &Value) -> Value {
    let mut spec = sorted(spec);
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|key, value| !(matches!(key.as_str(), "ingress" | "egress") && value.as_array().is_some_and(Vec::is_empty)));
    }
    spec
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: serde_json::Map<String, Value> =
                fields.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), sorted(value))).collect();
            if fields.contains_key("port") && !fields.contains_key("protocol") {
                fields.insert("protocol".to_owned(), json!("TCP"));
            }
            Value::Object(fields)
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by_cached_key(canonical);
            Value::Array(items)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
