//! The one writer of the log: takes all that is queued, appends it as one group commit, and answers when it is durable.
//!
//! Production gives it a thread of its own: no await lies between write and sync, and a slow disk stops nobody else. Tests and
//! the simulation run the same loop inside a task, because a thread's time is not virtual.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::clock;
use crate::events::erase::{Erasure, NotErased};
use crate::events::log::{AppendError, EventLog, LogReader};
use crate::events::record::{Reaction, Record};
use crate::events::retention::{NotRemoved, Removed};
use crate::ids::Seq;
use crate::telemetry::Metrics;

/// Reactions that wait for one commit: twice what is ever under way at once with the default admission.
const QUEUE: usize = 8_192;
/// Events of one commit, so that the longest wait stays flat: about 1 MiB of records.
const EVENTS: usize = 8_192;

/// Why a reaction was not appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAppended {
    /// This reaction cannot be stored; the log goes on.
    #[error("the reaction cannot be stored: {0}")]
    Refused(String),
    /// The log takes no more appends: whatever was decided is void.
    #[error("the log takes no appends: {0}")]
    LogFailed(String),
}

type Answer = oneshot::Sender<Result<Vec<Record>, NotAppended>>;

type RemovalAnswer = oneshot::Sender<Result<Option<Removed>, NotAppended>>;

type ErasureAnswer = oneshot::Sender<Result<Record, NotErased>>;

enum Order {
    Append(Reaction, Answer),
    Alone(Alone),
}

/// What is carried out between two commits.
enum Alone {
    Remove(Seq, RemovalAnswer),
    Erase(Box<Erasure>, ErasureAnswer),
}

/// A committer that is not kept from ending.
#[derive(Debug, Clone)]
pub struct WeakCommitter(mpsc::WeakSender<Order>);

impl WeakCommitter {
    /// The committer, while it has not ended and is not ending.
    #[must_use]
    pub fn upgrade(&self) -> Option<Committer> {
        self.0.upgrade().map(Committer)
    }
}

/// Appends reactions; cheap to clone.
#[derive(Debug, Clone)]
pub struct Committer(mpsc::Sender<Order>);

impl Committer {
    /// Appends a reaction and returns its records when they are durable.
    ///
    /// # Errors
    /// See [`NotAppended`].
    pub async fn append(&self, reaction: Reaction) -> Result<Vec<Record>, NotAppended> {
        let gone = || NotAppended::LogFailed("the committer has ended".to_owned());
        let (answer, appended) = oneshot::channel();
        self.0.send(Order::Append(reaction, answer)).await.map_err(|_| gone())?;
        appended.await.map_err(|_| gone())?
    }

    /// Takes out one batch of the log's oldest blocks, between two commits; see
    /// [`EventLog::remove`](crate::events::log::EventLog::remove).
    ///
    /// # Errors
    /// [`NotAppended::Refused`] when the blocks stay and the log goes on.
    pub async fn remove(&self, upto: Seq) -> Result<Option<Removed>, NotAppended> {
        let gone = || NotAppended::LogFailed("the committer has ended".to_owned());
        let (answer, removed) = oneshot::channel();
        self.0.send(Order::Alone(Alone::Remove(upto, answer))).await.map_err(|_| gone())?;
        removed.await.map_err(|_| gone())?
    }

    /// Takes away what a record says, between two commits; see [`EventLog::erase`](crate::events::log::EventLog::erase).
    ///
    /// # Errors
    /// See [`NotErased`].
    pub async fn erase(&self, erasure: Erasure) -> Result<Record, NotErased> {
        let gone = || NotErased::Append(AppendError::Stopped);
        let (answer, erased) = oneshot::channel();
        self.0.send(Order::Alone(Alone::Erase(Box::new(erasure), answer))).await.map_err(|_| gone())?;
        erased.await.map_err(|_| gone())?
    }

    /// The same for somebody who does not keep it from ending.
    #[must_use]
    pub fn downgrade(&self) -> WeakCommitter {
        WeakCommitter(self.0.downgrade())
    }
}

/// The committer's end: where its log comes back from.
pub struct CommitterThread {
    ended: oneshot::Receiver<Box<dyn EventLog>>,
    /// The log's first failure, for readiness and for the supervisor.
    failed: tokio::sync::watch::Receiver<Option<String>>,
    /// The last record that is durable.
    heads: tokio::sync::watch::Receiver<Seq>,
    reader: Arc<dyn LogReader>,
}

