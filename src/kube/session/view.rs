//! The part of a claim and of a Service that we read, and a NetworkPolicy whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::kube::view::Shape::{List, Number, Object, Text, Texts};
use crate::kube::view::{META, Meta, MetaView, Shape, Viewed, tolerant};

/// What we read of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimView {
    /// Its metadata.
    pub metadata: Meta,
    /// What it is.
    pub status: Option<ClaimStatus>,
}

/// What a claim is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimStatus {
    /// Its phase.
    pub phase: Option<String>,
}

/// What we read of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServiceView {
    /// Its metadata.
    pub metadata: Meta,
    /// What it is to be.
    pub spec: Option<ServiceSpec>,
}

/// What a Service is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// Its type.
    pub r#type: Option<String>,
    /// Its address.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Option<String>,
    /// Which pods it selects.
    pub selector: Option<BTreeMap<String, String>>,
    /// Its ports.
    pub ports: Option<Vec<ServicePort>>,
}

/// A port of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServicePort {
    /// Its protocol.
    pub protocol: Option<String>,
    /// Its number.
    pub port: Option<i64>,
    /// The number in the pod; a name is not ours.
    pub target_port: Option<i64>,
}

impl Viewed for ClaimView {
    const SHAPE: Shape = Object(&[("metadata", &META), ("status", &Object(&[("phase", &Text)]))]);

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Viewed for ServiceView {
    const SHAPE: Shape = Object(&[
        ("metadata", &META),
        (
            "spec",
            &Object(&[
                ("type", &Text),
                ("clusterIP", &Text),
                ("selector", &Texts),
                ("ports", &List(&Object(&[("protocol", &Text), ("port", &Number), ("targetPort", &Number)]))),
            ]),
        ),
    ]);

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// A NetworkPolicy, whole: what it means depends on every field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyView {
    /// Its metadata.
    pub metadata: Meta,
    /// All of it.
    pub whole: Value,
}

impl<'de> Deserialize<'de> for PolicyView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole = Value::deserialize(deserializer)?;
        let (MetaView { metadata }, _) = tolerant::<MetaView>(&whole);
        Ok(Self { metadata, whole })
    }
}

impl Viewed for PolicyView {
    const SHAPE: Shape = Object(&[("metadata", &META)]);

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}
