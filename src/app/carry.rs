//! The state to the form in which it is stored, and back. A field that is missing in one of them does not compile.

use std::collections::BTreeSet;

use super::state::{App, Exit, Flight, HeldVerdict, Host, Missing, Secret, Want, Work};
use crate::events::codec::{CodecError, decode_state, encode_state};
use crate::events::kinds::carried::{
    CarriedApp, CarriedExit, CarriedFlight, CarriedHost, CarriedMissing, CarriedSecret, CarriedVerdict, CarriedWant, CarriedWork,
    STATE_VERSION, SubjectCarried,
};
use crate::events::kinds::step::{Purpose, Step};
use crate::events::kinds::verdict::Verdict;
use crate::events::record::{Event, Record};
use crate::ids::AppId;
use crate::subject::carry::{Carry, as_it_is, by_field};

/// All that is known of an app, as it is stored.
#[must_use]
pub fn carried(app: &App) -> CarriedApp {
    app.keep()
}

/// An app from what was stored.
#[must_use]
pub fn from_carried(carried: CarriedApp) -> App {
    App::back(carried)
}

/// The records that carry an app over the removal of those before them.
///
/// # Errors
/// When the state is too large to be stored.
pub fn in_parts(app: &App) -> Result<Vec<Event>, CodecError> {
    let state = encode_state(&carried(app))?;
    Ok(SubjectCarried::of(STATE_VERSION, &state).into_iter().map(Event::SubjectCarried).collect())
}

/// Takes a part of a carried state; with the last one the state is what is carried. Says whether it is.
pub(super) fn take_part(app: &mut App, part: &SubjectCarried) -> bool {
    let state = part.join(&mut app.carrying).filter(|_| part.layout == STATE_VERSION);
    let Some(state) = state.and_then(|state| decode_state(&state).ok()) else { return false };
    *app = from_carried(state);
    true
}

/// The apps whose former records were removed and whose carried state has not come yet. What is left of them before it is passed
/// over: it says nothing without what was before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Waiting(BTreeSet<AppId>);

impl Waiting {
    /// For the carried states of these.
    #[must_use]
    pub fn of(apps: BTreeSet<AppId>) -> Self {
        Self(apps)
    }

    /// Whether the record is passed over; if it completes a carried state, those after it are not.
    pub fn passes_over(&mut self, app: &AppId, state: &mut App, record: &Record) -> bool {
        if !self.0.contains(app) {
            return false;
        }
        if let Event::SubjectCarried(part) = &record.event
            && take_part(state, part)
        {
            self.0.remove(app);
        }
        true
    }

    /// Whether this one is still waited for.
    #[must_use]
    pub fn is_for(&self, app: &AppId) -> bool {
        self.0.contains(app)
    }

    /// Those whose carried state never came.
    #[must_use]
    pub fn left(&self) -> &BTreeSet<AppId> {
        &self.0
    }
}

as_it_is!(Purpose, Step, Verdict);

by_field! {
    App (without carrying) = CarriedApp {
        incarnation, acts, frozen, listed, confirmed, want, missing, stop_asked, hosts, nodes, alarms, quarantined
    }
    Want = CarriedWant { seq, release, sha256, host, registered, failed, live_host, answered_us }
    Missing = CarriedMissing { in_row, before_mass, any_mass, ended, seq }
    Host = CarriedHost {
        release, sha256, pod, gone, work, moved, secret_put, secret, flights, unrecorded, exits, no_fault_us, verdict, retried,
        hindrance, not_back, doubt_since_us, secret_doubt_since_us, gone_uids, tails
    }
    Exit = CarriedExit { at_us, uid, container, restart }
    Flight = CarriedFlight { step, purpose, incarnation, issued_us, revoking, withheld }
    HeldVerdict = CarriedVerdict { seq, verdict, uid, shown }
}

impl Carry for Work {
    type Kept = CarriedWork;
    fn keep(&self) -> CarriedWork {
        match self {
            Self::Rest => CarriedWork::Rest,
            Self::Bringing(purpose) => CarriedWork::Bringing(*purpose),
            Self::Stopping => CarriedWork::Stopping,
        }
    }
    fn back(kept: CarriedWork) -> Self {
        match kept {
            CarriedWork::Rest => Self::Rest,
            CarriedWork::Bringing(purpose) => Self::Bringing(purpose),
            CarriedWork::Stopping => Self::Stopping,
        }
    }
}

impl Carry for Secret {
    type Kept = CarriedSecret;
    fn keep(&self) -> CarriedSecret {
        match self.clone() {
            Self::Unknown => CarriedSecret::Unknown,
            Self::Absent => CarriedSecret::Absent,
            Self::Present { uid, resource_version } => CarriedSecret::Present { uid, resource_version },
        }
    }
    fn back(kept: CarriedSecret) -> Self {
        match kept {
            CarriedSecret::Unknown => Self::Unknown,
            CarriedSecret::Absent => Self::Absent,
            CarriedSecret::Present { uid, resource_version } => Self::Present { uid, resource_version },
        }
    }
}
