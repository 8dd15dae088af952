//! What waits for a subject: bounded, because the actor framework's mailbox is not. Observations coalesce and are never refused;
//! everything else takes a place and is refused when there is none. Folds nothing: what of it is news, its actor finds out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::kept::{Fact as _, Kept, Lists as _, Observed as _};
use crate::events::record::{Draft, Event};
use crate::ids::{Seq, Uid};
use crate::subject::pod::At;
use crate::subject::react::look_ahead;
use crate::subject::rules::Rules;

/// What a subject learns with its next reaction, and would not react for alone. Owed until its state shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Quiet {
    /// That an incarnation started: before everything else.
    pub(super) started: Option<Event>,
    /// That the cluster was listed: after what the list showed.
    pub(super) listed: Option<Event>,
}

/// What waits for one subject.
#[derive(Debug)]
pub(super) struct Inbox<M: Kept> {
    observed: Vec<(Uid, M::Observed)>,
    facts: Vec<M::Fact>,
    /// Places taken by `facts`; given back when the reaction that takes them in is durable.
    places: Vec<OwnedSemaphorePermit>,
    /// It is to look though nothing came: a deadline, the first list.
    nudged: bool,
}

/// A full inbox: try again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// What one reaction takes in, as it came. The registry keeps it in hand until the reaction is durable, so that nothing is lost
/// when the actor fails; its places are held as long, so that admission bounds what is queued and under way.
#[derive(Debug)]
pub(super) struct Batch<M: Kept> {
    quiet: Quiet,
    /// The newest lists that were posted before it was taken.
    lists: M::Lists,
    observed: Vec<(Uid, M::Observed)>,
    facts: Vec<M::Fact>,
    places: Vec<OwnedSemaphorePermit>,
    /// The reaction carries the state, before everything else.
    pub(super) carry: bool,
    durable: AtomicBool,
}

/// What of a batch is news.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The inputs, in order.
    pub(super) drafts: Vec<Draft>,
    /// Whether anything but quiet news is among them.
    pub(super) loud: bool,
}

// Derived, it would ask the same of the model.
impl<M: Kept> Default for Inbox<M> {
    fn default() -> Self {
        Self { observed: Vec::new(), facts: Vec::new(), places: Vec::new(), nudged: false }
    }
}

impl<M: Kept> Inbox<M> {
    /// Takes a fact in, within `cap` of this subject and the places of all.
    pub(super) fn admit(&mut self, fact: M::Fact, cap: usize, places: &Arc<Semaphore>) -> Result<(), Full> {
        if self.facts.len() >= cap {
            return Err(Full);
        }
        self.places.push(Arc::clone(places).try_acquire_owned().map_err(|_| Full)?);
        self.facts.push(fact);
        Ok(())
    }

    /// Takes in what is bounded by what was asked for: outcomes, and what a list shows.
    pub(super) fn take_in(&mut self, fact: M::Fact) {
        self.facts.push(fact);
    }

    /// Takes an observation in.
    pub(super) fn observe(&mut self, uid: Uid, observed: M::Observed) {
        match self.observed.iter_mut().find(|(known, _)| *known == uid) {
            Some((_, before)) => before.then(observed),
            None => self.observed.push((uid, observed)),
        }
    }

    pub(super) fn nudge(&mut self) {
        self.nudged = true;
    }

    /// Whether a reaction is due.
    pub(super) fn has_work(&self) -> bool {
        self.nudged || !self.is_empty()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.observed.is_empty() && self.facts.is_empty()
    }

    /// Takes everything out.
    pub(super) fn take(&mut self, quiet: Quiet, lists: M::Lists) -> Batch<M> {
        let Self { observed, facts, places, .. } = std::mem::take(self);
        Batch { quiet, lists, observed, facts, places, carry: false, durable: AtomicBool::new(false) }
    }

    /// Puts back what a failed reaction had taken out, before everything that came since.
    pub(super) fn put_back(&mut self, batch: Batch<M>) {
        let later = std::mem::take(self);
        *self = Self { observed: batch.observed, facts: batch.facts, places: batch.places, nudged: later.nudged };
        for (uid, observed) in later.observed {
            self.observe(uid, observed);
        }
        self.facts.extend(later.facts);
        self.places.extend(later.places);
    }

    /// Whether one of the events that wait is such.
    pub(super) fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        has::<M>(&self.facts, is)
    }

    /// The observations that wait.
    pub(super) fn observed(&self) -> impl Iterator<Item = &M::Observed> {
        self.observed.iter().map(|(_, observed)| observed)
    }
}

impl<M: Kept> Batch<M> {
    /// The events that are new to this state. Each fact is news, or not, after those before it: a want that changes and changes
    /// back is two.
    pub(super) fn news(&self, state: &M, now_us: i64) -> News {
        let mut ahead = state.clone();
        let mut drafts: Vec<Draft> = Vec::new();
        let add = |drafts: &mut Vec<Draft>, news: Vec<Draft>, ahead: &mut M| {
            for draft in news {
                look_ahead(ahead, Rules::CURRENT, &draft.event, At { seq: place(drafts), time_us: now_us });
                drafts.push(draft);
            }
        };
        add(&mut drafts, self.quiet.started.iter().cloned().map(Draft::input).collect(), &mut ahead);
        for (_, observed) in &self.observed {
            add(&mut drafts, observed.news(&ahead), &mut ahead);
        }
        for fact in &self.facts {
            let seen = ahead.shown();
            let news = fact.news(&ahead, place(&drafts));
            add(&mut drafts, news, &mut ahead);
            if fact.events().is_some() {
                add(&mut drafts, self.lists.absent(&ahead, &seen), &mut ahead);
            }
        }
        let loud = drafts.len() > usize::from(self.quiet.started.is_some());
        drafts.extend(self.quiet.listed.iter().cloned().map(Draft::input));
        News { drafts, loud }
    }

    /// Tells whoever waits for what became of a fact; see [`super::kept::Fact::taken`].
    pub(super) fn taken(&self, before: &Arc<M>, real: &dyn Fn(Seq) -> Seq) {
        for fact in &self.facts {
            fact.taken(before, real);
        }
    }

    /// Whether a subject that has taken it in knows what this incarnation's list showed of it.
    pub(super) fn is_listed(&self, state: &M) -> bool {
        self.quiet.listed.is_some() || (self.quiet.started.is_none() && state.listed().is_some())
    }

    /// What it says is in the log now: whatever happens, it is not to be taken in again.
    pub(super) fn is_durable_now(&self) {
        self.durable.store(true, Ordering::Release);
    }

    pub(super) fn is_durable(&self) -> bool {
        self.durable.load(Ordering::Acquire)
    }

    pub(super) fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        has::<M>(&self.facts, is)
    }

    /// The observations in it.
    pub(super) fn observed(&self) -> impl Iterator<Item = &M::Observed> {
        self.observed.iter().map(|(_, observed)| observed)
    }

    /// The same facts, without their places.
    pub(super) fn copy(&self) -> Self {
        let Self { quiet, lists, observed, facts, .. } = self;
        let (quiet, lists, observed, facts) = (quiet.clone(), lists.clone(), observed.clone(), facts.clone());
        Self { quiet, lists, observed, facts, places: Vec::new(), carry: false, durable: AtomicBool::new(false) }
    }
}

/// The place of the next input.
fn place(drafts: &[Draft]) -> Seq {
    Seq::provisional(drafts.len() as u64)
}

fn has<M: Kept>(facts: &[M::Fact], is: impl Fn(&Event) -> bool) -> bool {
    facts.iter().any(|fact| fact.events().is_some_and(|events| events.iter().any(&is)))
}
