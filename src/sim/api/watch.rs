//! Watches: who is told of which change, in which words, until when.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::body::{reset, write_object};
use super::object::Object;
use super::resources::Resource;
use super::selector::Selector;
use super::store::Change;
use super::{Inner, State};

/// Changes a watch may lag behind before it is ended, as the API server ends slow watches.
const LAG_MAX: usize = 65_536;
/// Between two bookmarks.
pub(super) const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A last bookmark comes this long before a watch's end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// A watch without `timeoutSeconds` lasts this long.
const WATCH_FOR: Duration = Duration::from_secs(1_800);

/// How a watch ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Cleanly, as at its timeout.
    End,
    /// With a reset connection.
    Reset,
    /// In the middle of a line, cleanly.
    HalfLine,
}

/// What a watch is told.
#[derive(Debug, Clone)]
pub(super) enum Signal {
    Change(Arc<Change>),
    Raw(Bytes),
    Cut(Cut),
    Mute,
}

/// The open watches.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    next: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    plural: &'static str,
    user: String,
    sender: mpsc::Sender<Signal>,
}

impl Watchers {
    pub(super) fn tell(&mut self, change: &Arc<Change>) {
        let plural = change.key.0;
        self.signal(plural, None, &Signal::Change(change.clone()));
    }

    /// Tells the watches of a kind, of one user or of all. A watch that is closed or lags too far is forgotten: its stream ends
    /// after what it already has.
    pub(super) fn signal(&mut self, plural: &str, user: Option<&str>, signal: &Signal) {
        self.open.retain(|_, open| {
            let meant = open.plural == plural && user.is_none_or(|user| open.user == user);
            !meant || open.sender.try_send(signal.clone()).is_ok()
        });
    }

    pub(super) fn count(&self, plural: &str) -> usize {
        self.open.values().filter(|open| open.plural == plural && !open.sender.is_closed()).count()
    }

    fn open(&mut self, plural: &'static str, user: String) -> mpsc::Receiver<Signal> {
        let (sender, receiver) = mpsc::channel(LAG_MAX);
        self.next += 1;
        self.open.insert(self.next, Open { plural, user, sender });
        receiver
    }
}

/// What a watch asks for.
#[derive(Debug)]
pub(super) struct WatchRequest {
    pub(super) user: String,
    pub(super) resource: &'static Resource,
    pub(super) namespace: Option<String>,
    pub(super) selector: Selector,
    pub(super) metadata_only: bool,
    /// Begin with the present objects.
    pub(super) initial: bool,
    /// End the present objects with a marked bookmark.
    pub(super) marked: bool,
    /// Changes after this.
    pub(super) from: u64,
    pub(super) bookmarks: bool,
    pub(super) timeout: Option<Duration>,
}

/// One open watch: the state of its body.
pub(super) struct Watch {
    request: WatchRequest,
    api: Weak<Inner>,
    signals: mpsc::Receiver<Signal>,
    lines: VecDeque<Bytes>,
    ends: Instant,
    bookmark: Option<Instant>,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Mute,
    Ended,
    Reset,
}

impl Watch {
    /// Opens a watch on a locked state: what is stored now and every later change, none twice and none left out.
    pub(super) fn open(api: &Arc<Inner>, state: &mut State, request: WatchRequest) -> Self {
        let now = crate::clock::now();
        let ends = now + request.timeout.unwrap_or(WATCH_FOR);
        let bookmark = request.bookmarks.then(|| next_bookmark(now, ends));
        let signals = state.watchers.open(request.resource.plural, request.user.clone());
        let mut watch = Self { api: Arc::downgrade(api), signals, lines: VecDeque::new(), ends, bookmark, fate: Fate::Open, request };
        if watch.request.initial {
            watch.begin_with_objects(state);
        } else {
            let missed: Vec<Arc<Change>> = state.store.since(watch.request.from).cloned().collect();
            for change in &missed {
                watch.take(change);
            }
        }
        watch
    }

    fn begin_with_objects(&mut self, state: &State) {
        let objects = state.store.list(self.request.resource.plural, self.request.namespace.as_deref());
        let lines: Vec<Bytes> = objects
            .filter(|(_, object)| self.request.selector.matches(object))
            .map(|(_, object)| self.stored_line("ADDED", object))
            .collect();
        self.lines.extend(lines);
        self.request.from = state.store.revision();
        if self.request.marked {
            self.lines.push_back(self.bookmark_line(state.store.revision(), true));
        }
    }

