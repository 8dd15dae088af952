//! What makes settings unusable for running, and what an operator should at least hear. Pure: resolves no name, opens no file.

use super::address::{Nearness, base_url, is_everything, listen_address, nearness, needs_cluster_dns};
use super::load::{BadSettings, tree, value_of};
use super::{Act, Settings};
use crate::config::keys::KEYS;
use crate::ids::shown;

/// Which cluster the settings are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cluster {
    /// One with nodes, whose pods reach us over a network.
    Real,
    /// The same with its API server on this machine's loopback: its pods may be here too.
    OnThisMachine,
    /// The embedded one of `wharf demo`, in this process.
    Embedded,
}

/// Checks all that can be known without asking anyone; gives warnings.
///
/// # Errors
/// Every reason why a daemon must not start with these settings: fail closed.
pub fn check(settings: &Settings, cluster: Cluster) -> Result<Vec<String>, BadSettings> {
    let mut faults = Vec::new();
    let tree = tree(settings);
    for key in KEYS {
        if let Some(value) = value_of(&tree, key).filter(|value| !key.rule.allows(value)) {
            faults.push(format!("{} = {}: {} is needed", key.name, shown(&value.to_string(), 80), key.rule.words()));
        }
    }
    required(settings, cluster, &mut faults);
    listeners(settings, cluster, &mut faults);
    pairs(settings, &mut faults);
    sessions(settings, cluster, &mut faults);
    if faults.is_empty() { Ok(warnings(settings, cluster)) } else { Err(BadSettings(faults)) }
}

fn required(settings: &Settings, cluster: Cluster, faults: &mut Vec<String>) {
    let always = [("world", &settings.world), ("data_dir", &settings.data_dir), ("gateway.runner", &settings.gateway.runner)];
    let real = [
        ("gateway.url", &settings.gateway.url),
        ("gateway.token_file", &settings.gateway.token_file),
        ("sources.url", &settings.sources.url),
        ("pod.image", &settings.pod.image),
    ];
    let sizes = [
        ("sources.listen", &settings.sources.listen),
        ("control.listen", &settings.control.listen),
        ("pod.label_domain", &settings.pod.label_domain),
        ("pod.environment_dir", &settings.pod.environment_dir),
        ("pod.memory", &settings.pod.memory),
        ("pod.cpu", &settings.pod.cpu),
        ("pod.install_memory", &settings.pod.install_memory),
        ("pod.volume_size", &settings.pod.volume_size),
        ("pod.scratch_size", &settings.pod.scratch_size),
        ("pod.ephemeral_storage", &settings.pod.ephemeral_storage),
    ];
    let real = real.iter().filter(|_| cluster != Cluster::Embedded);
    for (key, value) in always.iter().chain(real).chain(&sizes) {
        if value.is_empty() {
            faults.push(format!("{key} is empty: it has to be set"));
        }
    }
    if settings.pod.command.is_empty() {
        faults.push("pod.command is empty: it has to name a program".to_owned());
    }
    if !is_environment_dir(&settings.pod.environment_dir) {
        faults.push(format!(
            "pod.environment_dir = \"{}\": an absolute path of two or more names of letters, digits, '.', '_' and '-' is needed, not in {}",
            shown(&settings.pod.environment_dir, 80),
            MOUNTED.join(" or "),
        ));
    }
}

/// Where a pod has its own folders.
const MOUNTED: &[&str] = &["/app", "/home", "/scratch"];

/// A folder of its own in the container, and safe in a shell script.
fn is_environment_dir(path: &str) -> bool {
    let is_name = |name: &str| {
        !matches!(name, "" | "." | "..") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    };
    let names: Vec<&str> = path.split('/').skip(1).collect();
    let is_taken = MOUNTED.iter().any(|mounted| path.starts_with(&format!("{mounted}/")));
    path.starts_with('/') && names.len() >= 2 && names.into_iter().all(is_name) && !is_taken
}

