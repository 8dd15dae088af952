//! Which observations say what is not known yet: the others are not recorded.

use super::state::Session;
use crate::events::kinds::pod::PodSeen;
use crate::events::record::Event;
use crate::ids::Uid;

/// Whether an observation of the session's objects, or of its pod's node, is new to it. Anything else is.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "what is no observation is recorded as it comes")]
pub fn is_news(session: &Session, event: &Event) -> bool {
    match event {
        Event::PodSeen(seen) => is_new_view(session, seen),
        Event::PodGone(gone) => !session.pod_gone_uids.contains(&gone.uid) && knows(session.pod.as_ref().map(|pod| &pod.uid), &gone.uid),
        Event::ClaimSeen(seen) => session.claim.is_news(seen),
        Event::ClaimGone(gone) => knows(session.claim.there().map(|claim| &claim.uid), &gone.uid),
        Event::ServiceSeen(seen) => session.service.is_news(seen),
        Event::ServiceGone(gone) => knows(session.service.there().map(|service| &service.uid), &gone.uid),
        Event::NodeSeen(seen) => session.nodes.get(&seen.node) != Some(&seen.ready),
        _ => true,
    }
}

/// Whether that uid is the one that is known. One that nobody knows has nothing to end.
fn knows(known: Option<&Uid>, gone: &Uid) -> bool {
    known == Some(gone)
}

fn is_new_view(session: &Session, seen: &PodSeen) -> bool {
    if session.pod_gone_uids.contains(&seen.uid) {
        return false;
    }
    let Some(known) = session.pod.as_ref().filter(|pod| pod.uid == seen.uid) else { return true };
    let Some(view) = &known.view else { return true };
    let same = *seen == PodSeen { resource_version: seen.resource_version, ..view.clone() };
    !same && seen.resource_version > known.resource_version
}
