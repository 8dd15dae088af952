//! A Kubernetes API server in process, behind `::kube::Client`: the parts of the real one that wharfinger meets, its refusals
//! word by word, faults on request, and its own history. Under paused time and one thread a run repeats exactly.
//!
//! Not modelled: authentication and RBAC (a fault answers 401 or 403), quotas and webhooks (likewise), managed fields, garbage
//! collection, server-side apply.

mod admission;
mod audit;
mod body;
mod call;
mod claim_rules;
mod container_rules;
mod decode;
mod exchange;
mod faults;
pub mod http;
mod lease_rules;
pub mod logs;
mod merge;
mod object;
mod pod_rules;
mod pods;
mod policy_rules;
mod quantity;
mod read;
mod refusal;
mod remove;
mod resources;
mod reviews;
mod rules;
mod secret_rules;
mod security;
mod selector;
mod service_rules;
pub mod stamps;
mod store;
mod watch;
mod witness;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

pub use audit::{Audit, Entry};
pub use body::ApiBody;
pub use call::Verb;
pub use faults::{Action, Canned, Faults, Match};
pub use object::Object;
pub use refusal::{Cause, Refusal};
pub use resources::{RESOURCES, Resource};
pub use watch::Cut;
pub use witness::{Stored, Witness};

use crate::clock::{Clock, Entropy};
use logs::LogSource;
use reviews::Reviewer;
use store::{Change, Key, Store};
use watch::{Signal, Watchers};

/// The user of [`ClusterApi::client`], which faults are about unless said otherwise.
pub const DAEMON: &str = "wharf";

/// What an API server is made of.
#[derive(Debug, Clone)]
pub struct ApiOptions {
    /// Wall-clock stamps.
    pub clock: Clock,
    /// Uids and generated names.
    pub entropy: Entropy,
    /// How long each request takes.
    pub latency: Duration,
    /// Changes remembered for watches and pages; older ones are compacted away.
    pub history_max: usize,
    /// Requests remembered by the audit.
    pub audit_max: usize,
}

impl ApiOptions {
    /// No latency; 20,000 changes (some 20 KiB each for pods) and 200,000 requests are remembered.
    #[must_use]
    pub fn new(clock: Clock, entropy: Entropy) -> Self {
        Self { clock, entropy, latency: Duration::ZERO, history_max: 20_000, audit_max: 200_000 }
    }
}

/// The API server; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct ClusterApi(Arc<Inner>);

struct Inner {
    options: ApiOptions,
    state: Mutex<State>,
    faults: Faults,
    audit: Audit,
    logs: Mutex<Option<Arc<dyn LogSource>>>,
    reviewer: Mutex<Reviewer>,
    witness: Arc<OnceLock<Arc<dyn Witness>>>,
}

struct State {
    store: Store,
    watchers: Watchers,
    witness: Arc<OnceLock<Arc<dyn Witness>>>,
}

impl State {
    fn put(&mut self, key: Key, object: Value) -> Arc<Object> {
        let change = self.store.put(key, object);
        self.tell(&change);
        change.after.clone()
    }