fn listeners(settings: &Settings, cluster: Cluster, faults: &mut Vec<String>) {
    if let Ok(control) = listen_address(&settings.control.listen)
        && !control.ip().is_loopback()
    {
        faults.push(format!("control.listen = \"{control}\": loopback alone"));
    }
    if let (Ok(control), Ok(sources)) = (listen_address(&settings.control.listen), listen_address(&settings.sources.listen))
        && control.port() == sources.port()
        && control.port() != 0
    {
        faults.push(format!("sources.listen = \"{sources}\": another port than control.listen's"));
    }
    if cluster == Cluster::Embedded {
        return;
    }
    if let Ok(sources) = listen_address(&settings.sources.listen)
        && sources.ip().is_loopback()
        && cluster == Cluster::Real
    {
        faults.push(format!("sources.listen = \"{sources}\": no pod reaches a loopback address; 0.0.0.0:{} would do", sources.port()));
    }
    let Ok((_, url)) = base_url(&settings.sources.url) else { return };
    if nearness(&url.host) == Nearness::Loopback {
        faults.push(format!("sources.url = \"{}\": to a pod that is the pod itself", settings.sources.url));
    }
    let public = settings.pod.resolvers.iter().filter_map(|text| text.parse().ok()).any(|address| is_public(&address));
    if public && needs_cluster_dns(&url.host) {
        faults.push(format!(
            "sources.url = \"{}\": pods ask {}, which do not know a name of the cluster; use the Service's address, or resolvers that do",
            settings.sources.url,
            settings.pod.resolvers.join(" and "),
        ));
    }
}

/// What only makes sense together.
fn pairs(settings: &Settings, faults: &mut Vec<String>) {
    let plan = &settings.plan;
    if plan.no_fault_first_s > plan.no_fault_max_s {
        faults.push(format!(
            "plan.no_fault_first_s = {}: at most plan.no_fault_max_s, which is {}",
            plan.no_fault_first_s, plan.no_fault_max_s
        ));
    }
    if plan.withdraw_after > plan.withdraw_after_mass {
        faults.push(format!(
            "plan.withdraw_after_mass = {}: at least plan.withdraw_after, which is {}",
            plan.withdraw_after_mass, plan.withdraw_after
        ));
    }
    for block in settings.network.egress_deny.iter().filter(|block| is_everything(block)) {
        faults.push(format!(
            "network.egress_deny: {} is everything, and the API server refuses the policy: name two halves, such as 0.0.0.0/1 and 128.0.0.0/1",
            shown(block, 80)
        ));
    }
    let ours = format!("{}/", settings.pod.label_domain);
    for label in &settings.pod.labels {
        if label.starts_with(&ours) || label.starts_with("app.kubernetes.io/managed-by=") {
            faults.push(format!("pod.labels: {} is ours and cannot be set", shown(label, 80)));
        }
    }
}

/// What sessions need when there are any.
fn sessions(settings: &Settings, cluster: Cluster, faults: &mut Vec<String>) {
    let sessions = &settings.sessions;
    if !sessions.serve.is_on() {
        return;
    }
    let always = [
        ("sessions.pod_prefix", &sessions.pod_prefix),
        ("sessions.claim_prefix", &sessions.claim_prefix),
        ("sessions.container", &sessions.container),
        ("sessions.claim_size", &sessions.claim_size),
        ("sessions.tmp_size", &sessions.tmp_size),
        ("sessions.cpu", &sessions.cpu),
        ("sessions.cpu_limit", &sessions.cpu_limit),
        ("sessions.memory", &sessions.memory),
        ("sessions.memory_limit", &sessions.memory_limit),
        ("sessions.ephemeral_storage", &sessions.ephemeral_storage),
    ];
    let real = [("sessions.image", &sessions.image)];
    for (key, value) in always.iter().chain(real.iter().filter(|_| cluster != Cluster::Embedded)) {
        if value.is_empty() {
            faults.push(format!("{key} is empty: it has to be set"));
        }
    }
    let by_digest = sessions.image.split_once("@sha256:").is_some_and(|(_, digest)| digest.len() == 64);
    if !by_digest && !sessions.allow_tags.is_on() && !sessions.image.is_empty() {
        faults.push(format!(
            "sessions.image = \"{}\": a digest is needed (IMAGE@sha256:...), or sessions.allow_tags = \"on\"",
            shown(&sessions.image, 80)
        ));
    }
    if sessions.pod_prefix == sessions.claim_prefix {
        faults.push("sessions.claim_prefix: another one than sessions.pod_prefix, so that a name says what it is of".to_owned());
    }
}

