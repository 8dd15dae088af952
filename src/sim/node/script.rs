//! What becomes of a pod: its script, chosen from what the pod says of itself. Pure data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

/// What a script is chosen by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// The pod's name: the host.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The plain environment of its first container.
    pub env: BTreeMap<String, String>,
}

impl PodFacts {
    /// What a pod object says.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let map = |value: &Value| -> BTreeMap<String, String> {
            value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
        };
        let env = pod["spec"]["containers"][0]["env"].as_array().into_iter().flatten();
        Self {
            name: text(&pod["metadata"]["name"]),
            namespace: text(&pod["metadata"]["namespace"]),
            labels: map(&pod["metadata"]["labels"]),
            annotations: map(&pod["metadata"]["annotations"]),
            env: env.map(|variable| (text(&variable["name"]), text(&variable["value"]))).collect(),
        }
    }
}

/// Chooses a pod's script when the pod is first seen.
pub type Scripts = Arc<dyn Fn(&PodFacts) -> Script + Send + Sync>;

/// When a pod gets its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// So long after it was first seen.
    After(Duration),
    /// Never, for this reason.
    Never(String),
}

/// What happens between the node and the first container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pull {
    /// Sandbox and image take so long.
    Takes(Duration),
    /// The image cannot be had: tried and backed off for ever.
    BackOff,
    /// The image's name is none.
    InvalidImageName,
    /// The container cannot be made, for this reason.
    ConfigError(String),
    /// The sandbox never comes up.
    Stuck,
    /// The kubelet refuses the pod, with this reason and message.
    Refused(String, String),
}

/// What happens between the last install and the running app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// It takes so long.
    Takes(Duration),
    /// The process cannot be started, with this message.
    Error(String),
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How long it runs by itself; `None` is for ever.
    pub lasts: Option<Duration>,
    /// What it ends with by itself.
    pub exit_code: i32,
    /// The reason of its end; by itself `Completed` or `Error`.
    pub reason: Option<String>,
    /// Its termination message.
    pub message: Option<String>,
    /// What it prints when it starts, one line each.
    pub first_lines: Vec<String>,
    /// What it prints when it ends by itself, one line each.
    pub last_lines: Vec<String>,
    /// How long after TERM it ends; `None` ignores TERM.
    pub term_after: Option<Duration>,
    /// What it ends with after TERM.
    pub term_exit_code: i32,
}

impl Run {
    /// Runs for ever, ends with 0 a second after TERM.
    #[must_use]
    pub fn forever() -> Self {
        Self {
            lasts: None,
            exit_code: 0,
            reason: None,
            message: None,
            first_lines: vec!["started".to_owned()],
            last_lines: Vec::new(),
            term_after: Some(Duration::from_secs(1)),
            term_exit_code: 0,
        }
    }

    /// Ends by itself.
    #[must_use]
    pub fn ends(after: Duration, exit_code: i32) -> Self {
        let last_lines = vec![format!("ending with {exit_code}")];
        Self { lasts: Some(after), exit_code, last_lines, ..Self::forever() }
    }

    /// The kernel kills it for its memory.
    #[must_use]
    pub fn out_of_memory(after: Duration) -> Self {
        Self { reason: Some("OOMKilled".to_owned()), last_lines: Vec::new(), ..Self::ends(after, 137) }
    }

    /// Does not heed TERM.
    #[must_use]
    pub fn ignoring_term(mut self) -> Self {
        self.term_after = None;
        self
    }
}

/// When the gateway hears of a running app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// So long after it runs.
    After(Duration),
    /// Never.
    Never,
}

/// All that becomes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its node.
    pub schedule: Schedule,
    /// Its image.
    pub pull: Pull,
    /// Its init containers, each of them.
    pub install: Run,
    /// The start of its containers.
    pub start: Start,
    /// Its app: the first container. Further ones run as long as it does.
    pub app: Run,
    /// Its registration.
    pub register: Register,
}

impl Default for Script {
    /// A healthy app: running after three seconds, registered half a second later.
    fn default() -> Self {
        let install = Run { first_lines: vec!["installing".to_owned()], ..Run::ends(Duration::from_secs(2), 0) };
        Self {
            schedule: Schedule::After(Duration::from_millis(100)),
            pull: Pull::Takes(Duration::from_millis(400)),
            install: Run { last_lines: vec!["installed".to_owned()], term_exit_code: 143, ..install },
            start: Start::Takes(Duration::from_millis(500)),
            app: Run::forever(),
            register: Register::After(Duration::from_millis(500)),
        }
    }
}

impl Script {
    /// With another app.
    #[must_use]
    pub fn app(mut self, app: Run) -> Self {
        self.app = app;
        self
    }

    /// With an install that fails.
    #[must_use]
    pub fn install_fails(mut self, after: Duration, exit_code: i32) -> Self {
        self.install = Run { first_lines: vec!["installing".to_owned()], ..Run::ends(after, exit_code) };
        self
    }
}
