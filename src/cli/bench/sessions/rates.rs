//! Creates at rising rates, over the daemon's real HTTP, against the embedded cluster: what of the time is the daemon's own.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::figures::Rate;
use crate::cli::bench::figures::p50_p99_ms;
use crate::cli::bench::rig::quick;
use crate::cli::error::CliError;
use crate::cli::run::failed;
use crate::clock;
use crate::config::Switch;
use crate::events::log::OpenOptions;
use crate::events::sled_log::SledLog;
use crate::http::access::gate::Gate;
use crate::http::control::serve_control;
use crate::ids::Subject;
use crate::run::serve::{self, ServeError};
use crate::run::{Checkpoints, Incarnation, Window, embedded};
use crate::sim::api::DAEMON;
use crate::sim::world::{World, WorldOptions};

/// The gateway's bearer token.
const TOKEN: &str = "bench-token";
/// Between two looks of the seed's at a pod that is to be ready, microseconds.
const SEED_LOOKS_US: i64 = 2_000_000;
/// How long the daemon may take to be asked for sessions: far longer than it does.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A daemon that serves sessions.
struct Rig {
    world: World,
    incarnation: Incarnation,
    control: String,
    client: reqwest::Client,
    servers: JoinSet<std::io::Result<()>>,
}

/// One create: when it was sent and answered, log time.
struct Create {
    id: String,
    sent_us: i64,
    answered_us: i64,
}

/// Measures each rate in turn.
pub(super) async fn measure(dir: &Path, rates: &[(u32, Duration)]) -> Result<Vec<Rate>, CliError> {
    let rig = Rig::start(dir).await?;
    // The first of all opens connections and makes the network policy.
    rig.create("first".to_owned()).await?;
    let mut measured = Vec::new();
    for (creates_per_s, span) in rates {
        measured.push(rig.rate(*creates_per_s, *span).await?);
    }
    rig.end().await?;
    Ok(measured)
}

