//! A history in words: one line a moment that concerns who is asked about, for whoever reads what broke.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::clock::SECOND_US;
use crate::events::record::Event;
use crate::sim::api::{DAEMON, Entry};
use crate::trial::history::{Broken, End, GatewayAsk, Happening, History, Moment, Stored, WantTold};

/// The last `max` moments up to the one that shows it that concern what is named in it, each on a line with the seconds since the
/// trial began; the daemon's lives and the trial's own doing besides.
#[must_use]
pub fn before(history: &History, broken: &Broken, max: usize) -> Vec<String> {
    let mut began_us = None;
    let mut names = BTreeSet::new();
    history.each(|moment| names.extend(names_of(moment)));
    names.retain(|name| broken.why.contains(name.as_str()));
    let mut lines: Vec<String> = Vec::new();
    let (mut answered, mut wanted) = (String::new(), String::new());
    history.each(|moment| {
        let began_us = *began_us.get_or_insert(moment.time_us);
        if moment.number <= broken.moment
            && let Some(text) = told(moment, &names)
        {
            // What is said again is told once.
            let said = match &moment.what {
                Happening::Answered { .. } => Some(std::mem::replace(&mut answered, text.clone())),
                Happening::Wanted(_) => Some(std::mem::replace(&mut wanted, text.clone())),
                _ => None,
            };
            if said.as_ref() == Some(&text) {
                return;
            }
            lines.push(format!("{:>10} {text}", seconds(moment.time_us - began_us)));
        }
    });
    lines.split_off(lines.len().saturating_sub(max))
}

fn seconds(time_us: i64) -> String {
    let second_us = SECOND_US.cast_signed();
    format!("{}.{:03}", time_us / second_us, time_us % second_us / 1_000)
}

/// The apps and hosts that a moment names.
fn names_of(moment: &Moment) -> Vec<String> {
    match &moment.what {
        Happening::Wanted(apps) => apps.iter().flat_map(|(app, truth)| [app.clone(), truth.host.clone()]).collect(),
        Happening::Running { host, .. } => vec![host.clone()],
        Happening::Requested(entry) if entry.user == DAEMON => vec![entry.name.clone()],
        _ => Vec::new(),
    }
    .into_iter()
    .filter(|name| !name.is_empty())
    .collect()
}

/// A moment in words, if it concerns one of these or all.
fn told(moment: &Moment, names: &BTreeSet<String>) -> Option<String> {
    let named = |text: &str| names.iter().any(|name| text.contains(name.as_str()));
    match &moment.what {
        Happening::Phase(phase) => Some(format!("the {} phase begins", format!("{phase:?}").to_lowercase())),
        Happening::Began { life, head, .. } => Some(format!("life {life} of the daemon begins; its log ends at record {head}")),
        Happening::Ended { life, how } => Some(format!("life {life} of the daemon {}", end(how))),
        Happening::Fault { number, kind, what, begins: true } => {
            let what: String = what.chars().take(160).collect();
            Some(format!("fault {number}, {kind}: {what}"))
        }
        Happening::Fault { number, kind, .. } => Some(format!("fault {number}, {kind}, ends")),
        Happening::Durable { records, .. } => {
            let lines: Vec<String> =
                records.iter().filter_map(|record| Some(format!("{} {}", record.header.seq, decided(&record.event)?))).collect();
            let text = lines.join("; ");
            named(&text).then(|| format!("durable: {text}"))
        }
        Happening::Attempted { last, .. } => Some(format!("an append up to record {last} fails")),
        Happening::Requested(entry) => request(entry).filter(|text| named(text)),
        Happening::Stored(stored) => object(stored).filter(|text| named(text)),
        Happening::Running { host, uid } => named(host).then(|| format!("the process of {host} runs ({uid})")),
        Happening::Exited { host, uid } => named(host).then(|| format!("the process of {host} has ended ({uid})")),
        Happening::Wanted(apps) => {
            let of: Vec<String> = apps
                .iter()
                .filter(|(app, truth)| named(app) || named(&truth.host))
                .map(|(app, truth)| format!("{app}: {}", want(&truth.host, None, truth.failed, truth.live_host.as_deref())))
                .collect();
            (!of.is_empty()).then(|| format!("the gateway wants {}", of.join("; ")))
        }
        Happening::Asked { what: GatewayAsk::Beat(reports), status, .. } => {
            let of: Vec<String> =
                reports.iter().filter(|report| named(&report.host)).map(|report| format!("{} is {}", report.host, report.state)).collect();
            (!of.is_empty()).then(|| format!("the gateway is told that {} (answers {status})", of.join(", ")))
        }
        Happening::Asked { .. } => None,
        Happening::Answered { apps: Some(apps), .. } => {
            let told = |(app, told): (&String, &WantTold)| {
                let is = named(app) || named(&told.host) || told.live_host.as_deref().is_some_and(named);
                is.then(|| format!("{app}: {}", want(&told.host, Some(told.registered), told.failed, told.live_host.as_deref())))
            };
            let of: Vec<String> = apps.iter().filter_map(told).collect();
            let text = if of.is_empty() { "does not name it".to_owned() } else { of.join("; ") };
            (!names.is_empty()).then(|| format!("answered: {text}"))
        }
        Happening::Answered { status, .. } => Some(format!("answered: {status}, and nothing that can be read")),
        Happening::AtRest(_) => Some("everything is to be at rest".to_owned()),
    }
}

