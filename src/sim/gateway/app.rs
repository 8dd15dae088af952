//! One app as the gateway knows it: its releases, its secret, which host is wanted and which is live. Pure.

use std::collections::BTreeMap;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::package::package;
use crate::ids::hex;

/// One app.
#[derive(Debug, Clone)]
pub struct App {
    /// Its organisation.
    pub org: String,
    /// Its name.
    pub name: String,
    /// The wanted release.
    pub release: u64,
    /// The wanted host.
    pub host: String,
    /// Whether the wanted host was reported failed.
    pub failed: bool,
    /// The host that last went live.
    pub live_host: Option<String>,
    /// Whether its log is wanted with the next beat.
    pub logs_wanted: bool,
    /// What it is started with.
    pub environment: BTreeMap<String, String>,
    secret_version: u64,
    /// Packages by release, each with its SHA-256.
    sources: BTreeMap<u64, (Bytes, String)>,
}

impl App {
    /// An app without a release.
    #[must_use]
    pub fn new(org: &str, name: &str) -> Self {
        let environment = [("GREETING".to_owned(), format!("hello from {org}/{name}"))].into();
        Self {
            org: org.to_owned(),
            name: name.to_owned(),
            release: 0,
            host: String::new(),
            failed: false,
            live_host: None,
            logs_wanted: false,
            environment,
            secret_version: 1,
            sources: BTreeMap::new(),
        }
    }

    /// Wants a release with this package, or one made for it. Returns the host.
    pub fn deploy(&mut self, release: u64, source: Option<Bytes>) -> String {
        self.release = release;
        let (org, name) = (&self.org, &self.name);
        self.sources.entry(release).or_insert_with(|| {
            let source = source.unwrap_or_else(|| {
                let manifest = format!("{{\"name\":\"{name}\",\"version\":\"{release}.0.0\"}}\n");
                let code = format!("console.log('{org}/{name} r{release}'); setInterval(() => {{}}, 1000);\n");
                package(&[("package.json", manifest.as_bytes()), ("index.js", code.as_bytes())]).into()
            });
            let sha256 = hex(&Sha256::digest(&source));
            (source, sha256)
        });
        self.renamed()
    }

    /// Its secret changed: a new host of the same release.
    pub fn change_secret(&mut self, environment: Option<BTreeMap<String, String>>) -> String {
        self.secret_version += 1;
        if let Some(environment) = environment {
            self.environment = environment;
        }
        self.renamed()
    }

    fn renamed(&mut self) -> String {
        let seed = format!("{}/{}/{}/{}", self.org, self.name, self.release, self.secret_version);
        let mut stamp = hex(&Sha256::digest(seed.as_bytes()));
        stamp.truncate(8);
        let host = format!("{}-r{}-{stamp}", self.name, self.release);
        if host != self.host {
            self.failed = false;
        }
        self.host.clone_from(&host);
        host
    }

    /// A release's package.
    #[must_use]
    pub fn source(&self, release: u64) -> Option<&Bytes> {
        self.sources.get(&release).map(|(source, _)| source)
    }

    /// The SHA-256 of the wanted release's package.
    #[must_use]
    pub fn sha256(&self) -> String {
        self.sources.get(&self.release).map(|(_, sha256)| sha256.clone()).unwrap_or_default()
    }
}
