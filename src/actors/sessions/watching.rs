//! The watch of sessions: their pods, claims and Services, and the NetworkPolicies of their namespace. Nothing is planned before all
//! four were listed once. The policy is repaired when somebody changed it; a sweep looks for what was missed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::facts::{List, identity};
use super::policy::Own;
use crate::actors::committer::Committer;
use crate::actors::perform::Performer;
use crate::actors::registry::Registry;
use crate::clock::{Clock, now};
use crate::events::kinds::daemon::{Listed, WatchLossReason, WatchLost};
use crate::events::kinds::pod::{GoneHow, PodGone};
use crate::events::kinds::session::{ClaimGone, ServiceGone, SessionObject};
use crate::events::kinds::session_policy::SessionPolicyWidened;
use crate::events::record::{Draft, Event, Reaction, Record};
use crate::ids::{LogId, Seq, SessionId, Subject, Word};
use crate::kube::labels::Ownership;
use crate::kube::session::decode::{Claims, Policies, Services, SessionPods};
use crate::kube::session::policy::PolicySeen;
use crate::kube::throttle::backoff;
use crate::kube::watch::{Watch, WatchLimits, Watched};
use crate::session::state::Session;
use crate::subject::rules::Rules;

/// Observations between a watch and its actor: the stream is slowed down past it, nothing is lost.
const SINK: usize = 256;

/// The most policies that a record names.
const NAMED: usize = 16;

/// The longest pause between two tries to repair the policy: it is to be repaired within 5 s once the server answers.
const REPAIR_PAUSE_US: u64 = 4_000_000;

/// Take the next thing.
pub(in crate::actors) struct Next;

/// The actor.
pub(in crate::actors) struct SessionWatchActor;

/// What it works with. The performer has the edge to sessions.
pub(in crate::actors) struct SessionWatchParts {
    pub(in crate::actors) registry: Registry<Session>,
    pub(in crate::actors) performer: Arc<Performer>,
    pub(in crate::actors) committer: Committer,
    pub(in crate::actors) clock: Clock,
    pub(in crate::actors) daemon: Subject,
    pub(in crate::actors) settings_seq: Seq,
    pub(in crate::actors) log: LogId,
    pub(in crate::actors) limits: WatchLimits,
    pub(in crate::actors) sweep: Duration,
    /// Whether anything is changed at all.
    pub(in crate::actors) acts: bool,
}

/// An object of sessions: whose it is, and the observation.
type Seen = (Option<SessionId>, Event);

pub(in crate::actors) struct SessionWatchState {
    parts: SessionWatchParts,
    objects: mpsc::Receiver<(SessionObject, Watched<Seen>)>,
    policies: mpsc::Receiver<Watched<PolicySeen>>,
    /// What is not listed yet in this incarnation; the pods' list, once there is one.
    to_list: BTreeSet<Sort>,
    listed: Option<Listed>,
    sweep: Interval,
    /// When the policy is to be looked at again, and how often that was in vain.
    repair: Option<(Instant, u32)>,
    _loops: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Object(SessionObject),
    Policies,
}

impl Actor for SessionWatchActor {
    type Msg = Next;
    type State = SessionWatchState;
    type Arguments = SessionWatchParts;

    async fn pre_start(&self, myself: ActorRef<Next>, parts: SessionWatchParts) -> Result<SessionWatchState, ActorProcessingErr> {
        let state = SessionWatchState::start(parts)?;
        myself.cast(Next)?;
        Ok(state)
    }

    async fn handle(&self, myself: ActorRef<Next>, _next: Next, state: &mut SessionWatchState) -> Result<(), ActorProcessingErr> {
        Box::pin(state.take_one()).await?;
        Ok(myself.cast(Next)?)
    }
}

impl SessionWatchState {
    fn start(parts: SessionWatchParts) -> Result<Self, ActorProcessingErr> {
        let cluster = &parts.performer.sessions.as_ref().ok_or("there are no sessions to watch")?.cluster;
        let (client, namespace, template) = (cluster.client(), cluster.namespace(), cluster.template());
        let selector = template.scheme.selector();
        let path = |resource: &str| format!("/api/v1/namespaces/{namespace}/{resource}");
        let (limits, clock) = (parts.limits, &parts.clock);
        macro_rules! watch {
            ($path:expr, $selector:expr, $decode:expr) => {
                Watch { client: client.clone(), path: $path, selector: $selector, decode: $decode, limits, clock: clock.clone() }
            };
        }
        let (sink, objects) = mpsc::channel(SINK);
        let mut loops = JoinSet::new();
        let (pods, seen) = mpsc::channel(1);
        loops.spawn(watch!(path("pods"), selector.clone(), SessionPods(template.clone())).run(pods));
        loops.spawn(forward(SessionObject::Pod, seen, sink.clone(), |it| (ours(it.ownership), Event::PodSeen(it.seen))));
        let (claims, seen) = mpsc::channel(1);
        loops.spawn(watch!(path("persistentvolumeclaims"), selector.clone(), Claims(template.clone())).run(claims));
        loops.spawn(forward(SessionObject::Claim, seen, sink.clone(), |it| (ours(it.ownership), Event::ClaimSeen(it.seen))));
        let (services, seen) = mpsc::channel(1);
        loops.spawn(watch!(path("services"), selector, Services(template.clone())).run(services));
        loops.spawn(forward(SessionObject::Service, seen, sink, |it| (ours(it.ownership), Event::ServiceSeen(it.seen))));
        let (policy_sink, policies) = mpsc::channel(SINK);
        let all = format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies");
        loops.spawn(watch!(all, String::new(), Policies(cluster.policy().clone())).run(policy_sink));
        let mut sweep = interval_at(now() + parts.sweep, parts.sweep);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let sorts = [SessionObject::Claim, SessionObject::Pod, SessionObject::Service].map(Sort::Object);
        let to_list = sorts.into_iter().chain([Sort::Policies]).collect();
        Ok(Self { parts, objects, policies, to_list, listed: None, sweep, repair: None, _loops: loops })
    }

