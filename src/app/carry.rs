//! The state to the form in which it is stored, and back. A field that is missing in one of them does not compile.

use std::collections::BTreeMap;

use super::state::{App, Delete, End, Exit, Flight, HeldVerdict, Hindered, Hindrance, Host, Missing, Pod, Secret, Tail, Want, Work};
use crate::events::kinds::carried::{
    CarriedApp, CarriedDelete, CarriedEnd, CarriedExit, CarriedFlight, CarriedHindered, CarriedHindrance, CarriedHost, CarriedMissing,
    CarriedPod, CarriedSecret, CarriedTail, CarriedVerdict, CarriedWant, CarriedWork,
};
use crate::events::kinds::pod::{Disruption, NodeReady, PodSeen};
use crate::events::kinds::step::{Purpose, Step};
use crate::events::kinds::verdict::{EndCause, Stage, Verdict};
use crate::ids::{HostName, PackageDigest, Seq, Uid, Word};

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

/// What has a stored form.
trait Carry {
    type Kept;
    fn keep(&self) -> Self::Kept;
    fn back(kept: Self::Kept) -> Self;
}

macro_rules! as_it_is {
    ($($kind:ty),*) => { $(
        impl Carry for $kind {
            type Kept = Self;
            fn keep(&self) -> Self {
                self.clone()
            }
            fn back(kept: Self) -> Self {
                kept
            }
        }
    )* };
}
as_it_is!(bool, u32, u64, i32, i64, (u32, u32), Seq, HostName, PackageDigest, Uid, Word);
as_it_is!(Disruption, NodeReady, PodSeen, Purpose, Step, EndCause, Stage, Verdict);

impl<T: Carry> Carry for Option<T> {
    type Kept = Option<T::Kept>;
    fn keep(&self) -> Self::Kept {
        self.as_ref().map(T::keep)
    }
    fn back(kept: Self::Kept) -> Self {
        kept.map(T::back)
    }
}

impl<T: Carry> Carry for Vec<T> {
    type Kept = Vec<T::Kept>;
    fn keep(&self) -> Self::Kept {
        self.iter().map(T::keep).collect()
    }
    fn back(kept: Self::Kept) -> Self {
        kept.into_iter().map(T::back).collect()
    }
}

impl<K: Clone + Ord, T: Carry> Carry for BTreeMap<K, T> {
    type Kept = BTreeMap<K, T::Kept>;
    fn keep(&self) -> Self::Kept {
        self.iter().map(|(key, value)| (key.clone(), value.keep())).collect()
    }
    fn back(kept: Self::Kept) -> Self {
        kept.into_iter().map(|(key, value)| (key, T::back(value))).collect()
    }
}

macro_rules! by_field {
    ($($own:ident = $kept:ident { $($field:ident),* })*) => { $(
        impl Carry for $own {
            type Kept = $kept;
            fn keep(&self) -> $kept {
                let Self { $($field),* } = self;
                $kept { $($field: $field.keep()),* }
            }
            fn back(kept: $kept) -> Self {
                let $kept { $($field),* } = kept;
                Self { $($field: Carry::back($field)),* }
            }
        }
    )* };
}

by_field! {
    App = CarriedApp {
        incarnation, acts, frozen, listed, confirmed, want, missing, stop_asked, hosts, nodes, alarms, quarantined
    }
    Want = CarriedWant { seq, release, sha256, host, registered, failed, live_host, answered_us }
    Missing = CarriedMissing { in_row, before_mass, any_mass, ended, seq }
    Host = CarriedHost {
        release, sha256, pod, gone, work, moved, secret_put, secret, flights, unrecorded, exits, no_fault_us, verdict, retried,
        hindrance, not_back, doubt_since_us, secret_doubt_since_us, gone_uids, tails
    }
    Pod = CarriedPod {
        uid, resource_version, seq, view, seen_us, stage, stage_since_us, disruption, deleting_since_us, delete, end, restarts, different
    }
    Delete = CarriedDelete { step, revive, forced, unanswered }
    End = CarriedEnd { seq, uid, container, restart, cause, exit_code, signal, reason, stage, node, at_us }
    Exit = CarriedExit { at_us, uid, container, restart }
    Flight = CarriedFlight { step, purpose, incarnation, issued_us, revoking, withheld }
    HeldVerdict = CarriedVerdict { seq, verdict, uid, shown }
    Hindrance = CarriedHindrance { seq, what, times, first_us, since_us }
    Tail = CarriedTail { incarnation, settled, kept }
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

impl Carry for Hindered {
    type Kept = CarriedHindered;
    fn keep(&self) -> CarriedHindered {
        match *self {
            Self::Refused(refusal) => CarriedHindered::Refused(refusal),
            Self::NameHeld => CarriedHindered::NameHeld,
            Self::Unanswered => CarriedHindered::Unanswered,
            Self::Unsent => CarriedHindered::Unsent,
        }
    }
    fn back(kept: CarriedHindered) -> Self {
        match kept {
            CarriedHindered::Refused(refusal) => Self::Refused(refusal),
            CarriedHindered::NameHeld => Self::NameHeld,
            CarriedHindered::Unanswered => Self::Unanswered,
            CarriedHindered::Unsent => Self::Unsent,
        }
    }
}
