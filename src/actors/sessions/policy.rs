//! The NetworkPolicy of sessions as the watch shows it: confirmed before a pod is made, without a request when the watch has
//! confirmed it, and one request at a time when it has not.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock;
use crate::events::kinds::session_policy::SessionPolicyRepairIssued;
use crate::events::kinds::step::{Refusal, StepSettled};
use crate::events::record::{Event, Record};
use crate::ids::{LogId, RecordId, Word};
use crate::kube::answer::Answer;
use crate::kube::perform::{Performed, SessionCluster};
use crate::kube::policy::Confirmed as _;
use crate::kube::session::policy::{PolicyIs, PolicySeen};

/// What is known of the policy of our name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::actors) enum Own {
    /// Nobody looked yet.
    #[default]
    Unknown,
    /// It is not there.
    Absent,
    /// It is there and means what the settings say.
    Confirmed,
    /// It is ours and was changed, or is being deleted.
    Changed,
    /// It is somebody else's.
    Foreign,
}

#[derive(Debug, Default)]
struct Known {
    own: Own,
    /// The version that was seen.
    version: u64,
    /// Other policies that select pods of sessions.
    widened_by: BTreeSet<String>,
}

/// Lets pods be made, or not.
pub(in crate::actors) struct PolicyGuard {
    pub(in crate::actors) cluster: SessionCluster,
    strict: bool,
    known: Mutex<Known>,
    /// Whoever asks the server about it.
    turn: tokio::sync::Mutex<()>,
}

impl PolicyGuard {
    pub(in crate::actors) fn new(cluster: SessionCluster, strict: bool) -> Self {
        Self { cluster, strict, known: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the policy of our name.
    pub(in crate::actors) fn own(&self) -> Own {
        self.known().own
    }

    /// The watch showed it at that version; what is older says nothing.
    pub(super) fn saw(&self, own: Own, version: u64) {
        let mut known = self.known();
        if version >= known.version {
            (known.own, known.version) = (own, version);
        }
    }

    /// The policy's name.
    pub(super) fn name(&self) -> String {
        self.cluster.policy().name()
    }

    /// The watch showed a policy of the namespace; says whether another one begins to widen ours.
    pub(super) fn take(&self, seen: &PolicySeen) -> bool {
        let version = seen.resource_version;
        match seen.is {
            PolicyIs::Confirmed => self.saw(Own::Confirmed, version),
            PolicyIs::Changed => self.saw(Own::Changed, version),
            PolicyIs::Foreign => {
                tracing::error!(name = seen.name, "the network policy of sessions is somebody else's: no session gets a pod");
                self.saw(Own::Foreign, version);
            }
            PolicyIs::Widening => return self.widens(&seen.name, true),
            PolicyIs::Other => drop(self.widens(&seen.name, false)),
        }
        false
    }

    /// That it is to be repaired, as a record.
    pub(super) fn repair_issued(&self) -> Event {
        let missing = self.own() == Own::Absent;
        Event::SessionPolicyRepairIssued(SessionPolicyRepairIssued { name: Word::new(&self.name()), missing })
    }

    /// Repairs it, by that record; gives what is recorded of it, and whether it is confirmed now.
    pub(super) async fn repair(&self, issued: &Record, log: LogId) -> Repaired {
        let _turn = self.turn.lock().await;
        let begun = clock::now();
        let performed = self.cluster.ensure_policy(RecordId { log, seq: issued.header.seq }, 0).await;
        let done = matches!(performed.answer, Answer::Done | Answer::AlreadySo);
        if let Some(object) = performed.object.as_ref().filter(|_| done) {
            self.saw(Own::Confirmed, object.resource_version);
        }
        let mut events: Vec<Event> = performed.calls.into_iter().map(Event::ApiCalled).collect();
        events.push(Event::StepSettled(StepSettled {
            step: issued.header.seq,
            outcome: performed.answer.outcome(),
            object: performed.object,
            attempts: performed.attempts,
            audit_id: performed.audit_id,
            status: performed.status,
            took_us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        }));
        Repaired { done, events }
    }

    /// Nobody watches it: what is not watched is asked for.
    pub(super) fn lost(&self) {
        self.known().own = Own::Unknown;
    }

    /// Another policy selects pods of sessions, or does not any more; says whether that is news.
    pub(super) fn widens(&self, name: &str, widens: bool) -> bool {
        let mut known = self.known();
        if widens { known.widened_by.insert(name.to_owned()) } else { known.widened_by.remove(name) }
    }

    /// The other policies that select pods of sessions.
    pub(in crate::actors) fn widened_by(&self) -> BTreeSet<String> {
        self.known().widened_by.clone()
    }

    /// What is known already: `Ok` when a pod may be made.
    fn judged(&self) -> Option<Result<(), Refusal>> {
        let known = self.known();
        match known.own {
            Own::Confirmed if self.strict && !known.widened_by.is_empty() => Some(Err(Refusal::NetworkPolicy)),
            Own::Confirmed => Some(Ok(())),
            Own::Unknown | Own::Absent | Own::Changed | Own::Foreign => None,
        }
    }

    /// Confirms it for a step, `attempts` of which were sent: `Ok` when a pod may be made, with what was sent for it; else what came
    /// of it (DESIGN.md, invariant 8).
    pub(in crate::actors) async fn confirm(&self, step: RecordId, attempts: u32) -> Result<Option<Performed>, Unconfirmed> {
        if let Some(judged) = self.judged() {
            return judged.map(|()| None).map_err(Unconfirmed::Widened);
        }
        let _turn = self.turn.lock().await;
        if let Some(judged) = self.judged() {
            return judged.map(|()| None).map_err(Unconfirmed::Widened);
        }
        let performed = self.cluster.ensure_policy(step, attempts).await;
        if !matches!(performed.answer, Answer::Done | Answer::AlreadySo) {
            return Err(Unconfirmed::Performed(Box::new(performed)));
        }
        if let Some(object) = &performed.object {
            self.saw(Own::Confirmed, object.resource_version);
        }
        match self.judged() {
            Some(Err(why)) => Err(Unconfirmed::Widened(why)),
            Some(Ok(())) | None => Ok(Some(performed)),
        }
    }
}

/// What became of a repair.
pub(super) struct Repaired {
    /// The policy is confirmed.
    pub(super) done: bool,
    /// What is recorded.
    pub(super) events: Vec<Event>,
}

/// Why no pod may be made.
pub(in crate::actors) enum Unconfirmed {
    /// Another policy widens it, and that is not to be.
    Widened(Refusal),
    /// What came of confirming it.
    Performed(Box<Performed>),
}
