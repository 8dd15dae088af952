//! The root of an incarnation: gives each subject an actor while it has something to do, and restarts a subject whose actor
//! failed from the log. When anything but a subject fails, the incarnation ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::carry::carried;
use super::daemon::Ended;
use super::replay::{Replayed, replay};
use super::start::{Arguments, start};
use super::subject::{AppActor, Shared};
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::events::kinds::daemon::Quarantined;
use crate::events::kinds::step::StepWithheld;
use crate::events::kinds::tail::TailOf;
use crate::events::log::LogReader;
use crate::events::record::{Draft, Event, Reaction};
use crate::ids::{AppId, RecordId, Seq, Subject, Word};

/// Failures of a subject's actor in a row after which the subject is quarantined.
const FAILURES: u32 = 3;

/// What the supervisor is told.
pub(super) enum Order {
    /// A subject has something to do.
    Activate(AppId),
    /// The log failed.
    LogFailed(String),
    /// One of the tasks beside the actors is over.
    TaskEnded(&'static str),
    /// Everything stops taking in.
    StopSources(ractor::RpcReplyPort<()>),
}

/// The actor.
pub(super) struct Supervisor;

pub(super) struct State {
    pub(super) shared: Shared,
    pub(super) reader: Arc<dyn LogReader>,
    pub(super) subjects: BTreeMap<ActorId, AppId>,
    /// Actors without which nothing goes on, by name.
    pub(super) parts: BTreeMap<ActorId, &'static str>,
    pub(super) sources: Vec<ActorCell>,
    pub(super) ended: Option<oneshot::Sender<Ended>>,
    pub(super) tasks: JoinSet<()>,
}

impl Actor for Supervisor {
    type Msg = Order;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<Order>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        Box::pin(start(&myself, arguments)).await
    }

    async fn handle(&self, myself: ActorRef<Order>, order: Order, state: &mut State) -> Result<(), ActorProcessingErr> {
        match order {
            Order::Activate(app) if state.shared.registry.is_quarantined(&app) => Box::pin(state.carry(&app)).await,
            Order::Activate(app) => {
                let arguments = (app.clone(), state.shared.clone());
                let (actor, _) = Actor::spawn_linked(None, AppActor, arguments, myself.get_cell()).await?;
                state.subjects.insert(actor.get_id(), app.clone());
                state.shared.registry.activated(&app, actor);
            }
            Order::LogFailed(why) => state.end(Ended::LogFailed(why)),
            Order::TaskEnded(name) => state.end(Ended::PartFailed(format!("{name} has ended"))),
            Order::StopSources(reply) => {
                state.parts.clear();
                for source in std::mem::take(&mut state.sources) {
                    source.kill();
                }
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<Order>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                if let Some(part) = state.parts.remove(&cell.get_id()) {
                    state.end(Ended::PartFailed(format!("{part}: {}", reason.unwrap_or_else(|| "ended".to_owned()))));
                }
                state.subjects.remove(&cell.get_id());
            }
            SupervisionEvent::ActorFailed(cell, error) => {
                if let Some(part) = state.parts.remove(&cell.get_id()) {
                    state.end(Ended::PartFailed(format!("{part}: {error}")));
                } else if let Some(app) = state.subjects.remove(&cell.get_id()) {
                    tracing::error!(%app, %error, "a subject's actor failed: it is restarted from the log");
                    Box::pin(state.restart(&app)).await;
                }
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl State {
    fn end(&mut self, ended: Ended) {
        if let Some(sender) = self.ended.take() {
            tracing::error!(?ended, "the incarnation ends");
            let _ = sender.send(ended);
        }
        self.tasks.abort_all();
    }

    /// Gives a subject whose actor failed its state of the log, and what its actor had in hand if that is not in there; after
    /// too many failures, or when its log cannot be folded, it is quarantined: visible, not acted on.
    async fn restart(&mut self, app: &AppId) {
        let subject = Subject::App(app.clone());
        let Replayed { state, tails, broken, .. } = match replay::<App>(self.reader.as_ref(), &subject) {
            Ok(replayed) => replayed,
            Err(why) => return self.end(Ended::PartFailed(format!("{app} cannot be replayed: {why}"))),
        };
        if broken {
            let last = self.shared.registry.state(app).map(|state| App::clone(&state)).unwrap_or_default();
            return self.quarantine(app, last).await;
        }
        if self.shared.registry.failed(app, state.clone()) >= FAILURES {
            return self.quarantine(app, state).await;
        }
        self.hand_on_again(app, &state, &tails);
        // Its next reaction says what of this holds.
        self.shared.reports.state(app, &state, false);
        self.shared.registry.nudge(app);
    }

    async fn quarantine(&mut self, app: &AppId, state: App) {
        tracing::error!(%app, "quarantined: its actor fails again and again");
        self.shared.registry.quarantine(app, state);
        let quarantined = Quarantined { invariant: Word::new("no_panic"), at: self.reader.head() };
        let reaction = Reaction {
            subject: Subject::App(app.clone()),
            time_us: self.shared.clock.now_us(),
            rules: Rules::CURRENT.number(),
            settings: self.shared.settings_seq,
            drafts: vec![Draft::input(Event::Quarantined(quarantined))],
        };
        if let Err(error) = self.shared.committer.append(reaction).await {
            tracing::error!(%app, %error, "the quarantine cannot be recorded");
        }
    }

    /// Carries the state of a subject that has no actor, as its log has it.
    async fn carry(&self, app: &AppId) {
        let subject = Subject::App(app.clone());
        let replayed = replay::<App>(self.reader.as_ref(), &subject).ok().filter(|replayed| !replayed.broken && replayed.state.quarantined);
        let drafts = replayed.map(|replayed| carried(app, &replayed.state)).unwrap_or_default();
        let parts = drafts.len();
        let reaction = Reaction {
            subject,
            time_us: self.shared.clock.now_us(),
            rules: Rules::CURRENT.number(),
            settings: self.shared.settings_seq,
            drafts,
        };
        let records = if parts > 0 { self.shared.committer.append(reaction).await.unwrap_or_default() } else { Vec::new() };
        self.shared.registry.has_carried(app, records.last().map(|record| record.header.seq));
    }

    /// What is durable and was perhaps never handed on: the cluster actor takes each once.
    fn hand_on_again(&self, app: &AppId, state: &App, tails: &BTreeMap<TailOf, Seq>) {
        let Shared { registry, cluster, log, .. } = &self.shared;
        let id = |seq: Seq| RecordId { log: *log, seq };
        let mut withheld = Vec::new();
        for host in state.hosts.values() {
            for (seq, flight) in host.flights.iter().filter(|(_, flight)| flight.incarnation == state.incarnation && !flight.withheld) {
                if !state.acts || state.frozen {
                    let is_word = |event: &Event| matches!(event, Event::StepWithheld(withheld) if withheld.step == *seq);
                    if registry.awaits(app, |_| true, is_word) {
                        withheld.push(Event::StepWithheld(StepWithheld { step: *seq }));
                    }
                    continue;
                }
                cluster.submit_again(app, id(*seq), flight.step.clone(), flight.purpose);
                if flight.revoking {
                    cluster.revoke(*seq);
                }
            }
            let unread = host.tails.iter().filter(|(_, tail)| tail.incarnation == state.incarnation && !tail.settled);
            for (of, seq) in unread.filter_map(|(of, _)| Some((of, tails.get(of)?))) {
                cluster.read_tail_again(app, id(*seq), of.clone());
            }
        }
        if !withheld.is_empty() {
            registry.bring(app, withheld);
        }
    }
}