fn want(host: &str, registered: Option<bool>, failed: bool, live: Option<&str>) -> String {
    let registered = registered.map_or("", |is| if is { ", registered" } else { ", not registered" });
    let failed = if failed { ", failed" } else { "" };
    format!("{host}{registered}{failed}, live {}", live.unwrap_or("none"))
}

fn end(how: &End) -> String {
    match how {
        End::Crashed { at, lost } => format!("is killed {at}{}", if *lost { ", and what was not synced is lost" } else { "" }),
        End::Stopped => "ends in order".to_owned(),
        End::LogFailed(why) => format!("ends by its log: {why}"),
        End::PartFailed(why) => format!("ends by a part of it: {why}"),
    }
}

/// What the daemon decided, in words; observations are told by the other side.
#[expect(clippy::wildcard_enum_match_arm, reason = "of the closed list of kinds these are told")]
fn decided(event: &Event) -> Option<String> {
    Some(match event {
        Event::StepIssued(issued) => format!("{} {} by {}", issued.step.name(), issued.step.host(), issued.rule),
        Event::StepSettled(settled) => format!("step {} is {:?} {}", settled.step, settled.outcome, settled.status),
        Event::StepRevoked(revoked) => format!("step {} is asked back", revoked.step),
        Event::VerdictReached(reached) => format!("{} is {:?} by {}", reached.host, reached.verdict, reached.rule),
        Event::PodEnded(ended) => format!("{} ended: {:?}{}", ended.host, ended.cause, if ended.counted { ", counted" } else { "" }),
        _ => return None,
    })
}

fn request(entry: &Entry) -> Option<String> {
    if matches!(entry.verb, "get" | "watch") || entry.user != DAEMON {
        return None;
    }
    let fault = entry.fault.map(|fault| format!(", met {fault}")).unwrap_or_default();
    let uid = entry.uid_precondition.as_ref().map(|uid| format!(" uid {uid}")).unwrap_or_default();
    let grace = entry.grace_s.map(|grace_s| format!(" grace {grace_s} s")).unwrap_or_default();
    Some(format!("the daemon's {} {} {}{uid}{grace}: {}{fault}", entry.verb, entry.resource, entry.name, entry.code))
}

fn object(stored: &Stored) -> Option<String> {
    let kind = stored.resource.strip_suffix('s').unwrap_or(stored.resource);
    let name = &stored.name;
    match (&stored.before, &stored.after) {
        (None, Some(after)) => Some(format!("{kind} {name} is there ({})", after["metadata"]["uid"].as_str().unwrap_or_default())),
        (Some(_), None) => Some(format!("{kind} {name} is gone")),
        (Some(before), Some(after)) if stored.resource == "pods" => {
            let (was, is) = (pod(before), pod(after));
            (was != is).then(|| format!("pod {name}: {is}"))
        }
        _ => None,
    }
}

/// What a pod shows, in words.
fn pod(pod: &Value) -> String {
    let status = &pod["status"];
    let state = |containers: &str| {
        let one = &status[containers][0]["state"];
        let of = one.as_object().and_then(|state| state.iter().next());
        of.map_or_else(String::new, |(state, of)| {
            let code = of["exitCode"].as_i64().map(|code| format!(" {code}")).unwrap_or_default();
            format!("{state}{code} {}", of["reason"].as_str().unwrap_or_default()).trim_end().to_owned()
        })
    };
    let deleting = if pod["metadata"]["deletionTimestamp"].is_null() { "" } else { ", being deleted" };
    let reason = status["reason"].as_str().map(|reason| format!(" {reason}")).unwrap_or_default();
    let node = pod["spec"]["nodeName"].as_str().map(|node| format!(" on {node}")).unwrap_or_default();
    format!(
        "{}{reason}{node}, install {}, app {}{deleting}",
        status["phase"].as_str().unwrap_or_default(),
        state("initContainerStatuses"),
        state("containerStatuses")
    )
}
