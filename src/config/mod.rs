//! The settings: one struct a section, with defaults, units in the names, and derivations. Read once at start; `load` alone
//! does I/O.

pub mod access;
pub mod address;
pub mod check;
pub mod defaults;
pub mod document;
pub mod force;
pub mod keys;
pub mod load;
pub mod rule;
pub mod sessions;

use serde::{Deserialize, Serialize};

pub use sessions::{Sessions, Switch};

/// Everything that can be set; `wharf config default` prints it with comments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Which world of apps this daemon serves: a DNS label; the gateway's answers must name it.
    pub world: String,
    /// Whose objects are ours: a DNS label, stable over restarts; empty means the world.
    pub instance: String,
    /// Where the log, the sources and the keys are; made with mode 0700.
    pub data_dir: String,
    /// `all`, or `none`: observe and decide, send nothing.
    pub act: Act,
    /// Names, labels and sizes: `wharf`, or `pinecall` or `poimen` for a seed's.
    pub profile: Profile,
    /// The cluster's API.
    pub kubernetes: Kubernetes,
    /// The gateway.
    pub gateway: Gateway,
    /// The listener that pods fetch packages from.
    pub sources: Sources,
    /// The listener for people and tools.
    pub control: Control,
    /// What a host's pod is made of.
    pub pod: Pod,
    /// What a host's pod may reach.
    pub network: Network,
    /// What the plan goes by.
    pub plan: Plan,
    /// What is written to stderr.
    pub telemetry: Telemetry,
    /// How long the log is kept.
    pub log: Log,
    /// What is pushed of the feed.
    pub sinks: Sinks,
    /// What bounds the daemon itself.
    pub limits: Limits,
    /// Sessions; in a box, because settings are held by value in many places.
    pub sessions: Box<Sessions>,
}

/// Whether steps are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// Act.
    All,
    /// Observe and decide only.
    None,
}

/// A set of names, labels and sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Ours.
    Wharf,
    /// The apps' seed's: label domain `pinecall.io`, environment folder `/run/pinecall`.
    Pinecall,
    /// The sessions' seed's: namespace `poimen`, labels `app` and `session-id`.
    Poimen,
}

/// The cluster's API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kubernetes {
    /// A kubeconfig file; empty: `KUBECONFIG`, `~/.kube/config`, else in-cluster.
    pub kubeconfig: String,
    /// A context of it; empty: its current one.
    pub context: String,
    /// The namespace of all pods; empty: the kubeconfig's or the service account's.
    pub namespace: String,
    /// Calls a second, on average.
    pub calls_per_s: u32,
    /// Calls at once before the average binds.
    pub burst: u32,
    /// Writes under way at once.
    pub in_flight: u32,
    /// Steps waiting, all lanes together; past it the daemon says so and takes no more.
    pub queue: u32,
    /// A request's time limit, seconds.
    pub request_s: u32,
    /// Watch silence after which it is taken for dead, seconds.
    pub watch_silence_s: u32,
}

/// The gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gateway {
    /// Its base URL; `https`, or `http` on loopback or in the cluster.
    pub url: String,
    /// This runner's name in the heartbeat.
    pub runner: String,
    /// The bearer token's file, read on every request.
    pub token_file: String,
    /// A PEM file of the authorities to trust; empty: the system's.
    pub ca_file: String,
    /// Between two beats, milliseconds.
    pub beat_ms: u64,
    /// A request's time limit, seconds.
    pub request_s: u32,
}

/// The listener that pods fetch packages from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sources {
    /// Its address.
    pub listen: String,
    /// Its base URL as a pod reaches it.
    pub url: String,
    /// The largest package, bytes.
    pub max_bytes: u64,
}

/// The listener for people and tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Control {
    /// Its address; loopback only.
    pub listen: String,
    /// The file that says whose token may do what; empty: whoever reaches the listener may do all but read tails.
    pub access_file: String,
    /// Who may read the metrics.
    pub metrics: MetricsFor,
}

