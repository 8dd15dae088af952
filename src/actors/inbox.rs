//! What waits for a subject: bounded, because the actor framework's mailbox is not. Observations coalesce and are never refused;
//! everything else takes a place and is refused when there is none.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::facts::{Fact, Observed, SeenPod};
use crate::app::react::look_ahead;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::events::kinds::pod::PodGone;
use crate::events::record::{Draft, Event};
use crate::ids::{Seq, Uid};

/// What a subject learns with its next reaction, and would not react for alone.
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
    pub(super) quiet: Quiet,
    observed: Vec<(Uid, Observed)>,
    facts: Vec<Fact>,
    /// Places taken by `facts`; given back when the reaction that takes them in is durable.
    permits: Vec<OwnedSemaphorePermit>,
}

/// A full inbox: try again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// What a reaction takes in.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// The inputs, in order.
    pub(super) drafts: Vec<Draft>,
    /// Whether anything but quiet news is among them.
    pub(super) loud: bool,
    /// Held until the reaction is durable, so that admission bounds what is queued and under way.
    _places: Vec<OwnedSemaphorePermit>,
}

impl Inbox {
    /// Takes a fact in, within `cap` of this subject and the places of all.
    pub(super) fn admit(&mut self, fact: Fact, cap: usize, places: &Arc<Semaphore>) -> Result<(), Full> {
        if self.facts.len() >= cap {
            return Err(Full);
        }
        let permit = Arc::clone(places).try_acquire_owned().map_err(|_| Full)?;
        self.permits.push(permit);
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

    /// Puts back what a failed reaction had taken out, before everything that came since. The quiet news was never gone.
    pub(super) fn take_back(&mut self, events: Vec<Event>) {
        let is_quiet = |event: &Event| [&self.quiet.started, &self.quiet.listed].iter().any(|quiet| quiet.as_ref() == Some(event));
        let events: Vec<Event> = events.into_iter().filter(|event| !is_quiet(event)).collect();
        if !events.is_empty() {
            self.facts.insert(0, Fact::Events(events));
        }
    }

    /// Whether the outcome of that step waits here.
    pub(super) fn has_outcome_of(&self, step: Seq) -> bool {
        let is = |event: &Event| matches!(event, Event::StepSettled(settled) if settled.step == step);
        self.facts.iter().any(|fact| matches!(fact, Fact::Events(events) if events.iter().any(is)))
    }

    /// Whether there is something to react to.
    pub(super) fn is_loud(&self) -> bool {
        !self.observed.is_empty() || !self.facts.is_empty()
    }

    /// Takes everything out, as the events that are new to this state. The quiet news stays here until it is durable.
    pub(super) fn take(&mut self, app: &App) -> Taken {
        // Each fact is news, or not, after those before it: a want that changes and changes back is two.
        let mut ahead = app.clone();
        let mut drafts = Vec::new();
        let mut add = |news: Vec<Draft>, ahead: &mut App| {
            for draft in &news {
                look_ahead(ahead, Rules::CURRENT, &draft.event);
            }
            drafts.extend(news);
        };
        add(self.quiet.started.iter().cloned().map(Draft::input).collect(), &mut ahead);
        let quiet = usize::from(self.quiet.started.is_some());
        for (_, observed) in std::mem::take(&mut self.observed) {
            add(observed.events(&ahead), &mut ahead);
        }
        for fact in std::mem::take(&mut self.facts) {
            add(fact.events(&ahead), &mut ahead);
        }
        let loud = drafts.len() > quiet;
        drafts.extend(self.quiet.listed.iter().cloned().map(Draft::input));
        Taken { drafts, loud, _places: std::mem::take(&mut self.permits) }
    }
}
