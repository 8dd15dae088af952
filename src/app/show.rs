//! An app's state as JSON, for people and tools: names and numbers, no secret, the package's digest in short.

use serde_json::{Value, json};

use super::state::{App, Host, Work};
use crate::events::kinds::daemon::PlanSettings;
use crate::events::kinds::step::Purpose;
use crate::events::kinds::verdict::{Stage, Verdict};
use crate::ids::AppId;

/// The names of all alarms that a subject can hold, and of its quarantine, which is shown as one.
pub const ALARMS: &[&str] = &["waiting", "live_not_back", "stuck_terminating", "different_pod", "unclaimed", QUARANTINED];

const QUARANTINED: &str = "quarantined";

/// The alarms that an app holds; its quarantine is the last.
pub fn alarms(state: &App) -> impl Iterator<Item = &str> {
    state.alarms.keys().map(|name| name.as_str()).chain(state.quarantined.then_some(QUARANTINED))
}

/// What a list shows of an app; one that is withdrawn is not wanted.
#[must_use]
pub fn brief(app: &AppId, state: &App, settings: &PlanSettings) -> Value {
    let want = state.wanted(settings.withdraw_after, settings.withdraw_after_mass);
    json!({
        "app": app.to_string(),
        "release": want.map(|want| want.release),
        "wanted": want.map(|want| want.host.as_str()),
        "live": want.and_then(|want| want.live_host.as_ref()).map(|host| host.as_str()),
        "registered": want.is_some_and(|want| want.registered),
        "hosts": state.hosts.values().filter(|host| host.pod.is_some()).count(),
        "stage": want.and_then(|want| state.hosts.get(&want.host)).map_or("absent", stage),
        "alarms": alarms(state).collect::<Vec<_>>(),
        "quarantined": state.quarantined,
    })
}

/// Everything about an app; `looks_again_us` is when it plans again though nothing comes, log time.
#[must_use]
pub fn whole(app: &AppId, state: &App, settings: &PlanSettings, looks_again_us: Option<i64>) -> Value {
    let want = state.wanted(settings.withdraw_after, settings.withdraw_after_mass).map(|want| {
        json!({
            "release": want.release,
            "package": want.sha256.short(),
            "host": want.host.as_str(),
            "registered": want.registered,
            "failed": want.failed,
            "live_host": want.live_host.as_ref().map(|host| host.as_str()),
            "missing_in_a_row": state.missing.in_row,
            "seq": want.seq.0,
        })
    });
    let hosts: Vec<Value> = state.hosts.iter().map(|(name, host)| host_json(name.as_str(), host)).collect();
    json!({
        "app": app.to_string(),
        "want": want,
        "hosts": hosts,
        "alarms": alarms(state).collect::<Vec<_>>(),
        "frozen": state.frozen,
        "quarantined": state.quarantined,
        "listed": state.listed.is_some(),
        "confirmed": state.confirmed,
        "looks_again_us": looks_again_us,
    })
}

fn host_json(name: &str, host: &Host) -> Value {
    let last_end = host.pod.as_ref().and_then(|pod| pod.end.as_ref()).or(host.gone.as_ref());
    json!({
        "host": name,
        "release": host.release,
        "package": host.sha256.as_ref().map(|digest| digest.short()),
        "stage": stage(host),
        "uid": host.pod.as_ref().map(|pod| pod.uid.as_str()),
        "node": host.pod.as_ref().and_then(|pod| pod.view.as_ref()).map(|view| view.node.as_str()),
        "since_us": host.pod.as_ref().map(|pod| pod.stage_since_us),
        "verdict": host.verdict.as_ref().map(|held| match held.verdict {
            Verdict::Live => "live".to_owned(),
            Verdict::Failed(why) => format!("failed: {why:?}"),
        }),
        "exits": host.exits.len(),
        "last_end": last_end.map(|end| json!({
            "cause": format!("{:?}", end.cause),
            "exit_code": end.exit_code,
            "reason": end.reason.as_str(),
            "at_us": end.at_us,
        })),
        "steps": host.flights.iter().map(|(seq, flight)| json!({
            "step": flight.step.name(),
            "seq": seq.0,
            "withheld": flight.withheld,
        })).collect::<Vec<_>>(),
    })
}

/// Where a host is, in one word.
fn stage(host: &Host) -> &'static str {
    if host.has_failed() {
        return "failed";
    }
    match (&host.pod, host.work) {
        (Some(pod), _) if pod.end.is_some() => "ended",
        (Some(pod), _) if pod.is_deleting() || pod.delete_stands() => "terminating",
        (Some(pod), _) => match pod.stage {
            Stage::Scheduling => "scheduling",
            Stage::Pull => "pulling",
            Stage::Install => "installing",
            Stage::Register | Stage::Serving => "running",
            Stage::Terminating => "terminating",
        },
        (None, Work::Bringing(Purpose::Revive { .. })) => "reviving",
        (None, Work::Bringing(_)) => "starting",
        (None, _) if host.gone.is_some() => "gone",
        (None, _) => "absent",
    }
}