fn warnings(settings: &Settings, cluster: Cluster) -> Vec<String> {
    let mut warnings = Vec::new();
    if cluster == Cluster::Embedded {
        return warnings;
    }
    let network = &settings.network;
    if network.gateway_egress.is_empty() && network.gateway_selector.is_empty() {
        warnings.push(
            "network.gateway_egress and network.gateway_selector are empty: pods reach the gateway only where the internet rule \
             lets them"
                .to_owned(),
        );
    }
    if settings.pod.runtime_class.is_empty() {
        warnings.push("pod.runtime_class is empty: untrusted code runs under the cluster's default runtime, without gVisor".to_owned());
    }
    if settings.pod.grace_s < settings.plan.drain_s {
        warnings.push(format!(
            "pod.grace_s = {} is less than plan.drain_s = {}: who deletes a pod without saying for how long gives it less than a drain",
            settings.pod.grace_s, settings.plan.drain_s
        ));
    }
    if network.egress_deny.is_empty() {
        warnings.push("network.egress_deny is empty: pods reach private addresses and the cloud's metadata".to_owned());
    }
    if settings.sessions.serve.is_on() && settings.sessions.runtime_class.is_empty() {
        warnings.push("sessions.runtime_class is empty: sessions run under the cluster's default runtime, without gVisor".to_owned());
    }
    if settings.sessions.serve.is_on() && settings.sessions.frontend_selector.is_empty() {
        warnings.push("sessions.frontend_selector is empty: nobody can connect to a session".to_owned());
    }
    if settings.act == Act::None {
        warnings.push("act = \"none\": steps are decided and recorded, and none is sent".to_owned());
    }
    warnings
}

