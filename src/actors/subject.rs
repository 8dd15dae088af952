//! One subject's actor: takes what waits, folds, plans, appends once, and hands on what was decided. Decides nothing itself.

use std::marker::PhantomData;
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::carry::carried;
use super::committer::{Committer, NotAppended};
use super::inbox::News;
use super::kept::Kept;
use super::registry::Registry;
use super::work::ClusterHandle;
use crate::clock::Clock;
use crate::events::codec;
use crate::events::kinds::carried::PART_BYTES;
use crate::events::kinds::step::StepWithheld;
use crate::events::record::{Draft, Event, Record, Role};
use crate::ids::{LogId, RecordId, Seq, Subject};
use crate::subject::react::{Reacted, Under, committed, react};
use crate::subject::rules::Rules;
use crate::telemetry::Metrics;

/// The most bytes of notes in one reaction: what decides has the rest of the batch that a reaction fits (1 MiB).
const NOTES_BYTES: usize = 768 << 10;

/// Something may have come in. What, is in the registry.
#[derive(Debug)]
pub(super) struct Wake;

/// What every actor of a sort of subjects works with.
pub(super) struct Shared<M: Kept> {
    pub(super) registry: Registry<M>,
    pub(super) committer: Committer,
    pub(super) cluster: ClusterHandle,
    pub(super) beside: M::Beside,
    pub(super) clock: Clock,
    pub(super) metrics: Metrics,
    pub(super) log: LogId,
    pub(super) settings: Arc<M::Settings>,
    pub(super) settings_seq: Seq,
}

// Derived, it would ask the same of the model.
impl<M: Kept> Clone for Shared<M> {
    fn clone(&self) -> Self {
        Self {
            registry: self.registry.clone(),
            committer: self.committer.clone(),
            cluster: self.cluster.clone(),
            beside: self.beside.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            log: self.log,
            settings: Arc::clone(&self.settings),
            settings_seq: self.settings_seq,
        }
    }
}

/// The actor of one subject.
pub(super) struct SubjectActor<M>(PhantomData<fn() -> M>);

impl<M> Default for SubjectActor<M> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// What it keeps: whose it is. The state is the registry's.
pub(super) struct SubjectState<M: Kept> {
    key: M::Key,
    subject: Subject,
    shared: Shared<M>,
}

impl<M: Kept> Actor for SubjectActor<M> {
    type Msg = Wake;
    type State = SubjectState<M>;
    type Arguments = (M::Key, Shared<M>);

    async fn pre_start(&self, _myself: ActorRef<Wake>, (key, shared): Self::Arguments) -> Result<SubjectState<M>, ActorProcessingErr> {
        Ok(SubjectState { subject: M::subject(&key), key, shared })
    }

    async fn handle(&self, myself: ActorRef<Wake>, _wake: Wake, state: &mut SubjectState<M>) -> Result<(), ActorProcessingErr> {
        // Boxed: a handler's future lives inside the actor for all its life.
        Box::pin(state.react_until_rest(&myself)).await
    }
}

