//! What waits for a subject: bounded, because the actor framework's mailbox is not. Observations coalesce and are never refused;
//! everything else takes a place and is refused when there is none. Folds nothing: what of it is news, its actor finds out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::facts::{Fact, LastList, Observed, SeenPod, seen_pods};
use crate::app::react::look_ahead;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::events::kinds::pod::PodGone;
use crate::events::record::{Draft, Event};
use crate::ids::{PackageDigest, Uid};

/// What a subject learns with its next reaction, and would not react for alone. Owed until its state shows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Quiet {
    /// That an incarnation started: before everything else.
    pub(super) started: Option<Event>,
    /// That the cluster was listed: after what the list showed.
    pub(super) listed: Option<Event>,
}

/// What waits for one subject.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    observed: Vec<(Uid, Observed)>,
    facts: Vec<Fact>,
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
#[derive(Debug, Default)]
pub(super) struct Batch {
    quiet: Quiet,
    /// The newest list that was posted before it was taken.
    last_list: Option<LastList>,
    observed: Vec<(Uid, Observed)>,
    facts: Vec<Fact>,
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

impl Inbox {
    /// Takes a fact in, within `cap` of this subject and the places of all.
    pub(super) fn admit(&mut self, fact: Fact, cap: usize, places: &Arc<Semaphore>) -> Result<(), Full> {
        if self.facts.len() >= cap {
            return Err(Full);
        }
        self.places.push(Arc::clone(places).try_acquire_owned().map_err(|_| Full)?);
        self.facts.push(fact);
        Ok(())
    }

    /// Takes in what is bounded by what was asked for: outcomes, and what a list shows.
    pub(super) fn take_in(&mut self, fact: Fact) {
        self.facts.push(fact);
    }

    pub(super) fn saw(&mut self, pod: SeenPod) {
        self.observed(pod.seen.uid.clone()).add_seen(pod);
    }

    pub(super) fn went(&mut self, gone: PodGone) {
        let uid = gone.uid.clone();
        self.observed(uid).gone = Some(gone);
    }

    fn observed(&mut self, uid: Uid) -> &mut Observed {
        let at = self.observed.iter().position(|(known, _)| *known == uid).unwrap_or_else(|| {
            self.observed.push((uid, Observed::default()));
            self.observed.len() - 1
        });
        &mut self.observed[at].1
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
    pub(super) fn take(&mut self, quiet: Quiet, last_list: Option<LastList>) -> Batch {
        let Self { observed, facts, places, .. } = std::mem::take(self);
        Batch { quiet, last_list, observed, facts, places, carry: false, durable: AtomicBool::new(false) }
    }

    /// Puts back what a failed reaction had taken out, before everything that came since.
    pub(super) fn put_back(&mut self, batch: Batch) {
        let later = std::mem::take(self);
        *self = Self { observed: batch.observed, facts: batch.facts, places: batch.places, nudged: later.nudged };
        for (uid, observed) in later.observed {
            self.observed(uid).then(observed);
        }
        self.facts.extend(later.facts);
        self.places.extend(later.places);
    }

    /// Whether one of the events that wait is such.
    pub(super) fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        has(&self.facts, is)
    }

    pub(super) fn packages(&self) -> impl Iterator<Item = PackageDigest> {
        packages(&self.observed)
    }
}

impl Batch {
    /// The events that are new to this state. Each fact is news, or not, after those before it: a want that changes and changes
    /// back is two.
    pub(super) fn news(&self, app: &App) -> News {
        let mut ahead = app.clone();
        let mut drafts = Vec::new();
        let mut add = |news: Vec<Draft>, ahead: &mut App| {
            for draft in &news {
                look_ahead(ahead, Rules::CURRENT, &draft.event);
            }
            drafts.extend(news);
        };
        add(self.quiet.started.iter().cloned().map(Draft::input).collect(), &mut ahead);
        for (_, observed) in &self.observed {
            add(observed.events(&ahead), &mut ahead);
        }
        for fact in &self.facts {
            let seen = seen_pods(&ahead);
            add(fact.events(&ahead), &mut ahead);
            if let (Fact::Events(_), Some(list)) = (fact, &self.last_list) {
                add(list.absent(&ahead, &seen), &mut ahead);
            }
        }
        let loud = drafts.len() > usize::from(self.quiet.started.is_some());
        drafts.extend(self.quiet.listed.iter().cloned().map(Draft::input));
        News { drafts, loud }
    }

    /// Whether a subject that has taken it in knows what this incarnation's list showed of it.
    pub(super) fn is_listed(&self, app: &App) -> bool {
        self.quiet.listed.is_some() || (self.quiet.started.is_none() && app.listed.is_some())
    }

    /// What it says is in the log now: whatever happens, it is not to be taken in again.
    pub(super) fn is_durable_now(&self) {
        self.durable.store(true, Ordering::Release);
    }

    pub(super) fn is_durable(&self) -> bool {
        self.durable.load(Ordering::Acquire)
    }

    pub(super) fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        has(&self.facts, is)
    }

    pub(super) fn packages(&self) -> impl Iterator<Item = PackageDigest> {
        packages(&self.observed)
    }

    /// The same facts, without their places.
    pub(super) fn copy(&self) -> Self {
        let Self { quiet, last_list, observed, facts, .. } = self;
        Self { quiet: quiet.clone(), last_list: last_list.clone(), observed: observed.clone(), facts: facts.clone(), ..Self::default() }
    }
}

fn has(facts: &[Fact], is: impl Fn(&Event) -> bool) -> bool {
    facts.iter().any(|fact| matches!(fact, Fact::Events(events) if events.iter().any(&is)))
}

fn packages(observed: &[(Uid, Observed)]) -> impl Iterator<Item = PackageDigest> {
    let digests: BTreeSet<PackageDigest> = observed.iter().filter_map(|(_, observed)| observed.seen.as_ref()?.seen.sha256).collect();
    digests.into_iter()
}
