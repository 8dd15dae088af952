//! The one line between a life of the daemon and everything outside it, which a crash cuts.
//!
//! A crash is modelled by what others can notice of it: at the instant of the cut nothing of this life reaches anybody any more,
//! not the API server, not the gateway, not the log's disk, and no answer reaches it. Its tasks are ended a moment later, and
//! what they do until then is of no effect. What is outside are requests and appends alone, so a crash at any of them and
//! between any two is a crash at every await there is. What was on its way when the line was cut still arrives.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use tokio::sync::{Notify, oneshot};

use super::fault::Fuse;
use super::history::{Happening, History, wants_of};
use super::stage::WORLD;
use crate::clock::Clock;
use crate::gateway::api::{Chunks, Gateway, GatewayError};
use crate::ids::AppId;
use crate::sim::api::{ApiBody, ClusterApi, DAEMON};
use crate::sim::link::Link;

/// How long an answer of the gateway is on its way.
const ANSWER_TAKES: Duration = Duration::from_millis(3);
/// Answers that are kept to be given again.
const KEPT: usize = 40;
/// So many in a row without an app withdraw it, whatever they miss besides, with room for those that do not count.
const WITHDRAWN: u32 = 12;

/// The line of one life.
pub(super) struct Line {
    cut: AtomicBool,
    /// Wakes the trial when it is cut.
    noticed: Notify,
    fuse: Mutex<Option<Fuse>>,
    history: History,
    clock: Clock,
}

/// What a fuse burns down at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Sent,
    Answered,
    Unsynced,
    Durable,
    Beat,
}

impl Line {
    pub(super) fn new(history: History, clock: Clock) -> Arc<Self> {
        Arc::new(Self { cut: AtomicBool::new(false), noticed: Notify::new(), fuse: Mutex::new(None), history, clock })
    }

    /// Cuts it.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        self.noticed.notify_one();
    }

    /// Whether it is cut.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }

    /// Returns when it is cut.
    pub(super) async fn until_cut(&self) {
        while !self.is_cut() {
            self.noticed.notified().await;
        }
    }

    /// Lights a fuse in the place of what burned before.
    pub(super) fn light(&self, fuse: Fuse) {
        *self.fuse.lock().unwrap_or_else(PoisonError::into_inner) = Some(fuse);
        if fuse == Fuse::Now {
            self.cut();
        }
    }

    /// Whether a fuse burns.
    pub(super) fn is_lit(&self) -> bool {
        self.fuse.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Something happened that a fuse may burn down at; cuts the line if it did.
    pub(super) fn pass(&self, at: At) -> bool {
        let mut fuse = self.fuse.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match (fuse.as_mut(), at) {
            (Some(Fuse::Sent(left)), At::Sent)
            | (Some(Fuse::Answered(left)), At::Answered)
            | (Some(Fuse::Unsynced(left)), At::Unsynced)
            | (Some(Fuse::Durable(left)), At::Durable)
            | (Some(Fuse::Beat(left)), At::Beat) => left,
            _ => return false,
        };
        if *left > 0 {
            *left -= 1;
            return false;
        }
        *fuse = None;
        drop(fuse);
        self.cut();
        true
    }

    /// Waits for what another task does, and for ever once the line is cut.
    async fn hear<T: Send + 'static>(self: &Arc<Self>, work: impl Future<Output = T> + Send + 'static) -> T {
        if self.is_cut() {
            return std::future::pending().await;
        }
        let (done, waited) = oneshot::channel();
        // A request that is on its way is carried out whoever waits for it.
        tokio::spawn(async move {
            let _ = done.send(work.await);
        });
        match waited.await {
            Ok(answer) if !self.is_cut() => answer,
            _ => std::future::pending().await,
        }
    }

    /// The API server as this life reaches it. Must be called inside a runtime.
    pub(super) fn client(self: &Arc<Self>, api: &ClusterApi, namespace: &str) -> ::kube::Client {
        let (line, api) = (Arc::clone(self), api.clone());
        let service = move |request: Request<::kube::client::Body>| {
            let (line, api) = (Arc::clone(&line), api.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.map_err(std::io::Error::other)?;
                line.exchange(&api, Request::from_parts(parts, body)).await
            }
        };
        ::kube::Client::new(tower::service_fn(service), namespace)
    }

    async fn exchange(self: Arc<Self>, api: &ClusterApi, request: Request<Bytes>) -> std::io::Result<Response<ApiBody>> {
        let writes = request.method() != http::Method::GET;
        let api = api.clone();
        let answer = self.hear(async move { api.exchange(DAEMON, request).await });
        if writes {
            tokio::pin!(answer);
            // On its way first, and then cut.
            let early = futures_util::poll!(answer.as_mut());
            self.pass(At::Sent);
            let answer = match early {
                std::task::Poll::Ready(answer) => answer,
                std::task::Poll::Pending => answer.await,
            };
            if self.pass(At::Answered) { std::future::pending().await } else { answer }
        } else {
            answer.await
        }
    }
}

