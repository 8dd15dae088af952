//! What hinders a step, and how long to wait before it is tried again.

use crate::clock::SECOND_US;
use crate::events::kinds::step::{Outcome, Refusal};
use crate::ids::Seq;

/// The longest pause after a hindrance that has no setting of its own.
const LONGEST_PAUSE_US: u64 = 60 * SECOND_US;

/// Why the last step could not be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hindrance {
    /// The record that says so.
    pub seq: Seq,
    /// What hinders.
    pub what: Hindered,
    /// How often in a row, from 1.
    pub times: u32,
    /// When the first of them was decided, log time.
    pub first_us: i64,
    /// Since the last time, log time.
    pub since_us: i64,
}

/// What hinders a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindered {
    /// It was refused.
    Refused(Refusal),
    /// The name is held by an object that is being deleted.
    NameHeld,
    /// No answer came.
    Unanswered,
    /// It was not sent.
    Unsent,
}

impl Hindered {
    /// What an outcome hinders; `None` when it does not.
    #[must_use]
    pub fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Refused(refusal) => Some(Self::Refused(refusal)),
            Outcome::NameHeld => Some(Self::NameHeld),
            Outcome::Unknown => Some(Self::Unanswered),
            Outcome::Unsent => Some(Self::Unsent),
            Outcome::Done | Outcome::AlreadySo | Outcome::Gone | Outcome::Conflict | Outcome::Revoked => None,
        }
    }
}

impl Hindrance {
    /// One more of them, after the last one or as the first.
    #[must_use]
    pub fn next(before: Option<&Self>, what: Hindered, seq: Seq, issued_us: i64, now_us: i64) -> Self {
        Self {
            seq,
            what,
            times: before.map_or(1, |before| before.times.saturating_add(1)),
            first_us: before.map_or(issued_us, |before| before.first_us),
            since_us: now_us,
        }
    }

    /// How long after it the step may be tried again, microseconds. `for_good`: nothing but a change of the object would help;
    /// `waiting_us`: the pause after a refusal that may pass.
    #[must_use]
    pub fn pause_us(&self, for_good: bool, waiting_us: u64) -> u64 {
        let growing = |from: u32| (SECOND_US << self.times.saturating_sub(from).min(16)).min(LONGEST_PAUSE_US);
        match self.what {
            Hindered::Refused(_) if for_good => growing(1),
            Hindered::Refused(_) => waiting_us,
            // Once is nothing: the next try settles it.
            Hindered::Unanswered if self.times == 1 => 0,
            Hindered::Unanswered => growing(2),
            Hindered::NameHeld | Hindered::Unsent => growing(1),
        }
    }
}
