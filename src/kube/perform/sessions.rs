//! A session's steps: its claim, pod and Service made, deleted by uid, read. What has the name already is judged by its labels, and
//! never touched when it is not this session's.

use ::kube::Client;
use serde_json::Value;

use super::pods::Doomed;
use super::{Cluster, Performed, Performing, RawTail, Target, object_of};
use crate::config::Settings;
use crate::events::kinds::session::SessionStep;
use crate::events::kinds::step::{ObjectSeen, Refusal};
use crate::events::kinds::tail::TailLack;
use crate::events::record::Event;
use crate::ids::{HostName, RecordId, SessionId, Tenant, Uid};
use crate::kube::answer::{Answer, Verb};
use crate::kube::labels::Ownership;
use crate::kube::session::convert;
use crate::kube::session::manifest::{SessionOrder, SessionTemplate};
use crate::kube::session::policy::SessionPolicy;
use crate::kube::session::view::{ClaimView, ServiceView};
use crate::kube::view::{Meta, MetaView, PodView, read, tolerant};

const CLAIMS: &str = "persistentvolumeclaims";
const PODS: &str = "pods";
const SERVICES: &str = "services";

/// The edge through which sessions are changed; cheap to clone.
#[derive(Debug, Clone)]
pub struct SessionCluster {
    cluster: Cluster,
    template: SessionTemplate,
    policy: SessionPolicy,
}

/// What became of one try of a session's step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPerformed {
    /// What to do next, and what was sent.
    pub performed: Performed,
    /// The session's object as the answer showed it: an observation like any other.
    pub seen: Option<Event>,
}

impl SessionCluster {
    /// The edge to the namespace of sessions; `namespace` is that of the apps' pods, when the settings name no other.
    #[must_use]
    pub fn new(client: Client, namespace: &str, settings: &Settings) -> Self {
        let own = &settings.sessions.namespace;
        let namespace = if own.is_empty() { namespace } else { own };
        let cluster = Cluster::new(client, namespace, settings);
        Self { cluster, template: SessionTemplate::new(settings), policy: SessionPolicy::new(settings) }
    }