/// The gateway as one life reaches it.
pub(super) struct GatewayLine {
    pub(super) line: Arc<Line>,
    pub(super) link: Link,
    pub(super) heard: Arc<Mutex<Heard>>,
}

/// What the daemon heard from the gateway, over all its lives.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The last answers to heartbeats, oldest first.
    answers: VecDeque<Vec<u8>>,
    /// How many answers in a row did not name each app that one named.
    absent: BTreeMap<String, u32>,
}

impl Heard {
    fn keep(&mut self, body: &[u8]) {
        self.answers.push_back(body.to_vec());
        if self.answers.len() > KEPT {
            self.answers.pop_front();
        }
    }

    fn count(&mut self, named: &BTreeSet<&str>) {
        for (app, absent) in &mut self.absent {
            *absent = if named.contains(app.as_str()) { 0 } else { absent.saturating_add(1) };
        }
        for app in named {
            self.absent.entry((*app).to_owned()).or_insert(0);
        }
    }

    /// What was said so many answers ago.
    pub(super) fn said(&self, answers: usize) -> Option<Vec<u8>> {
        self.answers.get(self.answers.len().checked_sub(answers)?).cloned()
    }

    /// Whether the daemon can know by now that the app is withdrawn, or never knew of it.
    pub(super) fn knows_withdrawn(&self, app: &str) -> bool {
        self.absent.get(app).is_none_or(|absent| *absent >= WITHDRAWN)
    }
}

impl Gateway for GatewayLine {
    fn heartbeat(&self, body: Vec<u8>) -> BoxFuture<'_, Result<Bytes, GatewayError>> {
        Box::pin(async move {
            let link = self.link.clone();
            let beat = async move {
                let answer = link.heartbeat(body).await;
                // Never at the instant at which it was asked: what was done before an answer is told from what was done on it.
                tokio::time::sleep(ANSWER_TAKES).await;
                answer
            };
            let answer = self.line.hear(beat).await;
            if self.line.pass(At::Beat) {
                return std::future::pending().await;
            }
            let told = match &answer {
                Ok(body) => {
                    let (world, apps) = wants_of(body);
                    let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
                    heard.keep(body);
                    if let Some(apps) = apps.as_ref().filter(|_| world == WORLD) {
                        heard.count(&apps.keys().map(String::as_str).collect());
                    }
                    drop(heard);
                    Some((200, world, apps))
                }
                Err(GatewayError::Retry { status: 0, .. }) => None,
                Err(GatewayError::Retry { status, .. }) => Some((*status, String::new(), None)),
                Err(GatewayError::Refused { .. } | GatewayError::Unauthorised { .. }) => Some((403, String::new(), None)),
            };
            if let Some((status, world, apps)) = told {
                self.line.history.note(self.line.clock.now_us(), Happening::Answered { status, world, apps });
            }
            answer
        })
    }

    fn environment<'a>(&'a self, app: &'a AppId) -> BoxFuture<'a, Result<BTreeMap<String, String>, GatewayError>> {
        let (link, app) = (self.link.clone(), app.clone());
        Box::pin(self.line.hear(async move { link.environment(&app).await }))
    }

    fn source<'a>(&'a self, app: &'a AppId, release: u64) -> BoxFuture<'a, Result<Chunks, GatewayError>> {
        let (link, app) = (self.link.clone(), app.clone());
        Box::pin(self.line.hear(async move { link.source(&app, release).await }))
    }
}
