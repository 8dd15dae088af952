//! One try of one step: what it needs is made ready, then the cluster edge sends it. Sources and environments are the stages of
//! `PutSecret`, the network policy is the stage of `CreatePod`; none of them is a step of its own.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::environments::Environments;
use super::sessions::policy::{PolicyGuard, Unconfirmed};
use super::work::Work;
use crate::events::kinds::pod::PodSeen;
use crate::events::kinds::session::SessionStep;
use crate::events::kinds::step::{ApiCalled, ObjectSeen, Refusal, Step};
use crate::events::kinds::want::{EnvironmentFetched, SourceKept};
use crate::events::record::Event;
use crate::gateway::{Gateway, GatewayError, Kept, SourceError, SourceStore};
use crate::ids::{AppId, PackageDigest, SessionId, Subject, Word};
use crate::kube::answer::Answer;
use crate::kube::environment::Environment;
use crate::kube::labels::Ownership;
use crate::kube::manifest::Order;
use crate::kube::perform::{Cluster, Performed, SessionPerformed};

/// What became of one try.
#[derive(Debug, Clone, Default)]
pub(super) struct Tried {
    /// What to do next; `Unknown` when nothing else is known.
    pub(super) answer: Answer,
    pub(super) object: Option<ObjectSeen>,
    pub(super) status: u16,
    pub(super) audit_id: [u8; 16],
    /// Attempts sent for the step, those before this try included.
    pub(super) attempts: u32,
    /// Requests of this try.
    pub(super) requests: u32,
    pub(super) calls: Vec<ApiCalled>,
    pub(super) explained: Option<String>,
    /// What else became known.
    pub(super) events: Vec<Event>,
}

impl Tried {
    /// Nothing was sent.
    pub(super) fn unsent(work: &Work, answer: Answer) -> Self {
        Self { answer, attempts: work.attempts, ..Self::default() }
    }

    /// Nobody knows what was sent.
    pub(super) fn unknown(work: &Work) -> Self {
        Self::unsent(work, Answer::Unknown)
    }

    fn of(performed: Performed, app: &AppId) -> Self {
        let observed = performed.observed.as_ref().filter(|seen| seen.ownership == Ownership::Ours(app.clone()));
        let events = observed.map(|seen| Event::PodSeen(PodSeen::clone(&seen.seen))).into_iter().collect();
        Self { events, ..Self::sent(performed) }
    }

    /// What was sent, and answered.
    fn sent(performed: Performed) -> Self {
        Self {
            answer: performed.answer,
            object: performed.object,
            status: performed.status,
            audit_id: performed.audit_id,
            attempts: performed.attempts,
            requests: performed.requests,
            calls: performed.calls,
            explained: performed.explained,
            events: Vec::new(),
        }
    }

    /// The attempts, for the log.
    pub(super) fn notes(&self) -> Vec<Event> {
        self.calls.iter().cloned().map(Event::ApiCalled).collect()
    }
}

/// Carries out steps.
pub(super) struct Performer {
    pub(super) cluster: Cluster,
    pub(super) gateway: Arc<dyn Gateway>,
    pub(super) sources: SourceStore,
    /// Keys the digests of environments, so that one can be compared and not be guessed.
    pub(super) digest_key: [u8; 32],
    /// For redaction.
    pub(super) environments: Environments,
    /// Sessions, if there are any.
    pub(super) sessions: Option<PolicyGuard>,
}

impl Performer {
    pub(super) fn new(
        cluster: Cluster,
        gateway: Arc<dyn Gateway>,
        sources: SourceStore,
        digest_key: [u8; 32],
        sessions: Option<PolicyGuard>,
    ) -> Self {
        Self { cluster, gateway, sources, digest_key, environments: Environments::default(), sessions }
    }

