//! The section `sessions`: what a session is made of, what it may reach, how long it may take. Off by default.

use serde::{Deserialize, Serialize};

/// Something that is on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

impl Switch {
    /// Whether it is on.
    #[must_use]
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

/// Sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sessions {
    /// Whether there are any.
    pub serve: Switch,
    /// The namespace of all their objects; empty: that of the apps' pods.
    pub namespace: String,
    /// The domain of the cluster's names, in the addresses that callers are given.
    pub cluster_domain: String,
    /// What precedes the id in the name of a pod and of a Service.
    pub pod_prefix: String,
    /// The same of a claim.
    pub claim_prefix: String,
    /// The container's name.
    pub container: String,
    /// Its image.
    pub image: String,
    /// Whether the image may be named by a tag, which can come to mean another image.
    pub allow_tags: Switch,
    /// The port that it serves.
    pub port: u16,
    /// Size of a claim.
    pub claim_size: String,
    /// Its storage class; empty: the cluster's default.
    pub storage_class: String,
    /// Size of `/tmp`.
    pub tmp_size: String,
    /// The runtime class; empty: the cluster's default, which is said loudly.
    pub runtime_class: String,
    /// The CPU that is asked for.
    pub cpu: String,
    /// The most CPU.
    pub cpu_limit: String,
    /// The memory that is asked for.
    pub memory: String,
    /// The most memory.
    pub memory_limit: String,
    /// The most disk outside the claim.
    pub ephemeral_storage: String,
    /// Seconds from TERM to KILL.
    pub grace_s: u32,
    /// Image pull Secrets by name.
    pub image_pull_secrets: Vec<String>,
    /// Node selector, `key=value`.
    pub node_selector: Vec<String>,
    /// Tolerations as `key[=value]:effect`.
    pub tolerations: Vec<String>,
    /// Priority class; empty: none.
    pub priority_class: String,
    /// Labels of the front end's pods, the only ones that may connect.
    pub frontend_selector: Vec<String>,
    /// Labels of its namespace; empty: the sessions' own.
    pub frontend_namespace: Vec<String>,
    /// Labels of the namespace that DNS is in.
    pub dns_namespace: Vec<String>,
    /// Labels of its pods; empty: all of that namespace.
    pub dns_selector: Vec<String>,
    /// Address blocks of DNS besides, the cache on the node among them.
    pub dns_blocks: Vec<String>,
    /// Labels of the API gateway's namespace.
    pub gateway_namespace: Vec<String>,
    /// Labels of its pods; empty: all of that namespace.
    pub gateway_selector: Vec<String>,
    /// Its ports.
    pub gateway_ports: Vec<u16>,
    /// Whether no pod is made while another network policy widens ours.
    pub strict_policy: Switch,
    /// How long a caller waits at most for a session to be ready or gone, seconds.
    pub ready_s: u32,
    /// From creation to a node, seconds.
    pub scheduling_s: u32,
    /// From a node to the image being there, seconds.
    pub pull_s: u32,
    /// From the container's start to ready, seconds.
    pub starting_s: u32,
    /// From being asked for to ready, all stages together, seconds.
    pub provision_s: u32,
    /// Terminating until an alarm, seconds.
    pub stuck_s: u32,
    /// Terminating until a pod that may still write is forced away, seconds; 0: never.
    pub force_after_s: u32,
    /// Suspended until the claim is deleted, seconds; 0: never.
    pub retain_suspended_s: u32,
    /// Pause before a refused-for-now step is tried again, seconds.
    pub waiting_s: u32,
    /// Between two sweeps for what the watch may have missed, seconds.
    pub reaper_interval_s: u32,
    /// The most sessions, suspended ones among them.
    pub most: u32,
    /// The most sessions of one tenant.
    pub most_of_tenant: u32,
    /// The most that are asked for in a second.
    pub creates_per_s: u32,
    /// The most callers that wait.
    pub waiting: u32,
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            serve: Switch::Off,
            namespace: String::new(),
            cluster_domain: "cluster.local".to_owned(),
            pod_prefix: "pi-session-".to_owned(),
            claim_prefix: "workspace-session-".to_owned(),
            container: "session".to_owned(),
            image: String::new(),
            allow_tags: Switch::Off,
            port: 8787,
            claim_size: "1Gi".to_owned(),
            storage_class: "longhorn".to_owned(),
            tmp_size: "1Gi".to_owned(),
            runtime_class: "gvisor".to_owned(),
            // The seed's.
            cpu: "500m".to_owned(),
            cpu_limit: "1".to_owned(),
            memory: "512Mi".to_owned(),
            memory_limit: "1Gi".to_owned(),
            // `/tmp` full, and as much again for logs.
            ephemeral_storage: "2Gi".to_owned(),
            grace_s: 30,
            image_pull_secrets: Vec::new(),
            node_selector: Vec::new(),
            tolerations: Vec::new(),
            priority_class: String::new(),
            frontend_selector: Vec::new(),
            frontend_namespace: Vec::new(),
            dns_namespace: words(&["kubernetes.io/metadata.name=kube-system"]),
            dns_selector: Vec::new(),
            // Where the node-local cache listens.
            dns_blocks: words(&["169.254.20.10/32"]),
            gateway_namespace: words(&["kubernetes.io/metadata.name=api"]),
            gateway_selector: Vec::new(),
            gateway_ports: vec![8080],
            strict_policy: Switch::Off,
            ready_s: 30,
            scheduling_s: 300,
            pull_s: 300,
            starting_s: 120,
            // All three, and as long again for a claim, a policy and an old pod.
            provision_s: 1_200,
            stuck_s: 300,
            force_after_s: 0,
            retain_suspended_s: 0,
            waiting_s: 30,
            reaper_interval_s: 300,
            most: 20_000,
            most_of_tenant: 1_000,
            creates_per_s: 50,
            waiting: 1_000,
        }
    }
}

impl Sessions {
    /// The seed's names; the sizes are the same.
    #[must_use]
    pub fn of_poimen() -> Self {
        Self {
            namespace: "poimen".to_owned(),
            container: "pi-session".to_owned(),
            frontend_selector: words(&["app=poimen-frontend"]),
            ..Self::default()
        }
    }
}
