//! The cluster actor: the one path to the API server. Steps wait in its lanes, go when the throttle lets them, are tried again
//! when that helps, and come back as one outcome each.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::{AbortHandle, JoinSet};

use super::kept::Kept;
use super::perform::{Performer, Tried};
use super::registry::Registry;
use super::tails;
use super::work::{Message, What, Work};
use crate::app::state::App;
use crate::clock::Clock;
use crate::events::kinds::session::{SessionObject, SessionStep};
use crate::events::kinds::step::{Outcome, Step, StepExplained, StepSettled};
use crate::events::kinds::tail::{TailLack, TailUnavailable};
use crate::events::record::Event;
use crate::ids::{Seq, Subject};
use crate::kube::answer::{Answer, EXPLAINED_BYTES};
use crate::kube::convert::cut;
use crate::kube::throttle::{Entry, Full, Lane, Limits, Next, Queue, backoff};
use crate::session::state::Session;
use crate::telemetry::Metrics;

/// Tries of one step before it is given back to the plan: with the backoff's growth about a quarter of an hour.
const TRIES: u32 = 20;

/// Whoever a step's outcome goes to.
#[derive(Clone)]
pub(super) struct Registries {
    pub(super) apps: Registry<App>,
    pub(super) sessions: Registry<Session>,
}

impl Registries {
    /// Brings a subject what it asked for.
    fn bring(&self, subject: &Subject, events: Vec<Event>) {
        match subject {
            Subject::App(app) => self.apps.bring(app, events),
            Subject::Session(id) => self.sessions.bring(id, events),
            Subject::Daemon(_) => {}
        }
    }

    /// Whether this step of a subject, or this tail, is without an outcome, and none waits to be taken in.
    fn awaits(&self, work: &Work) -> bool {
        match &work.of {
            Subject::App(app) => awaits(&self.apps, app, work),
            Subject::Session(id) => awaits(&self.sessions, id, work),
            Subject::Daemon(_) => false,
        }
    }
}

fn awaits<M: Kept>(registry: &Registry<M>, key: &M::Key, work: &Work) -> bool {
    let seq = work.id.seq;
    match &work.what {
        What::Step(_) | What::Session(_) => {
            registry.awaits(key, |state| state.flies(seq), |event| matches!(event, Event::StepSettled(settled) if settled.step == seq))
        }
        What::Tail(of) => registry.awaits(
            key,
            |state| state.awaits_tail(of),
            |event| {
                matches!(event, Event::TailKept(kept) if kept.of == *of) || matches!(event, Event::TailUnavailable(lack) if lack.of == *of)
            },
        ),
    }
}

/// What a piece of work writes or reads: one at a time for an object.
fn object_of(what: &What) -> String {
    match what {
        What::Step(Step::PutSecret { host, .. } | Step::DeleteSecret { host, .. } | Step::ReadSecret { host }) => {
            format!("secret/{host}")
        }
        What::Step(step @ (Step::CreatePod { .. } | Step::DeletePod { .. } | Step::ReadPod { .. })) => format!("pod/{}", step.host()),
        What::Session(step) => {
            let sort = match step.act().0 {
                SessionObject::Claim => "session-claim",
                SessionObject::Pod => "session-pod",
                SessionObject::Service => "session-service",
            };
            format!("{sort}/{}", step.object())
        }
        What::Tail(of) => format!("log/{}/{}", of.host, of.uid),
    }
}

fn name_of(what: &What) -> &'static str {
    match what {
        What::Step(step) => step.name(),
        What::Session(step) => step.name(),
        What::Tail(_) => "ReadTail",
    }
}

/// Whose it is: calls are fair between organisations, and between the tenants of sessions.
fn tenant_of(work: &Work) -> String {
    match (&work.of, &work.what) {
        (Subject::App(app), _) => app.org().to_owned(),
        (
            Subject::Session(_),
            What::Session(
                SessionStep::CreateClaim { tenant, .. } | SessionStep::CreatePod { tenant, .. } | SessionStep::PutService { tenant, .. },
            ),
        ) => format!("tenant {tenant}"),
        (Subject::Session(_) | Subject::Daemon(_), _) => "sessions".to_owned(),
    }
}

/// The actor.
pub(super) struct ClusterActor;

pub(super) struct ClusterState {
    queue: Queue<Work>,
    performer: Arc<Performer>,
    registries: Registries,
    clock: Clock,
    metrics: Metrics,
    /// What is queued or under way.
    known: BTreeSet<Seq>,
    /// Asked back while under way: not tried again.
    revoked: BTreeSet<Seq>,
    /// When the timer that is set goes off, log time, and the timer.
    looks: Option<(i64, AbortHandle)>,
    /// The tries under way and the timer: they end with this actor.
    tasks: JoinSet<()>,
    /// Nothing is sent any more.
    stopping: bool,
    /// Who waits until nothing is under way.
    drained: Option<ractor::RpcReplyPort<()>>,
}