    pub(super) async fn perform(&self, work: &Work, step: &Step) -> Tried {
        let Subject::App(app) = &work.of else { return Tried::unsent(work, Answer::AGAIN) };
        let order = |release: u64| Order { app: app.clone(), host: step.host().clone(), release, step: work.id, attempts: work.attempts };
        let performed = match step {
            Step::PutSecret { release, sha256, present_will_do, .. } => {
                return self.put_secret(work, &order(*release), *sha256, *present_will_do).await;
            }
            Step::CreatePod { release, sha256, .. } => return self.create_pod(work, order(*release), *sha256).await,
            Step::DeletePod { uid, grace_s, forced, .. } => self.cluster.delete_pod(&order(0), uid, *grace_s, *forced).await,
            Step::DeleteSecret { uid, host } => {
                let performed = self.cluster.delete_secret(&order(0), uid).await;
                self.environments.keep(app, host, None);
                performed
            }
            Step::ReadPod { .. } => self.cluster.read_pod(&order(0)).await,
            Step::ReadSecret { .. } => self.cluster.read_secret(&order(0)).await,
        };
        Tried::of(performed, app)
    }

    /// One try of a session's step; no pod before the policy of sessions is confirmed.
    pub(super) async fn perform_session(&self, work: &Work, step: &SessionStep) -> Tried {
        let (Some(sessions), Subject::Session(id)) = (&self.sessions, &work.of) else { return Tried::unsent(work, Answer::AGAIN) };
        if !matches!(step, SessionStep::CreatePod { .. }) {
            return self.send_session(id, work, work.attempts, step).await;
        }
        let confirmed = match sessions.confirm(work.id, work.attempts).await {
            Ok(confirmed) => confirmed,
            Err(unconfirmed) => {
                return match unconfirmed {
                    Unconfirmed::Widened(why) => {
                        let explained = "another network policy selects the pods of sessions (sessions.strict_policy)".to_owned();
                        Tried { explained: Some(explained), ..Tried::unsent(work, Answer::Refused(why)) }
                    }
                    Unconfirmed::Performed(performed) => before_the_pod(*performed, Vec::new()),
                };
            }
        };
        let attempts = confirmed.as_ref().map_or(work.attempts, |confirmed| confirmed.attempts);
        let mut tried = self.send_session(id, work, attempts, step).await;
        if let Some(confirmed) = confirmed {
            tried.requests += confirmed.requests;
            tried.calls.splice(0..0, confirmed.calls);
        }
        tried
    }

    async fn send_session(&self, id: &SessionId, work: &Work, attempts: u32, step: &SessionStep) -> Tried {
        let Some(sessions) = &self.sessions else { return Tried::unsent(work, Answer::AGAIN) };
        let SessionPerformed { performed, seen } = sessions.cluster.perform(id, work.id, attempts, step).await;
        Tried { events: seen.into_iter().collect(), ..Tried::sent(performed) }
    }

    async fn put_secret(&self, work: &Work, order: &Order, sha256: Option<PackageDigest>, present_will_do: bool) -> Tried {
        let mut events = Vec::new();
        if let Some(digest) = sha256 {
            match self.sources.ensure(&self.gateway, &order.app, order.release, digest).await {
                Ok(kept) if kept.fetched => events.push(source_kept(digest, kept, "gateway")),
                Ok(_) => {}
                Err(error) => return refused(work, &error),
            }
        }
        let file = match self.fetch_environment(order, present_will_do, &mut events).await {
            Ok(file) => file,
            Err(tried) => return Tried { attempts: work.attempts, events, ..*tried },
        };
        let performed = self.cluster.put_secret(order, file.as_deref(), present_will_do).await;
        let mut tried = Tried::of(performed, &order.app);
        tried.events.extend(events);
        tried
    }

    /// The environment's file; `None` when a present Secret has to do.
    async fn fetch_environment(&self, order: &Order, present_will_do: bool, events: &mut Vec<Event>) -> Result<Option<String>, Box<Tried>> {
        let refuse =
            |why: String| Box::new(Tried { answer: Answer::Refused(Refusal::Environment), explained: Some(why), ..Tried::default() });
        let variables = match self.gateway.environment(&order.app).await {
            Ok(variables) => variables,
            Err(error) if present_will_do => {
                tracing::info!(app = %order.app, error = %error, "the environment cannot be fetched: the present one is used");
                return Ok(None);
            }
            Err(error @ GatewayError::Refused { .. }) => return Err(refuse(error.to_string())),
            Err(error) => {
                tracing::info!(app = %order.app, error = %error, "the environment cannot be fetched yet");
                return Err(Box::new(Tried { answer: Answer::AGAIN, ..Tried::default() }));
            }
        };
        let environment = Environment::new(variables);
        let file = environment.file().map_err(|fault| refuse(fault.to_string()))?;
        let digest = Sha256::new().chain_update(self.digest_key).chain_update(file.as_bytes()).finalize();
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        events.push(Event::EnvironmentFetched(EnvironmentFetched {
            host: order.host.clone(),
            digest: short,
            variables: u32::try_from(environment.len()).unwrap_or(u32::MAX),
        }));
        self.environments.keep(&order.app, &order.host, Some(environment));
        Ok(Some(file))
    }

