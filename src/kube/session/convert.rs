//! From a session's objects as the API server shows them to our own projections of them.

use super::labels::SessionScheme;
use super::manifest::SessionTemplate;
use super::view::{ClaimView, ServiceView};
use crate::events::kinds::session::{ClaimPhase, ClaimSeen, ServiceSeen};
use crate::ids::{RecordId, SessionId, Uid, Word};
use crate::kube::convert::{Observation, Odd, observe_as};
use crate::kube::labels::Ownership;
use crate::kube::view::{Meta, PodView};

/// A claim or a Service as a list, a watch or a write showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed<S> {
    /// Whose it is.
    pub ownership: Ownership<SessionId>,
    /// What is recorded of it.
    pub seen: S,
    /// Fields that could not be read and have their default instead.
    pub odd: Vec<String>,
}

/// What is recorded of a session's pod.
///
/// # Errors
/// When it has no name that a host can have, no uid, or no version that is a number.
pub fn pod(template: &SessionTemplate, view: &PodView, odd: Vec<String>) -> Result<Observation<SessionId>, Odd> {
    let scheme = &template.scheme;
    observe_as(&scheme.scheme, scheme.ownership(&view.metadata), template.container(), view, odd)
}

/// What every object says of itself.
struct Named {
    name: Word,
    uid: Uid,
    resource_version: u64,
    step: Option<RecordId>,
}

fn named(scheme: &SessionScheme, meta: &Meta) -> Result<Named, Odd> {
    let name = Word::new(meta.name.as_deref().unwrap_or(""));
    if name.is_empty() {
        return Err(Odd::new(meta, "metadata.name is none"));
    }
    let uid = Uid::new(meta.uid.as_deref().unwrap_or("")).map_err(|bad| Odd::new(meta, &bad.to_string()))?;
    let resource_version = meta.version().ok_or_else(|| Odd::new(meta, "metadata.resourceVersion is no number"))?;
    let step = meta.annotation(&scheme.scheme.key("step")).and_then(RecordId::parse);
    Ok(Named { name, uid, resource_version, step })
}

/// What is recorded of a claim.
///
/// # Errors
/// When it has no name, no uid, or no version that is a number.
pub fn claim(template: &SessionTemplate, view: &ClaimView, mut odd: Vec<String>) -> Result<Observed<ClaimSeen>, Odd> {
    let (scheme, meta) = (&template.scheme, &view.metadata);
    let Named { name, uid, resource_version, step } = named(scheme, meta)?;
    let phase = match view.status.as_ref().and_then(|status| status.phase.as_deref()) {
        // One that was just created has none.
        None | Some("Pending") => ClaimPhase::Pending,
        Some("Bound") => ClaimPhase::Bound,
        Some("Lost") => ClaimPhase::Lost,
        Some(_) => {
            odd.push("status.phase".to_owned());
            ClaimPhase::Pending
        }
    };
    let seen = ClaimSeen { name, uid, resource_version, step, tenant: scheme.tenant(meta), deleting: meta.deleting(), phase };
    Ok(Observed { ownership: scheme.ownership(meta), seen, odd })
}

/// What is recorded of a Service.
///
/// # Errors
/// As [`claim`].
pub fn service(template: &SessionTemplate, view: &ServiceView, odd: Vec<String>) -> Result<Observed<ServiceSeen>, Odd> {
    let (scheme, meta) = (&template.scheme, &view.metadata);
    let Named { name, uid, resource_version, step } = named(scheme, meta)?;
    let ownership = scheme.ownership(meta);
    let as_made = matches!(&ownership, Ownership::Ours(id) if is_as_made(template, id, view));
    let address = view.spec.as_ref().and_then(|spec| spec.cluster_ip.as_ref()?.parse().ok());
    let (tenant, deleting) = (scheme.tenant(meta), meta.deleting());
    let seen = ServiceSeen { name, uid, resource_version, step, tenant, deleting, address, as_made };
    Ok(Observed { ownership, seen, odd })
}

/// Whether it selects this session's pod alone and offers its port, whatever the server filled in.
fn is_as_made(template: &SessionTemplate, id: &SessionId, view: &ServiceView) -> bool {
    let Some(spec) = &view.spec else { return false };
    let port = i64::from(template.port());
    let [one] = spec.ports.as_deref().unwrap_or_default() else { return false };
    let protocol = one.protocol.as_deref().unwrap_or("TCP");
    let offers = (protocol, one.port, one.target_port) == ("TCP", Some(port), Some(port));
    let kind = spec.r#type.as_deref().unwrap_or("ClusterIP");
    kind == "ClusterIP" && offers && spec.selector.as_ref() == Some(&template.scheme.service_selector(id))
}
