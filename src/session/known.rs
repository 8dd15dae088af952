//! What the state says of a session, asked as fold, plan and callers need it. Changes nothing, and knows no time.

use super::held::Shown as _;
use super::state::{ClosedHow, Flight, Session};
use crate::events::kinds::session::{SessionDoing, SessionObject, SessionStage, SessionStep};
use crate::events::kinds::step::Refusal;
use crate::events::kinds::verdict::{EndCause, Stage};
use crate::ids::{Seq, Tenant, Uid};
use crate::subject::hindrance::Hindered;
use crate::subject::pod::Pod;

impl Session {
    /// Whether anybody ever asked for it, or anything of it was found.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.asked_us.is_some() || self.has_anything()
    }

    /// Whose it is: by the log, else by the labels of what was found.
    #[must_use]
    pub fn tenant(&self) -> Option<&Tenant> {
        let claim = || self.claim.there().and_then(|claim| claim.view.as_ref()).and_then(|view| view.tenant());
        let service = || self.service.there().and_then(|service| service.view.as_ref()).and_then(|view| view.tenant());
        self.tenant.as_ref().or_else(claim).or_else(service)
    }

    /// Whether anything of it is there.
    #[must_use]
    pub fn has_anything(&self) -> bool {
        self.pod.is_some() || self.claim.there().is_some() || self.service.there().is_some()
    }

    /// Whether nothing of it is there, is wanted, or can appear by a request of ours.
    #[must_use]
    pub fn is_vacant(&self) -> bool {
        self.wanted.is_none() && self.removing.is_none() && self.is_removed(false)
    }

    /// Whether what a removal removes is certainly gone.
    #[must_use]
    pub fn is_removed(&self, keep_workspace: bool) -> bool {
        let flies = |object: SessionObject| self.flights.values().any(|flight| flight.step.act().0 == object);
        let pod = self.pod.is_none() && self.pod_doubt_since_us.is_none() && !flies(SessionObject::Pod);
        let service = self.service.is_clean() && !flies(SessionObject::Service);
        let claim = self.claim.is_clean() && !flies(SessionObject::Claim);
        pod && (keep_workspace || (service && claim))
    }

    /// Whether its pod was ready, runs on, and has an address.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let pod = self.pod.as_ref().is_some_and(|pod| pod.runs() && !is_going(pod));
        let reachable = self.service.staying().is_some_and(|service| service.view.is_some());
        pod && self.ready_since_us.is_some() && reachable && self.removing.is_none()
    }

    /// The flight of a step of that sort that is not being asked back.
    #[must_use]
    pub fn flying(&self, object: SessionObject, doing: SessionDoing) -> Option<(Seq, &Flight)> {
        let found = self.flights.iter().find(|(_, flight)| !flight.revoking && flight.step.act() == (object, doing));
        found.map(|(seq, flight)| (*seq, flight))
    }

    /// Whether a step of that sort was decided and is held back, because the daemon may not act.
    #[must_use]
    pub fn withholds(&self, step: &SessionStep) -> bool {
        self.flights.values().any(|flight| flight.withheld && flight.step.act() == step.act())
    }

    /// Why an object cannot be made, as it stands.
    #[must_use]
    pub fn refused(&self, object: SessionObject) -> Option<(Refusal, Seq)> {
        let hindrance = self.hindrances.get(&(object, SessionDoing::Make))?;
        match hindrance.what {
            Hindered::Refused(refusal) => Some((refusal, hindrance.seq)),
            Hindered::NameHeld | Hindered::Unanswered | Hindered::Unsent => None,
        }
    }

    /// Whether the claim that is there is another tenant's.
    #[must_use]
    pub fn claim_is_anothers(&self) -> bool {
        let label = self.claim.there().and_then(|claim| claim.view.as_ref()).and_then(|view| view.tenant());
        label.is_some() && self.tenant.is_some() && label != self.tenant.as_ref()
    }

    /// What is to be made next, or is waited for.
    #[must_use]
    pub fn stage(&self) -> SessionStage {
        if matches!(self.refused(SessionObject::Pod), Some((Refusal::NetworkPolicy, _))) {
            return SessionStage::Policy;
        }
        if self.claim.staying().is_none() || self.claim_is_anothers() {
            return SessionStage::Claim;
        }
        match self.pod.as_ref().filter(|pod| pod.end.is_none() && !is_going(pod)).map(|pod| pod.stage) {
            None | Some(Stage::Terminating) => SessionStage::Pod,
            Some(Stage::Scheduling) => SessionStage::Scheduling,
            Some(Stage::Pull | Stage::Install) => SessionStage::Pull,
            Some(Stage::Register | Stage::Serving) if self.ready_since_us.is_none() => SessionStage::Starting,
            Some(Stage::Register | Stage::Serving) => SessionStage::Pod,
        }
    }

    /// Whether an end of this pod is the end of what is wanted.
    #[must_use]
    pub fn closes(&self, uid: &Uid) -> bool {
        self.removing.is_none() && self.wanted.as_ref().is_some_and(|wanted| wanted.after.as_ref() != Some(uid))
    }
}

/// Whether a pod is being deleted, or was told to go.
pub(super) fn is_going(pod: &Pod) -> bool {
    pod.is_deleting() || pod.delete_stands()
}

/// Whether no process of it can run any more: only then may its object go without a grace. A node that is lost may still run it.
pub(super) fn has_surely_ended(pod: &Pod) -> bool {
    pod.process_ended() && pod.end.as_ref().is_some_and(|end| end.cause != EndCause::NodeLost)
}

/// Whether no repetition of the step can succeed.
#[must_use]
pub(super) fn is_for_good(refusal: Refusal) -> bool {
    match refusal {
        Refusal::Invalid
        | Refusal::Policy
        | Refusal::RuntimeClass
        | Refusal::Foreign
        | Refusal::Different
        | Refusal::Source
        | Refusal::Environment => true,
        Refusal::Forbidden | Refusal::Quota | Refusal::Webhook | Refusal::Namespace | Refusal::NetworkPolicy => false,
    }
}

impl ClosedHow {
    /// Whether it was given up, rather than ended after it ran.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed(..) | Self::Ended(EndCause::Stuck(_) | EndCause::NeverStarted(_)))
    }
}
