//! `wharf demo`: the whole daemon on an embedded cluster, nodes and gateway; tells what happens, and leaves a log.

mod narrate;
mod story;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use super::error::CliError;
use super::output;
use super::run::{bind, failed, make_private, signalled};
use crate::clock::Entropy;
use crate::config::address::listen_address;
use crate::config::{Settings, Switch};
use crate::events::log::OpenOptions;
use crate::events::sled_log::SledLog;
use crate::http::access::gate::Gate;
use crate::http::control::serve_control;
use crate::http::sources::serve_sources;
use crate::ids::{Subject, hex};
use crate::run::serve::{self, ServeError};
use crate::run::{Checkpoints, Incarnation, Outside, Window, embedded};
use crate::sim::node::{Pull, Register, Run, Schedule, Script, Start};
use crate::sim::world::{World, WorldOptions};
use crate::telemetry;

/// The gateway's bearer token in the demo.
const TOKEN: &str = "demo-token";

/// Run the whole daemon on an embedded cluster: no Kubernetes needed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the log is left; without it a new temporary folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How many times faster than life pods start and end
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=20))]
    speed: u32,
    /// The seed of the cluster's uids
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where people and tools ask
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7070", value_parser = on_loopback)]
    control: SocketAddr,
    /// Where pods would fetch packages
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7071", value_parser = on_loopback)]
    sources: SocketAddr,
    /// End by itself when the story is told
    #[arg(long)]
    exit: bool,
}

/// An address to listen on that only this machine reaches: the demo asks nobody for a password.
fn on_loopback(text: &str) -> Result<SocketAddr, String> {
    let address = listen_address(text)?;
    if address.ip().is_loopback() { Ok(address) } else { Err("an address of loopback is needed, such as 127.0.0.1:7070".to_owned()) }
}

/// Runs the command.
///
/// # Errors
/// When the folder is in use, a port is taken, or the story does not end as it should.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let quiet = crate::config::Telemetry { filter: "error".to_owned(), ..crate::config::Telemetry::default() };
    telemetry::start(&quiet, output::is_terminal()).map_err(|error| CliError::input(error.to_string(), ""))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::refused("no runtime can be made", "free some threads or files").because(error))?;
    runtime.block_on(demo(args))
}

/// A running demo.
struct Demo {
    world: World,
    outside: Outside,
    window: Window,
    checkpoints: Checkpoints,
    log_dir: PathBuf,
    incarnation: Option<Incarnation>,
    narrator: narrate::Narrator,
    speed: u32,
}

async fn demo(args: &Args) -> Result<ExitCode, CliError> {
    let entropy = Entropy::os();
    let control = bind("--control", &args.control.to_string()).await?;
    let sources = bind("--sources", &args.sources.to_string()).await?;
    let dir = folder(args, &entropy)?;
    let world = WorldOptions {
        seed: args.seed,
        started_us: None,
        token: TOKEN.to_owned(),
        script: healthy(args.speed),
        serve_gateway: true,
        ..WorldOptions::default()
    };
    let world = World::start(world).await?;
    let settings = settings(&world, &dir, args);
    let joined = embedded::outside(&world, settings, TOKEN);
    let outside = joined.map_err(|error| CliError::refused(error.to_string(), "name another --dir").because(error))?;
    let window = Window::new(&outside.settings, outside.clock.clone(), outside.metrics.clone());
    let checkpoints = Checkpoints::open(&outside.settings, &outside.entropy, Arc::new(|_| ()));
    let checkpoints = checkpoints.map_err(|error| CliError::refused(error.to_string(), "name another --dir").because(error))?;
    let url = format!("http://{}", control.local_addr()?);
    let mut servers = tokio::task::JoinSet::new();
    let shown = serve::control(&outside, &window, &checkpoints, Gate::local());
    servers.spawn(serve_control(control, shown, std::future::pending()));
    let making = checkpoints.clone();
    servers.spawn(async move {
        making.keep_making().await;
        Ok(())
    });
    servers.spawn(serve_sources(sources, outside.sources.clone(), outside.entropy.clone(), std::future::pending()));
    output::print(&format!("The log is in {}. The daemon answers at {url}.\n", dir.display()))?;
    let narrator = narrate::Narrator::new(outside.clock.clone());
    let mut demo = Demo { world, outside, window, checkpoints, log_dir: dir.join("log"), incarnation: None, narrator, speed: args.speed };
    demo.begin().await?;
    let stop = signalled()?;
    tokio::pin!(stop);
    let (told, stopped) = tokio::select! {
        biased;
        _ = &mut stop => (Ok(()), true),
        told = story::tell(&mut demo) => (told, false),
    };
    if told.is_ok() && !stopped && !args.exit {
        output::print(&format!("\nThe story is told; the daemon goes on. Try: wharf status --server {url}; Ctrl-C ends it.\n"))?;
        demo.follow(&mut stop).await?;
    }
    demo.end(&dir).await?;
    servers.abort_all();
    told.map(|()| ExitCode::SUCCESS)
}

