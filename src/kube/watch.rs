//! List and watch as one loop that never ends by itself: complete lists, then changes, and a word when nobody watched.
//!
//! Our own, because the library's hides the list's version and the bookmarks, repeats a dead version after an HTTP 410, and waits
//! for ever on a list (cases B01 to B06). Knows nothing of what the objects mean.

use std::time::Duration;

use ::kube::Client;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answer::{ApiStatus, Reply};
use super::call::{PAGE_BYTES, Request, body, built, escaped, lost, reply_of, send};
use super::convert::Odd;
use super::decode::{Decode, WatchLine, line, page};
use super::frames::Frames;
use super::throttle::backoff;
use crate::clock::{Clock, now};
use crate::config::Kubernetes;
use crate::events::kinds::daemon::WatchLossReason;

/// What the loop tells.
#[derive(Debug)]
pub enum Watched<S> {
    /// A complete, consistent list; what it does not name, seen or odd, was gone at that version.
    Listed {
        /// The list's version.
        resource_version: u64,
        /// Its objects.
        seen: Vec<S>,
        /// Objects that are there and cannot be read: neither gone nor known.
        odd: Vec<Odd>,
    },
    /// An object was added or changed.
    Seen(S),
    /// An object was deleted: its last state.
    Deleted(S),
    /// Everything up to this version was told.
    Alive {
        /// The bookmark's version.
        resource_version: u64,
    },
    /// Nobody watches; a list follows as soon as one can be had. Told once, until then.
    Lost {
        /// Why.
        reason: WatchLossReason,
        /// Log time of the last sign of life.
        since_us: i64,
        /// The last version that was told.
        resource_version: u64,
    },
    /// An object that cannot be read changed.
    Odd(Odd),
}

impl<S> Watched<S> {
    /// The same of what `f` makes of the objects.
    #[must_use]
    pub fn map<T>(self, f: impl Fn(S) -> T) -> Watched<T> {
        match self {
            Self::Listed { resource_version, seen, odd } => {
                Watched::Listed { resource_version, seen: seen.into_iter().map(f).collect(), odd }
            }
            Self::Seen(seen) => Watched::Seen(f(seen)),
            Self::Deleted(seen) => Watched::Deleted(f(seen)),
            Self::Alive { resource_version } => Watched::Alive { resource_version },
            Self::Lost { reason, since_us, resource_version } => Watched::Lost { reason, since_us, resource_version },
            Self::Odd(odd) => Watched::Odd(odd),
        }
    }
}

/// What bounds the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchLimits {
    /// Objects a page.
    pub page: u32,
    /// A page's time limit.
    pub request: Duration,
    /// How long a watch may take to begin.
    pub headers: Duration,
    /// Neither event nor bookmark for so long: it is deaf or dead.
    pub silence: Duration,
    /// After how long the server is asked to end a watch, seconds.
    pub timeout_s: u32,
    /// Makes the pauses of several daemons differ; any number.
    pub jitter: u64,
}

impl WatchLimits {
    /// The limits of these settings.
    #[must_use]
    pub fn new(settings: &Kubernetes, jitter: u64) -> Self {
        Self {
            page: 500,
            request: Duration::from_secs(u64::from(settings.request_s)),
            headers: Duration::from_secs(30),
            silence: Duration::from_secs(u64::from(settings.watch_silence_s)),
            timeout_s: 290,
            jitter,
        }
    }
}

/// What is watched.
#[derive(Clone)]
pub struct Watch<D> {
    /// To whom the requests go.
    pub client: Client,
    /// The collection's path, for example `/api/v1/namespaces/apps/pods`.
    pub path: String,
    /// The label selector; empty: everything.
    pub selector: String,
    /// How the objects are read.
    pub decode: D,
    /// What bounds it.
    pub limits: WatchLimits,
    /// Log time.
    pub clock: Clock,
}

/// A watch that lived so long was a good one: pauses begin small again.
const LIVED: Duration = Duration::from_secs(30);

/// Between the beginnings of two watches, at least.
const BETWEEN: Duration = Duration::from_secs(1);

/// The longest pause: a cluster that is back must not wait long for us.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The shortest pause when we are refused (401, 403): nothing changes that quickly.
const DENIED_PAUSE: Duration = Duration::from_secs(10);

/// The most pages of a list: a million objects.
const PAGES: u32 = 2_000;

/// The longest error body of a watch that is read, bytes.
const ERROR_BYTES: usize = 64 << 10;

