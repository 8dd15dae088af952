//! The state to the form in which it is stored, and back. A field that is missing in one of them does not compile.

use std::collections::BTreeSet;

use super::held::{Held, Known, Thing};
use super::state::{Closed, ClosedHow, Flight, Removing, Session, Wanted};
use crate::events::kinds::session::{ClaimSeen, ServiceSeen, SessionStep};
use crate::events::kinds::session_carried::{
    CarriedClosed, CarriedClosedHow, CarriedHeld, CarriedKnown, CarriedRemoving, CarriedSession, CarriedSessionFlight, CarriedThing,
    CarriedWanted, SESSION_STATE_VERSION,
};
use crate::ids::{SessionId, Subject, Tenant, Word};
use crate::subject::carry::{Carry, as_it_is, by_field};
use crate::subject::stored::Stored;

/// All that is known of a session, as it is stored.
#[must_use]
pub fn carried(session: &Session) -> CarriedSession {
    session.keep()
}

/// A session from what was stored.
#[must_use]
pub fn from_carried(carried: CarriedSession) -> Session {
    Session::back(carried)
}

impl Stored for Session {
    type Key = SessionId;
    const LAYOUT: u16 = SESSION_STATE_VERSION;

    fn key(subject: &Subject) -> Option<&SessionId> {
        if let Subject::Session(id) = subject { Some(id) } else { None }
    }

    fn subject(id: &SessionId) -> Subject {
        Subject::Session(id.clone())
    }

    fn carrying(&mut self) -> &mut Vec<u8> {
        &mut self.carrying
    }

    fn quarantine(&mut self) {
        self.quarantined = true;
    }
}

as_it_is!(SessionId, Tenant, SessionStep, ClaimSeen, ServiceSeen, BTreeSet<Word>);

by_field! {
    Session (without carrying) = CarriedSession {
        id, incarnation, acts, frozen, listed, quarantined, tenant, asked_us, active_us, wanted, removing, closed, claim, service, pod,
        pod_name, pod_doubt_since_us, pod_gone_uids, ready_since_us, suspended_since_us, made, flights, hindrances, unrecorded, last_end,
        tails, nodes, alarms, moved
    }
    Wanted = CarriedWanted { seq, since_us, force_after_us, after }
    Removing = CarriedRemoving { seq, since_us, keep_workspace, force_after_us }
    Closed = CarriedClosed { of, seq, how }
    Flight = CarriedSessionFlight { step, incarnation, issued_us, revoking, withheld }
}

impl Carry for ClosedHow {
    type Kept = CarriedClosedHow;
    fn keep(&self) -> CarriedClosedHow {
        match *self {
            Self::Ended(cause) => CarriedClosedHow::Ended(cause),
            Self::Failed(fault, stage) => CarriedClosedHow::Failed(fault, stage),
            Self::Removed => CarriedClosedHow::Removed,
        }
    }
    fn back(kept: CarriedClosedHow) -> Self {
        match kept {
            CarriedClosedHow::Ended(cause) => Self::Ended(cause),
            CarriedClosedHow::Failed(fault, stage) => Self::Failed(fault, stage),
            CarriedClosedHow::Removed => Self::Removed,
        }
    }
}

impl<V: Carry> Carry for Held<V> {
    type Kept = CarriedHeld<V::Kept>;
    fn keep(&self) -> Self::Kept {
        let Self { name, known, doubt_since_us, gone_uids } = self;
        CarriedHeld { name: name.keep(), known: known.keep(), doubt_since_us: doubt_since_us.keep(), gone_uids: gone_uids.keep() }
    }
    fn back(kept: Self::Kept) -> Self {
        let CarriedHeld { name, known, doubt_since_us, gone_uids } = kept;
        Self { name, known: Known::back(known), doubt_since_us, gone_uids }
    }
}

impl<V: Carry> Carry for Known<V> {
    type Kept = CarriedKnown<V::Kept>;
    fn keep(&self) -> Self::Kept {
        match self {
            Self::Unknown => CarriedKnown::Unknown,
            Self::Absent => CarriedKnown::Absent,
            Self::Present(thing) => CarriedKnown::Present(thing.keep()),
        }
    }
    fn back(kept: Self::Kept) -> Self {
        match kept {
            CarriedKnown::Unknown => Self::Unknown,
            CarriedKnown::Absent => Self::Absent,
            CarriedKnown::Present(thing) => Self::Present(Thing::back(thing)),
        }
    }
}

impl<V: Carry> Carry for Thing<V> {
    type Kept = CarriedThing<V::Kept>;
    fn keep(&self) -> Self::Kept {
        let Self { uid, resource_version, seq, view, deleting_since_us, delete } = self;
        CarriedThing {
            uid: uid.keep(),
            resource_version: resource_version.keep(),
            seq: seq.keep(),
            view: view.keep(),
            deleting_since_us: deleting_since_us.keep(),
            delete: delete.keep(),
        }
    }
    fn back(kept: Self::Kept) -> Self {
        let CarriedThing { uid, resource_version, seq, view, deleting_since_us, delete } = kept;
        Self { uid, resource_version, seq, view: Option::back(view), deleting_since_us, delete: Option::back(delete) }
    }
}
