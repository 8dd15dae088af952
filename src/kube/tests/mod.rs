//! Tests of the cluster edge that need more than their own file, and what they share.

mod answers;
mod clients;
mod environments;
mod installs;
mod manifests;
mod observations;
mod performing;
mod performing_secrets;
mod script;
mod sessions;
mod tails;
mod throttles;
mod watches;
mod watches_in_trouble;

use serde_json::{Value, json};

use super::manifest::Order;
use crate::config::Settings;
use crate::ids::{AppId, HostName, LogId, PackageDigest, RecordId, Seq};

/// Settings of a daemon for the world `test`.
fn settings() -> Settings {
    let mut settings = Settings { world: "test".to_owned(), ..Settings::default() };
    settings.pod.image = "registry.test/node:1".to_owned();
    settings.sources.url = "http://wharf.test:7071/".to_owned();
    settings.network.gateway_egress = vec!["203.0.113.7/32".to_owned()];
    settings
}

fn app() -> AppId {
    AppId::new("acme", "bot").expect("an app")
}

fn step(seq: u64) -> RecordId {
    RecordId { log: LogId([0xab; 16]), seq: Seq(seq) }
}

fn digest() -> PackageDigest {
    PackageDigest::from_bytes([0x5a; 32])
}

fn order() -> Order {
    Order { app: app(), host: host("bot-r2-3c6ef362"), release: 2, step: step(17), attempts: 0 }
}

fn host(name: &str) -> HostName {
    HostName::new(name).expect("a host")
}

/// A recording, by its name.
fn recorded(name: &str) -> String {
    let path = format!("{}/tests/data/podjson/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of the recordings that end so, in order.
fn recordings(end: &str) -> Vec<String> {
    let folder = format!("{}/tests/data/podjson", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the recordings")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(end))
        .collect();
    names.sort();
    names
}

/// A recorded pod as if it were ours: our names for its containers, our labels and annotations.
fn dressed(mut pod: Value) -> Value {
    for path in ["/spec/initContainers", "/spec/containers", "/status/initContainerStatuses", "/status/containerStatuses"] {
        for container in pod.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten() {
            let ours = match container["name"].as_str() {
                Some("prep") => "install",
                Some("main") => "app",
                _ => continue,
            };
            container["name"] = json!(ours);
        }
    }
    let scheme = super::labels::Scheme::new(&settings());
    pod["metadata"]["labels"] = json!(scheme.labels(&app(), 2));
    pod["metadata"]["annotations"] = json!(scheme.annotations(&app(), step(17), Some(&digest())));
    pod
}