impl Actor for ClusterActor {
    type Msg = Message;
    type State = ClusterState;
    type Arguments = (Limits, Arc<Performer>, Registries, Clock, Metrics);

    async fn pre_start(
        &self,
        _myself: ActorRef<Message>,
        (limits, performer, registries, clock, metrics): Self::Arguments,
    ) -> Result<ClusterState, ActorProcessingErr> {
        let queue = Queue::new(limits, unsigned(clock.now_us()));
        Ok(ClusterState {
            queue,
            performer,
            registries,
            clock,
            metrics,
            known: BTreeSet::new(),
            revoked: BTreeSet::new(),
            looks: None,
            tasks: JoinSet::new(),
            stopping: false,
            drained: None,
        })
    }

    async fn handle(&self, myself: ActorRef<Message>, message: Message, state: &mut ClusterState) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Submit(work, lane) => state.submit(*work, lane),
            Message::Again(work, lane) => state.submit_again(*work, lane),
            Message::Revoke(step) => state.revoke(step),
            Message::Tried(entry, tried) => state.tried(*entry, *tried),
            Message::Look => state.looks = None,
            Message::Drain(reply) => state.drain(reply),
        }
        state.start(&myself);
        Ok(())
    }
}

impl ClusterState {
    fn submit(&mut self, work: Work, lane: Lane) {
        if self.stopping {
            return self.give_back(&work);
        }
        if !self.known.insert(work.id.seq) {
            return;
        }
        let (object, tenant) = (object_of(&work.what), tenant_of(&work));
        let entry = Entry { id: work.id.seq.0, lane, tenant, object, not_before: 0, work };
        if let Err(Full(entry)) = self.queue.push(entry) {
            tracing::warn!(subject = %entry.work.of, "the queue to the API server is full");
            self.settle(&entry.work, Outcome::Unsent, None);
        }
    }

    /// Every outcome is posted by this actor: one that has neither been posted nor become durable is still to come.
    fn submit_again(&mut self, work: Work, lane: Lane) {
        if self.registries.awaits(&work) {
            self.submit(work, lane);
        }
    }

    fn revoke(&mut self, step: Seq) {
        if let Some(entry) = self.queue.revoke(step.0) {
            // One that was tried before and may have been carried out cannot be said to be unsent.
            let outcome = if entry.work.doubtful { Outcome::Unknown } else { Outcome::Revoked };
            self.settle(&entry.work, outcome, None);
        } else if self.known.contains(&step) {
            self.revoked.insert(step);
        }
    }

    /// A try is over: it is settled, or tried again.
    fn tried(&mut self, mut entry: Entry<Work>, tried: Tried) {
        self.queue.spend(tried.requests.saturating_sub(1));
        let seq = entry.work.id.seq;
        for call in &tried.calls {
            let verb = ["create", "update", "delete"].into_iter().find(|verb| *verb == call.verb.as_str()).unwrap_or("other");
            self.metrics.api_call(verb, call.took_us);
        }
        entry.work.attempts = tried.attempts;
        entry.work.tries += 1;
        if let Answer::RetryLater { after_us, slow_down, doubtful } = &tried.answer {
            entry.work.doubtful |= *doubtful;
            let now_us = self.clock.now_us();
            let pause_us = after_us.unwrap_or_else(|| backoff(entry.work.tries, seq.0));
            let until = unsigned(now_us).saturating_add(pause_us);
            if *slow_down {
                self.queue.pause(until);
            }
            if entry.work.tries < TRIES && !self.revoked.contains(&seq) && !self.stopping {
                let mut known = tried.notes();
                known.extend(tried.events);
                if !known.is_empty() {
                    self.registries.bring(&entry.work.of, known);
                }
                entry.not_before = until;
                self.queue.retry(entry);
                return;
            }
        }
        self.queue.done(entry.id);
        let mut outcome = tried.answer.outcome();
        if outcome == Outcome::Unsent && entry.work.doubtful {
            outcome = Outcome::Unknown;
        } else if outcome == Outcome::Unsent && self.revoked.contains(&seq) {
            outcome = Outcome::Revoked;
        }
        self.settle(&entry.work, outcome, Some(tried));
    }

