//! Every setting by its key: what it means, in which unit, and what is allowed. The printed file, the checks and the errors
//! all come from this table; a test holds it against the structs.

use super::rule::Rule;

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its key: `section.key`, or `key` alone.
    pub name: &'static str,
    /// What is allowed.
    pub rule: Rule,
    /// What it means, with its unit.
    pub doc: &'static str,
}

const fn key(name: &'static str, rule: Rule, doc: &'static str) -> Key {
    Key { name, rule, doc }
}

const SWITCH: Rule = Rule::OneOf(&["off", "on"]);

/// Every setting, in the order of the printed file.
pub const KEYS: &[Key] = &[
    key("world", Rule::Label, "which world of apps this daemon serves; the gateway's answers must name it; required"),
    key("instance", Rule::LabelOrEmpty, "whose objects are ours, stable over restarts; empty: the world"),
    key("data_dir", Rule::Path, "the folder of the log, the packages and the keys; made with mode 0700"),
    key("act", Rule::OneOf(&["all", "none"]), "whether steps are sent; none: observe and decide, send nothing"),
    key("profile", Rule::OneOf(&["wharf", "pinecall", "poimen"]), "a set of names, labels and sizes that the other defaults come from"),
    key("kubernetes.kubeconfig", Rule::Path, "a kubeconfig file; empty: KUBECONFIG, then ~/.kube/config, else in-cluster"),
    key("kubernetes.context", Rule::Text, "a context of it; empty: its current one"),
    key("kubernetes.namespace", Rule::LabelOrEmpty, "the namespace of all pods; empty: the kubeconfig's, or the service account's"),
    key("kubernetes.calls_per_s", Rule::Number(1, 10_000), "calls a second, on average"),
    key("kubernetes.burst", Rule::Number(1, 100_000), "calls at once before the average binds"),
    key("kubernetes.in_flight", Rule::Number(1, 1000), "writes under way at once"),
    key("kubernetes.queue", Rule::Number(100, 1_000_000), "steps waiting, all lanes together; past it no more are taken"),
    key("kubernetes.request_s", Rule::Number(1, 300), "seconds until a request is given up"),
    key("kubernetes.watch_silence_s", Rule::Number(60, 3600), "seconds of silence after which a watch is taken for dead"),
    key("gateway.url", Rule::Gateway, "its base URL: https, or http on loopback or to a Service; required"),
    key("gateway.runner", Rule::Label, "this runner's name in the heartbeat"),
    key("gateway.token_file", Rule::Path, "the file with the bearer token, read on every request; required"),
    key("gateway.ca_file", Rule::Path, "a PEM file of the authorities to trust; empty: the system's"),
    key("gateway.beat_ms", Rule::Number(100, 60_000), "milliseconds between two beats"),
    key("gateway.request_s", Rule::Number(1, 300), "seconds until a request is given up"),
    key("sources.listen", Rule::Listen, "where pods fetch packages"),
    key("sources.url", Rule::Url, "the same as a pod reaches it; required"),
    key("sources.max_bytes", Rule::Number(1024, 1_073_741_824), "bytes of the largest package"),
    key("control.listen", Rule::Listen, "where people and tools ask; loopback only"),
    key("control.access_file", Rule::Path, "whose token may do what; empty: whoever reaches it may do all but read tails"),
    key("control.metrics", Rule::OneOf(&["anybody", "readers"]), "who may read /metrics; readers: auditors and operators"),
    key("pod.image", Rule::Text, "the image of both containers; required"),
    key("pod.runtime_class", Rule::LabelOrEmpty, "the runtime class; empty: the cluster's default, without gVisor"),
    key("pod.command", Rule::Words, "the app's command"),
    key("pod.label_domain", Rule::Domain, "the domain of our labels and annotations"),
    key("pod.environment_dir", Rule::Path, "where the environment is mounted"),
    key("pod.resolvers", Rule::Addresses, "DNS resolvers"),
    key("pod.memory", Rule::Quantity, "the app's memory"),
    key("pod.cpu", Rule::Quantity, "the app's and the install's CPU"),
    key("pod.install_memory", Rule::Quantity, "the install's memory"),
    key("pod.install_s", Rule::Number(10, 3600), "seconds that the install may run inside the pod"),
    key("pod.volume_size", Rule::Quantity, "size of /app and of /home/app"),
    key("pod.scratch_size", Rule::Quantity, "size of /scratch, in memory"),
    key("pod.ephemeral_storage", Rule::Quantity, "disk limit of a container"),
    key("pod.grace_s", Rule::Number(0, 3600), "seconds from TERM to KILL"),
    key("pod.image_pull_secrets", Rule::Labels, "image pull Secrets, by name"),
    key("pod.node_selector", Rule::Pairs, "node selector"),
    key("pod.tolerations", Rule::Tolerations, "tolerations"),
    key("pod.priority_class", Rule::DomainOrEmpty, "priority class; empty: none"),
    key("pod.labels", Rule::Pairs, "further labels of every pod; ours cannot be set"),
    key("network.sources_port", Rule::Number(1, 65_535), "the port of the sources listener, as the daemon's pod has it"),
    key("network.sources_selector", Rule::Pairs, "labels of the daemon's own pod"),
    key("network.gateway_egress", Rule::Blocks, "address blocks of the gateway"),
    key("network.gateway_selector", Rule::Pairs, "labels of the gateway's pods, in any namespace"),
    key("network.gateway_ports", Rule::Ports, "its ports"),
    key("network.egress_deny", Rule::Blocks, "address blocks that the internet rule leaves out"),
    key("plan.crash_limit", Rule::Number(0, 1000), "own exits within the window that are still revived"),
    key("plan.crash_window_s", Rule::Number(1, 86_400), "seconds that an own exit counts"),
    key("plan.scheduling_s", Rule::Number(1, 86_400), "seconds from creation to a node"),
    key("plan.pull_s", Rule::Number(1, 86_400), "seconds from a node to the image being there"),
    key("plan.install_s", Rule::Number(1, 86_400), "seconds of the install"),
    key("plan.register_s", Rule::Number(1, 86_400), "seconds from the app's start to registered"),
    key("plan.drain_s", Rule::Number(0, 3600), "seconds of grace of a stop"),
    key("plan.no_fault_first_s", Rule::Number(1, 3600), "seconds of the first pause between no-fault revivals"),
    key("plan.no_fault_max_s", Rule::Number(1, 3600), "seconds of the longest"),
    key("plan.no_fault_alarm", Rule::Number(1, 1000), "no-fault revivals in the window until an alarm"),
    key("plan.force_s", Rule::Number(60, 86_400), "seconds terminating on a node that is not ready until forced"),
    key("plan.withdraw_after", Rule::Number(1, 1000), "counted answers without the app until it is withdrawn"),
    key("plan.withdraw_after_mass", Rule::Number(1, 1000), "the same if any of them missed most apps"),
    key("plan.waiting_s", Rule::Number(1, 3600), "seconds before a refused-for-now step is tried again"),
    key("telemetry.filter", Rule::Text, "which log lines are written, as RUST_LOG has it: a level, or target=level by commas"),
    key("telemetry.format", Rule::OneOf(&["auto", "text", "json"]), "how; auto: text on a terminal, else JSON"),
    key("log.keep_s", Rule::Number(0, 3_153_600_000), "seconds after which records age out; 0: none does by its age"),
    key("log.keep_bytes", Rule::Number(0, 1 << 50), "bytes of records past which the oldest age out; 0: none does by the size"),
    key("log.archive", Rule::Path, "a folder that what ages out is written to before; empty: none"),
    key("sinks.file", Rule::Path, "a folder that the feed is written to, an event a line; empty: none"),
    key("sinks.file_bytes", Rule::Number(65_536, 1 << 40), "bytes past which a file is renamed and the next begun"),
    key("sinks.file_keep", Rule::Number(0, 1_000_000), "renamed files that stay, the newest; 0: all"),
    key("limits.inbox", Rule::Number(100, 10_000_000), "inputs queued and in reactions, all subjects together"),
    key("limits.inbox_subject", Rule::Number(8, 100_000), "inputs queued for one subject"),
    key("limits.apps", Rule::Number(1, 1_000_000), "apps of one world"),
    key("limits.answer_bytes", Rule::Number(65_536, 1_073_741_824), "bytes of the largest gateway answer"),
    key("sessions.serve", SWITCH, "whether there are sessions"),
    key("sessions.namespace", Rule::LabelOrEmpty, "the namespace of all their objects; empty: that of the apps' pods"),
    key("sessions.cluster_domain", Rule::Domain, "the domain of the cluster's names, in the addresses that callers are given"),
    key("sessions.pod_prefix", Rule::Prefix, "what precedes the id in the name of a pod and of a Service"),
    key("sessions.claim_prefix", Rule::Prefix, "the same of a claim"),
    key("sessions.container", Rule::Label, "the container's name"),
    key("sessions.image", Rule::Text, "its image, by digest; required when there are sessions"),
    key("sessions.allow_tags", SWITCH, "whether the image may be named by a tag, which can come to mean another image"),
    key("sessions.port", Rule::Number(1, 65_535), "the port that it serves"),
    key("sessions.claim_size", Rule::Quantity, "size of a claim"),
    key("sessions.storage_class", Rule::DomainOrEmpty, "its storage class; empty: the cluster's default"),
    key("sessions.tmp_size", Rule::Quantity, "size of /tmp"),
    key("sessions.runtime_class", Rule::LabelOrEmpty, "the runtime class; empty: the cluster's default, without gVisor"),
    key("sessions.cpu", Rule::Quantity, "CPU that is asked for"),
    key("sessions.cpu_limit", Rule::Quantity, "the most CPU"),
    key("sessions.memory", Rule::Quantity, "memory that is asked for"),
    key("sessions.memory_limit", Rule::Quantity, "the most memory"),
    key("sessions.ephemeral_storage", Rule::Quantity, "the most disk outside the claim"),
    key("sessions.grace_s", Rule::Number(1, 3600), "seconds from TERM to KILL"),
    key("sessions.image_pull_secrets", Rule::Labels, "image pull Secrets, by name"),
    key("sessions.node_selector", Rule::Pairs, "node selector"),
    key("sessions.tolerations", Rule::Tolerations, "tolerations"),
    key("sessions.priority_class", Rule::DomainOrEmpty, "priority class; empty: none"),
    key("sessions.frontend_selector", Rule::Pairs, "labels of the front end's pods, which alone may connect; empty: nobody may"),
    key("sessions.frontend_namespace", Rule::Pairs, "labels of its namespace; empty: the sessions' own"),
    key("sessions.dns_namespace", Rule::Pairs, "labels of the namespace that DNS is in; empty: none"),
    key("sessions.dns_selector", Rule::Pairs, "labels of its pods; empty: all of that namespace"),
    key("sessions.dns_blocks", Rule::Blocks, "address blocks of DNS besides, the cache on the node among them"),
    key("sessions.gateway_namespace", Rule::Pairs, "labels of the API gateway's namespace; empty: none"),
    key("sessions.gateway_selector", Rule::Pairs, "labels of its pods; empty: all of that namespace"),
    key("sessions.gateway_ports", Rule::Ports, "its ports"),
    key("sessions.strict_policy", SWITCH, "whether no pod is made while another network policy widens ours"),
    key("sessions.ready_s", Rule::Number(1, 3600), "seconds that a caller waits at most"),
    key("sessions.scheduling_s", Rule::Number(1, 86_400), "seconds from creation to a node"),
    key("sessions.pull_s", Rule::Number(1, 86_400), "seconds from a node to the image being there"),
    key("sessions.starting_s", Rule::Number(1, 86_400), "seconds from the container's start to ready"),
    key("sessions.provision_s", Rule::Number(1, 86_400), "seconds from being asked for to ready, all stages together"),
    key("sessions.stuck_s", Rule::Number(60, 86_400), "seconds terminating until an alarm"),
    key("sessions.force_after_s", Rule::Number(0, 86_400), "seconds terminating until a pod that may still write is forced away; 0: never"),
    key("sessions.retain_suspended_s", Rule::Number(0, 315_360_000), "seconds suspended until the claim is deleted; 0: never"),
    key("sessions.waiting_s", Rule::Number(1, 3600), "seconds before a refused-for-now step is tried again"),
    key("sessions.reaper_interval_s", Rule::Number(1, 86_400), "seconds between two sweeps for what the watch may have missed"),
    key("sessions.most", Rule::Number(1, 1_000_000), "sessions in all, suspended ones among them"),
    key("sessions.most_of_tenant", Rule::Number(1, 1_000_000), "sessions of one tenant"),
    key("sessions.creates_per_s", Rule::Number(1, 10_000), "sessions asked for in a second"),
    key("sessions.waiting", Rule::Number(1, 100_000), "callers that wait"),
];

/// The setting of that key.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

impl Key {
    /// The section it stands in; empty for the top.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(section, _)| section)
    }

    /// Its name within the section.
    #[must_use]
    pub fn short(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, short)| short)
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("WHARF_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Settings;
    use crate::config::load::{tree, value_of};

    #[test]
    fn the_table_and_the_structs_name_the_same_settings() {
        let tree = tree(&Settings::default());
        let mut fields = BTreeSet::new();
        for (name, value) in tree.as_object().expect("a table") {
            match value.as_object() {
                Some(section) => fields.extend(section.keys().map(|short| format!("{name}.{short}"))),
                None => drop(fields.insert(name.clone())),
            }
        }
        let keys: BTreeSet<String> = KEYS.iter().map(|key| key.name.to_owned()).collect();
        assert_eq!(keys, fields);
        assert_eq!(keys.len(), KEYS.len(), "no key twice");
    }

    #[test]
    fn every_default_is_allowed() {
        let tree = tree(&Settings::default());
        for key in KEYS {
            let value = value_of(&tree, key).expect("every key has a value");
            assert!(key.rule.allows(value), "{} = {value}", key.name);
        }
    }
}
