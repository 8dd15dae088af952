//! How a watch reads the objects of sessions.

use super::convert::{self, Observed};
use super::manifest::SessionTemplate;
use super::view::{ClaimView, ServiceView};
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