    /// Posts the one outcome.
    fn settle(&mut self, work: &Work, outcome: Outcome, tried: Option<Tried>) {
        self.known.remove(&work.id.seq);
        self.revoked.remove(&work.id.seq);
        let events = match &work.what {
            What::Tail(of) => tried.map(|tried| tried.events).filter(|events| !events.is_empty()).unwrap_or_else(|| {
                let why = TailLack::Refused;
                vec![Event::TailUnavailable(TailUnavailable { of: of.clone(), why })]
            }),
            What::Step(_) | What::Session(_) => {
                self.metrics.step(name_of(&work.what), outcome);
                self.outcome(work, outcome, tried)
            }
        };
        self.registries.bring(&work.of, events);
        if self.queue.is_empty()
            && let Some(reply) = self.drained.take()
        {
            let _ = reply.send(());
        }
    }

    fn outcome(&self, work: &Work, outcome: Outcome, tried: Option<Tried>) -> Vec<Event> {
        let tried = tried.unwrap_or_default();
        let mut events = tried.notes();
        events.extend(tried.events.iter().cloned());
        events.push(Event::StepSettled(StepSettled {
            step: work.id.seq,
            outcome,
            object: tried.object,
            attempts: work.attempts,
            audit_id: tried.audit_id,
            status: tried.status,
            took_us: unsigned(self.clock.now_us().saturating_sub(work.since_us)),
        }));
        if let Some(text) = tried.explained.filter(|_| matches!(outcome, Outcome::Refused(_))) {
            let text = cut(&text, EXPLAINED_BYTES);
            events.push(Event::StepExplained(StepExplained { step: work.id.seq, text }));
        }
        events
    }

    /// Starts whatever may go now, and sets the timer for what may not yet.
    fn start(&mut self, myself: &ActorRef<Message>) {
        while self.tasks.try_join_next().is_some() {}
        loop {
            let now_us = self.clock.now_us();
            match self.queue.next(unsigned(now_us)) {
                Next::Start(entry) => self.perform(entry, myself),
                Next::Wait(until) => {
                    let until = i64::try_from(until).unwrap_or(i64::MAX);
                    self.look_at(until, myself);
                    break;
                }
                Next::Idle => break,
            }
        }
        let depths = self.queue.depths();
        for (lane, waiting) in ["drain", "delete", "resume", "create"].into_iter().zip(depths.waiting) {
            self.metrics.queue_depth(lane, waiting);
        }
    }

    /// One timer, for the earliest time that was asked for.
    fn look_at(&mut self, until_us: i64, myself: &ActorRef<Message>) {
        if self.looks.as_ref().is_some_and(|(set_us, _)| *set_us <= until_us) {
            return;
        }
        let (clock, myself) = (self.clock.clone(), myself.clone());
        let timer = self.tasks.spawn(async move {
            clock.sleep_until(until_us).await;
            let _ = myself.cast(Message::Look);
        });
        if let Some((_, former)) = self.looks.replace((until_us, timer)) {
            former.abort();
        }
    }

    fn perform(&mut self, entry: Entry<Work>, myself: &ActorRef<Message>) {
        let (performer, myself) = (Arc::clone(&self.performer), myself.clone());
        self.tasks.spawn(async move {
            let work = entry.work.clone();
            let trying = std::panic::AssertUnwindSafe(async {
                match &work.what {
                    What::Step(step) => performer.perform(&work, step).await,
                    What::Session(step) => performer.perform_session(&work, step).await,
                    What::Tail(of) => tails::read(&performer, &work.of, of).await,
                }
            });
            // Every try comes back, also one that panics: nobody knows then what it did.
            let tried = trying.catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!(subject = %work.of, step = %work.id.seq, "a try of a step panicked: its outcome is unknown");
                Tried::unknown(&work)
            });
            let _ = myself.cast(Message::Tried(Box::new(entry), Box::new(tried)));
        });
    }

    /// Nothing more is sent; what waits is decided anew by the next incarnation.
    fn drain(&mut self, reply: ractor::RpcReplyPort<()>) {
        self.stopping = true;
        for entry in self.queue.drain() {
            self.known.remove(&entry.work.id.seq);
            self.give_back(&entry.work);
        }
        if self.queue.is_empty() {
            let _ = reply.send(());
        } else {
            self.drained = Some(reply);
        }
    }

    /// A step that is not sent any more says so, so that nobody has to doubt it later. A tail is asked for again by itself.
    fn give_back(&self, work: &Work) {
        if matches!(work.what, What::Step(_) | What::Session(_)) {
            let outcome = if work.doubtful { Outcome::Unknown } else { Outcome::Unsent };
            self.metrics.step(name_of(&work.what), outcome);
            self.registries.bring(&work.of, self.outcome(work, outcome, None));
        }
    }
}

fn unsigned(time_us: i64) -> u64 {
    u64::try_from(time_us).unwrap_or(0)
}
