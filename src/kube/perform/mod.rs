//! Carries out steps: each method is bounded in time, sends what it says and nothing else, and answers with what to do next.
//! Decides nothing: what may be retried is retried by the caller, through the throttle.

mod pods;
mod policy;
mod secrets;
mod sessions;
mod tails;

use std::sync::Arc;
use std::time::Duration;

use ::kube::Client;
use serde_json::Value;

use super::answer::{Answer, Reply, Verb, sort};
use super::call::{NoAnswer, Request, audit_id, send};
use super::convert::Observation;
use super::manifest::{Order, Template};
use super::policy::Policy;
use super::view::Meta;
use crate::clock;
use crate::config::Settings;
use crate::events::kinds::step::{ApiCalled, ObjectSeen};
use crate::ids::{RecordId, Uid, Word};

pub use secrets::{SecretList, SecretMeta};
pub use sessions::{SessionCluster, SessionPerformed};
pub use tails::{RawTail, TAIL_LIMIT};

/// The one edge through which the cluster is changed; cheap to clone.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    client: Client,
    namespace: String,
    template: Template,
    policy: Policy,
    limit: Duration,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("namespace", &self.0.namespace).finish_non_exhaustive()
    }
}

/// What became of one try of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performed {
    /// What to do next.
    pub answer: Answer,
    /// The object as the answer showed it.
    pub object: Option<ObjectSeen>,
    /// The last answer's HTTP status; 0 when there was none.
    pub status: u16,
    /// The last write's `Audit-ID`; zeros when none was sent.
    pub audit_id: [u8; 16],
    /// Every write that was sent, for the log.
    pub calls: Vec<ApiCalled>,
    /// Attempts that were sent for the step, those before this try included.
    pub attempts: u32,
    /// All requests of this try, reads too: what the throttle is to be told.
    pub requests: u32,
    /// The server's words, at most 4 KiB, without values of the environment.
    pub explained: Option<String>,
    /// The pod that was made or found.
    pub observed: Option<Observation>,
}

impl Cluster {
    /// The edge to this namespace.
    #[must_use]
    pub fn new(client: Client, namespace: &str, settings: &Settings) -> Self {
        Self(Arc::new(Inner {
            client,
            namespace: namespace.to_owned(),
            template: Template::new(settings),
            policy: Policy::new(settings),
            limit: Duration::from_secs(u64::from(settings.kubernetes.request_s)),
        }))
    }

    /// The namespace of all pods.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// How the objects are made, and whose they are.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.0.template
    }

    /// The client, for a watch.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The path of a resource in the namespace, or of one object of it.
    fn path(&self, resource: &str, name: &str) -> String {
        let group = if resource == "networkpolicies" { "/apis/networking.k8s.io/v1" } else { "/api/v1" };
        let slash = if name.is_empty() { "" } else { "/" };
        format!("{group}/namespaces/{}/{resource}{slash}{name}", self.0.namespace)
    }

    fn begin(&self, step: RecordId, attempts: u32) -> Performing<'_> {
        Performing { cluster: self, step, attempts, last: Reply::default(), audit_id: [0; 16], calls: Vec::new(), requests: 0 }
    }

    fn begin_order(&self, order: &Order) -> Performing<'_> {
        self.begin(order.step, order.attempts)
    }
}

/// One try under way: counts what is sent.
struct Performing<'a> {
    cluster: &'a Cluster,
    step: RecordId,
    attempts: u32,
    last: Reply,
    audit_id: [u8; 16],
    calls: Vec<ApiCalled>,
    requests: u32,
}

/// What a write is about, for its record.
struct Target<'a> {
    verb: Verb,
    resource: &'static str,
    name: &'a str,
    uid: Option<Uid>,
}

/// An answer with its body, when it was a success.
type Sorted = Result<Reply, Answer>;

impl Performing<'_> {
    /// Sends one write and sorts its answer: a success is given back to be looked at.
    async fn write(&mut self, target: Target<'_>, body: &Value) -> Sorted {
        let (method, verb, name) = match target.verb {
            Verb::Create => (http::Method::POST, "create", ""),
            Verb::Update => (http::Method::PUT, "update", target.name),
            Verb::Delete => (http::Method::DELETE, "delete", target.name),
            Verb::Read => (http::Method::GET, "get", target.name),
        };
        self.attempts += 1;
        self.audit_id = audit_id(self.step, self.attempts);
        let request = Request::write(method, self.cluster.path(target.resource, name), body, self.audit_id);
        let begun = clock::now();
        let (reply, sorted) = self.send(request, target.verb, target.name).await;
        self.calls.push(ApiCalled {
            step: self.step.seq,
            attempt: self.attempts,
            audit_id: self.audit_id,
            verb: Word::new(verb),
            resource: Word::new(target.resource),
            name: Word::new(target.name),
            uid: target.uid,
            status: reply.status,
            answer: Word::new(sorted.as_ref().err().unwrap_or(&Answer::Done).name()),
            took_us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
        self.last = reply;
        sorted
    }

    /// Reads one object and sorts the answer.
    async fn read(&mut self, resource: &'static str, name: &str, accept: Option<&'static str>) -> Sorted {
        let path = self.cluster.path(resource, name);
        let request = accept.map_or_else(|| Request::get(path.clone()), |accept| Request::get_as(path.clone(), accept));
        let (reply, sorted) = self.send(request, Verb::Read, name).await;
        self.last = reply;
        sorted
    }

    async fn send(&mut self, request: Request, verb: Verb, name: &str) -> (Reply, Sorted) {
        self.requests += 1;
        match send(&self.cluster.0.client, request, self.cluster.0.limit).await {
            Ok(reply) => {
                let answer = sort(verb, name, &reply);
                let sorted = if answer == Answer::Done { Ok(reply.clone()) } else { Err(answer) };
                (reply, sorted)
            }
            Err(lack) => {
                let answer = match (&lack, verb) {
                    (NoAnswer::NotSent(_), _) | (NoAnswer::Lost(_), Verb::Read) => Answer::AGAIN,
                    (NoAnswer::Lost(_), Verb::Create | Verb::Update | Verb::Delete) => Answer::Unknown,
                };
                tracing::debug!(name, error = %lack, "api request without an answer");
                (Reply::default(), Err(answer))
            }
        }
    }

    fn end(self, answer: Answer, object: Option<ObjectSeen>, observed: Option<Observation>) -> Performed {
        Performed {
            answer,
            object,
            status: self.last.status,
            audit_id: self.audit_id,
            explained: self.last.explained(),
            calls: self.calls,
            attempts: self.attempts,
            requests: self.requests,
            observed,
        }
    }
}

/// An object's identity and version, when both can be read.
fn object_of(meta: &Meta) -> Option<ObjectSeen> {
    Some(ObjectSeen { uid: Uid::new(meta.uid.as_deref()?).ok()?, resource_version: meta.version()? })
}
