//! What is known of one pod, and what an observation of it adds: its stage, who disturbed it, how it ended.

use super::ends;
use crate::events::kinds::pod::{ContainerState, Disruption, Phase, PodSeen};
use crate::events::kinds::verdict::{EndCause, PodEnded, Stage};
use crate::ids::{HostName, Seq, Uid, Word};

/// Restarts that one observation can add: more than any window asks about.
const RESTARTS: u32 = 64;
/// Uids that are remembered as gone, a name: enough for every observation that can still be under way.
const GONE_UIDS: usize = 8;

/// What a record is worth to a fold: where and when it stands.
#[derive(Debug, Clone, Copy)]
pub struct At {
    /// Its number; [provisional](Seq::provisional) while it has none.
    pub seq: Seq,
    /// Its time, log time.
    pub time_us: i64,
}

/// A pod of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its identity.
    pub uid: Uid,
    /// The newest version of it that is known.
    pub resource_version: u64,
    /// The record that last said something new.
    pub seq: Seq,
    /// As last seen; `None` while only our own write says that it is there.
    pub view: Option<PodSeen>,
    /// Log time of the last observation or write.
    pub seen_us: i64,
    /// Its stage, and since when, log time.
    pub stage: Stage,
    /// Since when, log time.
    pub stage_since_us: i64,
    /// Who disturbed it: readable only while it is dying, so it is remembered.
    pub disruption: Option<Disruption>,
    /// Since when it is being deleted, log time.
    pub deleting_since_us: Option<i64>,
    /// Our delete of it.
    pub delete: Option<Delete>,
    /// How it ended.
    pub end: Option<End>,
    /// The highest restart number of its app container.
    pub restarts: u32,
    /// Ours, but not the one that was to be made.
    pub different: bool,
}

/// A delete of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delete {
    /// The step.
    pub step: Seq,
    /// For a revive; else for a stop.
    pub revive: bool,
    /// Whether it forces the object away.
    pub forced: bool,
    /// No answer came, or it was left behind: it is decided again, but an end is still ours.
    pub unanswered: bool,
}

/// How a pod ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The record that showed it.
    pub seq: Seq,
    /// The pod.
    pub uid: Uid,
    /// The container that ended it, empty when none did.
    pub container: Word,
    /// Its restart number.
    pub restart: u32,
    /// Why.
    pub cause: EndCause,
    /// Exit code.
    pub exit_code: Option<i32>,
    /// Signal.
    pub signal: Option<i32>,
    /// Raw reason.
    pub reason: Word,
    /// The stage it was in.
    pub stage: Stage,
    /// Its node.
    pub node: Word,
    /// When, log time.
    pub at_us: i64,
}

/// A tail that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// The incarnation that asked.
    pub incarnation: u64,
    /// It is kept, or known not to be had.
    pub settled: bool,
    /// The record that says that it is kept; its text comes right behind it.
    pub kept: Option<Seq>,
}

impl Pod {
    /// A pod that our own write, or a first observation, made known.
    #[must_use]
    pub fn known(uid: Uid, resource_version: u64, at: At) -> Self {
        Self {
            uid,
            resource_version,
            seq: at.seq,
            view: None,
            seen_us: at.time_us,
            stage: Stage::Scheduling,
            stage_since_us: at.time_us,
            disruption: None,
            deleting_since_us: None,
            delete: None,
            end: None,
            restarts: 0,
            different: false,
        }
    }

    /// Takes in a view; gives the ends that it shows and that were not known.
    pub fn take(&mut self, view: &PodSeen, at: At) -> Vec<End> {
        let first = self.view.is_none() && self.seq == at.seq;
        self.disruption = self.disruption.or(view.disruption);
        if view.deleting && self.deleting_since_us.is_none() {
            self.deleting_since_us = Some(at.time_us);
        }
        let stage = ends::stage_shown(view);
        if stage != self.stage || first {
            self.stage = stage;
            self.stage_since_us = ends::believed(ends::stage_began_us(view, stage), self.seen_us, at.time_us);
        }
        let mut shown = Vec::new();
        if self.end.is_none() {
            self.restarted(at, view, &mut shown);
            self.end = ends::end_shown(self, view, at.seq, at.time_us);
            shown.extend(self.end.clone());
        }
        self.resource_version = self.resource_version.max(view.resource_version);
        self.seq = at.seq;
        self.seen_us = at.time_us;
        self.view = Some(view.clone());
        shown
    }