/// Why a list or watch ended.
enum End {
    /// The server no longer has the version.
    Expired,
    /// Nothing came for too long.
    Silent,
    /// The server closed it.
    Closed,
    /// It failed; how long the server asked to wait.
    Failed { after: Option<Duration>, why: String },
    /// We are refused.
    Denied,
    /// Nobody listens to us.
    Stopped,
}

impl End {
    fn failed(why: impl Into<String>) -> Self {
        Self::Failed { after: None, why: why.into() }
    }

    /// The end that an answer's status stands for.
    fn of(reply: &Reply) -> Self {
        let status = reply.api_status();
        match reply.status {
            _ if expired(&status) => Self::Expired,
            410 => Self::Expired,
            401 | 403 => Self::Denied,
            code => Self::Failed { after: reply.retry_after_us().map(Duration::from_micros), why: format!("HTTP {code}") },
        }
    }
}

fn expired(status: &ApiStatus) -> bool {
    status.code == 410 || matches!(status.reason.as_str(), "Expired" | "Gone")
}

impl<D: Decode> Watch<D> {
    /// Runs until nobody listens any more. Waiting for the sink slows the stream down and loses nothing.
    pub async fn run(self, sink: mpsc::Sender<Watched<D::Seen>>) {
        let mut running =
            Running { alive: now(), alive_us: self.clock.now_us(), watch: self, sink, version: 0, troubles: 0, lost: false, early: false };
        // Ends with `Stopped` alone.
        running.run().await;
    }
}

struct Running<D: Decode> {
    watch: Watch<D>,
    sink: mpsc::Sender<Watched<D::Seen>>,
    /// The last version that was told.
    version: u64,
    /// The last sign of life.
    alive: Instant,
    alive_us: i64,
    /// Troubles in a row.
    troubles: u32,
    /// Whether `Lost` was told since the last list.
    lost: bool,
    /// A server was silent: watches begin one version early. A server sends no bookmark that is not newer than the beginning, and
    /// one whose store sends few progress notifications would be silent for ever while nothing changes.
    early: bool,
}

impl<D: Decode> Running<D> {
    async fn run(&mut self) {
        loop {
            let end = match self.list().await {
                Ok(()) => self.watch_on().await,
                Err(end) => end,
            };
            // The version before may be gone when the one of the list is not.
            self.early = matches!(end, End::Silent) || (self.early && !matches!(end, End::Expired));
            let reason = match end {
                End::Stopped => return,
                End::Expired => WatchLossReason::Expired,
                End::Silent => WatchLossReason::Silent,
                End::Closed | End::Denied | End::Failed { .. } => WatchLossReason::Unreachable,
            };
            if !self.lost {
                self.lost = true;
                let lost = Watched::Lost { reason, since_us: self.alive_us, resource_version: self.version };
                if self.sink.send(lost).await.is_err() {
                    return;
                }
            }
            self.pause(&end).await;
        }
    }

    /// Watches on from version to version until only a new list helps.
    async fn watch_on(&mut self) -> End {
        loop {
            let begun = now();
            let end = self.watch_once().await;
            let lived = begun.elapsed();
            match end {
                End::Expired | End::Silent | End::Denied | End::Stopped => return end,
                End::Closed if lived >= LIVED => self.troubles = 0,
                End::Closed | End::Failed { .. } => self.pause(&end).await,
            }
            // A server that answers and says nothing is silent; one that does not answer cannot be reached.
            if self.alive.elapsed() >= self.watch.limits.silence {
                return if matches!(end, End::Closed) { End::Silent } else { end };
            }
            tokio::time::sleep_until(begun + BETWEEN).await;
        }
    }

    async fn pause(&mut self, end: &End) {
        self.troubles = self.troubles.saturating_add(1);
        let grown = Duration::from_micros(backoff(self.troubles, self.watch.limits.jitter)).min(PAUSE_MAX);
        let (least, why) = match end {
            End::Denied => (DENIED_PAUSE, "we are refused"),
            End::Failed { after, why } => (after.unwrap_or_default(), why.as_str()),
            End::Expired => (Duration::ZERO, "the version is no longer there"),
            End::Silent => (Duration::ZERO, "nothing came"),
            End::Closed | End::Stopped => (Duration::ZERO, "it was closed early"),
        };
        let pause = grown.max(least);
        let (resource, troubles) = (self.watch.decode.resource(), self.troubles);
        tracing::debug!(resource, troubles, pause_ms = pause.as_millis(), why, "watch pauses");
        tokio::time::sleep(pause).await;
    }

    fn is_alive(&mut self) {
        (self.alive, self.alive_us) = (now(), self.watch.clock.now_us());
    }

    async fn tell(&mut self, watched: Watched<D::Seen>) -> Result<(), End> {
        self.sink.send(watched).await.map_err(|_| End::Stopped)
    }