    async fn take_one(&mut self) -> Result<(), ActorProcessingErr> {
        let repair = self.repair.map(|(at, _)| at);
        let due = async {
            match repair {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            watched = self.policies.recv() => match watched {
                Some(watched) => self.policy(watched).await,
                None => return Err("the watch of network policies has ended".into()),
            },
            () = due => self.repair().await,
            watched = self.objects.recv() => match watched {
                Some((object, watched)) => self.object(object, watched).await,
                None => return Err("the watch of sessions has ended".into()),
            },
            _ = self.sweep.tick() => {
                let swept = self.parts.registry.sweep();
                tracing::debug!(sessions = swept, "the sessions are swept");
            }
        }
        Ok(())
    }

    async fn object(&mut self, object: SessionObject, watched: Watched<Seen>) {
        let registry = &self.parts.registry;
        match watched {
            Watched::Listed { resource_version: version, seen, odd } => {
                for odd in &odd {
                    tracing::warn!(name = odd.name, why = odd.why, "an object of a session cannot be read: it is left as it is");
                }
                let count = seen.len() as u64;
                let mut objects: BTreeMap<SessionId, Vec<Event>> = BTreeMap::new();
                for (id, event) in seen.into_iter().filter_map(|(id, event)| Some((id?, event))) {
                    objects.entry(id).or_default().push(event);
                }
                let list = List { version, odd: Arc::new(odd.into_iter().map(|odd| odd.name).collect()) };
                registry.objects_listed(object, &list, objects);
                if object == SessionObject::Pod {
                    self.listed = Some(Listed { resource_version: version, pods: count });
                }
                self.is_listed(Sort::Object(object)).await;
            }
            Watched::Seen((Some(id), event)) => registry.saw_object(&id, event, None),
            Watched::Deleted((Some(id), event)) => {
                let gone = gone(&event);
                registry.saw_object(&id, event, gone);
            }
            Watched::Seen((None, _)) | Watched::Deleted((None, _)) | Watched::Alive { .. } => {}
            Watched::Lost { reason, since_us, resource_version } => {
                let resource = match object {
                    SessionObject::Claim => "persistentvolumeclaims",
                    SessionObject::Pod => "pods of sessions",
                    SessionObject::Service => "services",
                };
                self.lost(resource, reason, since_us, resource_version).await;
            }
            Watched::Odd(odd) => {
                tracing::warn!(name = odd.name, why = odd.why, "an object of a session cannot be read: it is left as it is")
            }
        }
    }

    /// One sort is listed; with the last of them sessions plan, once in an incarnation.
    async fn is_listed(&mut self, sort: Sort) {
        self.to_list.remove(&sort);
        if !self.to_list.is_empty() || self.parts.registry.is_listed() {
            return;
        }
        if let Some(listed) = self.listed.clone() {
            tracing::info!(pods = listed.pods, "the sessions are listed");
            let listed = Event::Listed(listed);
            self.tell_log(listed.clone()).await;
            self.parts.registry.may_plan(listed);
        }
    }

    async fn policy(&mut self, watched: Watched<PolicySeen>) {
        let Some(guard) = &self.parts.performer.sessions else { return };
        let mut widened = false;
        match watched {
            Watched::Listed { resource_version, seen, .. } => {
                let names: BTreeSet<&String> = seen.iter().map(|seen| &seen.name).collect();
                for gone in guard.widened_by().iter().filter(|name| !names.contains(name)) {
                    guard.widens(gone, false);
                }
                if !names.contains(&guard.name()) {
                    guard.saw(Own::Absent, resource_version);
                }
                for policy in &seen {
                    widened |= guard.take(policy);
                }
                self.see_to_repair();
                self.is_listed(Sort::Policies).await;
            }
            Watched::Seen(policy) => widened = guard.take(&policy),
            Watched::Deleted(policy) => {
                if policy.name == guard.name() {
                    guard.saw(Own::Absent, policy.resource_version);
                }
                guard.widens(&policy.name, false);
            }
            Watched::Lost { reason, since_us, resource_version } => {
                guard.lost();
                self.lost("networkpolicies", reason, since_us, resource_version).await;
            }
            Watched::Odd(odd) => tracing::warn!(name = odd.name, why = odd.why, "a network policy cannot be read"),
            Watched::Alive { .. } => {}
        }
        if widened {
            self.tell_widened().await;
        }
        self.see_to_repair();
    }

    /// Another policy selects pods of sessions: what it allows is allowed besides.
    async fn tell_widened(&self) {
        let Some(guard) = &self.parts.performer.sessions else { return };
        let by = guard.widened_by();
        tracing::warn!(?by, "another network policy selects the pods of sessions: it allows them more than ours does");
        let policies = by.iter().take(NAMED).map(|name| Word::new(name)).collect();
        self.tell_log(Event::SessionPolicyWidened(SessionPolicyWidened { policies })).await;
    }

    /// Has the policy repaired when it was changed, or is missing under pods.
    fn see_to_repair(&mut self) {
        let Some(guard) = &self.parts.performer.sessions else { return };
        let needed = match guard.own() {
            Own::Changed => true,
            Own::Absent => self.parts.registry.any_pod(),
            Own::Unknown | Own::Foreign | Own::Confirmed => false,
        };
        if !needed || !self.parts.acts {
            self.repair = None;
        } else if self.repair.is_none() {
            self.repair = Some((now(), 0));
        }
    }

    /// Repairs the policy, by a record that is durable before anything is sent.
    async fn repair(&mut self) {
        let Some((_, tries)) = self.repair.take() else { return };
        let Some(guard) = &self.parts.performer.sessions else { return };
        if matches!(guard.own(), Own::Changed | Own::Absent)
            && let Some(issued) = self.tell_log(guard.repair_issued()).await
        {
            let outcome = guard.repair(&issued, self.parts.log).await;
            let is_done = outcome.done;
            self.tell(outcome.events).await;
            if !is_done {
                let pause_us = backoff(tries + 1, issued.header.seq.0).min(REPAIR_PAUSE_US);
                self.repair = Some((now() + Duration::from_micros(pause_us), tries + 1));
            }
        }
    }

    async fn lost(&self, resource: &str, reason: WatchLossReason, since_us: i64, resource_version: u64) {
        tracing::warn!(resource, ?reason, "nobody watches");
        self.tell_log(Event::WatchLost(WatchLost { resource: Word::new(resource), reason, resource_version, since_us })).await;
    }

    async fn tell_log(&self, event: Event) -> Option<Record> {
        self.tell(vec![event]).await.into_iter().next()
    }

    async fn tell(&self, events: Vec<Event>) -> Vec<Record> {
        let reaction = Reaction {
            subject: self.parts.daemon.clone(),
            time_us: self.parts.clock.now_us(),
            rules: Rules::CURRENT.number(),
            settings: self.parts.settings_seq,
            drafts: events.into_iter().map(Draft::input).collect(),
        };
        self.parts.committer.append(reaction).await.unwrap_or_else(|error| {
            tracing::error!(%error, "what the watch of sessions did cannot be recorded");
            Vec::new()
        })
    }
}

/// Brings the watches of three sorts into one, in which each keeps its order.
async fn forward<S>(
    object: SessionObject,
    mut from: mpsc::Receiver<Watched<S>>,
    to: mpsc::Sender<(SessionObject, Watched<Seen>)>,
    seen: impl Fn(S) -> Seen,
) {
    while let Some(watched) = from.recv().await {
        if to.send((object, watched.map(&seen))).await.is_err() {
            return;
        }
    }
}

fn ours(ownership: Ownership<SessionId>) -> Option<SessionId> {
    match ownership {
        Ownership::Ours(id) => Some(id),
        Ownership::Foreign | Ownership::OursOtherInstance | Ownership::Unreadable { .. } => None,
    }
}

/// The object that was last seen so is gone.
#[expect(clippy::wildcard_enum_match_arm, reason = "three kinds are observations of an object")]
fn gone(seen: &Event) -> Option<Event> {
    let (uid, resource_version) = identity(seen).map(|(uid, version)| (uid.clone(), version))?;
    let how = GoneHow::Deleted;
    match seen {
        Event::PodSeen(pod) => Some(Event::PodGone(PodGone { host: pod.host.clone(), uid, resource_version, how })),
        Event::ClaimSeen(_) => Some(Event::ClaimGone(ClaimGone { uid, resource_version, how })),
        Event::ServiceSeen(_) => Some(Event::ServiceGone(ServiceGone { uid, resource_version, how })),
        _ => None,
    }
}