    /// Restarts that the kubelet counted: each is an end of its own, once, and a number that runs back is none (cases B08).
    fn restarted(&mut self, at: At, view: &PodSeen, ends: &mut Vec<End>) {
        if let Some(last) = &view.app.last_end {
            for restart in self.restarts.max(view.app.restarts.saturating_sub(RESTARTS))..view.app.restarts {
                let mut shown = view.clone();
                shown.app.state = ContainerState::Ended(last.clone());
                shown.app.restarts = restart;
                ends.extend(ends::end_shown(self, &shown, at.seq, at.time_us));
            }
        }
        self.restarts = self.restarts.max(view.app.restarts);
    }

    /// The plan gave it up: what never starts, and what hangs in a stage.
    pub fn give_up(&mut self, at: At, ended: &PodEnded) {
        if self.uid == ended.uid && self.end.is_none() && matches!(ended.cause, EndCause::Stuck(_) | EndCause::NeverStarted(_)) {
            self.end = Some(End::of(at.seq, ended));
        }
    }

    /// Whether its container was seen running and has not ended.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.end.is_none() && self.view.as_ref().is_some_and(|view| matches!(view.app.state, ContainerState::Running { .. }))
    }

    /// Whether it was seen being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deleting_since_us.is_some()
    }

    /// Whether our delete of it is in flight, or was done.
    #[must_use]
    pub fn delete_stands(&self) -> bool {
        self.delete.is_some_and(|delete| !delete.unanswered)
    }

    /// Whether no process of it runs any more: only then may its object go without a grace.
    #[must_use]
    pub fn process_ended(&self) -> bool {
        let ended = |state: &ContainerState| matches!(state, ContainerState::Ended(_));
        self.end.is_some()
            && self.view.as_ref().is_some_and(|view| matches!(view.phase, Phase::Failed | Phase::Succeeded) || ended(&view.app.state))
    }

    /// What its containers wait for, or its own reason: the kubelet's word.
    #[must_use]
    pub fn waiting_reason(&self) -> Word {
        let Some(view) = &self.view else { return Word::default() };
        let waits = [&view.install, &view.app].into_iter().find_map(|container| match &container.state {
            ContainerState::Waiting { reason } if reason.as_str() != "PodInitializing" => Some(reason.clone()),
            ContainerState::Waiting { .. } | ContainerState::Absent | ContainerState::Running { .. } | ContainerState::Ended(_) => None,
        });
        waits.unwrap_or_else(|| view.reason.clone())
    }
}

impl End {
    /// An end as its record has it.
    #[must_use]
    pub fn of(seq: Seq, ended: &PodEnded) -> Self {
        Self {
            seq,
            uid: ended.uid.clone(),
            container: ended.container.clone(),
            restart: ended.restart,
            cause: ended.cause,
            exit_code: ended.exit_code,
            signal: ended.signal,
            reason: ended.reason.clone(),
            stage: ended.stage,
            node: ended.node.clone(),
            at_us: ended.at_us,
        }
    }

    /// Its record: `container` is the name of the one that ended, `counted` whether it counts as an exit of its own.
    #[must_use]
    pub fn record(&self, name: &HostName, container: Word, counted: bool) -> PodEnded {
        PodEnded {
            host: name.clone(),
            uid: self.uid.clone(),
            container,
            restart: self.restart,
            cause: self.cause,
            exit_code: self.exit_code,
            signal: self.signal,
            reason: self.reason.clone(),
            stage: self.stage,
            node: self.node.clone(),
            at_us: self.at_us,
            counted,
        }
    }
}

/// Remembers that a uid is gone: it never comes back.
pub fn remember_gone(gone: &mut Vec<Uid>, uid: &Uid) {
    if !gone.contains(uid) {
        gone.push(uid.clone());
    }
    if gone.len() > GONE_UIDS {
        gone.remove(0);
    }
}
