//! The chain of causes of a record, newest first, down to what came from outside. Pure.

use serde_json::{Value, json};

use super::because::{Because, because};
use super::history::{Entry, History};
use super::{about, rules};
use crate::events::record::{Event, Header};
use crate::events::words;
use crate::ids::{HostName, Seq};

/// The longest chain that is followed: one goes backwards with every link, so that it ends in any case.
const LINKS: usize = 100;

/// Something that a decision believed, and how old that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Belief {
    /// What it is about.
    pub of: Believed,
    /// The record.
    pub seq: Seq,
    /// From when it was seen to the decision, microseconds.
    pub age_us: i64,
    /// Its version, when the API server gave it one.
    pub resource_version: Option<u64>,
}

/// What is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Believed {
    /// The host's pod.
    Pod,
    /// What the gateway wants.
    Want,
    /// The session's claim.
    Claim,
    /// The session's Service.
    Service,
    /// What callers asked of the session.
    Call,
}

impl Believed {
    /// As it is shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Want => "want",
            Self::Claim => "claim",
            Self::Service => "service",
            Self::Call => "call",
        }
    }

    /// Whether a record tells of it; of a pod, whether of this host's, where the step names one.
    fn is_told_by(self, event: &Event, host: Option<&HostName>) -> bool {
        match self {
            Self::Pod => matches!(event, Event::PodSeen(_) | Event::PodGone(_)) && (host.is_none() || about::host(event) == host),
            Self::Want => matches!(event, Event::WantSeen(_) | Event::WantConfirmed(_) | Event::WantMissing(_)),
            Self::Claim => matches!(event, Event::ClaimSeen(_) | Event::ClaimGone(_)),
            Self::Service => matches!(event, Event::ServiceSeen(_) | Event::ServiceGone(_)),
            Self::Call => matches!(event, Event::SessionAsked(_) | Event::SessionDeleteAsked(_) | Event::SessionTouched(_)),
        }
    }
}

/// One record of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    /// The record.
    pub entry: &'a Entry,
    /// How it hangs on the next one.
    pub because: Because,
    /// What a decision believed.
    pub beliefs: Vec<Belief>,
    /// What else is told of a step: its calls, its outcome, the server's words.
    pub told: Vec<&'a Entry>,
}

/// The chain of a record; its last link came from outside, or its cause is not in this log any more.
#[must_use]
pub fn why(history: &History, seq: Seq) -> Vec<Link<'_>> {
    let mut chain: Vec<Link<'_>> = Vec::new();
    let mut next = history.entry(seq);
    while let Some(entry) = next.filter(|_| chain.len() < LINKS) {
        let (how, cause) = because(history, entry);
        let (beliefs, told) = match &entry.event {
            Some(step @ (Event::StepIssued(_) | Event::SessionStepIssued(_))) => {
                (beliefs(history, &entry.header, step), told(history, entry.header.seq, &chain))
            }
            _ => (Vec::new(), Vec::new()),
        };
        chain.push(Link { entry, because: how, beliefs, told });
        next = cause.filter(|cause| *cause < entry.header.seq).and_then(|cause| history.entry(cause));
    }
    chain
}

/// What the log says of a step after it was issued, without what the chain has already.
fn told<'a>(history: &'a History, step: Seq, chain: &[Link<'_>]) -> Vec<&'a Entry> {
    let of_step = |entry: &&Entry| {
        entry.event.as_ref().and_then(about::step) == Some(step) && !chain.iter().any(|link| link.entry.header.seq == entry.header.seq)
    };
    history.entries.iter().filter(of_step).collect()
}

/// The newest a decision could know of what it believes.
#[expect(clippy::wildcard_enum_match_arm, reason = "two kinds decide a step")]
fn beliefs(history: &History, header: &Header, step: &Event) -> Vec<Belief> {
    let host = about::host(step);
    let newest = |of: Believed| history.before(header.seq).find(|(_, event)| of.is_told_by(event, host));
    let belief = |of: Believed| {
        let (at, event) = newest(of)?;
        let age_us = header.time_us.saturating_sub(at.time_us);
        Some(Belief { of, seq: at.seq, age_us, resource_version: about::version(event) })
    };
    let believed: &[Believed] = match step {
        Event::StepIssued(_) => &[Believed::Pod, Believed::Want],
        Event::SessionStepIssued(_) => &[Believed::Pod, Believed::Claim, Believed::Service, Believed::Call],
        _ => &[],
    };
    believed.iter().filter_map(|of| belief(*of)).collect()
}

/// The rule that a decision names, with when it applies.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "no other kind names a rule")]
pub fn rule(entry: &Entry) -> Option<(&str, Option<&'static str>)> {
    let rule = match entry.event.as_ref()? {
        Event::StepIssued(issued) => issued.rule.as_str(),
        Event::StepRevoked(revoked) => revoked.rule.as_str(),
        Event::VerdictReached(reached) => reached.rule.as_str(),
        Event::SessionStepIssued(issued) => issued.rule.as_str(),
        Event::SessionFailed(failed) => failed.rule.as_str(),
        _ => return None,
    };
    Some((rule, rules::says(rule)))
}

/// The chain as JSON, for programs.
#[must_use]
pub fn document(history: &History, chain: &[Link<'_>]) -> Value {
    let links: Vec<Value> = chain.iter().map(link).collect();
    json!({"subject": history.subject.to_string(), "chain": links})
}

fn link(link: &Link<'_>) -> Value {
    let beliefs: Vec<Value> = link.beliefs.iter().map(belief).collect();
    let mut document = record(link.entry);
    document["because"] = json!(link.because.name());
    document["rule"] = json!(rule(link.entry).map(|(name, says)| json!({"name": name, "when": says})));
    document["believed"] = json!(beliefs);
    document["told"] = link.told.iter().map(|entry| record(entry)).collect();
    document
}

fn belief(belief: &Belief) -> Value {
    json!({
        "of": belief.of.name(),
        "seq": belief.seq.0,
        "age_us": belief.age_us,
        "resource_version": belief.resource_version,
    })
}

fn record(entry: &Entry) -> Value {
    json!({
        "seq": entry.header.seq.0,
        "time": words::moment(entry.header.time_us),
        "kind": words::kind_name(&entry.header),
        "payload": entry.event.as_ref().map(words::payload),
    })
}
