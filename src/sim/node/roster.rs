//! The nodes of a fleet: which there are, which are ready, how many pods each has. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeState {
    /// Its address.
    pub address: String,
    /// Whether it takes pods.
    pub ready: bool,
    /// How many pods it was given and still has.
    pub pods: usize,
}

/// All nodes, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roster(BTreeMap<String, NodeState>);

impl Roster {
    /// These nodes, all ready.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        let nodes = names.iter().enumerate().map(|(index, name)| {
            let address = format!("192.0.2.{}", index % 250 + 2);
            (name.clone(), NodeState { address, ready: true, pods: 0 })
        });
        Self(nodes.collect())
    }

    /// All of them at this address.
    #[must_use]
    pub fn at(mut self, address: IpAddr) -> Self {
        for node in self.0.values_mut() {
            node.address = address.to_string();
        }
        self
    }

    /// The ready node with the fewest pods, first by name; it has one more now.
    pub fn pick(&mut self) -> Option<String> {
        let ready = self.0.iter_mut().filter(|(_, node)| node.ready);
        let (name, node) = ready.min_by_key(|(_, node)| node.pods)?;
        node.pods += 1;
        Some(name.clone())
    }

    /// A pod left its node.
    pub fn left(&mut self, name: &str) {
        if let Some(node) = self.0.get_mut(name) {
            node.pods = node.pods.saturating_sub(1);
        }
    }

    /// Whether a node is one of these.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A node takes pods, or takes none.
    pub fn set_ready(&mut self, name: &str, ready: bool) {
        if let Some(node) = self.0.get_mut(name) {
            node.ready = ready;
        }
    }

    /// A node's address; of none, none.
    #[must_use]
    pub fn address(&self, name: &str) -> String {
        self.0.get(name).map(|node| node.address.clone()).unwrap_or_default()
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The nodes' names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
