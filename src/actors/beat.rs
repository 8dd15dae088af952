//! The gateway's beat: one heartbeat at a time, at once when a report is due. Judges each answer once and tells every app what
//! changed for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::facts::Fact;
use super::health::Health;
use super::perform::Performer;
use super::registry::Registry;
use super::reports::Reports;
use super::tails;
use crate::app::state::App;
use crate::clock::Clock;
use crate::events::kinds::daemon::PlanSettings;
use crate::events::kinds::pod::ContainerState;
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::want::{WantFault, WantRefused, WantSeen};
use crate::gateway::{Judged, NotBelieved, RefusedWant, Withdrawals, judge};
use crate::ids::{AppId, HostName, Word};

/// Live tails that are read at once; more wait for a later beat.
const LIVE_TAILS: usize = 4;

/// Time for the next heartbeat.
pub(super) struct Tick;

/// The actor.
pub(super) struct BeatActor;

/// What the beat works with.
pub(super) struct BeatParts {
    pub(super) registry: Registry,
    pub(super) performer: Arc<Performer>,
    pub(super) reports: Reports,
    pub(super) health: Health,
    pub(super) clock: Clock,
    pub(super) settings: Arc<PlanSettings>,
    pub(super) world: String,
    pub(super) beat_ms: u64,
    pub(super) apps_max: usize,
}

pub(super) struct BeatState {
    parts: BeatParts,
    withdrawals: Withdrawals,
    /// Answers that were believed, in this incarnation.
    answers: u64,
    /// The want that each app was told last.
    told: BTreeMap<AppId, WantSeen>,
    /// The register deadline after which each app was last told an answer that changes nothing.
    waited: BTreeMap<AppId, i64>,
    /// The faults that each app was told last.
    faults: BTreeMap<AppId, Vec<(WantFault, Option<HostName>)>>,
    live_tails: tokio::task::JoinSet<()>,
}

impl Actor for BeatActor {
    type Msg = Tick;
    type State = BeatState;
    type Arguments = BeatParts;

    async fn pre_start(&self, myself: ActorRef<Tick>, parts: BeatParts) -> Result<BeatState, ActorProcessingErr> {
        myself.cast(Tick)?;
        Ok(BeatState {
            withdrawals: Withdrawals::new(parts.beat_ms),
            parts,
            answers: 0,
            told: BTreeMap::new(),
            waited: BTreeMap::new(),
            faults: BTreeMap::new(),
            live_tails: tokio::task::JoinSet::new(),
        })
    }

    async fn handle(&self, myself: ActorRef<Tick>, _tick: Tick, state: &mut BeatState) -> Result<(), ActorProcessingErr> {
        Box::pin(state.beat_and_wait()).await;
        Ok(myself.cast(Tick)?)
    }
}

impl BeatState {
    async fn beat_and_wait(&mut self) {
        let pause = Duration::from_millis(self.parts.beat_ms);
        let next = tokio::time::sleep(pause);
        tokio::pin!(next);
        let (believed, more) = self.beat().await;
        if believed && more {
            return;
        }
        if believed {
            tokio::select! {
                biased;
                () = self.parts.reports.due() => {}
                () = &mut next => {}
            }
        } else {
            // A report that is due does not hurry a gateway that does not answer.
            next.await;
        }
    }

    /// One heartbeat; gives whether its answer was believed, and whether more is waiting to be sent.
    async fn beat(&mut self) -> (bool, bool) {
        let sent_us = self.parts.clock.now_us();
        let beat = self.parts.reports.beat(sent_us);
        let answer = self.parts.performer.gateway.heartbeat(beat.body.clone()).await.map_err(NotBelieved::from);
        let judged = answer.and_then(|body| {
            self.parts.reports.taken(sent_us, &beat);
            judge(self.answers + 1, &body, &self.parts.world, self.parts.apps_max)
        });
        match judged {
            Ok(judged) => {
                self.answers += 1;
                let now_us = self.parts.clock.now_us();
                self.parts.health.note(|vitals| {
                    vitals.answered_us = Some(now_us);
                    vitals.not_believed = None;
                });
                self.tell(sent_us, &judged);
                (true, beat.more)
            }
            Err(why) => {
                let why = why.to_string();
                let former = self.parts.health.vitals().not_believed;
                if former.as_deref() != Some(&why) {
                    tracing::warn!(%why, "the gateway's answer changes nothing");
                }
                self.parts.health.note(|vitals| vitals.not_believed = Some(why));
                (false, false)
            }
        }
    }

