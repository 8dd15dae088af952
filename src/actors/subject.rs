//! One app's actor: takes what waits, folds, plans, appends once, and hands on what was decided. Decides nothing itself.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::carry::carried;
use super::committer::{Committer, NotAppended};
use super::inbox::News;
use super::registry::Registry;
use super::reports::Reports;
use super::work::ClusterHandle;
use crate::app::react::{Reacted, Under, committed, react};
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::clock::Clock;
use crate::events::codec;
use crate::events::kinds::carried::PART_BYTES;
use crate::events::kinds::daemon::PlanSettings;
use crate::events::kinds::step::{StepIssued, StepWithheld};
use crate::events::kinds::verdict::Stage;
use crate::events::record::{Draft, Event, Record, Role};
use crate::ids::{AppId, LogId, RecordId, Seq, Subject};
use crate::telemetry::Metrics;

/// The most bytes of notes in one reaction: what decides has the rest of the batch that a reaction fits (1 MiB).
const NOTES_BYTES: usize = 768 << 10;

/// Something may have come in. What, is in the registry.
#[derive(Debug)]
pub(super) struct Wake;

/// What every subject's actor works with.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) registry: Registry,
    pub(super) committer: Committer,
    pub(super) cluster: ClusterHandle,
    pub(super) reports: Reports,
    pub(super) clock: Clock,
    pub(super) metrics: Metrics,
    pub(super) log: LogId,
    pub(super) settings: Arc<PlanSettings>,
    pub(super) settings_seq: Seq,
}

/// The actor of one app.
pub(super) struct AppActor;

/// What it keeps: whose it is. The state is the registry's.
pub(super) struct AppState {
    app: AppId,
    subject: Subject,
    shared: Shared,
}

impl Actor for AppActor {
    type Msg = Wake;
    type State = AppState;
    type Arguments = (AppId, Shared);

    async fn pre_start(&self, _myself: ActorRef<Wake>, (app, shared): (AppId, Shared)) -> Result<AppState, ActorProcessingErr> {
        Ok(AppState { subject: Subject::App(app.clone()), app, shared })
    }

    async fn handle(&self, myself: ActorRef<Wake>, _wake: Wake, state: &mut AppState) -> Result<(), ActorProcessingErr> {
        // Boxed: a handler's future lives inside the actor for all its life.
        Box::pin(state.react_until_rest(&myself)).await
    }
}

