//! What the gateway is owed: a verdict, as long as it is true, wanted, and not visible in a good answer.

use super::state::{App, HeldVerdict, Host};
use crate::events::kinds::verdict::Verdict;
use crate::ids::HostName;

/// The verdict that is owed, when one is: derived from the state, so that it survives restarts and never outlives its truth.
///
/// A failure stays true. That a host serves is true while it does, and known once this incarnation's list was taken in (`listed`):
/// the gateway that is told so names it live, and the host that serves until then goes.
#[must_use]
pub fn owed(app: &App, listed: bool) -> Option<(&HostName, &HeldVerdict)> {
    let want = app.want.as_ref().filter(|_| !app.missing.any())?;
    let host = app.hosts.get(&want.host)?;
    let held = host.verdict.as_ref()?;
    let is_owed = match held.verdict {
        Verdict::Live => want.live_host.as_ref() != Some(&want.host) && listed && want.registered && runs_on(host),
        Verdict::Failed(_) => !want.failed,
    };
    is_owed.then_some((&want.host, held))
}

/// Whether its process runs, and is to.
fn runs_on(host: &Host) -> bool {
    host.pod.as_ref().is_some_and(|pod| pod.runs() && !pod.is_deleting() && !pod.delete_stands())
}
