//! Carrying subjects over the removal of the log's beginning: each state is appended by its own owner, as a reaction, so that it is
//! what the records before it came to. Removes nothing.

use super::registry::Registry;
use super::slot::Activity;
use crate::app::state::App;
use crate::events::record::Draft;
use crate::ids::{AppId, Seq};
use crate::subject::stored::in_parts;

/// The most records that carry a state in one reaction: half of the batch that it fits.
const CARRIED_PARTS: usize = 32;

/// The state as records; none when it is too large for a reaction.
pub(super) fn carried(app: &AppId, state: &App) -> Vec<Draft> {
    let parts = in_parts(state).unwrap_or_default();
    if parts.is_empty() || parts.len() > CARRIED_PARTS {
        tracing::error!(%app, "its state is too large to be carried: the log's beginning is kept");
        return Vec::new();
    }
    parts.into_iter().map(Draft::input).collect()
}

impl Registry {
    /// Asks a subject to carry its state, with its next reaction; one that has no actor any more is carried by the supervisor.
    pub(crate) fn carry(&self, app: &AppId) {
        let mut slots = self.slots();
        let slot = slots.slot(app);
        slot.carry = true;
        if !slot.quarantined {
            slot.inbox.nudge();
        }
        self.wake(app, slot);
    }

    /// A subject has carried its state, or its state is too large; with the last record that says so.
    pub(super) fn has_carried(&self, app: &AppId, last: Option<Seq>) {
        if let Some(slot) = self.slots().by_app.get_mut(app) {
            slot.carry = false;
            slot.carried = last.unwrap_or(slot.carried);
            if slot.quarantined {
                slot.actor = Activity::Resting;
            }
        }
    }

    /// The last record of this life that carries a subject's state.
    pub(crate) fn carried(&self, app: &AppId) -> Seq {
        self.slots().by_app.get(app).map_or(Seq::NONE, |slot| slot.carried)
    }

    /// Whether a subject is shown and not acted on.
    pub(super) fn is_quarantined(&self, app: &AppId) -> bool {
        self.slots().by_app.get(app).is_some_and(|slot| slot.quarantined)
    }
}