/// Who may read the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricsFor {
    /// Anybody who reaches the listener.
    Anybody,
    /// Auditors and operators.
    Readers,
}

/// What a host's pod is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pod {
    /// The image of both containers.
    pub image: String,
    /// The runtime class; empty: the cluster's default, which is said loudly.
    pub runtime_class: String,
    /// The app's command.
    pub command: Vec<String>,
    /// Domain of our labels and annotations.
    pub label_domain: String,
    /// Where the environment is mounted.
    pub environment_dir: String,
    /// DNS resolvers.
    pub resolvers: Vec<String>,
    /// The app's memory, a Kubernetes quantity.
    pub memory: String,
    /// The app's and the install's CPU.
    pub cpu: String,
    /// The install's memory.
    pub install_memory: String,
    /// How long the install may run inside the pod, seconds.
    pub install_s: u32,
    /// Size of `/app` and of `/home/app`.
    pub volume_size: String,
    /// Size of `/scratch`, in memory.
    pub scratch_size: String,
    /// Disk limit of a container.
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
    /// Further labels, `key=value`; ours cannot be set.
    pub labels: Vec<String>,
}

/// What a host's pod may reach besides the resolvers and the sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// The sources listener's port.
    pub sources_port: u16,
    /// Labels of the daemon's own pod, `key=value`.
    pub sources_selector: Vec<String>,
    /// CIDRs of the gateway.
    pub gateway_egress: Vec<String>,
    /// Labels of the gateway's pods, `key=value`, in any namespace.
    pub gateway_selector: Vec<String>,
    /// Its ports.
    pub gateway_ports: Vec<u16>,
    /// CIDRs that the internet rule leaves out.
    pub egress_deny: Vec<String>,
}

/// What the plan goes by; becomes the record `SettingsInForce`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// Own exits within the window that are still revived.
    pub crash_limit: u32,
    /// How long an own exit counts, seconds.
    pub crash_window_s: u32,
    /// From creation to a node, seconds.
    pub scheduling_s: u32,
    /// From a node to the image, seconds.
    pub pull_s: u32,
    /// The install, seconds.
    pub install_s: u32,
    /// From the app's start to registered, seconds.
    pub register_s: u32,
    /// The grace of a stop, seconds.
    pub drain_s: u32,
    /// The first pause between no-fault revivals, seconds.
    pub no_fault_first_s: u32,
    /// The longest, seconds.
    pub no_fault_max_s: u32,
    /// No-fault revivals in the window until an alarm.
    pub no_fault_alarm: u32,
    /// Terminating on a node that is not ready until forced, seconds.
    pub force_s: u32,
    /// Counted answers without the app until it is withdrawn.
    pub withdraw_after: u32,
    /// The same if any missed most apps.
    pub withdraw_after_mass: u32,
    /// Pause before a refused-for-now step is tried again, seconds.
    pub waiting_s: u32,
}

/// What is written to stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Which log lines, as `RUST_LOG` has it.
    pub filter: String,
    /// How.
    pub format: Format,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Text on a terminal, else JSON.
    Auto,
    /// Text.
    Text,
    /// JSON lines.
    Json,
}

/// How long the log is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// Older records age out, seconds; 0: none does by its age.
    pub keep_s: u64,
    /// The oldest records age out when the log is larger, bytes; 0: none does by the size.
    pub keep_bytes: u64,
    /// A folder that what ages out is written to before; empty: none.
    pub archive: String,
}

/// What the daemon pushes of its feed by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sinks {
    /// The folder that events are written to, an event a line; empty: none.
    pub file: String,
    /// A file past it gets its name for good, bytes.
    pub file_bytes: u64,
    /// So many of those stay; 0: all.
    pub file_keep: u32,
}

/// What bounds the daemon itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Inputs queued and in reactions, all subjects together.
    pub inbox: u32,
    /// Inputs queued for one subject.
    pub inbox_subject: u32,
    /// Apps of one world.
    pub apps: u32,
    /// The largest gateway answer, bytes.
    pub answer_bytes: u64,
}