    fn tell(&mut self, sent_us: i64, judged: &Judged) {
        let states = self.parts.registry.states();
        let settings = &self.parts.settings;
        // A withdrawn app has to learn once in an incarnation that it still is: until then nothing of it is stopped.
        let registry = &self.parts.registry;
        let is_known = |state: &App| {
            let wanted = || state.wanted(settings.withdraw_after, settings.withdraw_after_mass).is_some();
            state.want.is_some() && (!registry.is_confirmed(state) || wanted())
        };
        let known: BTreeSet<AppId> = states.iter().filter(|(_, state)| is_known(state)).map(|(app, _)| app.clone()).collect();
        for (app, missing) in self.withdrawals.missing(sent_us, judged, &known) {
            self.told.remove(&app);
            if self.parts.registry.offer(&app, Fact::Missing(missing)).is_err() {
                tracing::warn!(%app, "no place for an absence: it does not count");
            }
        }
        let register_us = settings.register_us;
        let waiting: BTreeMap<&AppId, i64> =
            states.iter().filter_map(|(app, state)| Some((app, state.awaits_answer_after_us(register_us, sent_us)?))).collect();
        self.waited.retain(|app, _| waiting.contains_key(app));
        for (app, judged) in &judged.wants {
            // Once a deadline: the record of it is the answer's.
            let waits = waiting.get(app).filter(|deadline_us| self.waited.get(app) != Some(deadline_us));
            let fact = if waits.is_some() { Fact::Answer } else { Fact::Want };
            if (waits.is_some() || self.told.get(app).is_none_or(|told| !is_same(told, &judged.want)))
                && self.parts.registry.offer(app, fact(judged.want.clone())).is_ok()
            {
                self.told.insert(app.clone(), judged.want.clone());
                self.waited.extend(waits.map(|deadline_us| (app.clone(), *deadline_us)));
            }
            if judged.logs_wanted {
                self.give_lines(app, &judged.want.host);
            }
        }
        self.tell_refused(judged);
        self.drop_packages(judged);
        let registry = &self.parts.registry;
        let is_there = |app: &AppId, host: &HostName| {
            let state = registry.state(app);
            state.and_then(|state| state.hosts.get(host).map(|host| !host.is_forgettable())).unwrap_or(false)
        };
        self.parts.performer.environments.forget(is_there);
    }

    fn tell_refused(&mut self, judged: &Judged) {
        let mut refused_now: BTreeMap<AppId, Vec<&RefusedWant>> = BTreeMap::new();
        for refused in &judged.refused {
            let Some(app) = &refused.app else {
                tracing::warn!(why = refused.text, "a want without an app's name is refused");
                continue;
            };
            refused_now.entry(app.clone()).or_default().push(refused);
        }
        let cleared: Vec<AppId> = self.faults.keys().filter(|app| !refused_now.contains_key(*app)).cloned().collect();
        for app in cleared {
            self.faults.remove(&app);
            self.parts.reports.refused(&app, Vec::new());
        }
        for (app, refused) in refused_now {
            self.refuse(judged.answer, &app, &refused);
        }
    }

    /// Everything that is refused of an app in one answer.
    fn refuse(&mut self, answer: u64, app: &AppId, refused: &[&RefusedWant]) {
        self.told.remove(app);
        self.parts.reports.refused(app, refused.iter().filter_map(|refused| refused.report()).collect());
        let before = self.faults.remove(app).unwrap_or_default();
        let mut faults = Vec::new();
        for refused in refused {
            let fault = (refused.fault, refused.host.clone());
            if !before.contains(&fault) && !faults.contains(&fault) {
                tracing::warn!(%app, why = refused.text, "a want is refused");
                let event = WantRefused { answer, fault: refused.fault, host: refused.host.clone() };
                if self.parts.registry.offer(app, Fact::Refused(event)).is_err() {
                    continue;
                }
            }
            faults.push(fault);
        }
        self.faults.insert(app.clone(), faults);
    }

    /// Packages that neither a want nor a pod names any more; only once both are known.
    fn drop_packages(&self, judged: &Judged) {
        if !self.parts.registry.is_listed() {
            return;
        }
        let mut named = self.parts.registry.packages(&self.parts.settings);
        named.extend(judged.wants.values().map(|judged| judged.want.sha256));
        if let Err(error) = self.parts.performer.sources.retain(&named) {
            tracing::warn!(%error, "a package that nobody names cannot be removed");
        }
    }

    /// Somebody looks at a host's lines now: best effort, never in the log.
    fn give_lines(&mut self, app: &AppId, host: &HostName) {
        while self.live_tails.try_join_next().is_some() {}
        if self.live_tails.len() >= LIVE_TAILS {
            return;
        }
        let state = self.parts.registry.state(app);
        let Some(of) = state.as_ref().and_then(|state| speaker(state, host)) else { return };
        let (performer, reports, app) = (Arc::clone(&self.parts.performer), self.parts.reports.clone(), app.clone());
        self.live_tails.spawn(async move {
            if let Some(lines) = tails::live(&performer, &app, &of).await {
                reports.lines(&app, &of.host, &lines);
            }
        });
    }
}

/// The container whose lines a host has now.
fn speaker(state: &App, host: &HostName) -> Option<TailOf> {
    let pod = state.hosts.get(host)?.pod.as_ref()?;
    let view = pod.view.as_ref()?;
    let started = matches!(view.app.state, ContainerState::Running { .. } | ContainerState::Ended(_));
    let container = Word::new(if started { crate::app::ends::APP } else { crate::app::ends::INSTALL });
    Some(TailOf { host: host.clone(), uid: pod.uid.clone(), container, ended: false })
}

/// Whether two wants say the same, in whatever answer.
fn is_same(one: &WantSeen, other: &WantSeen) -> bool {
    let mut one = one.clone();
    one.answer = other.answer;
    one == *other
}
