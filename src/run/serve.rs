//! The daemon as a process: opens the log, serves, runs incarnations until a signal comes.
//!
//! When the log fails, acting stops and reading goes on; the log is opened again until that works. Anything else that fails ends
//! the process with its reason, because whoever restarts it starts from the log.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::incarnation::{Incarnation, NotBegun, Outside};
use super::rescue::{Probe, came_through, rescue};
use super::window::Window;
use crate::actors::Ended;
use crate::events::log::{Found, OpenError, OpenOptions};
use crate::events::sled_log::SledLog;
use crate::http::control::{Control, serve_control};
use crate::http::sources::serve_sources;
use crate::ids::{Seq, Subject};

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

/// Serves until `stop` is ready, then ends in order. `reason` is what asked for it.
///
/// # Errors
/// See [`ServeError`].
pub async fn serve(
    outside: Outside,
    place: Place<'_>,
    listeners: Listeners,
    stop: impl Future<Output = &'static str> + Send,
) -> Result<(), ServeError> {
    let window = Window::new(&outside.settings, outside.clock.clone(), outside.metrics.clone());
    let (stopping, stopped) = watch::channel(false);
    let ended = |mut stopped: watch::Receiver<bool>| async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let view = window.clone();
    let control = Control {
        readiness: Arc::new(move || {
            view.count_alarms();
            view.readiness()
        }),
        metrics: outside.metrics.clone(),
        apps: Arc::new(window.clone()),
        entropy: outside.entropy.clone(),
    };
    let control = tokio::spawn(serve_control(listeners.control, control, ended(stopped.clone())));
    let sources = tokio::spawn(serve_sources(listeners.sources, outside.sources.clone(), outside.entropy.clone(), ended(stopped)));
    let served = tokio::select! {
        biased;
        result = incarnations(&outside, place, &window, stop) => result,
        failed = control => Err(listener_failed(failed)),
        failed = sources => Err(listener_failed(failed)),
    };
    let _ = stopping.send(true);
    served
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
    stop: impl Future<Output = &'static str> + Send,
) -> Result<(), ServeError> {
    tokio::pin!(stop);
    let mut tries = 0;
    loop {
        let begun = begin(outside, place).await;
        let mut incarnation = match begun {
            Ok(incarnation) => incarnation,
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
        window.show(Ok((incarnation.registry().clone(), incarnation.health().clone())));
        let ended = tokio::select! {
            biased;
            reason = &mut stop => {
                tracing::info!(reason, "ending in order");
                if let Err(error) = incarnation.stop(reason).await {
                    tracing::warn!(%error, "the log could not be closed in order");
                }
                return Ok(());
            }
            ended = incarnation.ended() => ended,
        };
        match ended {
            Ended::LogFailed(why) => {
                window.show(Err(why));
                drop(incarnation.stop_and_keep("log_failed").await);
                tries = 1;
                tokio::select! {
                    biased;
                    _ = &mut stop => return Ok(()),
                    () = tokio::time::sleep(AGAIN) => {}
                }
            }
            Ended::PartFailed(why) => {
                let _ = incarnation.stop("part_failed").await;
                return Err(ServeError::Part(why));
            }
        }
    }
}

async fn begin(outside: &Outside, place: Place<'_>) -> Result<Incarnation, ServeError> {
    let mut options = OpenOptions::new(Subject::Daemon(outside.settings.instance().to_owned()));
    if let Some(probe) = place.probe {
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
    Ok(Incarnation::begin(outside, Box::new(log)).await?)
}
