//! Pods: made, deleted by uid, read.

use serde_json::json;

use super::{Cluster, Performed, Performing, Target, object_of};
use crate::events::kinds::step::{ObjectSeen, Refusal};
use crate::ids::{HostName, PackageDigest, RecordId, Uid};
use crate::kube::answer::{Answer, Reply, Verb};
use crate::kube::convert::{self, Observation};
use crate::kube::labels::Ownership;
use crate::kube::manifest::Order;
use crate::kube::view::{self, MetaView, PodView};

const PODS: &str = "pods";

/// What to delete, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doomed<'a> {
    pub(super) resource: &'static str,
    pub(super) name: &'a str,
    pub(super) uid: &'a Uid,
    pub(super) grace_s: Option<u32>,
}

impl Cluster {
    /// Creates a host's pod. When the name is taken, what is there is judged (DESIGN.md, "Whose object is it") and never
    /// touched: `AlreadySo` adopts it, `Conflict` is one of ours that differs, `NameHeld` is being deleted, `Refused(Foreign)` is
    /// somebody else's.
    pub async fn create_pod(&self, order: &Order, sha256: &PackageDigest) -> Performed {
        let mut trying = self.begin_order(order);
        let pod = self.0.template.pod(order, sha256);
        let target = Target { verb: Verb::Create, resource: PODS, name: order.host.as_str(), uid: None };
        let (answer, observed) = match trying.write(target, &pod).await {
            Ok(reply) => match self.observed(&reply) {
                Some(observed) => (Answer::Done, Some(observed)),
                // It happened, and the answer could not be read.
                None => trying.read_back(order).await,
            },
            Err(Answer::Conflict) => trying.whose(order, &self.0.template.digest(&pod)).await,
            Err(answer) => (answer, None),
        };
        let object = observed.as_ref().map(seen_object);
        trying.end(answer, object, observed)
    }

    /// Deletes exactly this pod; a forced one is removed at once, though its node may still run it.
    pub async fn delete_pod(&self, order: &Order, uid: &Uid, grace_s: u32, forced: bool) -> Performed {
        let grace_s = Some(if forced { 0 } else { grace_s });
        let doomed = Doomed { resource: PODS, name: order.host.as_str(), uid, grace_s };
        self.delete(order, &doomed).await
    }

    /// Reads whether a pod of the host's name is there, after a write that was never answered.
    pub async fn read_pod(&self, order: &Order) -> Performed {
        let mut trying = self.begin_order(order);
        let (answer, observed) = match trying.read(PODS, order.host.as_str(), None).await {
            Ok(reply) => match self.observed(&reply) {
                Some(observed) if observed.ownership == Ownership::Ours(order.app.clone()) => (Answer::Done, Some(observed)),
                found => (Answer::Refused(Refusal::Foreign), found),
            },
            Err(answer) => (answer, None),
        };
        let object = observed.as_ref().map(seen_object);
        trying.end(answer, object, observed)
    }

    /// The pod of a host as it is now, for a tail: `None` when there is none.
    pub(super) async fn pod_now(&self, host: &HostName) -> Result<Option<Observation>, Answer> {
        let nobody = crate::ids::RecordId { log: crate::ids::LogId([0; 16]), seq: crate::ids::Seq::NONE };
        match self.begin(nobody, 0).read(PODS, host.as_str(), None).await {
            Ok(reply) => Ok(self.observed(&reply)),
            Err(Answer::Gone) => Ok(None),
            Err(answer) => Err(answer),
        }
    }

    pub(super) async fn delete(&self, order: &Order, doomed: &Doomed<'_>) -> Performed {
        self.delete_exactly(order.step, order.attempts, doomed).await
    }

    pub(super) async fn delete_exactly(&self, step: RecordId, attempts: u32, doomed: &Doomed<'_>) -> Performed {
        let mut trying = self.begin(step, attempts);
        let mut options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": doomed.uid.as_str()},
            "propagationPolicy": "Background",
        });
        if let Some(grace_s) = doomed.grace_s {
            options["gracePeriodSeconds"] = json!(grace_s);
        }
        let target = Target { verb: Verb::Delete, resource: doomed.resource, name: doomed.name, uid: Some(doomed.uid.clone()) };
        let (answer, object) = match trying.write(target, &options).await {
            // The object as it is being deleted, or a Status when it went at once.
            Ok(reply) => {
                let object = view::read::<MetaView>(&reply.body).and_then(|(view, _)| object_of(&view.metadata));
                (Answer::Done, object.filter(|object| object.uid == *doomed.uid))
            }
            Err(Answer::Conflict) => (trying.why_not(doomed).await, None),
            Err(answer) => (answer, None),
        };
        trying.end(answer, object, None)
    }

    fn observed(&self, reply: &Reply) -> Option<Observation> {
        let (view, odd) = view::read::<PodView>(&reply.body).filter(|_| !reply.cut)?;
        convert::observe(&self.0.template.scheme, &view, odd).ok()
    }
}

impl Performing<'_> {
    /// After a success that could not be read: whether the pod is there, by this step.
    async fn read_back(&mut self, order: &Order) -> (Answer, Option<Observation>) {
        let read = self.read(PODS, order.host.as_str(), None).await;
        let observed = read.ok().and_then(|reply| self.cluster.observed(&reply));
        match observed {
            Some(observed) if observed.seen.step == Some(order.step) => (Answer::Done, Some(observed)),
            _ => (Answer::Unknown, None),
        }
    }

    /// Whose the pod is that has the name.
    async fn whose(&mut self, order: &Order, digest: &str) -> (Answer, Option<Observation>) {
        let reply = match self.read(PODS, order.host.as_str(), None).await {
            Ok(reply) => reply,
            // It went in between.
            Err(Answer::Gone) => return (Answer::AGAIN, None),
            Err(answer) => return (answer, None),
        };
        let Some(found) = self.cluster.observed(&reply) else { return (Answer::Refused(Refusal::Foreign), None) };
        let by_this_log = found.seen.step.is_some_and(|step| step.log == order.step.log);
        let equal = found.manifest_digest.as_deref() == Some(digest);
        let answer = if found.seen.deleting {
            Answer::NameHeld
        } else if found.ownership != Ownership::Ours(order.app.clone()) {
            Answer::Refused(Refusal::Foreign)
        } else if by_this_log || equal {
            Answer::AlreadySo
        } else {
            Answer::Conflict
        };
        (answer, Some(found))
    }

    /// Why a delete by uid was refused: the object of that name is another, or none; else it is tried again.
    async fn why_not(&mut self, doomed: &Doomed<'_>) -> Answer {
        match self.read(doomed.resource, doomed.name, Some(crate::kube::call::METADATA)).await {
            Ok(reply) => {
                let there = view::read::<MetaView>(&reply.body).and_then(|(view, _)| object_of(&view.metadata));
                match there {
                    Some(there) if there.uid != *doomed.uid => Answer::Gone,
                    Some(_) | None => Answer::AGAIN,
                }
            }
            Err(answer) => answer,
        }
    }
}

fn seen_object(observed: &Observation) -> ObjectSeen {
    ObjectSeen { uid: observed.seen.uid.clone(), resource_version: observed.seen.resource_version }
}
