//! Events about sessions, covering every variant of every stored enum: what the goldens are made of. A sample is never changed.

use std::net::IpAddr;

use crate::events::kinds::pod::GoneHow;
use crate::events::kinds::session::*;
use crate::events::kinds::session_policy::{SessionPolicyRepairIssued, SessionPolicyWidened};
use crate::events::kinds::step::{ObjectSeen, Refusal};
use crate::events::record::Event;
use crate::ids::{HostName, LogId, RecordId, Seq, SessionId, Tenant, Uid, Word};

fn uid() -> Uid {
    Uid::new("0b6f2f0e-1111-4222-8333-444455556666").expect("a uid")
}

fn tenant() -> Tenant {
    Tenant::new("acme").expect("a tenant")
}

fn word(text: &str) -> Word {
    let word = Word::new(text);
    assert_eq!(word.as_str(), text);
    word
}

fn step() -> RecordId {
    RecordId { log: LogId([0xab; 16]), seq: Seq(70_001) }
}

pub(super) fn plan() -> SessionPlanSettings {
    SessionPlanSettings {
        pod_prefix: word("session-"),
        claim_prefix: word("workspace-session-"),
        container: word("session"),
        scheduling_us: 300_000_000,
        pull_us: 300_000_001,
        starting_us: 120_000_000,
        provision_us: 900_000_000,
        grace_s: 30,
        stuck_us: 300_000_002,
        force_after_us: Some(600_000_000),
        retain_us: None,
        waiting_us: 30_000_000,
        doubt_us: 60_000_000,
    }
}

fn settings() -> Vec<Event> {
    let other = SessionPlanSettings { force_after_us: None, retain_us: Some(1 << 50), ..plan() };
    [plan(), other].map(|plan| Event::SessionSettingsInForce(SessionSettingsInForce { plan })).to_vec()
}

fn calls() -> Vec<Event> {
    let refusal = |call, why| {
        let session = (why != CallRefusal::TooManyWaiting).then(|| SessionId::new("7f3a").expect("an id"));
        Event::SessionCallRefused(SessionCallRefused { session, by: word("front-end"), call, why, times: 3 })
    };
    let whys = [
        CallRefusal::Unknown,
        CallRefusal::Hidden,
        CallRefusal::OtherTenant,
        CallRefusal::TooMany,
        CallRefusal::TooManyOfTenant,
        CallRefusal::TooFast,
        CallRefusal::TooManyWaiting,
    ];
    let calls = [SessionCall::Create, SessionCall::Delete, SessionCall::Suspend, SessionCall::Touch];
    let refused = whys.into_iter().zip(calls.into_iter().cycle()).map(|(why, call)| refusal(call, why));
    let asked = [None, Some(600_000_000)]
        .map(|force_after_us| Event::SessionAsked(SessionAsked { by: word("front-end"), tenant: tenant(), force_after_us }));
    let deleted = [(false, None), (true, Some(1))].map(|(keep_workspace, force_after_us)| {
        Event::SessionDeleteAsked(SessionDeleteAsked { by: word("operator"), keep_workspace, force_after_us })
    });
    asked.into_iter().chain(deleted).chain([Event::SessionTouched(SessionTouched { by: word("front-end") })]).chain(refused).collect()
}

fn objects() -> Vec<Event> {
    let claim = |phase, deleting| {
        let (step, tenant) = if deleting { (None, None) } else { (Some(step()), Some(tenant())) };
        let name = word("workspace-session-7f3a");
        Event::ClaimSeen(ClaimSeen { name, uid: uid(), resource_version: 123_456, step, tenant, deleting, phase })
    };
    let service = |address: Option<&str>, as_made: bool| {
        let address: Option<IpAddr> = address.map(|text| text.parse().expect("an address"));
        Event::ServiceSeen(ServiceSeen {
            name: word("session-7f3a"),
            uid: uid(),
            resource_version: 123_457,
            step: Some(step()),
            tenant: Some(tenant()),
            deleting: !as_made,
            address,
            as_made,
        })
    };
    let hows = [GoneHow::Deleted, GoneHow::Absent, GoneHow::NotFound];
    let gone = hows.map(|how| Event::ClaimGone(ClaimGone { uid: uid(), resource_version: 7, how }));
    let service_gone = hows.map(|how| Event::ServiceGone(ServiceGone { uid: uid(), resource_version: 0, how }));
    [claim(ClaimPhase::Pending, false), claim(ClaimPhase::Bound, true), claim(ClaimPhase::Lost, false)]
        .into_iter()
        .chain([service(Some("10.96.0.7"), true), service(Some("fd00::7"), true), service(None, false)])
        .chain(gone)
        .chain(service_gone)
        .collect()
}

fn decisions() -> Vec<Event> {
    let pod = || HostName::new("session-7f3a").expect("a name");
    let (claim, service) = (|| word("workspace-session-7f3a"), || word("session-7f3a"));
    let replaces = Some(ObjectSeen { uid: uid(), resource_version: 123_457 });
    let steps = [
        SessionStep::CreateClaim { name: claim(), tenant: tenant() },
        SessionStep::CreatePod { name: pod(), tenant: tenant(), claim: claim() },
        SessionStep::PutService { name: service(), tenant: tenant(), replaces: None },
        SessionStep::PutService { name: service(), tenant: tenant(), replaces },
        SessionStep::DeletePod { name: pod(), uid: uid(), grace_s: 30, forced: false },
        SessionStep::DeleteService { name: service(), uid: uid() },
        SessionStep::DeleteClaim { name: claim(), uid: uid() },
        SessionStep::ReadPod { name: pod() },
        SessionStep::ReadService { name: service() },
        SessionStep::ReadClaim { name: claim() },
    ];
    let stages = [
        SessionStage::Policy,
        SessionStage::Claim,
        SessionStage::Pod,
        SessionStage::Scheduling,
        SessionStage::Pull,
        SessionStage::Starting,
    ];
    let failed = |(index, stage)| {
        let fault = if index == 0 { SessionFault::Refused(Refusal::Foreign) } else { SessionFault::TooLong };
        Event::SessionFailed(SessionFailed { fault, stage, rule: word("session.too_long") })
    };
    let removed = [false, true].map(|keep_workspace| Event::SessionRemoved(SessionRemoved { keep_workspace }));
    let issued = steps.map(|step| Event::SessionStepIssued(SessionStepIssued { step, rule: word("session.pod") }));
    issued.into_iter().chain(stages.into_iter().enumerate().map(failed)).chain(removed).collect()
}

fn policies() -> Vec<Event> {
    let repair = |missing| Event::SessionPolicyRepairIssued(SessionPolicyRepairIssued { name: word("wharf-sessions-demo"), missing });
    let policies = vec![word("allow-all"), word("debugging")];
    vec![repair(false), repair(true), Event::SessionPolicyWidened(SessionPolicyWidened { policies })]
}

pub(super) fn all() -> Vec<Event> {
    [settings(), calls(), objects(), decisions(), policies()].concat()
}
