//! What the gateway is owed: a verdict, as long as it is true, wanted, and not visible in a good answer.

use super::state::{App, HeldVerdict};
use crate::events::kinds::verdict::Verdict;
use crate::ids::HostName;

/// The verdict that is owed, when one is: derived from the state, so that it survives restarts and never outlives its truth.
#[must_use]
pub fn owed(app: &App) -> Option<(&HostName, &HeldVerdict)> {
    let want = app.want.as_ref().filter(|_| !app.missing.any())?;
    let held = app.hosts.get(&want.host)?.verdict.as_ref()?;
    let visible = match held.verdict {
        Verdict::Live => want.live_host.as_ref() == Some(&want.host),
        Verdict::Failed(_) => want.failed,
    };
    (!visible).then_some((&want.host, held))
}
