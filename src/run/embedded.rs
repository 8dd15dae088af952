//! The daemon's surroundings in an embedded world: the real daemon, an API server, nodes and a gateway in this process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Entropy;
use crate::config::Settings;
use crate::gateway::client::{BadGatewaySetting, GatewayClient};
use crate::gateway::{Gateway, SourceStore};
use crate::http::access::refusals::Refusals;
use crate::kube::perform::Cluster;
use crate::run::{Outside, keys};
use crate::sim::link::Link;
use crate::sim::world::World;
use crate::telemetry::Metrics;

/// Why an embedded world cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum NotJoined {
    /// The data folder.
    #[error("the data folder: {0}")]
    Folder(#[from] std::io::Error),
    /// The gateway.
    #[error(transparent)]
    Gateway(#[from] BadGatewaySetting),
}

/// Settings that fit an embedded world; the rest are the defaults.
#[must_use]
pub fn settings(world: &World, dir: &Path) -> Settings {
    let mut settings = Settings { world: "demo".to_owned(), data_dir: dir.display().to_string(), ..Settings::default() };
    settings.kubernetes.namespace = world.namespace.clone();
    settings.gateway.url = world.gateway_url();
    settings.gateway.token_file = dir.join("gateway.token").display().to_string();
    settings.pod.image = "registry.example/agent:1".to_owned();
    settings.sources.url = "http://10.96.0.7:7071".to_owned();
    settings
}

/// Joins a daemon of these settings to the world: its gateway is asked over HTTP, its API server in process.
///
/// # Errors
/// When the data folder or the gateway's address cannot be used.
pub fn outside(world: &World, settings: Settings, token: &str) -> Result<Outside, NotJoined> {
    let dir = Path::new(&settings.data_dir).to_path_buf();
    std::fs::create_dir_all(&dir)?;
    std::fs::write(&settings.gateway.token_file, token)?;
    let entropy = Entropy::os();
    let gateway: Arc<dyn Gateway> = Arc::new(GatewayClient::new(&settings.gateway, settings.limits.answer_bytes)?);
    Ok(Outside {
        cluster: Cluster::new(world.client(), &world.namespace, &settings),
        gateway,
        sources: SourceStore::open(&dir, settings.sources.max_bytes)?,
        digest_key: keys::digest_key(&dir, &entropy)?,
        clock: world.clock.clone(),
        metrics: Metrics::default(),
        refusals: Refusals::default(),
        inline: false,
        entropy,
        settings,
    })
}

/// The same without sockets and without threads: the gateway is asked in process, the log is written inside the runtime, and
/// randomness has a seed, so that a run on paused time repeats exactly.
///
/// # Errors
/// When the data folder cannot be used.
pub fn outside_inline(world: &World, settings: Settings, token: &str, seed: u64) -> Result<Outside, NotJoined> {
    let dir = Path::new(&settings.data_dir).to_path_buf();
    std::fs::create_dir_all(&dir)?;
    let entropy = Entropy::seeded(seed);
    let limit = Duration::from_secs(u64::from(settings.gateway.request_s));
    Ok(Outside {
        cluster: Cluster::new(world.client(), &world.namespace, &settings),
        gateway: Arc::new(Link::new(&world.gateway, token, limit)),
        sources: SourceStore::open_inline(&dir, settings.sources.max_bytes)?,
        digest_key: keys::digest_key(&dir, &entropy)?,
        clock: world.clock.clone(),
        metrics: Metrics::default(),
        refusals: Refusals::default(),
        inline: true,
        entropy,
        settings,
    })
}