    fn tell(&mut self, change: &Arc<Change>) {
        self.watchers.tell(change);
        if let Some(witness) = self.witness.get() {
            let Change { revision, key: (resource, namespace, name), before, after, removed } = &**change;
            let after = (!removed).then(|| after.clone());
            let (namespace, name, before) = (namespace.clone(), name.clone(), before.clone());
            witness.stored(Stored { resource, namespace, name, revision: *revision, before, after });
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let change = self.store.remove(key)?;
        self.tell(&change);
        Some(change.after.clone())
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterApi {
    /// An API server with the namespaces `default` and `kube-system`.
    #[must_use]
    pub fn new(options: ApiOptions) -> Self {
        let witness = Arc::new(OnceLock::new());
        let state = State { store: Store::new(options.history_max), watchers: Watchers::default(), witness: Arc::clone(&witness) };
        let audit = Audit::new(options.audit_max);
        let inner = Inner {
            options,
            state: Mutex::new(state),
            faults: Faults::default(),
            audit,
            logs: Mutex::new(None),
            reviewer: Mutex::default(),
            witness,
        };
        let api = Self(Arc::new(inner));
        for name in ["default", "kube-system", "kube-node-lease"] {
            api.add_namespace(name, &[]);
        }
        api
    }

    /// The daemon's client. Must be called inside a runtime.
    #[must_use]
    pub fn client(&self, namespace: &str) -> ::kube::Client {
        self.client_as(DAEMON, namespace)
    }

    /// The client of another user: the node's, a person's.
    #[must_use]
    pub fn client_as(&self, user: &'static str, namespace: &str) -> ::kube::Client {
        let api = self.clone();
        let service = move |request: ::http::Request<::kube::client::Body>| {
            let api = api.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.map_err(std::io::Error::other)?;
                api.exchange(user, ::http::Request::from_parts(parts, body)).await
            }
        };
        ::kube::Client::new(tower::service_fn(service), namespace)
    }

    /// The faults that requests meet.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// What was asked and answered.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.0.audit
    }

    /// Tells this one of everything from now on; the first that is set stays.
    pub fn set_witness(&self, witness: Arc<dyn Witness>) {
        let _ = self.0.witness.set(witness);
    }

    /// Where `pods/NAME/log` is read.
    pub fn set_log_source(&self, source: Arc<dyn LogSource>) {
        *self.0.logs.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    /// The newest resourceVersion.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.lock().store.revision()
    }

    /// Forgets the history: older resourceVersions are answered 410.
    pub fn compact(&self) {
        self.0.lock().store.compact();
    }

    /// Lets the revision jump by changes to kinds that are not modelled.
    pub fn skip_revisions(&self, revisions: u64) {
        self.0.lock().store.skip(revisions);
    }

    /// An object as it is stored, past every fault.
    #[must_use]
    pub fn object(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let resource = resources::find(None, plural)?;
        self.0.lock().store.get(&(resource.plural, namespace.to_owned(), name.to_owned())).cloned()
    }

    /// All objects of a kind in a namespace, or in all, by name.
    #[must_use]
    pub fn objects(&self, plural: &str, namespace: Option<&str>) -> Vec<Arc<Object>> {
        let Some(resource) = resources::find(None, plural) else { return Vec::new() };
        self.0.lock().store.list(resource.plural, namespace).map(|(_, object)| object.clone()).collect()
    }

    /// Stores an object as it is, unvalidated: another's odd object, or a state a test begins with. Missing uid and creation
    /// time are filled in. Objects of unknown kinds are ignored.
    pub fn put_raw(&self, mut object: Value) {
        let known = RESOURCES.iter().find(|known| object["kind"] == known.kind && object["apiVersion"] == known.api_version());
        let Some(resource) = known else { return };
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(stamps::uid(&self.0.options.entropy));
        }
        if object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] = json!(stamps::seconds(self.0.options.clock.now_us()));
        }
        let namespace = rules::text(&object, &["metadata", "namespace"]).to_owned();
        let name = rules::text(&object, &["metadata", "name"]).to_owned();
        self.0.lock().put((resource.plural, namespace, name), object);
    }

    /// Removes an object at once, whatever holds it.
    pub fn remove_raw(&self, plural: &str, namespace: &str, name: &str) {
        if let Some(resource) = resources::find(None, plural) {
            self.0.lock().remove(&(resource.plural, namespace.to_owned(), name.to_owned()));
        }
    }

    /// Adds a namespace with labels, for example to enforce Pod Security.
    pub fn add_namespace(&self, name: &str, labels: &[(&str, &str)]) {
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        rules::namespace_defaults(&mut object);
        object["status"] = rules::namespace_status(&object);
        self.put_raw(object);
    }

    /// Registers a runtime class; pods that name another are refused.
    pub fn add_runtime_class(&self, name: &str) {
        let metadata = json!({"name": name});
        self.put_raw(json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": metadata, "handler": "runsc"}));
    }

    /// Registers a priority class; pods that name another are refused.
    pub fn add_priority_class(&self, name: &str, value: i32) {
        let metadata = json!({"name": name});
        self.put_raw(json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}));
    }

    /// Makes a bearer token known to token reviews.
    pub fn add_token(&self, token: &str, user: &str, audiences: &[&str]) {
        let audiences = audiences.iter().map(|audience| (*audience).to_owned()).collect();
        let mut reviewer = self.0.reviewer.lock().unwrap_or_else(PoisonError::into_inner);
        reviewer.tokens.insert(token.to_owned(), (user.to_owned(), audiences));
    }

    /// Lets access reviews deny a verb on a resource. The verb itself goes on working: a fault refuses it.
    pub fn deny(&self, verb: &str, resource: &str) {
        let mut reviewer = self.0.reviewer.lock().unwrap_or_else(PoisonError::into_inner);
        reviewer.denied.insert((verb.to_owned(), resource.to_owned()));
    }

    /// Restarts: every open watch is reset and the history is gone. What is stored stays.
    pub fn restart(&self) {
        let mut state = self.0.lock();
        for resource in RESOURCES {
            state.watchers.signal(resource.plural, None, &Signal::Cut(Cut::Reset));
        }
        state.store.compact();
    }

    /// Ends the daemon's open watches of a kind.
    pub fn cut_watches(&self, plural: &str, cut: Cut) {
        self.signal(plural, &Signal::Cut(cut));
    }

    /// Lets the daemon's open watches of a kind go deaf: nothing comes any more, not even their end.
    pub fn mute_watches(&self, plural: &str) {
        self.signal(plural, &Signal::Mute);
    }

    /// Sends a line, whatever it is, to the daemon's open watches of a kind.
    pub fn send_watch_line(&self, plural: &str, line: &str) {
        self.signal(plural, &Signal::Raw(Bytes::from(format!("{line}\n"))));
    }

    fn signal(&self, plural: &str, signal: &Signal) {
        self.0.lock().watchers.signal(plural, Some(DAEMON), signal);
    }

    /// How many watches of a kind are open.
    #[must_use]
    pub fn open_watches(&self, plural: &str) -> usize {
        self.0.lock().watchers.count(plural)
    }
}

impl std::fmt::Debug for ClusterApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterApi").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