impl Rig {
    async fn start(dir: &Path) -> Result<Self, CliError> {
        let options =
            WorldOptions { started_us: None, token: TOKEN.to_owned(), script: quick(), serve_gateway: true, ..WorldOptions::default() };
        let world = World::start(options).await?;
        let mut settings = embedded::settings(&world, dir);
        // Measured is the daemon, not the budget it would keep to a real API server.
        settings.kubernetes.calls_per_s = 10_000;
        settings.kubernetes.burst = 10_000;
        settings.sessions.serve = Switch::On;
        settings.sessions.image = format!("registry.example/session@sha256:{}", "0".repeat(64));
        settings.sessions.frontend_selector = vec!["app=front-end".to_owned()];
        settings.sessions.creates_per_s = 10_000;
        (settings.sessions.most, settings.sessions.most_of_tenant) = (1_000_000, 1_000_000);
        let joined = embedded::outside(&world, settings, TOKEN);
        let outside = joined.map_err(|error| CliError::refused(error.to_string(), "name another --dir").because(error))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let control = format!("http://{}", listener.local_addr()?);
        let window = Window::new(&outside.settings, outside.clock.clone(), outside.metrics.clone());
        let checkpoints = Checkpoints::open(&outside.settings, &outside.entropy, Arc::new(|_| ()))?;
        let mut servers = JoinSet::new();
        servers.spawn(serve_control(listener, serve::control(&outside, &window, &checkpoints, Gate::local()), std::future::pending()));
        let opened = OpenOptions::new(Subject::Daemon(outside.settings.instance().to_owned()));
        let opened = SledLog::open(&dir.join("log"), &outside.clock, outside.entropy.clone(), &opened);
        let (log, _) = opened.map_err(|error| failed(ServeError::Open(error)))?;
        let begun = Incarnation::begin(&outside, Box::new(log)).await;
        let incarnation = begun.map_err(|error| failed(ServeError::NotBegun(error)))?;
        window.show(incarnation.registry().clone(), incarnation.sessions().clone(), incarnation.health().clone());
        let begun = clock::now();
        while !incarnation.sessions().is_ready() {
            if begun.elapsed() > READY_WITHIN {
                return Err(CliError::refused("it hangs: sessions cannot be asked for", "report it with the log"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The client refuses to be made without a process-wide provider. Whoever came first has installed the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.map_err(|error| CliError::refused("no HTTP client can be made", "").because(error))?;
        Ok(Self { world, incarnation, control, client, servers })
    }

    async fn end(mut self) -> Result<(), CliError> {
        self.servers.abort_all();
        self.incarnation.stop("bench").await?;
        Ok(())
    }

    fn create(&self, id: String) -> impl Future<Output = Result<Create, CliError>> + Send + use<> {
        let (client, clock) = (self.client.clone(), self.world.clock.clone());
        let url = format!("{}/v1/sessions/{id}", self.control);
        async move {
            let bad = |why: String| CliError::refused(format!("a session could not be made: {why}"), "report it with the log");
            let sent_us = clock.now_us();
            let answer = client.put(url).send().await.map_err(|error| bad(error.to_string()))?;
            let (status, body) = (answer.status(), answer.text().await.map_err(|error| bad(error.to_string()))?);
            let answered_us = clock.now_us();
            if status.is_success() { Ok(Create { id, sent_us, answered_us }) } else { Err(bad(body)) }
        }
    }

    async fn rate(&self, creates_per_s: u32, span: Duration) -> Result<Rate, CliError> {
        let from = self.world.api.audit().len();
        let mut every = tokio::time::interval(Duration::from_secs(1) / creates_per_s);
        let (count, mut under_way) = (f64::from(creates_per_s) * span.as_secs_f64(), JoinSet::new());
        for number in 0..count as usize {
            every.tick().await;
            under_way.spawn(self.create(format!("rate-{creates_per_s}-{number}")));
        }
        let mut creates = Vec::new();
        while let Some(created) = under_way.join_next().await {
            creates.push(created.map_err(|panicked| CliError::refused("a caller failed", "report it").because(panicked))??);
        }
        Ok(self.figures(creates_per_s, from, &creates))
    }

    /// What the cluster's own audit log says of these creates.
    fn figures(&self, creates_per_s: u32, from: usize, creates: &[Create]) -> Rate {
        /// What the cluster saw of one session.
        #[derive(Default)]
        struct Seen {
            last_write_us: i64,
            pod_made_us: i64,
            statuses_us: Vec<i64>,
        }
        let mut seen: BTreeMap<&str, Seen> = creates.iter().map(|create| (create.id.as_str(), Seen::default())).collect();
        let (mut writes, mut reads) = (0, 0);
        let audit = self.world.api.audit().since(from);
        for entry in &audit {
            let of = entry.name.split_once("session-").and_then(|(_, id)| seen.get_mut(id));
            match (entry.user == DAEMON, entry.verb, of) {
                (true, "create" | "update" | "patch" | "delete", Some(of)) => {
                    writes += 1;
                    of.last_write_us = of.last_write_us.max(entry.asked_us);
                    if entry.resource == "pods" {
                        of.pod_made_us = entry.time_us;
                    }
                }
                (true, "get" | "list", _) if entry.resource != "leases" => reads += 1,
                (false, _, Some(of)) if entry.resource == "pods" && entry.subresource == "status" => of.statuses_us.push(entry.time_us),
                _ => {}
            }
        }
        let micros = |span_us: i64| u64::try_from(span_us).unwrap_or(0);
        let (mut to_write, mut to_answer, mut own, mut seed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for create in creates {
            let Some(of) = seen.get(create.id.as_str()) else { continue };
            // The last that was written before the answer is what made it ready.
            let ready_us = of.statuses_us.iter().copied().filter(|at_us| *at_us <= create.answered_us).max().unwrap_or(create.answered_us);
            let (first, second) = (micros(of.last_write_us - create.sent_us), micros(create.answered_us - ready_us));
            let looks_us = (ready_us - of.pod_made_us).max(0).rem_euclid(SEED_LOOKS_US);
            to_write.push(first);
            to_answer.push(second);
            own.push(first + second);
            seed.push(first + micros(SEED_LOOKS_US - looks_us));
        }
        let each = |count: usize| count as f64 / creates.len().max(1) as f64;
        let (own_p50_ms, own_p99_ms) = p50_p99_ms(own);
        let (to_write_p50_ms, to_write_p99_ms) = p50_p99_ms(to_write);
        let (to_answer_p50_ms, to_answer_p99_ms) = p50_p99_ms(to_answer);
        let (seed_p50_ms, seed_p99_ms) = p50_p99_ms(seed);
        Rate {
            creates_per_s,
            creates: creates.len(),
            own_p50_ms,
            own_p99_ms,
            to_write_p50_ms,
            to_write_p99_ms,
            to_answer_p50_ms,
            to_answer_p99_ms,
            writes_per_create: each(writes),
            reads_per_create: each(reads),
            seed_p50_ms,
            seed_p99_ms,
        }
    }
}
