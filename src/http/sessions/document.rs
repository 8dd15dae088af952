//! What answers say of a session: the documents, made of its state. Pure.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::words::{ObjectName, StageName, StateName, cause, waits_for};
use crate::config::Sessions;
use crate::events::words::moment;
use crate::ids::SessionId;
use crate::session::state::Session;
use crate::session::view::{Code, Failure, State, View, view};
use crate::subject::pod::End;
use crate::telemetry::stage_name;

/// How a session's objects are named and reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    pod_prefix: String,
    claim_prefix: String,
    namespace: String,
    cluster_domain: String,
    port: u16,
}

impl Names {
    /// By the settings; `namespace` is that of the apps' pods, when they name no other.
    #[must_use]
    pub fn new(sessions: &Sessions, namespace: &str) -> Self {
        let own = &sessions.namespace;
        Self {
            pod_prefix: sessions.pod_prefix.clone(),
            claim_prefix: sessions.claim_prefix.clone(),
            namespace: if own.is_empty() { namespace.to_owned() } else { own.clone() },
            cluster_domain: sessions.cluster_domain.clone(),
            port: sessions.port,
        }
    }

    /// Its pod's name, and its Service's: what there is or was, else what will be made.
    fn pod(&self, id: &SessionId, view: &View<'_>) -> String {
        view.pod_name.map_or_else(|| format!("{}{id}", self.pod_prefix), ToString::to_string)
    }

    fn claim(&self, id: &SessionId, view: &View<'_>) -> String {
        view.claim_name.map_or_else(|| format!("{}{id}", self.claim_prefix), ToString::to_string)
    }

    fn service_dns(&self, id: &SessionId, view: &View<'_>) -> String {
        let name = view.service_name.map_or_else(|| format!("{}{id}", self.pod_prefix), ToString::to_string);
        format!("{name}.{}.svc.{}:{}", self.namespace, self.cluster_domain, self.port)
    }
}

/// A session that a caller asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Made {
    /// Its id.
    pub session_id: String,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Its state.
    pub state: StateName,
    /// While it is provisioned: what is made or waited for.
    pub stage: Option<StageName>,
    /// Its pod.
    pub pod_name: String,
    /// Its claim.
    pub pvc_name: String,
    /// Where it is reached in the cluster: name and port.
    pub svc_dns: String,
    /// Its Service's address.
    pub svc_ip: Option<IpAddr>,
    /// An existing pod or claim was used.
    pub resumed: bool,
    /// The claim is new.
    pub fresh_data: bool,
    /// Its pod's uid.
    pub pod_uid: Option<String>,
    /// Since when it is ready.
    #[schemars(extend("format" = "date-time"))]
    pub ready_at: Option<String>,
}

/// A session that the seed's caller asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SeedMade {
    /// Its id.
    pub session_id: String,
    /// Its pod.
    pub pod_name: String,
    /// Its claim.
    pub pvc_name: String,
    /// Where it is reached in the cluster: name and port.
    pub svc_dns: String,
    /// The pod was already running.
    pub resumed: bool,
}

/// A removal that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Leaving {
    /// The session's id.
    pub session_id: String,
    /// Its state.
    pub state: StateName,
    /// Whether the claim stays.
    pub keep_workspace: bool,
    /// What is still there, or may be.
    pub left: Vec<ObjectName>,
}

/// A session that is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Touched {
    /// Its id.
    pub session_id: String,
    /// When it was last asked for or in use; to the minute.
    #[schemars(extend("format" = "date-time"))]
    pub last_active_at: Option<String>,
}

/// How a pod ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LastEnd {
    /// Why, in one word.
    pub cause: String,
    /// The exit code, when a container ended.
    pub exit_code: Option<i32>,
    /// The signal, when one is said.
    pub signal: Option<i32>,
    /// The kubelet's word for it.
    pub reason: String,
    /// The stage of a pod's life that it was in.
    pub stage: String,
    /// Its node.
    pub node: String,
    /// The pod's uid.
    pub pod_uid: String,
    /// When.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
}

