//! The daemon as a process: opens the log, serves, runs incarnations until a signal comes.
//!
//! When the log fails, acting stops and reading goes on; the log is opened again until that works. Anything else that fails ends
//! the process with its reason, because whoever restarts it starts from the log.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::checkpoints::Checkpoints;
use super::incarnation::{Incarnation, NotBegun, Outside};
use super::lease::{Lease, Permitted};
use super::rescue::{Probe, came_through, rescue};
use super::sinks::Pushing;
use super::window::Window;
use crate::actors::Ended;
use crate::config::{Act, MetricsFor};
use crate::events::log::{Beginning, EventLog as _, Found, LogReader, OpenError, OpenOptions};
use crate::events::sled_log::SledLog;
use crate::http::access::asked::Callers;
use crate::http::access::gate::Gate;
use crate::http::control::{Control, serve_control};
use crate::http::events::Feed;
use crate::http::log::LogView;
use crate::http::sessions::desk::Desk;
use crate::http::sources::serve_sources;
use crate::ids::{Seq, Subject};
use crate::kube::lease::Held;
use crate::kube::review::TokenReviews;

/// Between two tries to open a log that failed.
const AGAIN: Duration = Duration::from_secs(5);
/// Tries to open a log that failed, before the process ends with the reason.
const TRIES: u32 = 120;

