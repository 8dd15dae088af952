//! The default of every setting, and where each number comes from.

use super::{
    Act, Control, Format, Gateway, Kubernetes, Limits, Log, MetricsFor, Network, Plan, Pod, Profile, Sessions, Settings, Sinks, Sources,
    Telemetry,
};

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            world: String::new(),
            instance: String::new(),
            data_dir: "wharf-data".to_owned(),
            act: Act::All,
            profile: Profile::Wharf,
            kubernetes: Kubernetes::default(),
            gateway: Gateway::default(),
            sources: Sources::default(),
            control: Control::default(),
            pod: Pod::default(),
            network: Network::default(),
            plan: Plan::default(),
            telemetry: Telemetry::default(),
            log: Log::default(),
            sinks: Sinks::default(),
            limits: Limits::default(),
            sessions: Box::default(),
        }
    }
}

impl Settings {
    /// The defaults of a profile. `pinecall` is the apps' seed's: its label domain and environment folder; `poimen` the sessions'
    /// seed's: its namespace and names. The sizes are the same.
    #[must_use]
    pub fn of_profile(profile: Profile) -> Self {
        let mut settings = Self { profile, ..Self::default() };
        match profile {
            Profile::Wharf => {}
            Profile::Pinecall => {
                settings.pod.label_domain = "pinecall.io".to_owned();
                settings.pod.environment_dir = "/run/pinecall".to_owned();
            }
            Profile::Poimen => *settings.sessions = Sessions::of_poimen(),
        }
        settings
    }
}

impl Default for Kubernetes {
    fn default() -> Self {
        Self {
            kubeconfig: String::new(),
            context: String::new(),
            namespace: String::new(),
            // client-go's customary budget for one well-behaved controller is 20 to 50 a second.
            calls_per_s: 50,
            burst: 100,
            in_flight: 16,
            queue: 10_000,
            request_s: 60,
            // Bookmarks come about once a minute: two missed and a half.
            watch_silence_s: 150,
        }
    }
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            url: String::new(),
            runner: "wharf".to_owned(),
            token_file: String::new(),
            ca_file: String::new(),
            beat_ms: 5_000,
            request_s: 30,
        }
    }
}

impl Default for Sources {
    fn default() -> Self {
        Self { listen: "127.0.0.1:7071".to_owned(), url: String::new(), max_bytes: 10 << 20 }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self { listen: "127.0.0.1:7070".to_owned(), access_file: String::new(), metrics: MetricsFor::Anybody }
    }
}

impl Default for Pod {
    fn default() -> Self {
        Self {
            image: String::new(),
            runtime_class: "gvisor".to_owned(),
            command: words(&["node", "index.js"]),
            label_domain: "wharfinger.dev".to_owned(),
            environment_dir: "/run/wharf".to_owned(),
            resolvers: words(&["1.1.1.1", "8.8.8.8"]),
            // The seed's measure: 72 MB an idle agent under gVisor, with room for a tool's burst.
            memory: "256Mi".to_owned(),
            cpu: "500m".to_owned(),
            install_memory: "1Gi".to_owned(),
            install_s: 300,
            volume_size: "1Gi".to_owned(),
            scratch_size: "64Mi".to_owned(),
            // Both disk volumes full, and as much again for logs.
            ephemeral_storage: "3Gi".to_owned(),
            grace_s: 45,
            image_pull_secrets: Vec::new(),
            node_selector: Vec::new(),
            tolerations: Vec::new(),
            priority_class: String::new(),
            labels: Vec::new(),
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self {
            sources_port: 7071,
            sources_selector: words(&["app.kubernetes.io/name=wharfinger"]),
            gateway_egress: Vec::new(),
            gateway_selector: Vec::new(),
            gateway_ports: vec![443],
            egress_deny: words(&[
                "10.0.0.0/8",
                "172.16.0.0/12",
                "192.168.0.0/16",
                "100.64.0.0/10",
                "169.254.0.0/16",
                "127.0.0.0/8",
                "fc00::/7",
                "fe80::/10",
                "64:ff9b::/96",
                "::1/128",
            ]),
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            crash_limit: 5,
            crash_window_s: 600,
            scheduling_s: 300,
            pull_s: 300,
            install_s: 300,
            register_s: 120,
            // Ten seconds for the gateway, thirty for the slowest tool, five to spare.
            drain_s: 45,
            no_fault_first_s: 1,
            no_fault_max_s: 60,
            no_fault_alarm: 10,
            force_s: 300,
            withdraw_after: 2,
            withdraw_after_mass: 5,
            waiting_s: 30,
        }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { filter: "info".to_owned(), format: Format::Auto }
    }
}

impl Default for Log {
    fn default() -> Self {
        // A quarter to look back on; and the store's file, up to 2.2 times the records, with room for it to be written anew, in the
        // 10 GiB of the deployment.
        Self { keep_s: 90 * 86_400, keep_bytes: 2 << 30, archive: String::new() }
    }
}

impl Default for Sinks {
    fn default() -> Self {
        Self { file: String::new(), file_bytes: 64 << 20, file_keep: 0 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { inbox: 65_536, inbox_subject: 256, apps: 20_000, answer_bytes: 64 << 20 }
    }
}