impl<M: Kept> SubjectState<M> {
    async fn react_until_rest(&self, myself: &ActorRef<Wake>) -> Result<(), ActorProcessingErr> {
        while let Some((state, wake_us)) = self.react_once().await? {
            let works = state.has_flights();
            if self.shared.registry.rest(&self.key, wake_us, works) {
                if !works {
                    myself.stop(None);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// One reaction; gives the state after it, and when to look again; `None` when there is nothing to react to.
    async fn react_once(&self) -> Result<Option<(Arc<M>, Option<i64>)>, ActorProcessingErr> {
        let Shared { registry, clock, settings, settings_seq, beside, .. } = &self.shared;
        let Some((before, batch)) = registry.take(&self.key) else { return Ok(None) };
        let News { drafts, loud } = batch.news(&before, clock.now_us());
        let carried = if batch.carry { carried(&self.key, before.as_ref()) } else { Vec::new() };
        if batch.carry && carried.is_empty() {
            registry.has_carried(&self.key, None);
        }
        let (carries, loud) = (carried.len(), loud || !carried.is_empty());
        let (notes, places) = notes_that_fit(&self.subject, drafts, NOTES_BYTES - carries * PART_BYTES);
        let drafts = carried.into_iter().chain(notes).collect();
        let listed = batch.is_listed(&before);
        let under = Under { rules: Rules::CURRENT, settings: settings.as_ref(), settings_seq: *settings_seq };
        let Reacted { reaction, decisions, wake_us } = react(before.as_ref(), &self.subject, drafts, under, clock.now_us());
        #[cfg(test)]
        super::tests::poison::meet(&self.subject, super::tests::poison::At::BeforeAppend);
        if !loud && decisions == 0 {
            // A reaction with no new fact and no step is not recorded.
            registry.nothing_new(&self.key);
            batch.taken(&before, &|seq| seq);
            M::heard(beside, &self.key, &before, listed);
            return Ok(Some((before, wake_us)));
        }
        let records = match self.shared.committer.append(reaction).await {
            Ok(records) => records,
            Err(refused @ NotAppended::Refused(_)) => return Err(refused.into()),
            // The incarnation ends; whatever was decided is void, and the state is rebuilt from the log.
            Err(NotAppended::LogFailed(_)) => return Ok(None),
        };
        batch.is_durable_now();
        #[cfg(test)]
        super::tests::poison::meet(&self.subject, super::tests::poison::At::AfterAppend);
        let mut next = M::clone(&before);
        committed(&mut next, Rules::CURRENT, &records);
        let next = Arc::new(next);
        registry.commit(&self.key, Arc::clone(&next));
        if carries > 0 {
            registry.has_carried(&self.key, records.get(carries - 1).map(|record| record.header.seq));
        }
        let first = records.get(carries).map_or(Seq::NONE, |record| record.header.seq);
        batch.taken(&before, &|seq| places.place_of(seq).resolved(first));
        drop(batch);
        self.shared.metrics.reaction();
        M::measure(&self.shared.metrics, &before, &next);
        self.hand_on(&next, &records);
        M::heard(beside, &self.key, &next, listed);
        Ok(Some((next, wake_us)))
    }

    /// What was decided goes on its way: it is durable now.
    #[expect(clippy::wildcard_enum_match_arm, reason = "of the closed list of kinds these concern others")]
    fn hand_on(&self, state: &M, records: &[Record]) {
        let mut withheld = Vec::new();
        for record in records {
            let id = RecordId { log: self.shared.log, seq: record.header.seq };
            if let Some((what, lane)) = M::step_of(&record.event) {
                if state.holds_back() {
                    withheld.push(Event::StepWithheld(StepWithheld { step: id.seq }));
                } else {
                    self.shared.cluster.submit(&self.subject, id, what, lane);
                }
                continue;
            }
            match &record.event {
                Event::StepRevoked(revoked) => self.shared.cluster.revoke(revoked.step),
                Event::TailAsked(asked) => self.shared.cluster.read_tail(&self.subject, id, asked.of.clone()),
                Event::PodEnded(ended) => self.shared.metrics.ended(ended.cause),
                _ => {}
            }
        }
        if !withheld.is_empty() {
            self.shared.registry.bring(&self.key, withheld);
        }
    }
}

/// Which of a reaction's inputs were dropped, by their provisional numbers.
#[derive(Debug, Default)]
struct Places {
    dropped: Vec<Seq>,
}

impl Places {
    /// The provisional number of an input among those that are left.
    fn place_of(&self, seq: Seq) -> Seq {
        let before = self.dropped.iter().filter(|dropped| **dropped < seq).count() as u64;
        if seq < Seq::provisional(0) { seq } else { Seq(seq.0 - before) }
    }
}

/// Without the notes that no record or reaction has room for: a note says something to the reader alone, and whatever a tenant
/// makes it say never keeps the app from being acted on.
fn notes_that_fit(subject: &Subject, mut drafts: Vec<Draft>, mut room: usize) -> (Vec<Draft>, Places) {
    let (mut places, mut place) = (Places::default(), 0);
    drafts.retain(|draft| {
        place += 1;
        let kind = draft.event.kind();
        if kind.role() != Role::Note {
            return true;
        }
        let bytes = codec::encode(&draft.event).map(|payload| payload.len());
        let left = bytes.ok().and_then(|bytes| room.checked_sub(bytes));
        room = left.unwrap_or(room);
        if left.is_none() {
            tracing::warn!(%subject, kind = kind.name(), "a note does not fit into the log and is dropped");
            places.dropped.push(Seq::provisional(place - 1));
        }
        left.is_some()
    });
    (drafts, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::kinds::step::StepExplained;
    use crate::ids::AppId;

    #[test]
    fn a_note_that_does_not_fit_is_dropped() {
        let app = Subject::App(AppId::new("acme", "bot").expect("a name"));
        let note = |bytes: usize| Draft::input(Event::StepExplained(StepExplained { step: Seq(7), text: "x".repeat(bytes) }));
        let fact = || Draft::input(Event::StepWithheld(StepWithheld { step: Seq(7) }));
        let (kept, places) = notes_that_fit(&app, vec![note(17_000), fact(), note(10), note(16_000), fact()], NOTES_BYTES);
        assert_eq!(kept, vec![fact(), note(10), note(16_000), fact()]);
        assert_eq!([1, 4].map(|place| places.place_of(Seq::provisional(place))), [0, 3].map(Seq::provisional));
        assert_eq!(places.place_of(Seq(9)), Seq(9));
        assert!(notes_that_fit(&app, vec![note(16_000); 100], NOTES_BYTES).0.len() * 16_000 <= NOTES_BYTES);
    }
}