/// Why the daemon ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The log cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What is in the log's folder cannot be tried or set aside.
    #[error("the log's folder: {0}")]
    Rescue(#[source] std::io::Error),
    /// An incarnation did not begin.
    #[error(transparent)]
    NotBegun(#[from] NotBegun),
    /// A part failed.
    #[error("{0}")]
    Part(String),
    /// A listener failed.
    #[error("a listener failed: {0}")]
    Listener(#[source] std::io::Error),
}

/// The two listeners, already bound: so that port 0 works and a taken port is said before anything starts.
pub struct Listeners {
    /// For people and tools.
    pub control: TcpListener,
    /// For pods.
    pub sources: TcpListener,
}

/// Where the log is, and how it is tried when it is in doubt.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The log's folder.
    pub dir: &'a Path,
    /// Tries it before it is opened in this process; `None`: it is opened untried.
    pub probe: Option<Probe>,
}

/// Serves until `stop` is ready, then ends in order; what it gives is the reason. With `take_over` a log that may not act is
/// followed by a new one that may.
///
/// # Errors
/// See [`ServeError`].
pub async fn serve(
    outside: Outside,
    place: Place<'_>,
    listeners: Listeners,
    checkpoints: Checkpoints,
    take_over: bool,
    stop: impl Future<Output = &'static str> + Send,
) -> Result<(), ServeError> {
    let window = Window::new(&outside.settings, outside.clock.clone(), outside.metrics.clone());
    let (stopping, stopped) = watch::channel(false);
    let ended = |mut stopped: watch::Receiver<bool>| async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let control = control(&outside, &window, &checkpoints, gate(&outside));
    let settings = &outside.settings;
    let _pushing = Pushing::start(&settings.sinks, &settings.data_dir, &settings.world, Arc::new(window.clone()), &outside.metrics);
    let mut control = tokio::spawn(serve_control(listeners.control, control, ended(stopped.clone())));
    let mut sources = tokio::spawn(serve_sources(listeners.sources, outside.sources.clone(), outside.entropy.clone(), ended(stopped)));
    let mut failed = None;
    // A listener that fails ends the process in order too: what was decided is recorded, the log is closed.
    let stop = async {
        let ended = tokio::select! {
            biased;
            reason = stop => return reason,
            ended = &mut control => ended,
            ended = &mut sources => ended,
        };
        failed = Some(listener_failed(ended));
        "listener_failed"
    };
    let served = tokio::select! {
        biased;
        served = incarnations(&outside, place, &window, &checkpoints, take_over, stop) => served,
        () = checkpoints.keep_making() => Ok(()),
    };
    let _ = stopping.send(true);
    // What is being answered is answered to its end: a pod may be fetching its package. Both bound how long that may take.
    for listener in [control, sources] {
        if !listener.is_finished() {
            let _ = listener.await;
        }
    }
    failed.map_or(served, Err)
}

/// What the control listener shows of whatever runs.
#[must_use]
pub fn control(outside: &Outside, window: &Window, checkpoints: &Checkpoints, gate: Gate) -> Control {
    let (view, settings) = (window.clone(), &outside.settings);
    let log: Arc<dyn LogView> = Arc::new(window.clone());
    Control {
        readiness: Arc::new(move || {
            view.count_alarms();
            view.readiness()
        }),
        metrics: outside.metrics.clone(),
        apps: Arc::new(window.clone()),
        proofs: Arc::new(checkpoints.clone()),
        feed: Feed::new(Arc::clone(&log), &settings.world),
        sessions: Desk::new(&settings.sessions, outside.cluster.namespace(), Arc::new(window.clone()), Arc::clone(&log)),
        log,
        gate,
        entropy: outside.entropy.clone(),
    }
}

fn gate(outside: &Outside) -> Gate {
    let settings = &outside.settings.control;
    let file = Some(&settings.access_file).filter(|file| !file.is_empty());
    let reviews = TokenReviews::new(outside.cluster.client().clone());
    Gate {
        callers: file.map(|file| Arc::new(Callers::new(file.into(), reviews))),
        open_metrics: settings.metrics == MetricsFor::Anybody,
        refusals: outside.refusals.clone(),
    }
}

fn listener_failed(ended: Result<std::io::Result<()>, tokio::task::JoinError>) -> ServeError {
    ServeError::Listener(match ended {
        Ok(Ok(())) => std::io::Error::other("it ended"),
        Ok(Err(error)) => error,
        Err(panicked) => std::io::Error::other(panicked),
    })
}

async fn incarnations(
    outside: &Outside,
    place: Place<'_>,
    window: &Window,
    checkpoints: &Checkpoints,
    mut take_over: bool,
    stop: impl Future<Output = &'static str> + Send,
) -> Result<(), ServeError> {
    tokio::pin!(stop);
    let mut lease = Lease::new(outside);
    let mut tries = 0;
    loop {
        let begun = begin(outside, place, window, &lease, &mut take_over, stop.as_mut()).await;
        let (mut incarnation, held) = match begun {
            Ok(Some(begun)) => begun,
            Ok(None) => return Ok(()),
            // The first opening says at once what is wrong; after a failure the disk gets time.
            Err(error) if tries == 0 || tries >= TRIES => return Err(error),
            Err(error) => {
                tracing::warn!(%error, tries, "the log cannot be opened again yet");
                tries += 1;
                tokio::select! {
                    biased;
                    _ = &mut stop => return Ok(()),
                    () = tokio::time::sleep(AGAIN) => continue,
                }
            }
        };
        window.show(incarnation.registry().clone(), incarnation.sessions().clone(), incarnation.health().clone());
        window.show_log(incarnation.reader(), Some(incarnation.heads()));
        window.show_committer(incarnation.committer());
        checkpoints.show(Some(Arc::clone(incarnation.reader())));
        let reader = Arc::clone(incarnation.reader());
        let ended = tokio::select! {
            biased;
            reason = &mut stop => {
                tracing::info!(reason, "ending in order");
                close(incarnation, reason).await;
                checkpoints.make(Duration::ZERO).await;
                checkpoints.show(None);
                return Ok(());
            }
            ended = incarnation.ended() => ended,
            why = keep(&mut lease, outside, &reader, held) => {
                tracing::error!(why, "the lease is lost: this daemon acts no more");
                window.show_nothing();
                checkpoints.show(None);
                drop(reader);
                close(incarnation, "lease_lost").await;
                tries = 0;
                continue;
            }
        };
        drop(reader);
        checkpoints.show(None);
        match ended {
            Ended::LogFailed(why) => {
                window.show_failed(&why);
                tracing::error!(why, "the log has failed: nothing is acted on until it can be opened again");
                drop(incarnation.stop_and_keep("log_failed").await);
                tries = 1;
                tokio::select! {
                    biased;
                    _ = &mut stop => return Ok(()),
                    () = tokio::time::sleep(AGAIN) => {}
                }
            }
            Ended::PartFailed(why) => {
                window.show_nothing();
                let _ = incarnation.stop("part_failed").await;
                return Err(ServeError::Part(why));
            }
        }
    }
}

async fn close(incarnation: Incarnation, reason: &str) {
    if let Err(error) = incarnation.stop(reason).await {
        tracing::warn!(%error, "the log could not be closed in order");
    }
}

/// Returns when the Lease is lost; never, for a daemon that needs none.
async fn keep(lease: &mut Lease, outside: &Outside, reader: &Arc<dyn LogReader>, held: Option<Held>) -> String {
    match held {
        Some(held) => lease.keep(outside, reader, held).await,
        None => std::future::pending().await,
    }
}

/// An incarnation over the log, as soon as it may act; `None` when it was stopped before. One that never acts needs no Lease.
async fn begin(
    outside: &Outside,
    place: Place<'_>,
    window: &Window,
    lease: &Lease,
    take_over: &mut bool,
    mut stop: Pin<&mut (impl Future<Output = &'static str> + Send)>,
) -> Result<Option<(Incarnation, Option<Held>)>, ServeError> {
    let mut log = open(outside, place, None).await?;
    let mut held = None;
    if outside.settings.act == Act::All {
        let reader = log.reader();
        let permitted = tokio::select! {
            biased;
            _ = &mut stop => None,
            permitted = lease.await_permission(outside, &reader, window, *take_over) => Some(permitted?),
        };
        drop(reader);
        held = match permitted {
            Some(Permitted::Held(held)) => Some(held),
            Some(Permitted::TakeOver(beginning)) => {
                let closed = Box::new(log).close();
                closed.map_err(|error| ServeError::Part(format!("the log cannot be closed: {error}")))?;
                log = open(outside, place, Some(beginning)).await?;
                let taken = lease.take_over(outside, log.reader().as_ref()).await;
                *take_over = false;
                Some(taken.map_err(|error| ServeError::Part(format!("the lease cannot be taken over: {error}")))?)
            }
            None => {
                if let Err(error) = Box::new(log).close() {
                    tracing::warn!(%error, "the log could not be closed in order");
                }
                return Ok(None);
            }
        };
    }
    Ok(Some((Incarnation::begin(outside, Box::new(log)).await?, held)))
}

async fn open(outside: &Outside, place: Place<'_>, begin: Option<Beginning>) -> Result<SledLog, ServeError> {
    let mut options = OpenOptions { begin, ..OpenOptions::new(Subject::Daemon(outside.settings.instance().to_owned())) };
    if let Some(probe) = place.probe.filter(|_| options.begin.is_none()) {
        let dir = place.dir.to_path_buf();
        let rescued = tokio::task::spawn_blocking(move || rescue(&dir, probe)).await;
        options.begin = rescued.map_err(std::io::Error::other).flatten().map_err(ServeError::Rescue)?;
    }
    let (log, opened) = SledLog::open(place.dir, &outside.clock, outside.entropy.clone(), &options)?;
    came_through(place.dir);
    if let Found::LostTail(former) = &opened.found
        && options.begin.is_none()
    {
        let Seq(acknowledged) = former.acknowledged;
        tracing::error!(
            alarm = "log_lost_tail", former = %former.id, last = former.last.0, acknowledged,
            "the store ends before what was acknowledged: a new log begins"
        );
    }
    tracing::info!(log = %opened.log, head = opened.head.0, found = ?opened.found, gap = ?opened.gap, "the log is open");
    Ok(log)
}
