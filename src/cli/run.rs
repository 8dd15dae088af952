//! `wharf run`: the daemon. Reads settings, connects, binds, and serves until SIGTERM or SIGINT.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::config::{SettingsArgs, bad_filter};
use super::error::CliError;
use crate::clock::{Clock, Entropy};
use crate::config::check::Cluster as Where;
use crate::config::load::cluster_variables;
use crate::config::{Gateway, Settings};
use crate::events::log::OpenError;
use crate::gateway::SourceStore;
use crate::gateway::client::GatewayClient;
use crate::http::access::refusals::Refusals;
use crate::kube::client::{Connected, Surroundings, connect};
use crate::kube::perform::Cluster;
use crate::run::rescue::probe_in_a_child;
use crate::run::serve::{Listeners, Place, ServeError, serve};
use crate::run::{Checkpoints, Outside, keys};
use crate::telemetry::{self, Metrics};

/// Run the daemon: keep apps running, and keep the log of why.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Act although another log does: a new log begins, and takes the lease of the other, which stops acting
    #[arg(long)]
    take_over: bool,
}

/// Runs the command until a signal ends it.
///
/// # Errors
/// When the daemon cannot start, or a part of it fails for good.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let settings = args.settings.settings()?;
    telemetry::start(&settings.telemetry, super::output::is_terminal()).map_err(|error| bad_filter(&error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::refused("no runtime can be made", "free some threads or files").because(error))?;
    runtime.block_on(daemon(args, settings))
}

async fn daemon(args: &Args, settings: Settings) -> Result<ExitCode, CliError> {
    // What is wrong with the settings wherever the cluster is, before anybody is asked.
    args.settings.must_be_usable(Where::OnThisMachine)?;
    let (kubeconfig, home, in_cluster) = cluster_variables();
    let connected = connect(&settings.kubernetes, &Surroundings { kubeconfig, home, in_cluster }).await;
    let Connected { client, namespace, on_this_machine } =
        connected.map_err(|error| CliError::input(format!("kubernetes: {error}"), "wharf demo needs no cluster"))?;
    let settings = args.settings.checked(if on_this_machine { Where::OnThisMachine } else { Where::Real })?;
    let gateway = gateway(&settings.gateway, settings.limits.answer_bytes)?;
    let dir = Path::new(&settings.data_dir);
    let refused = |what: &str, error: std::io::Error| CliError::refused(format!("{what}: {error}"), "").because(error);
    let log_dir = dir.join("log");
    make_private(dir).map_err(|error| refused("data_dir", error))?;
    let _held = hold(dir)?;
    let entropy = Entropy::os();
    let outside = Outside {
        cluster: Cluster::new(client, &namespace, &settings),
        gateway: Arc::new(gateway),
        sources: SourceStore::open(dir, settings.sources.max_bytes).map_err(|error| refused("the packages' folder", error))?,
        digest_key: keys::digest_key(dir, &entropy).map_err(|error| refused("environment.key", error))?,
        clock: Clock::real(),
        metrics: Metrics::default(),
        refusals: Refusals::default(),
        inline: false,
        entropy,
        settings,
    };
    let listeners = Listeners {
        control: bind("control.listen", &outside.settings.control.listen).await?,
        sources: bind("sources.listen", &outside.settings.sources.listen).await?,
    };
    let checkpoints = Checkpoints::open(&outside.settings, &outside.entropy, Arc::new(say)).map_err(|error| refused("data_dir", error))?;
    let place = Place { dir: &log_dir, probe: Some(probe_in_a_child) };
    serve(outside, place, listeners, checkpoints, args.take_over, signalled()?).await.map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Says a checkpoint on stdout, as one line of JSON: whoever collects the output keeps it out of this machine's reach.
fn say(checkpoint: &str) {
    // Nobody to hear it is no failure: it is kept in the data folder, and served.
    let _ = super::output::print(&format!("{}\n", serde_json::json!({ "checkpoint": checkpoint })));
}

fn gateway(settings: &Gateway, answer_bytes: u64) -> Result<GatewayClient, CliError> {
    GatewayClient::new(settings, answer_bytes)
        .map_err(|bad| CliError::input(bad.to_string(), "wharf config default prints what is allowed"))
}

/// Holds the data folder for this process, before anything in it is touched.
fn hold(dir: &Path) -> Result<std::fs::File, CliError> {
    let path = dir.join("lock");
    let opened = std::fs::File::options().create(true).truncate(false).write(true).open(&path);
    let lock = opened.map_err(|error| CliError::refused(format!("{}: {error}", path.display()), "").because(error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(failed(ServeError::Open(OpenError::Held))),
        Err(std::fs::TryLockError::Error(error)) => Err(CliError::refused(format!("{}: {error}", path.display()), "").because(error)),
    }
}

/// Makes a folder that nobody else can look into; one that is there is left as it is.
pub(super) fn make_private(dir: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Binds a listener, and says where it is: the port may have been left to the system.
pub(super) async fn bind(key: &str, address: &str) -> Result<TcpListener, CliError> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| CliError::refused(format!("{key} = \"{address}\": {error}"), "free the port, or set another").because(error))?;
    let address = listener.local_addr()?;
    tracing::info!(listener = key, %address, "listening");
    Ok(listener)
}

/// What ends the daemon in order.
pub(super) fn signalled() -> Result<impl Future<Output = &'static str> + Send, CliError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}

/// What a failed daemon says.
pub(super) fn failed(error: ServeError) -> CliError {
    let advice = match &error {
        ServeError::Open(OpenError::Held) => "stop the daemon that holds it, or use another data_dir",
        ServeError::Open(OpenError::Full(_)) => "make room on its disk",
        ServeError::Open(OpenError::NeedsVersion { .. }) => "run the newer version",
        ServeError::Open(OpenError::Damaged { .. }) => "wharf verify names what is damaged",
        ServeError::Open(_) | ServeError::Rescue(_) | ServeError::NotBegun(_) | ServeError::Part(_) | ServeError::Listener(_) => "",
    };
    CliError::refused(error.to_string(), advice).because(error)
}
