//! The fold over what the gateway wants, and over what was concluded for it.

use super::At;
use crate::app::state::{App, HeldVerdict, Host, Missing, Want};
use crate::events::kinds::verdict::{Verdict, VerdictReached};
use crate::events::kinds::want::{WantMissing, WantSeen};
use crate::ids::HostName;

/// A want that changed.
pub(super) fn seen(app: &mut App, at: At, want: &WantSeen) {
    app.confirmed = true;
    app.missing = Missing::default();
    app.stop_asked = None;
    let former = app.want.take();
    let live_host = want.live_host.clone().or_else(|| former.as_ref().and_then(|former| former.live_host.clone()));
    let same_host = former.as_ref().is_some_and(|former| former.host == want.host);
    for (name, host) in &mut app.hosts {
        if *name == want.host && same_host {
            show(host, want, live_host.as_ref() == Some(name));
        } else {
            // A verdict ends when a want names another host.
            host.verdict = None;
            host.retried = false;
        }
    }
    app.want = Some(Want {
        seq: at.seq,
        release: want.release,
        sha256: want.sha256,
        host: want.host.clone(),
        registered: want.registered,
        failed: want.failed,
        live_host,
        answered_us: at.time_us,
    });
}

/// The wanted host's verdict, against what this answer shows of it.
fn show(host: &mut Host, want: &WantSeen, is_live: bool) {
    // Live at last, or taken back by the gateway too: a failure that it shows from now on is another.
    if is_live || !want.failed {
        host.retried = false;
    }
    let Some(held) = &mut host.verdict else { return };
    if is_visible(held.verdict, is_live, want.failed) {
        held.shown = true;
    } else if held.shown {
        // The gateway takes back what it had shown: for a failure that is a retry.
        if matches!(held.verdict, Verdict::Failed(_)) {
            try_again(host);
        }
        host.verdict = None;
    }
}

fn is_visible(verdict: Verdict, is_live: bool, is_failed: bool) -> bool {
    match verdict {
        Verdict::Live => is_live,
        Verdict::Failed(_) => is_failed,
    }
}

/// A good answer named the app as before: the first of an incarnation, or one that was waited for.
pub(super) fn confirmed(app: &mut App, at: At) {
    app.confirmed = true;
    app.missing = Missing::default();
    if let Some(want) = &mut app.want {
        want.answered_us = at.time_us;
    }
}

/// A counted answer did not name it.
pub(super) fn missing(app: &mut App, at: At, missing: &WantMissing) {
    app.confirmed = true;
    let before = app.missing;
    let any_mass = before.any_mass || missing.mass;
    let before_mass = before.before_mass.saturating_add(u32::from(!any_mass));
    app.missing = Missing { in_row: before.in_row.saturating_add(1), before_mass, any_mass, ended: before.ended, seq: at.seq };
}

/// A want that could not be believed names the app all the same: a row of absences ends, and what it withdrew stays withdrawn.
pub(super) fn refused(app: &mut App) {
    let Missing { in_row, before_mass, ended, seq, .. } = app.missing;
    app.missing = Missing { ended: (ended.0.max(in_row), ended.1.max(before_mass)), seq, ..Missing::default() };
}

/// A verdict: a host has one, and a failed one replaces a live one.
pub(super) fn verdict(app: &mut App, at: At, reached: &VerdictReached) {
    // A host that fails again after a retry is still shown failed by the gateway: taking that back is the next retry.
    let of_want = app.want.as_ref().filter(|want| want.host == reached.host);
    let shown = of_want.is_some_and(|want| is_visible(reached.verdict, want.live_host.as_ref() == Some(&want.host), want.failed));
    let host = app.hosts.entry(reached.host.clone()).or_default();
    if matches!(reached.verdict, Verdict::Failed(_)) {
        host.retried = false;
    }
    host.verdict = Some(HeldVerdict { seq: at.seq, verdict: reached.verdict, uid: reached.uid.clone(), shown });
}

/// An operator's retry of the wanted host: the failure ends, and the want's `failed` is covered until it goes live or fails again.
pub(super) fn retry(app: &mut App, name: &HostName) {
    if app.want.as_ref().is_none_or(|want| want.host != *name) {
        return;
    }
    let host = app.hosts.entry(name.clone()).or_default();
    if host.has_failed() {
        host.verdict = None;
    }
    host.retried = true;
    try_again(host);
}

/// Either kind of retry empties the host's window, and what kept it from starting is tried again.
fn try_again(host: &mut Host) {
    host.exits.clear();
    host.hindrance = None;
}
