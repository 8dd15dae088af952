//! What the daemon pushes of its feed by itself: into files. A sink that cannot take it delays only itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::config::Sinks;
use crate::events::log::LogReader;
use crate::feed::cloudevent::Around;
use crate::feed::correlation::Correlation;
use crate::feed::cursor::{BadCursor, place};
use crate::feed::file_sink::FileSink;
use crate::feed::filter::Filter;
use crate::feed::page::page;
use crate::http::log::LogView;
use crate::ids::RecordId;
use crate::telemetry::Metrics;

/// The pause after a failure, and while no log is open.
const AGAIN: Duration = Duration::from_secs(5);

/// How often the lag is looked at though nothing comes.
const LOOK: Duration = Duration::from_secs(15);

/// Pushes until it is dropped.
pub(super) struct Pushing(Option<AbortHandle>);

impl Pushing {
    /// Begins with every sink that the settings name.
    pub(super) fn start(settings: &Sinks, data_dir: &str, world: &str, log: Arc<dyn LogView>, metrics: &Metrics) -> Self {
        if settings.file.is_empty() {
            return Self(None);
        }
        let keep = usize::try_from(settings.file_keep).unwrap_or(usize::MAX);
        let sink = FileSink::new(&Path::new(data_dir).join(&settings.file), settings.file_bytes, keep);
        let pusher = Pusher { sink, log, world: world.into(), metrics: metrics.clone(), correlation: Correlation::default() };
        Self(Some(tokio::spawn(pusher.run()).abort_handle()))
    }
}

impl Drop for Pushing {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

struct Pusher {
    sink: FileSink,
    log: Arc<dyn LogView>,
    world: Arc<str>,
    metrics: Metrics,
    correlation: Correlation,
}

/// What one step of a pusher came to.
enum Pushed {
    /// More may be there.
    More,
    /// All that is durable is delivered.
    All,
    /// No log is open.
    NoLog,
}

impl Pusher {
    async fn run(mut self) {
        let mut said: Option<String> = None;
        loop {
            let mut heads = self.log.heads();
            if let Some(heads) = &mut heads {
                heads.mark_unchanged();
            }
            let (pusher, pushed) = match tokio::task::spawn_blocking(move || self.push()).await {
                Ok(pushed) => pushed,
                Err(error) => {
                    tracing::error!(%error, "the file sink failed: nothing more is written to it");
                    return;
                }
            };
            self = pusher;
            match pushed {
                Ok(Pushed::More) => said = None,
                Ok(Pushed::All) => {
                    said = None;
                    match heads {
                        // Whoever wrote has ended, or nothing came: either way it is looked again.
                        Some(mut heads) => drop(tokio::time::timeout(LOOK, heads.changed()).await),
                        None => tokio::time::sleep(AGAIN).await,
                    }
                }
                Ok(Pushed::NoLog) => tokio::time::sleep(AGAIN).await,
                Err(why) => {
                    if said.as_ref() != Some(&why) {
                        tracing::warn!(why, "the file sink cannot be written: it is tried again");
                    }
                    said = Some(why);
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    fn push(mut self) -> (Self, Result<Pushed, String>) {
        let pushed = match self.log.reader() {
            Some(reader) => self.push_page(reader.as_ref()),
            None => Ok(Pushed::NoLog),
        };
        (self, pushed)
    }

    fn push_page(&mut self, reader: &dyn LogReader) -> Result<Pushed, String> {
        let words = |error: &dyn std::error::Error| error.to_string();
        let position = self.sink.position().map_err(|error| words(&error))?;
        let log = reader.id();
        let after = match place(reader, position) {
            Ok(after) => RecordId { log, seq: after },
            Err(BadCursor::Pruned { requested, minimum }) => return self.gap(requested, minimum),
            // A new log id in the same folder goes on; of another folder all is new.
            Err(BadCursor::OtherLog { start }) => start,
            Err(bad @ (BadCursor::Ahead { .. } | BadCursor::Malformed)) => return Err(bad.to_string()),
        };
        let around = Around { world: &self.world, tails: false };
        let page = page(reader, after.seq, &Filter::default(), around, usize::MAX, &mut self.correlation).map_err(|error| words(&error))?;
        if let Some(minimum) = page.pruned {
            return self.gap(after, minimum);
        }
        if !page.events.is_empty() {
            self.sink.write(after, &page.events, page.position).map_err(|error| words(&error))?;
        }
        self.metrics.feed_lag("file", reader.head().0.saturating_sub(page.position.seq.0));
        Ok(if page.at_head { Pushed::All } else { Pushed::More })
    }

    fn gap(&mut self, requested: RecordId, minimum: RecordId) -> Result<Pushed, String> {
        tracing::warn!(%requested, %minimum, "records aged out before the file sink had them");
        self.sink.gap(requested, minimum).map(|()| Pushed::More).map_err(|error| error.to_string())
    }
}