    /// Takes a change: what it means to this watch's selector.
    fn take(&mut self, change: &Change) {
        let elsewhere = self.request.namespace.as_ref().is_some_and(|namespace| change.key.1 != *namespace);
        if change.key.0 != self.request.resource.plural || elsewhere || change.revision <= self.request.from {
            return;
        }
        let was = change.before.as_ref().is_some_and(|before| self.request.selector.matches(before));
        let is = !change.removed && self.request.selector.matches(&change.after);
        let line = match (was, is) {
            (false, false) => return,
            (false, true) => self.stored_line("ADDED", &change.after),
            (true, true) => self.stored_line("MODIFIED", &change.after),
            (true, false) => match &change.before {
                // An object that left the selector is shown as it was, with the change's revision.
                Some(before) if !change.removed => {
                    let mut last = before.value().clone();
                    last["metadata"]["resourceVersion"] = change.after["metadata"]["resourceVersion"].clone();
                    self.line("DELETED", &last)
                }
                _ => self.stored_line("DELETED", &change.after),
            },
        };
        self.lines.push_back(line);
    }

    /// The line of a stored object: its JSON is shared with every other reader.
    fn stored_line(&self, kind: &str, object: &Object) -> Bytes {
        if self.request.metadata_only {
            return self.line(kind, object);
        }
        let (head, json) = (format!("{{\"type\":\"{kind}\",\"object\":"), object.json());
        [head.as_bytes(), &json, b"}\n"].concat().into()
    }

    fn line(&self, kind: &str, object: &Value) -> Bytes {
        let mut line = format!("{{\"type\":\"{kind}\",\"object\":").into_bytes();
        write_object(&mut line, object, self.request.metadata_only, false);
        line.extend_from_slice(b"}\n");
        line.into()
    }

    fn bookmark_line(&self, revision: u64, marked: bool) -> Bytes {
        let resource = self.request.resource;
        let mut object = json!({"kind": resource.kind, "apiVersion": resource.api_version()});
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        if marked {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        if resource.plural == "pods" {
            object["spec"] = json!({"containers": null});
            object["status"] = json!({});
        }
        self.line("BOOKMARK", &object)
    }

    /// A bookmark vouches for every change up to it: what is under way is taken first, with the state locked.
    fn on_bookmark(&mut self) {
        self.bookmark = Some(next_bookmark(crate::clock::now(), self.ends));
        let Some(api) = self.api.upgrade() else { return };
        let mut state = api.lock();
        // The real one sends no bookmark that is not newer than the watch's beginning. What moves there all the time, if nothing
        // else, is the nodes' leases, and an etcd as kubeadm sets it up tells all watches of it every 5 s.
        state.store.skip(1);
        while let Ok(signal) = self.signals.try_recv() {
            self.on_signal(signal);
        }
        let revision = state.store.revision();
        // A watch from the future is silent until the present has caught up.
        if revision > self.request.from && self.fate == Fate::Open {
            self.lines.push_back(self.bookmark_line(revision, false));
        }
    }

    fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Change(change) => self.take(&change),
            Signal::Raw(line) => self.lines.push_back(line),
            Signal::Mute => self.fate = Fate::Mute,
            Signal::Cut(Cut::End) => self.fate = Fate::Ended,
            Signal::Cut(Cut::Reset) => self.fate = Fate::Reset,
            Signal::Cut(Cut::HalfLine) => {
                self.lines.push_back(Bytes::from_static(b"{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Po"));
                self.fate = Fate::Ended;
            }
        }
    }

    async fn next(&mut self) -> Option<io::Result<Frame<Bytes>>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(Frame::data(line)));
            }
            match self.fate {
                Fate::Open => {}
                Fate::Mute => std::future::pending().await,
                Fate::Ended => return None,
                Fate::Reset => {
                    self.fate = Fate::Ended;
                    return Some(Err(reset()));
                }
            }
            let bookmark = self.bookmark.unwrap_or(self.ends);
            tokio::select! {
                biased;
                signal = self.signals.recv() => match signal {
                    Some(signal) => self.on_signal(signal),
                    None => self.fate = Fate::Ended,
                },
                () = tokio::time::sleep_until(bookmark), if self.bookmark.is_some() => self.on_bookmark(),
                () = tokio::time::sleep_until(self.ends) => self.fate = Fate::Ended,
            }
        }
    }

    /// The body of the answer.
    pub(super) fn into_stream(self) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send {
        stream::unfold(self, |mut watch| async move { watch.next().await.map(|item| (item, watch)) })
    }
}

fn next_bookmark(now: Instant, ends: Instant) -> Instant {
    let last = ends.checked_sub(BOOKMARK_BEFORE_END).filter(|last| *last > now);
    let regular = now + BOOKMARK_EVERY;
    last.map_or(regular, |last| last.min(regular))
}