impl AppState {
    async fn react_until_rest(&self, myself: &ActorRef<Wake>) -> Result<(), ActorProcessingErr> {
        while let Some((app, wake_us)) = self.react_once().await? {
            let works = app.hosts.values().any(|host| !host.flights.is_empty());
            if self.shared.registry.rest(&self.app, wake_us, works) {
                if !works {
                    myself.stop(None);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// One reaction; gives the state after it, and when to look again; `None` when there is nothing to react to.
    async fn react_once(&self) -> Result<Option<(Arc<App>, Option<i64>)>, ActorProcessingErr> {
        let Shared { registry, clock, settings, settings_seq, .. } = &self.shared;
        let Some((app, batch)) = registry.take(&self.app) else { return Ok(None) };
        let News { drafts, loud } = batch.news(&app);
        let carried = if batch.carry { carried(&self.app, &app) } else { Vec::new() };
        if batch.carry && carried.is_empty() {
            registry.has_carried(&self.app, None);
        }
        let (carries, loud) = (carried.len(), loud || !carried.is_empty());
        let notes = notes_that_fit(&self.app, drafts, NOTES_BYTES - carries * PART_BYTES);
        let drafts = carried.into_iter().chain(notes).collect();
        let listed = batch.is_listed(&app);
        let under = Under { rules: Rules::CURRENT, settings: settings.as_ref(), settings_seq: *settings_seq };
        let Reacted { reaction, decisions, wake_us } = react(app.as_ref(), &self.subject, drafts, under, clock.now_us());
        #[cfg(test)]
        super::tests::poison::meet(&self.app, super::tests::poison::At::BeforeAppend);
        if !loud && decisions == 0 {
            // A reaction with no new fact and no step is not recorded.
            registry.nothing_new(&self.app);
            self.shared.reports.state(&self.app, &app, listed);
            return Ok(Some((app, wake_us)));
        }
        let records = match self.shared.committer.append(reaction).await {
            Ok(records) => records,
            Err(refused @ NotAppended::Refused(_)) => return Err(refused.into()),
            // The incarnation ends; whatever was decided is void, and the state is rebuilt from the log.
            Err(NotAppended::LogFailed(_)) => return Ok(None),
        };
        batch.is_durable_now();
        #[cfg(test)]
        super::tests::poison::meet(&self.app, super::tests::poison::At::AfterAppend);
        let mut next = App::clone(&app);
        committed(&mut next, Rules::CURRENT, &records);
        let next = Arc::new(next);
        registry.commit(&self.app, Arc::clone(&next));
        if carries > 0 {
            registry.has_carried(&self.app, records.get(carries - 1).map(|record| record.header.seq));
        }
        drop(batch);
        self.shared.metrics.reaction();
        self.time_stages(&app, &next);
        self.hand_on(&next, &records);
        self.shared.reports.state(&self.app, &next, listed);
        Ok(Some((next, wake_us)))
    }

    /// Stages of a start that are over: each once, when the pod is first seen in a later one.
    fn time_stages(&self, before: &App, after: &App) {
        for (name, host) in &after.hosts {
            let former = before.hosts.get(name).and_then(|host| host.pod.as_ref());
            if let (Some(former), Some(pod)) = (former, &host.pod)
                && former.uid == pod.uid
                && former.stage < pod.stage
                && former.stage < Stage::Register
            {
                let took_us = pod.stage_since_us.saturating_sub(former.stage_since_us);
                self.shared.metrics.started(former.stage, u64::try_from(took_us).unwrap_or(0));
            }
        }
    }

    /// What was decided goes on its way: it is durable now.
    #[expect(clippy::wildcard_enum_match_arm, reason = "of the closed list of kinds these five concern others")]
    fn hand_on(&self, app: &App, records: &[Record]) {
        let mut withheld = Vec::new();
        for record in records {
            let id = RecordId { log: self.shared.log, seq: record.header.seq };
            match &record.event {
                Event::StepIssued(_) if !app.acts || app.frozen => {
                    withheld.push(Event::StepWithheld(StepWithheld { step: id.seq }));
                }
                Event::StepIssued(StepIssued { step, purpose, .. }) => {
                    self.shared.cluster.submit(&self.app, id, step.clone(), *purpose);
                }
                Event::StepRevoked(revoked) => self.shared.cluster.revoke(revoked.step),
                Event::TailAsked(asked) => self.shared.cluster.read_tail(&self.app, id, asked.of.clone()),
                Event::PodEnded(ended) => self.shared.metrics.ended(ended.cause),
                _ => {}
            }
        }
        if !withheld.is_empty() {
            self.shared.registry.bring(&self.app, withheld);
        }
    }
}

/// Without the notes that no record or reaction has room for: a note says something to the reader alone, and whatever a tenant
/// makes it say never keeps the app from being acted on.
fn notes_that_fit(app: &AppId, mut drafts: Vec<Draft>, mut room: usize) -> Vec<Draft> {
    drafts.retain(|draft| {
        let kind = draft.event.kind();
        if kind.role() != Role::Note {
            return true;
        }
        let bytes = codec::encode(&draft.event).map(|payload| payload.len());
        let left = bytes.ok().and_then(|bytes| room.checked_sub(bytes));
        room = left.unwrap_or(room);
        if left.is_none() {
            tracing::warn!(%app, kind = kind.name(), "a note does not fit into the log and is dropped");
        }
        left.is_some()
    });
    drafts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::kinds::step::StepExplained;

    #[test]
    fn a_note_that_does_not_fit_is_dropped() {
        let app = AppId::new("acme", "bot").expect("a name");
        let note = |bytes: usize| Draft::input(Event::StepExplained(StepExplained { step: Seq(7), text: "x".repeat(bytes) }));
        let fact = || Draft::input(Event::StepWithheld(StepWithheld { step: Seq(7) }));
        let kept = notes_that_fit(&app, vec![note(17_000), fact(), note(10), note(16_000), fact()], NOTES_BYTES);
        assert_eq!(kept, vec![fact(), note(10), note(16_000), fact()]);
        assert!(notes_that_fit(&app, vec![note(16_000); 100], NOTES_BYTES).len() * 16_000 <= NOTES_BYTES);
    }
}