    /// No pod before its policy is confirmed (DESIGN.md, invariant 8).
    async fn create_pod(&self, work: &Work, mut order: Order, sha256: Option<PackageDigest>) -> Tried {
        let mut events = Vec::new();
        let sha256 = match sha256 {
            Some(sha256) => sha256,
            None => match self.sources.adopt(&self.gateway, &order.app, order.release).await {
                Ok((sha256, kept)) => {
                    events.push(source_kept(sha256, kept, "unproved"));
                    sha256
                }
                Err(error) => return refused(work, &error),
            },
        };
        let policy = self.cluster.ensure_policy(order.step, order.attempts).await;
        if !is_done(&policy) {
            return before_the_pod(policy, events);
        }
        order.attempts = policy.attempts;
        let (mut requests, mut calls) = (policy.requests, policy.calls);
        if work.attempts > 0 {
            match self.renewed_environment(&order, &mut events).await {
                Ok(None) => {}
                Ok(Some(file)) => {
                    let put = self.cluster.put_secret(&order, Some(&file), false).await;
                    if !is_done(&put) {
                        return before_the_pod(put, events);
                    }
                    order.attempts = put.attempts;
                    requests += put.requests;
                    calls.extend(put.calls);
                }
                Err(tried) => return Tried { attempts: order.attempts, requests, calls, events, ..*tried },
            }
        }
        let performed = self.cluster.create_pod(&order, &sha256).await;
        let mut tried = Tried::of(performed, &order.app);
        tried.requests += requests;
        tried.events.extend(events);
        tried.calls.splice(0..0, calls);
        tried
    }

    /// The environment's file, when it has changed since the Secret was put: a create that is tried again gets the new one (case B13).
    async fn renewed_environment(&self, order: &Order, events: &mut Vec<Event>) -> Result<Option<String>, Box<Tried>> {
        let before = self.environments.get(&order.app, &order.host).and_then(|held| held.file());
        let mut fetched = Vec::new();
        let file = self.fetch_environment(order, true, &mut fetched).await?.filter(|file| before.as_ref() != Some(file));
        if file.is_some() {
            events.extend(fetched);
        }
        Ok(file)
    }
}

fn is_done(stage: &Performed) -> bool {
    matches!(stage.answer, Answer::Done | Answer::AlreadySo)
}

/// A stage of a create came to nothing: whatever became of it, the pod was not sent.
fn before_the_pod(stage: Performed, events: Vec<Event>) -> Tried {
    let mut answer = stage.answer.clone();
    if let Answer::RetryLater { doubtful, .. } = &mut answer {
        *doubtful = false;
    } else if answer == Answer::Unknown {
        answer = Answer::AGAIN;
    }
    Tried { answer, object: None, events, ..Tried::sent(stage) }
}

fn source_kept(sha256: PackageDigest, kept: Kept, from: &str) -> Event {
    Event::SourceKept(SourceKept { sha256, bytes: kept.bytes, from: Word::new(from) })
}

fn refused(work: &Work, error: &SourceError) -> Tried {
    let answer = match error {
        SourceError::Gateway(GatewayError::Refused { .. }) => Answer::Refused(Refusal::Source),
        SourceError::Gateway(GatewayError::Retry { .. } | GatewayError::Unauthorised { .. }) | SourceError::Disk { .. } => Answer::AGAIN,
    };
    tracing::info!(subject = %work.of, error = %error, "the package cannot be had");
    Tried { explained: Some(error.to_string()), ..Tried::unsent(work, answer) }
}
