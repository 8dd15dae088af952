//! Carrying subjects over the removal of the log's beginning: each state is appended by its own owner, as a reaction, so that it is
//! what the records before it came to. Removes nothing.

use super::kept::Kept;
use super::registry::Registry;
use super::slot::Activity;
use crate::events::record::Draft;
use crate::ids::Seq;
use crate::subject::stored::{Stored, in_parts};

/// The most records that carry a state in one reaction: half of the batch that it fits.
const CARRIED_PARTS: usize = 32;

/// The state as records; none when it is too large for a reaction.
pub(super) fn carried<M: Stored>(key: &M::Key, state: &M) -> Vec<Draft> {
    let parts = in_parts(state).unwrap_or_default();
    if parts.is_empty() || parts.len() > CARRIED_PARTS {
        tracing::error!(subject = %key, "its state is too large to be carried: the log's beginning is kept");
        return Vec::new();
    }
    parts.into_iter().map(Draft::input).collect()
}

impl<M: Kept> Registry<M> {
    /// Asks a subject to carry its state, with its next reaction; one that has no actor any more is carried by the supervisor.
    pub(crate) fn carry(&self, key: &M::Key) {
        let mut slots = self.slots();
        let slot = slots.slot(key);
        slot.carry = true;
        if !slot.quarantined {
            slot.inbox.nudge();
        }
        self.wake(key, slot);
    }

    /// A subject has carried its state, or its state is too large; with the last record that says so.
    pub(super) fn has_carried(&self, key: &M::Key, last: Option<Seq>) {
        if let Some(slot) = self.slots().by_key.get_mut(key) {
            slot.carry = false;
            slot.carried = last.unwrap_or(slot.carried);
            if slot.quarantined {
                slot.actor = Activity::Resting;
            }
        }
    }

    /// The last record of this life that carries a subject's state.
    pub(crate) fn carried(&self, key: &M::Key) -> Seq {
        self.slots().by_key.get(key).map_or(Seq::NONE, |slot| slot.carried)
    }

    /// Whether a subject is shown and not acted on.
    pub(super) fn is_quarantined(&self, key: &M::Key) -> bool {
        self.slots().by_key.get(key).is_some_and(|slot| slot.quarantined)
    }
}