impl CommitterThread {
    /// Starts the committer on a thread of its own.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(log: Box<dyn EventLog>, metrics: Metrics) -> std::io::Result<(Committer, Self)> {
        let (committer, thread, work) = Self::parts(log, metrics);
        std::thread::Builder::new().name("committer".to_owned()).spawn(move || work.run_blocking())?;
        Ok((committer, thread))
    }

    /// Starts the committer inside a task of the runtime: for paused time.
    #[must_use]
    pub fn start_inline(log: Box<dyn EventLog>, metrics: Metrics) -> (Committer, Self) {
        let (committer, thread, work) = Self::parts(log, metrics);
        drop(tokio::spawn(work.run()));
        (committer, thread)
    }

    fn parts(log: Box<dyn EventLog>, metrics: Metrics) -> (Committer, Self, Work) {
        let (queue, queued) = mpsc::channel(QUEUE);
        let (done, ended) = oneshot::channel();
        let (failing, failed) = tokio::sync::watch::channel(None);
        let reader = log.reader();
        let (advancing, heads) = tokio::sync::watch::channel(reader.head());
        let work = Work { log, queued, done, failing, advancing, metrics };
        (Committer(queue), Self { ended, failed, heads, reader }, work)
    }

    /// A reader of what has been acknowledged.
    #[must_use]
    pub fn reader(&self) -> Arc<dyn LogReader> {
        Arc::clone(&self.reader)
    }

    /// Watches how far the log is durable; ends with the committer.
    #[must_use]
    pub fn heads(&self) -> tokio::sync::watch::Receiver<Seq> {
        self.heads.clone()
    }

    /// Watches for the log's failure.
    #[must_use]
    pub fn failure(&self) -> tokio::sync::watch::Receiver<Option<String>> {
        self.failed.clone()
    }

    /// Waits for the committer's end, after every [`Committer`] is dropped, and gives the log back; `None` when it panicked.
    pub async fn ended(self) -> Option<Box<dyn EventLog>> {
        self.ended.await.ok()
    }
}

struct Work {
    log: Box<dyn EventLog>,
    queued: mpsc::Receiver<Order>,
    done: oneshot::Sender<Box<dyn EventLog>>,
    failing: tokio::sync::watch::Sender<Option<String>>,
    advancing: tokio::sync::watch::Sender<Seq>,
    metrics: Metrics,
}

impl Work {
    fn run_blocking(mut self) {
        while let Some(first) = self.queued.blocking_recv() {
            self.carry_out(first);
        }
        let _ = self.done.send(self.log);
    }

    async fn run(mut self) {
        while let Some(first) = self.queued.recv().await {
            self.carry_out(first);
        }
        let _ = self.done.send(self.log);
    }

    /// Carries out an order and, if it is a reaction, all that is queued behind it, within the bound and up to what goes alone.
    fn carry_out(&mut self, first: Order) {
        let (reaction, answer) = match first {
            Order::Append(reaction, answer) => (reaction, answer),
            Order::Alone(alone) => return self.carry_out_alone(alone),
        };
        let mut events = reaction.drafts.len();
        let (mut reactions, mut answers) = (vec![reaction], vec![answer]);
        let mut then = None;
        while events < EVENTS
            && let Ok(order) = self.queued.try_recv()
        {
            match order {
                Order::Append(reaction, answer) => {
                    events += reaction.drafts.len();
                    reactions.push(reaction);
                    answers.push(answer);
                }
                Order::Alone(alone) => {
                    then = Some(alone);
                    break;
                }
            }
        }
        self.commit(reactions, answers, events);
        if let Some(alone) = then {
            self.carry_out_alone(alone);
        }
    }

    fn carry_out_alone(&mut self, alone: Alone) {
        match alone {
            Alone::Remove(upto, answer) => self.remove(upto, answer),
            Alone::Erase(erasure, answer) => {
                let erased = self.log.erase(&erasure);
                if let Err(NotErased::Append(error @ (AppendError::Full(_) | AppendError::Io(_) | AppendError::Stopped))) = &erased {
                    self.failed(error);
                }
                let _ = answer.send(erased);
            }
        }
    }

    fn remove(&mut self, upto: Seq, answer: RemovalAnswer) {
        let removed = self.log.remove(upto).map_err(|error| match error {
            NotRemoved::Append(error) => NotAppended::LogFailed(self.failed(&error)),
            NotRemoved::Damaged { .. } | NotRemoved::Read(_) => NotAppended::Refused(chain(&error)),
        });
        let _ = answer.send(removed);
    }

    /// The log takes no more: why.
    fn failed(&self, error: &AppendError) -> String {
        let why = chain(error);
        tracing::error!(error = why, "the log takes no more appends");
        self.failing.send_if_modified(|failed| failed.is_none() && failed.replace(why.clone()).is_none());
        why
    }

    /// One group commit.
    fn commit(&mut self, mut reactions: Vec<Reaction>, mut answers: Vec<Answer>, events: usize) {
        let begun = clock::now();
        loop {
            match self.log.append_taking(&mut reactions) {
                Ok(appended) => {
                    let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                    self.metrics.commit(took_us, events as u64);
                    if let Some(last) = appended.iter().rev().find_map(|records| records.last()) {
                        self.advancing.send_replace(last.header.seq);
                    }
                    for (answer, records) in answers.into_iter().zip(appended) {
                        // Whoever asked may have been ended; the records stand all the same.
                        let _ = answer.send(Ok(records));
                    }
                    return;
                }
                Err(AppendError::Refused { reaction, why }) if reaction < reactions.len() => {
                    reactions.remove(reaction);
                    let _ = answers.remove(reaction).send(Err(NotAppended::Refused(why.to_string())));
                    if reactions.is_empty() {
                        return;
                    }
                }
                Err(error) => {
                    let why = self.failed(&error);
                    for answer in answers {
                        let _ = answer.send(Err(NotAppended::LogFailed(why.clone())));
                    }
                    return;
                }
            }
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