/// The folder of this demo: a new one, or an empty one that was named.
fn folder(args: &Args, entropy: &Entropy) -> Result<PathBuf, CliError> {
    let dir = args.dir.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("wharf-demo-{}", hex(&entropy.bytes::<4>()))));
    let used = std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        return Err(CliError::input(format!("--dir {}: it is not empty", dir.display()), "name a new folder"));
    }
    make_private(&dir).map_err(|error| CliError::refused(format!("--dir {}: {error}", dir.display()), "").because(error))?;
    Ok(dir)
}

/// Settings whose times fit a story of half a minute.
fn settings(world: &World, dir: &Path, args: &Args) -> Settings {
    let mut settings = embedded::settings(world, dir);
    settings.control.listen = args.control.to_string();
    settings.sources.listen = args.sources.to_string();
    settings.gateway.beat_ms = u64::from(1_200 / args.speed).max(100);
    settings.sessions.serve = Switch::On;
    settings.sessions.image = format!("registry.example/session@sha256:{}", "5a".repeat(32));
    settings.sessions.frontend_selector = vec!["app=front".to_owned()];
    settings
}

fn healthy(speed: u32) -> Script {
    let quick = |ms: u64| Duration::from_millis(ms) / speed;
    let usual = Script::default();
    Script {
        schedule: Schedule::After(quick(100)),
        pull: Pull::Takes(quick(400)),
        install: Run { lasts: Some(quick(1_000)), ..usual.install },
        start: Start::Takes(quick(300)),
        app: Run { term_after: Some(quick(800)), ..usual.app },
        register: Register::After(quick(400)),
    }
}

impl Demo {
    /// Opens the log and begins an incarnation.
    async fn begin(&mut self) -> Result<(), CliError> {
        let options = OpenOptions::new(Subject::Daemon(self.outside.settings.instance().to_owned()));
        let opened = SledLog::open(&self.log_dir, &self.outside.clock, self.outside.entropy.clone(), &options);
        let (log, _) = opened.map_err(|error| failed(ServeError::Open(error)))?;
        let begun = Incarnation::begin(&self.outside, Box::new(log)).await;
        let incarnation = begun.map_err(|error| failed(ServeError::NotBegun(error)))?;
        self.window.show(incarnation.registry().clone(), incarnation.sessions().clone(), incarnation.health().clone());
        self.window.show_log(incarnation.reader(), Some(incarnation.heads()));
        self.checkpoints.show(Some(incarnation.reader().clone()));
        self.narrator.follow(incarnation.reader().clone());
        self.incarnation = Some(incarnation);
        Ok(())
    }

    /// Kills the daemon as a power cut would, and starts it again from its log.
    async fn crash_and_restart(&mut self) -> Result<(), CliError> {
        self.narrator.tell()?;
        if let Some(incarnation) = self.incarnation.take() {
            self.window.show_nothing();
            self.narrator.leave();
            self.checkpoints.show(None);
            incarnation.crash().await;
        }
        self.begin().await
    }

    /// Tells what goes on until it is stopped.
    async fn follow(&mut self, stop: &mut (impl Future<Output = &'static str> + Unpin)) -> Result<(), CliError> {
        loop {
            self.narrator.tell()?;
            tokio::select! {
                biased;
                _ = &mut *stop => return Ok(()),
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
        }
    }

    /// Ends in order, and says what there is to look at.
    async fn end(&mut self, dir: &Path) -> Result<(), CliError> {
        self.narrator.tell()?;
        let Some(incarnation) = self.incarnation.take() else { return Ok(()) };
        let summary = self.narrator.summary();
        self.narrator.leave();
        incarnation.stop("demo").await?;
        self.checkpoints.make(Duration::ZERO).await;
        self.checkpoints.show(None);
        let dir = dir.display();
        output::print(&format!("\n{summary}\nLook: wharf log --dir {dir} acme/bot\nProve: wharf verify --dir {dir}\n"))?;
        Ok(())
    }
}