    /// The namespace of all their objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.cluster.namespace()
    }

    /// How their objects are made, and whose they are.
    #[must_use]
    pub fn template(&self) -> &SessionTemplate {
        &self.template
    }

    /// The client, for a watch.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.cluster.client()
    }

    /// Reads the last lines of a container of exactly this pod; see [`Cluster::read_tail`].
    ///
    /// # Errors
    /// When they cannot be had.
    pub async fn read_tail(&self, host: &HostName, uid: &Uid, container: &str) -> Result<RawTail, TailLack> {
        self.cluster.read_tail(host, uid, container, false).await
    }

    /// Their NetworkPolicy.
    #[must_use]
    pub fn policy(&self) -> &SessionPolicy {
        &self.policy
    }

    /// Makes their NetworkPolicy be there and mean what the settings say; see [`Cluster::ensure_policy`].
    pub async fn ensure_policy(&self, step: RecordId, attempts: u32) -> Performed {
        self.cluster.ensure(&self.policy, step, attempts).await
    }

    /// Carries out one try of a step. A pod's create is to be asked for after the policy is confirmed, and not before.
    pub async fn perform(&self, id: &SessionId, step: RecordId, attempts: u32, what: &SessionStep) -> SessionPerformed {
        let order = |tenant: &Tenant| SessionOrder { id: id.clone(), tenant: tenant.clone(), step, attempts };
        let template = &self.template;
        match what {
            SessionStep::CreateClaim { name, tenant } => {
                let order = order(tenant);
                self.make(CLAIMS, &order, &template.claim(&order, name)).await
            }
            SessionStep::CreatePod { name, tenant, claim } => {
                let order = order(tenant);
                self.make(PODS, &order, &template.pod(&order, name, claim)).await
            }
            SessionStep::PutService { name, tenant, replaces } => {
                let order = order(tenant);
                let service = template.service(&order, name);
                match replaces {
                    None => self.make(SERVICES, &order, &service).await,
                    Some(seen) => self.repair(&order, &service, &seen.uid).await,
                }
            }
            SessionStep::DeletePod { name, uid, grace_s, forced } => {
                let grace_s = Some(if *forced { 0 } else { *grace_s });
                self.delete(step, attempts, &Doomed { resource: PODS, name: name.as_str(), uid, grace_s }).await
            }
            SessionStep::DeleteService { name, uid } => {
                self.delete(step, attempts, &Doomed { resource: SERVICES, name: name.as_str(), uid, grace_s: None }).await
            }
            SessionStep::DeleteClaim { name, uid } => {
                self.delete(step, attempts, &Doomed { resource: CLAIMS, name: name.as_str(), uid, grace_s: None }).await
            }
            SessionStep::ReadPod { name } => self.look(id, step, attempts, PODS, name.as_str()).await,
            SessionStep::ReadService { name } => self.look(id, step, attempts, SERVICES, name.as_str()).await,
            SessionStep::ReadClaim { name } => self.look(id, step, attempts, CLAIMS, name.as_str()).await,
        }
    }

    async fn make(&self, resource: &'static str, order: &SessionOrder, object: &Value) -> SessionPerformed {
        let mut trying = self.cluster.begin(order.step, order.attempts);
        let name = name_of(object);
        let target = Target { verb: Verb::Create, resource, name, uid: None };
        let (answer, there) = match trying.write(target, object).await {
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body).ok().filter(|there| self.is_by(there, order.step)) {
                Some(there) => (Answer::Done, Some(there)),
                // It happened, and the answer could not be read.
                None => self.read_back(&mut trying, resource, name, order.step).await,
            },
            Err(Answer::Conflict) => self.whose(&mut trying, resource, name, order).await,
            Err(answer) => (answer, None),
        };
        self.end(trying, resource, &order.id, answer, there)
    }

    /// Makes the Service that is there be as one that is made, and leaves what the server filled in.
    async fn repair(&self, order: &SessionOrder, service: &Value, uid: &Uid) -> SessionPerformed {
        let mut trying = self.cluster.begin(order.step, order.attempts);
        let name = name_of(service);
        let (answer, there) = match trying.read(SERVICES, name, None).await {
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(there) => self.repaired(&mut trying, order, service, uid, there).await,
                Err(_) => (Answer::AGAIN, None),
            },
            // It went in between: the watch will say so.
            Err(Answer::Gone) => (Answer::Conflict, None),
            Err(answer) => (answer, None),
        };
        self.end(trying, SERVICES, &order.id, answer, there)
    }

    async fn repaired(
        &self,
        trying: &mut Performing<'_>,
        order: &SessionOrder,
        service: &Value,
        uid: &Uid,
        mut there: Value,
    ) -> (Answer, Option<Value>) {
        let judged = self.judge(&there, order);
        if judged != Answer::AlreadySo {
            return (judged, Some(there));
        }
        if meta_of(&there).uid.as_deref() != Some(uid.as_str()) {
            return (Answer::Conflict, Some(there));
        }
        for field in ["selector", "ports", "type"] {
            there["spec"][field] = service["spec"][field].clone();
        }
        for field in ["labels", "annotations"] {
            for (key, value) in service["metadata"][field].as_object().into_iter().flatten() {
                there["metadata"][field][key.as_str()] = value.clone();
            }
        }
        let target = Target { verb: Verb::Update, resource: SERVICES, name: name_of(service), uid: Some(uid.clone()) };
        match trying.write(target, &there).await {
            Ok(reply) => (Answer::Done, serde_json::from_slice(&reply.body).ok()),
            Err(answer) => (answer, None),
        }
    }

    async fn delete(&self, step: RecordId, attempts: u32, doomed: &Doomed<'_>) -> SessionPerformed {
        SessionPerformed { performed: self.cluster.delete_exactly(step, attempts, doomed).await, seen: None }
    }

    /// Reads whether an object of the session is there, after a write that was never answered.
    async fn look(&self, id: &SessionId, step: RecordId, attempts: u32, resource: &'static str, name: &str) -> SessionPerformed {
        let mut trying = self.cluster.begin(step, attempts);
        let (answer, there) = match trying.read(resource, name, None).await {
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(there) if self.template.scheme.ownership(&meta_of(&there)) == Ownership::Ours(id.clone()) => (Answer::Done, Some(there)),
                Ok(_) => (Answer::Refused(Refusal::Foreign), None),
                Err(_) => (Answer::AGAIN, None),
            },
            Err(answer) => (answer, None),
        };
        self.end(trying, resource, id, answer, there)
    }

    /// After a success that could not be read: whether the object is there, by this step.
    async fn read_back(&self, trying: &mut Performing<'_>, resource: &'static str, name: &str, step: RecordId) -> (Answer, Option<Value>) {
        let read = trying.read(resource, name, None).await;
        let there = read.ok().and_then(|reply| serde_json::from_slice::<Value>(&reply.body).ok());
        match there.filter(|there| self.is_by(there, step)) {
            Some(there) => (Answer::Done, Some(there)),
            None => (Answer::Unknown, None),
        }
    }

    /// Whose the object is that has the name.
    async fn whose(
        &self,
        trying: &mut Performing<'_>,
        resource: &'static str,
        name: &str,
        order: &SessionOrder,
    ) -> (Answer, Option<Value>) {
        match trying.read(resource, name, None).await {
            Ok(reply) => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(there) => (self.judge(&there, order), Some(there)),
                Err(_) => (Answer::AGAIN, None),
            },
            // It went in between.
            Err(Answer::Gone) => (Answer::AGAIN, None),
            Err(answer) => (answer, None),
        }
    }

    /// What is there under the name: going, this session's and tenant's, or somebody else's.
    fn judge(&self, there: &Value, order: &SessionOrder) -> Answer {
        let meta = meta_of(there);
        let scheme = &self.template.scheme;
        let is_its = scheme.ownership(&meta) == Ownership::Ours(order.id.clone()) && scheme.tenant(&meta).as_ref() == Some(&order.tenant);
        if meta.deleting() {
            Answer::NameHeld
        } else if is_its && object_of(&meta).is_some() {
            Answer::AlreadySo
        } else {
            Answer::Refused(Refusal::Foreign)
        }
    }

    fn is_by(&self, there: &Value, step: RecordId) -> bool {
        let meta = meta_of(there);
        object_of(&meta).is_some() && meta.annotation(&self.template.scheme.scheme.key("step")) == Some(step.to_string().as_str())
    }

    fn end(&self, trying: Performing<'_>, resource: &str, id: &SessionId, answer: Answer, there: Option<Value>) -> SessionPerformed {
        let is_its = |there: &Value| self.template.scheme.ownership(&meta_of(there)) == Ownership::Ours(id.clone());
        let there = there.filter(is_its);
        let shows = matches!(answer, Answer::Done | Answer::AlreadySo);
        let object: Option<ObjectSeen> = there.as_ref().filter(|_| shows).and_then(|there| object_of(&meta_of(there)));
        let seen = there.and_then(|there| self.event(resource, &there));
        SessionPerformed { performed: trying.end(answer, object, None), seen }
    }

    /// The observation of an object of a session.
    fn event(&self, resource: &str, there: &Value) -> Option<Event> {
        let template = &self.template;
        let json = there.to_string();
        let bytes = json.as_bytes();
        match resource {
            CLAIMS => {
                let (view, odd) = read::<ClaimView>(bytes)?;
                convert::claim(template, &view, odd).ok().map(|observed| Event::ClaimSeen(observed.seen))
            }
            SERVICES => {
                let (view, odd) = read::<ServiceView>(bytes)?;
                convert::service(template, &view, odd).ok().map(|observed| Event::ServiceSeen(observed.seen))
            }
            _ => {
                let (view, odd) = read::<PodView>(bytes)?;
                convert::pod(template, &view, odd).ok().map(|observed| Event::PodSeen(observed.seen))
            }
        }
    }
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn meta_of(there: &Value) -> Meta {
    tolerant::<MetaView>(there).0.metadata
}
