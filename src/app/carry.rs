//! The state to the form in which it is stored, and back. A field that is missing in one of them does not compile.

use super::state::{App, Exit, Flight, HeldVerdict, Host, Missing, Secret, Want, Work};
use crate::events::kinds::carried::{
    CarriedApp, CarriedExit, CarriedFlight, CarriedHost, CarriedMissing, CarriedSecret, CarriedVerdict, CarriedWant, CarriedWork,
    STATE_VERSION,
};
use crate::events::kinds::step::{Purpose, Step};
use crate::events::kinds::verdict::Verdict;
use crate::ids::{AppId, Subject};
use crate::subject::carry::{Carry, as_it_is, by_field};
use crate::subject::stored::Stored;

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

impl Stored for App {
    type Key = AppId;
    const LAYOUT: u16 = STATE_VERSION;

    fn key(subject: &Subject) -> Option<&AppId> {
        if let Subject::App(app) = subject { Some(app) } else { None }
    }

    fn subject(app: &AppId) -> Subject {
        Subject::App(app.clone())
    }

    fn carrying(&mut self) -> &mut Vec<u8> {
        &mut self.carrying
    }

    fn quarantine(&mut self) {
        self.quarantined = true;
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
