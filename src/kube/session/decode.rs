//! How a watch reads the objects of sessions.

use super::convert::{self, Observed};
use super::manifest::SessionTemplate;
use super::policy::{PolicySeen, SessionPolicy};
use super::view::{ClaimView, PolicyView, ServiceView};
use crate::events::kinds::session::{ClaimSeen, ServiceSeen};
use crate::ids::SessionId;
use crate::kube::convert::{Observation, Odd};
use crate::kube::decode::Decode;
use crate::kube::view::PodView;

/// Pods of sessions.
#[derive(Debug, Clone)]
pub struct SessionPods(pub SessionTemplate);

/// Their claims.
#[derive(Debug, Clone)]
pub struct Claims(pub SessionTemplate);

/// Their Services.
#[derive(Debug, Clone)]
pub struct Services(pub SessionTemplate);

impl Decode for SessionPods {
    type View = PodView;
    type Seen = Observation<SessionId>;

    fn resource(&self) -> &'static str {
        "pods"
    }

    fn seen(&self, view: &PodView, odd: Vec<String>) -> Result<Self::Seen, Odd> {
        convert::pod(&self.0, view, odd)
    }
}

impl Decode for Claims {
    type View = ClaimView;
    type Seen = Observed<ClaimSeen>;

    fn resource(&self) -> &'static str {
        "persistentvolumeclaims"
    }

    fn seen(&self, view: &ClaimView, odd: Vec<String>) -> Result<Self::Seen, Odd> {
        convert::claim(&self.0, view, odd)
    }
}

impl Decode for Services {
    type View = ServiceView;
    type Seen = Observed<ServiceSeen>;

    fn resource(&self) -> &'static str {
        "services"
    }

    fn seen(&self, view: &ServiceView, odd: Vec<String>) -> Result<Self::Seen, Odd> {
        convert::service(&self.0, view, odd)
    }
}

/// The NetworkPolicies of their namespace.
#[derive(Debug, Clone)]
pub struct Policies(pub SessionPolicy);

impl Decode for Policies {
    type View = PolicyView;
    type Seen = PolicySeen;

    fn resource(&self) -> &'static str {
        "networkpolicies"
    }

    fn seen(&self, view: &PolicyView, _odd: Vec<String>) -> Result<PolicySeen, Odd> {
        self.0.seen(&view.metadata, &view.whole)
    }
}