    /// A complete list, told.
    async fn list(&mut self) -> Result<(), End> {
        let (mut seen, mut odd) = (Vec::new(), Vec::new());
        let mut version = u64::MAX;
        let mut next = None;
        for _ in 0..PAGES {
            let page = self.page(next.as_deref()).await?;
            // All pages are of one moment; if a server says otherwise, the earliest loses nothing.
            version = version.min(page.resource_version);
            for item in page.items {
                match item {
                    Ok(observed) => seen.push(observed),
                    Err(strange) => odd.push(strange),
                }
            }
            next = page.next;
            if next.is_none() {
                (self.version, self.lost) = (version, false);
                self.is_alive();
                return self.tell(Watched::Listed { resource_version: version, seen, odd }).await;
            }
        }
        Err(End::failed("the list does not end"))
    }

    async fn page(&self, next: Option<&str>) -> Result<super::decode::Page<D::Seen>, End> {
        let Watch { client, path, limits, decode, .. } = &self.watch;
        let token = next.map(|token| format!("&continue={}", escaped(token))).unwrap_or_default();
        let path = format!("{path}?limit={}{}{token}", limits.page, self.selector());
        let request = Request { limit: PAGE_BYTES, ..Request::get(path) };
        let reply = send(client, request, limits.request).await.map_err(|lack| End::failed(lack.to_string()))?;
        if !(200..300).contains(&reply.status) {
            return Err(End::of(&reply));
        }
        page(decode, &reply.body).map_err(End::failed)
    }

    fn selector(&self) -> String {
        let selector = &self.watch.selector;
        if selector.is_empty() { String::new() } else { format!("&labelSelector={}", escaped(selector)) }
    }

    /// One watch from the last version, told as it goes.
    async fn watch_once(&mut self) -> End {
        match self.stream().await {
            Ok(()) => End::Closed,
            Err(end) => end,
        }
    }

    async fn stream(&mut self) -> Result<(), End> {
        let mut body = self.open().await?;
        let mut frames = Frames::default();
        loop {
            let left = self.watch.limits.silence.saturating_sub(self.alive.elapsed());
            let frame = tokio::time::timeout(left, body.frame()).await.map_err(|_| End::Silent)?;
            let Some(frame) = frame else { return Ok(()) };
            let frame = frame.map_err(|error| End::failed(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            for object in frames.push(&data).map_err(|error| End::failed(error.to_string()))? {
                self.take(&object).await?;
            }
        }
    }

    async fn open(&self) -> Result<::kube::client::Body, End> {
        let Watch { client, path, limits, .. } = &self.watch;
        let (timeout, version) = (limits.timeout_s, self.version - u64::from(self.early && self.version > 1));
        let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={timeout}&resourceVersion={version}{}", self.selector());
        let request = built(Request::get(format!("{path}?{query}"))).map_err(|error| End::failed(error.to_string()))?;
        let answered = tokio::time::timeout(limits.headers, client.send(request)).await;
        let response = match answered {
            Err(_) => return Err(End::failed("no answer to a watch")),
            Ok(Err(error)) => return Err(End::failed(lost(&error).to_string())),
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        let (parts, sent) = response.into_parts();
        let mut reply = reply_of(&parts);
        (reply.body, reply.cut) = tokio::time::timeout(limits.headers, body(sent, ERROR_BYTES)).await.unwrap_or_default();
        Err(End::of(&reply))
    }

    /// Takes one object of a watch's body.
    async fn take(&mut self, object: &[u8]) -> Result<(), End> {
        let (said, version) = line(&self.watch.decode, object);
        self.version = self.version.max(version.unwrap_or(0));
        match said {
            WatchLine::Seen(Ok(seen)) => self.tell(Watched::Seen(seen)).await?,
            WatchLine::Deleted(Ok(seen)) => self.tell(Watched::Deleted(seen)).await?,
            WatchLine::Seen(Err(odd)) | WatchLine::Deleted(Err(odd)) => self.tell(Watched::Odd(odd)).await?,
            WatchLine::Bookmark => self.tell(Watched::Alive { resource_version: self.version }).await?,
            WatchLine::Error(status) if expired(&status) => return Err(End::Expired),
            WatchLine::Error(status) => {
                let after = status.retry_after_s.map(|seconds| Duration::from_secs(seconds.min(60)));
                return Err(End::Failed { after, why: format!("an error of code {} in the stream", status.code) });
            }
            WatchLine::Unknown => return Err(End::failed("something that no watch says")),
        }
        self.is_alive();
        Ok(())
    }
}
