//! The root of an incarnation: gives each subject an actor while it has something to do, and restarts a subject whose actor
//! failed from the log. When anything but a subject fails, the incarnation ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::daemon::Ended;
use super::kept::Kept;
use super::restart::{Restarted, carry, restart};
use super::start::{Arguments, start};
use super::subject::{Shared, SubjectActor};
use crate::app::state::App;
use crate::events::log::LogReader;
use crate::ids::Subject;
use crate::session::state::Session;

/// What the supervisor is told.
pub(super) enum Order {
    /// A subject has something to do.
    Activate(Subject),
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
    pub(super) apps: Shared<App>,
    pub(super) sessions: Shared<Session>,
    pub(super) reader: Arc<dyn LogReader>,
    pub(super) subjects: BTreeMap<ActorId, Subject>,
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
            Order::Activate(Subject::App(app)) => {
                let (shared, reader) = (&state.apps, state.reader.as_ref());
                if let Some(actor) = Box::pin(activate(&myself, &app, shared, reader)).await? {
                    state.subjects.insert(actor, Subject::App(app));
                }
            }
            Order::Activate(Subject::Session(id)) => {
                let (shared, reader) = (&state.sessions, state.reader.as_ref());
                if let Some(actor) = Box::pin(activate(&myself, &id, shared, reader)).await? {
                    state.subjects.insert(actor, Subject::Session(id));
                }
            }
            // Nobody folds it.
            Order::Activate(Subject::Daemon(_)) => {}
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
                } else if let Some(subject) = state.subjects.remove(&cell.get_id()) {
                    tracing::error!(%subject, %error, "a subject's actor failed: it is restarted from the log");
                    Box::pin(state.restart(&subject)).await;
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

    async fn restart(&mut self, subject: &Subject) {
        let reader = self.reader.as_ref();
        let restarted = match subject {
            Subject::App(app) => restart(reader, &self.apps, app).await,
            Subject::Session(id) => restart(reader, &self.sessions, id).await,
            Subject::Daemon(_) => Ok(Restarted),
        };
        if let Err(why) = restarted {
            self.end(Ended::PartFailed(format!("{subject} cannot be replayed: {why}")));
        }
    }
}

/// Gives a subject an actor; one that is quarantined gets none any more, and is carried here.
async fn activate<M: Kept>(
    myself: &ActorRef<Order>,
    key: &M::Key,
    shared: &Shared<M>,
    reader: &dyn LogReader,
) -> Result<Option<ActorId>, ActorProcessingErr> {
    if shared.registry.is_quarantined(key) {
        carry(reader, shared, key).await;
        return Ok(None);
    }
    let arguments = (key.clone(), shared.clone());
    let (actor, _) = Actor::spawn_linked(None, SubjectActor::<M>::default(), arguments, myself.get_cell()).await?;
    let id = actor.get_id();
    shared.registry.activated(key, actor);
    Ok(Some(id))
}