/// Whether an address is somebody's on the internet, who knows no cluster's names.
fn is_public(address: &std::net::IpAddr) -> bool {
    match address {
        std::net::IpAddr::V4(v4) => {
            let shared = v4.octets()[0] == 100 && (64..128).contains(&v4.octets()[1]);
            !(v4.is_private() || v4.is_loopback() || v4.is_link_local() || shared)
        }
        std::net::IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Switch;

    fn usable() -> Settings {
        let mut settings = Settings { world: "prod".to_owned(), ..Settings::default() };
        settings.gateway.url = "https://gw.example.org".to_owned();
        settings.gateway.token_file = "/etc/wharf/token".to_owned();
        settings.sources.listen = "0.0.0.0:7071".to_owned();
        settings.sources.url = "http://10.96.0.7:7071".to_owned();
        settings.pod.image = "example.org/agent:1".to_owned();
        settings.network.gateway_egress = vec!["203.0.113.0/24".to_owned()];
        settings
    }

    fn faults(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = usable();
        change(&mut settings);
        check(&settings, Cluster::Real).expect_err("these settings must not run").to_string()
    }

    #[test]
    fn sessions_are_by_digest_unless_tags_are_allowed() {
        let served = |image: &str, allow_tags| {
            let image = image.to_owned();
            move |settings: &mut Settings| {
                settings.sessions.serve = Switch::On;
                settings.sessions.image = image;
                settings.sessions.allow_tags = allow_tags;
                settings.sessions.frontend_selector = vec!["app=front".to_owned()];
            }
        };
        assert!(faults(served("example.org/session:latest", Switch::Off)).contains("a digest is needed"));
        assert!(faults(served("", Switch::On)).contains("sessions.image is empty"));
        let digest = format!("example.org/session@sha256:{}", "a".repeat(64));
        for (image, allow_tags) in [(digest.as_str(), Switch::Off), ("example.org/session:1", Switch::On)] {
            let mut settings = usable();
            served(image, allow_tags)(&mut settings);
            assert_eq!(check(&settings, Cluster::Real), Ok(Vec::new()));
        }
    }

    #[test]
    fn usable_settings_have_no_warning() {
        assert_eq!(check(&usable(), Cluster::Real), Ok(Vec::new()));
    }

    #[test]
    fn the_defaults_name_all_that_has_to_be_set() {
        let text = check(&Settings::default(), Cluster::Real).expect_err("defaults cannot run").to_string();
        for key in ["world", "gateway.url", "gateway.token_file", "sources.url", "pod.image", "sources.listen"] {
            assert!(text.contains(key), "{key}: {text}");
        }
    }

    #[test]
    fn what_no_pod_could_reach_is_refused() {
        for url in ["http://wharf.prod.svc:7071", "http://wharf:7071", "http://wharf.prod.svc.cluster.local", "http://127.0.0.1:7071"] {
            assert!(faults(|s| s.sources.url = url.to_owned()).contains("sources.url"), "{url}");
        }
        assert!(faults(|s| s.sources.listen = "127.0.0.1:7071".to_owned()).contains("sources.listen"));
        let mut inside = usable();
        inside.sources.url = "http://wharf.prod.svc:7071".to_owned();
        inside.pod.resolvers = vec!["10.96.0.10".to_owned()];
        assert!(check(&inside, Cluster::Real).is_ok(), "the cluster's own resolver knows it");
    }

    #[test]
    fn a_cluster_on_this_machine_may_have_its_pods_here() {
        let mut here = usable();
        here.sources.listen = "127.0.0.1:0".to_owned();
        assert!(check(&here, Cluster::Real).is_err());
        assert!(check(&here, Cluster::OnThisMachine).is_ok());
    }

    #[test]
    fn the_control_listener_stays_on_loopback() {
        assert!(faults(|s| s.control.listen = "0.0.0.0:7070".to_owned()).contains("loopback alone"));
    }

    #[test]
    fn a_mount_that_breaks_the_pod_or_its_script_is_refused() {
        for bad in
            ["/", "/app", "/app/env", "/run", "run/env", "/run/", "/run/a b;rm", "/run/../app", "/run/$(x)", "/home/app", "/scratch/x"]
        {
            assert!(faults(|settings| settings.pod.environment_dir = bad.to_owned()).contains("pod.environment_dir"), "{bad}");
        }
        for good in ["/run/wharf", "/run/pinecall", "/var/lib/my-env_1.d"] {
            let mut settings = usable();
            settings.pod.environment_dir = good.to_owned();
            assert!(check(&settings, Cluster::Real).is_ok(), "{good}");
        }
    }

    #[test]
    fn two_listeners_have_two_ports() {
        assert!(faults(|settings| settings.control.listen = "127.0.0.1:7071".to_owned()).contains("sources.listen"));
    }

    #[test]
    fn a_block_that_is_everything_cannot_be_taken_out_of_everything() {
        for evil in ["0.0.0.0/0", "::/0", "0.0.0.0/00", "10.0.0.0/0", "2001:db8::/0", "::ffff:10.0.0.0/104", "10.0.0.1/8", "fe80::1/10"] {
            assert!(faults(|s| s.network.egress_deny.push(evil.to_owned())).contains("network.egress_deny"), "{evil}");
        }
        let mut halves = usable();
        halves.network.egress_deny = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"].map(str::to_owned).to_vec();
        assert!(check(&halves, Cluster::Real).is_ok());
    }

    #[test]
    fn our_labels_cannot_be_set() {
        assert!(faults(|s| s.pod.labels = vec!["wharfinger.dev/app=x".to_owned()]).contains("cannot be set"));
    }

    #[test]
    fn what_is_dangerous_is_said() {
        let mut settings = usable();
        settings.network.gateway_egress.clear();
        settings.pod.runtime_class.clear();
        let warnings = check(&settings, Cluster::Real).expect("it may run");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }

    #[test]
    fn the_embedded_cluster_needs_a_world_alone() {
        let settings = Settings { world: "demo".to_owned(), ..Settings::default() };
        assert_eq!(check(&settings, Cluster::Embedded), Ok(Vec::new()));
    }
}
