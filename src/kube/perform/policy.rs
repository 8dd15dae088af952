//! The NetworkPolicy of all app pods: created, compared, repaired. No pod is created before it is confirmed.

use serde_json::{Value, json};

use super::{Cluster, Performed, Target, object_of};
use crate::events::kinds::step::{ObjectSeen, Refusal};
use crate::ids::RecordId;
use crate::kube::answer::{Answer, Verb};
use crate::kube::policy::Confirmed;
use crate::kube::view::{MetaView, tolerant};

const POLICIES: &str = "networkpolicies";

impl Cluster {
    /// Makes the NetworkPolicy be there and mean what the settings say: `AlreadySo` and `Done` confirm it. One of that name that
    /// is not this instance's is `Refused(NetworkPolicy)` and stays as it is. `step` is the create that waits for it: whatever the
    /// server has against the policy is `Refused(NetworkPolicy)` too, because no release is to blame for it.
    pub async fn ensure_policy(&self, step: RecordId, attempts: u32) -> Performed {
        self.ensure(&self.0.policy, step, attempts).await
    }

    /// The same of another policy of ours.
    pub(super) async fn ensure(&self, policy: &impl Confirmed, step: RecordId, attempts: u32) -> Performed {
        let mut performed = self.ensured(policy, step, attempts).await;
        if let Answer::Refused(refusal) = &mut performed.answer {
            *refusal = Refusal::NetworkPolicy;
        }
        performed
    }

    async fn ensured(&self, policy: &impl Confirmed, step: RecordId, attempts: u32) -> Performed {
        let mut trying = self.begin(step, attempts);
        let name = policy.name();
        let mut object = policy.object();
        let refused = Answer::Refused(Refusal::NetworkPolicy);
        let mut target = Target { verb: Verb::Create, resource: POLICIES, name: &name, uid: None };
        match trying.read(POLICIES, &name, None).await {
            Ok(reply) => {
                let Some(there) = serde_json::from_slice::<Value>(&reply.body).ok() else {
                    return trying.end(Answer::AGAIN, None, None);
                };
                let (MetaView { metadata }, _) = tolerant::<MetaView>(&there);
                let (true, Some(seen)) = (policy.is_ours(&metadata), object_of(&metadata)) else {
                    return trying.end(refused, None, None);
                };
                if metadata.deleting() {
                    return trying.end(Answer::NameHeld, Some(seen), None);
                }
                if policy.is_same(&there) {
                    return trying.end(Answer::AlreadySo, Some(seen), None);
                }
                tracing::warn!(name, "the network policy was changed by another and is repaired");
                object["metadata"]["uid"] = json!(seen.uid.as_str());
                object["metadata"]["resourceVersion"] = json!(seen.resource_version.to_string());
                target = Target { verb: Verb::Update, uid: Some(seen.uid), ..target };
            }
            Err(Answer::Gone) => {}
            Err(answer) => return trying.end(answer, None, None),
        }
        let (answer, seen) = match trying.write(target, &object).await {
            Ok(reply) => confirmed(&serde_json::from_slice(&reply.body).unwrap_or_default(), |there| policy.is_same(there)),
            // Somebody was faster: read it again.
            Err(Answer::Conflict | Answer::Gone) => (Answer::AGAIN, None),
            // What is not known to be there is not confirmed; reading it again is all there is to do.
            Err(Answer::Unknown) => (Answer::AGAIN, None),
            Err(answer) => (answer, None),
        };
        trying.end(answer, seen, None)
    }
}

/// What the server kept counts, not what was sent: something between may have changed it.
fn confirmed(there: &Value, is_same: impl Fn(&Value) -> bool) -> (Answer, Option<ObjectSeen>) {
    let (MetaView { metadata }, _) = tolerant::<MetaView>(there);
    match object_of(&metadata) {
        None => (Answer::AGAIN, None),
        Some(seen) if is_same(there) => (Answer::Done, Some(seen)),
        Some(seen) => (Answer::Refused(Refusal::NetworkPolicy), Some(seen)),
    }
}