/// A session as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Shown {
    /// Its id.
    pub session_id: String,
    /// Whose it is.
    pub tenant: Option<String>,
    /// Its state.
    pub state: StateName,
    /// While it is provisioned or has failed: what is made or waited for.
    pub stage: Option<StageName>,
    /// What that waits for, or why it has failed, in one word.
    pub reason: Option<String>,
    /// Of one that has failed: whether it is tried on; if not, the next call begins anew.
    pub retrying: Option<bool>,
    /// Its pod.
    pub pod_name: String,
    /// Its claim.
    pub pvc_name: String,
    /// Where it is reached in the cluster: name and port.
    pub svc_dns: String,
    /// Its Service's address.
    pub svc_ip: Option<IpAddr>,
    /// Its pod's uid.
    pub pod_uid: Option<String>,
    /// Its pod's node.
    pub node: Option<String>,
    /// When it was first asked for.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
    /// When it was last asked for or in use.
    #[schemars(extend("format" = "date-time"))]
    pub last_active_at: Option<String>,
    /// Since when it is ready.
    #[schemars(extend("format" = "date-time"))]
    pub ready_at: Option<String>,
    /// Since when there is a claim and no pod.
    #[schemars(extend("format" = "date-time"))]
    pub suspended_at: Option<String>,
    /// An operator froze it.
    pub frozen: bool,
    /// Alarms that it holds.
    pub alarms: Vec<String>,
    /// How its last pod ended.
    pub last_end: Option<LastEnd>,
    /// The last lines of that pod, with `include=tail`; not there when none are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Page {
    /// By id.
    pub sessions: Vec<Shown>,
    /// What the next page begins behind; not there after the last.
    pub next: Option<String>,
}

/// The answer to a caller who asked for it; `resumed` is what the call was told.
#[must_use]
pub fn made(names: &Names, id: &SessionId, session: &Session, resumed: bool) -> Made {
    let view = view(session);
    Made {
        session_id: id.to_string(),
        tenant: view.tenant.map(ToString::to_string),
        state: StateName::from(&view.state),
        stage: stage(&view.state),
        pod_name: names.pod(id, &view),
        pvc_name: names.claim(id, &view),
        svc_dns: names.service_dns(id, &view),
        svc_ip: view.service_address,
        resumed,
        fresh_data: view.fresh_data,
        pod_uid: view.pod_uid.map(ToString::to_string),
        ready_at: view.ready_at_us.map(moment),
    }
}

/// The session as it is.
#[must_use]
pub fn shown(names: &Names, id: &SessionId, session: &Session) -> Shown {
    let view = view(session);
    let failure = failure(&view.state);
    let alarms = session.alarms.iter().map(ToString::to_string).chain(session.quarantined.then(|| "quarantined".to_owned()));
    Shown {
        session_id: id.to_string(),
        tenant: view.tenant.map(ToString::to_string),
        state: StateName::from(&view.state),
        stage: stage(&view.state),
        reason: reason(&view.state),
        retrying: failure.map(|failure| failure.retrying),
        pod_name: names.pod(id, &view),
        pvc_name: names.claim(id, &view),
        svc_dns: names.service_dns(id, &view),
        svc_ip: view.service_address,
        pod_uid: view.pod_uid.map(ToString::to_string),
        node: view.node.map(ToString::to_string),
        created_at: view.asked_us.map(moment),
        last_active_at: view.active_us.map(moment),
        ready_at: view.ready_at_us.map(moment),
        suspended_at: session.suspended_since_us.filter(|_| view.state == State::Suspended).map(moment),
        frozen: view.frozen,
        alarms: alarms.collect(),
        last_end: view.last_end.map(last_end),
        tail: None,
    }
}

/// How a pod ended.
#[must_use]
pub fn last_end(end: &End) -> LastEnd {
    LastEnd {
        cause: cause(end.cause),
        exit_code: end.exit_code,
        signal: end.signal,
        reason: end.reason.to_string(),
        stage: stage_name(end.stage).to_owned(),
        node: end.node.to_string(),
        pod_uid: end.uid.to_string(),
        at: moment(end.at_us),
    }
}

fn failure(state: &State) -> Option<&Failure> {
    match state {
        State::Failed(failure) => Some(failure),
        State::Absent | State::Provisioning { .. } | State::Ready | State::Exited | State::Suspended | State::Deleting => None,
    }
}

/// What is made or waited for, or was when it failed.
#[must_use]
pub fn stage(state: &State) -> Option<StageName> {
    match state {
        State::Provisioning { stage, .. } | State::Failed(Failure { stage, .. }) => Some((*stage).into()),
        State::Absent | State::Ready | State::Exited | State::Suspended | State::Deleting => None,
    }
}

/// What provisioning waits for, or why it failed, in one word.
#[must_use]
pub fn reason(state: &State) -> Option<String> {
    match state {
        State::Provisioning { waits_for: what, .. } => what.as_ref().map(waits_for),
        State::Failed(failure) => Some(match failure.code {
            Code::Refused(refusal) => super::words::refusal(refusal).0.to_owned(),
            Code::TooLong => "too_long".to_owned(),
            Code::Ended(how) => cause(how),
            Code::Removed => "removed".to_owned(),
            Code::Quarantined => "quarantined".to_owned(),
        }),
        State::Absent | State::Ready | State::Exited | State::Suspended | State::Deleting => None,
    }
}
