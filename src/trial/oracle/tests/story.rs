//! A history that a test tells, line by line, and what the judge makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::Settings;
use crate::events::kinds::step::{ObjectSeen, Outcome, Purpose, Step, StepIssued, StepSettled};
use crate::events::record::{Event, Header, Record};
use crate::ids::{HostName, LogId, RecordId, Seq, Subject, Uid, Word};
use crate::kube::call::{audit_id, uuid};
use crate::sim::api::{DAEMON, Entry, Object};
use crate::trial::history::{AppTruth, End, Fate, GatewayAsk, Happening, Moment, Oracle as _, Report, Rest, Stored, WantTold};
use crate::trial::oracle::{Judge, Promises};

pub(super) const APP: &str = "acme/bot";
const LOG: LogId = LogId([7; 16]);
const NAMESPACE: &str = "apps";

/// A history under way.
pub(super) struct Story {
    judge: Judge,
    number: usize,
    time_us: i64,
    seq: u64,
    life: u32,
    objects: BTreeMap<(&'static str, String), Arc<Object>>,
    truth: BTreeMap<String, AppTruth>,
    running: Vec<(String, String)>,
    found: Vec<String>,
}

/// What a test says of a want.
#[derive(Clone, Copy, Default)]
pub(super) struct Say {
    pub(super) registered: bool,
    pub(super) failed: bool,
    pub(super) live: Option<&'static str>,
}

impl Story {
    /// A first life that has listed an empty cluster.
    pub(super) fn begun() -> Self {
        let mut settings = Settings { world: "demo".to_owned(), ..Settings::default() };
        settings.kubernetes.namespace = NAMESPACE.to_owned();
        let mut story = Self {
            judge: Judge::new(Promises::of(&settings)),
            number: 0,
            time_us: 1_000_000_000_000,
            seq: 1,
            life: 0,
            objects: BTreeMap::new(),
            truth: BTreeMap::new(),
            running: Vec::new(),
            found: Vec::new(),
        };
        story.begin(Seq(1));
        story.list();
        story
    }

    pub(super) fn tell(&mut self, what: Happening) {
        self.time_us += 1_000;
        let moment = Moment { number: self.number, time_us: self.time_us, what };
        self.number += 1;
        let found = self.judge.see(&moment);
        self.found.extend(found.into_iter().map(|broken| format!("{}: {}", broken.invariant, broken.why)));
    }

    pub(super) fn wait(&mut self, seconds: i64) {
        self.time_us += seconds * 1_000_000;
    }

    pub(super) fn begin(&mut self, head: Seq) {
        self.life += 1;
        self.tell(Happening::Began { life: self.life, log: LOG, head });
    }

    pub(super) fn crash(&mut self) {
        self.tell(Happening::Ended { life: self.life, how: End::Crashed { at: "now".to_owned(), lost: true } });
    }

    pub(super) fn list(&mut self) {
        let entry = self.entry("list", "pods", "", 200);
        self.tell(Happening::Requested(Box::new(entry)));
    }

    pub(super) fn restart(&mut self) {
        self.crash();
        self.begin(Seq(self.seq));
        self.list();
    }

    /// A record becomes durable; its number is the next.
    pub(super) fn issue(&mut self, step: Step) -> Seq {
        self.seq += 1;
        self.issue_as(Seq(self.seq), step);
        Seq(self.seq)
    }

    pub(super) fn issue_as(&mut self, seq: Seq, step: Step) {
        self.durable(seq, Event::StepIssued(StepIssued { step, purpose: Purpose::Start, rule: Word::new("wanted.absent") }));
    }

    /// A step is recorded as done, with this pod as its object.
    pub(super) fn settle(&mut self, step: Seq, uid: &str) {
        self.seq += 1;
        let object = Some(ObjectSeen { uid: Uid::new(uid).expect("a uid"), resource_version: 1 });
        let settled = StepSettled { step, outcome: Outcome::AlreadySo, object, attempts: 1, audit_id: [0; 16], status: 409, took_us: 1 };
        self.durable(Seq(self.seq), Event::StepSettled(settled));
    }

    fn durable(&mut self, seq: Seq, event: Event) {
        let header = Header {
            kind: event.kind().number(),
            kind_version: 1,
            rules: 1,
            seq,
            subject: Subject::App(crate::ids::AppId::parse(APP).expect("a name")),
            subject_seq: seq.0,
            time_us: self.time_us,
            reaction: seq,
            cause: Seq::NONE,
            settings: Seq::NONE,
        };
        self.tell(Happening::Durable { log: LOG, records: vec![Record { header, event }] });
    }

    fn entry(&self, verb: &'static str, resource: &'static str, name: &str, code: u16) -> Entry {
        Entry {
            asked_us: self.time_us,
            time_us: self.time_us,
            user: DAEMON.to_owned(),
            verb,
            resource,
            subresource: String::new(),
            namespace: NAMESPACE.to_owned(),
            name: name.to_owned(),
            audit_id: String::new(),
            uid_precondition: None,
            version_precondition: None,
            grace_s: None,
            dry_run: false,
            code,
            fault: None,
            unknown_fields: Vec::new(),
            object: None,
        }
    }

    fn labels() -> Value {
        json!({"wharfinger.dev/managed-by": "wharfinger", "wharfinger.dev/instance": "demo", "wharfinger.dev/world": "demo"})
    }

    pub(super) fn object(&self, resource: &'static str, name: &str) -> Option<Value> {
        self.objects.get(&(resource, name.to_owned())).map(|object| object.value().clone())
    }

    pub(super) fn store(&mut self, resource: &'static str, name: &str, after: Option<Value>) {
        let key = (resource, name.to_owned());
        let before = self.objects.remove(&key);
        let after = after.map(|object| Arc::new(Object::new(object)));
        self.objects.extend(after.clone().map(|object| (key, object)));
        let namespace = if resource == "nodes" { "" } else { NAMESPACE };
        self.tell(Happening::Stored(Stored {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            revision: self.number as u64,
            before,
            after,
        }));
    }

    /// The daemon's write for a step, its object stored just before.
    pub(super) fn write(&mut self, seq: Seq, verb: &'static str, resource: &'static str, name: &str, change: impl FnOnce(&mut Entry)) {
        let mut entry = self.entry(verb, resource, name, if verb == "create" { 201 } else { 200 });
        entry.audit_id = uuid(&audit_id(RecordId { log: LOG, seq }, 1));
        let object = self.objects.get(&(resource, name.to_owned())).cloned();
        entry.uid_precondition = object.as_ref().and_then(|object| object["metadata"]["uid"].as_str()).map(str::to_owned);
        entry.object = object;
        change(&mut entry);
        self.tell(Happening::Requested(Box::new(entry)));
    }

    /// The daemon makes the policy and a pod of this host, which runs.
    pub(super) fn start(&mut self, host: &str, uid: &str) {
        if self.object("networkpolicies", "wharf-apps-demo").is_none() {
            let step = self.issue(create(host));
            let policy = json!({"metadata": {"name": "wharf-apps-demo", "uid": "p", "labels": Self::labels()}, "spec": {}});
            self.store("networkpolicies", "wharf-apps-demo", Some(policy));
            self.write(step, "create", "networkpolicies", "wharf-apps-demo", |_| ());
        }
        self.start_unfenced(host, uid);
    }

    /// The daemon makes a pod of this host, which does not run yet.
    pub(super) fn make(&mut self, host: &str, uid: &str) {
        let step = self.issue(create(host));
        let metadata = json!({"name": host, "uid": uid, "labels": Self::labels(), "annotations": {"wharfinger.dev/app": APP}});
        let spec = json!({"runtimeClassName": "gvisor", "nodeName": "node1"});
        self.store("pods", host, Some(json!({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})));
        self.write(step, "create", "pods", host, |_| ());
    }

    pub(super) fn start_unfenced(&mut self, host: &str, uid: &str) {
        self.make(host, uid);
        self.show(host, &json!({"phase": "Running", "containerStatuses": [{"name": "app", "state": {"running": {}}}]}));
        self.runs(host, uid);
    }

    /// Its processes run on their node.
    pub(super) fn runs(&mut self, host: &str, uid: &str) {
        self.running.push((host.to_owned(), uid.to_owned()));
        self.tell(Happening::Running { host: host.to_owned(), uid: uid.to_owned() });
    }

    /// A pod's status is another.
    pub(super) fn show(&mut self, host: &str, status: &Value) {
        let mut pod = self.object("pods", host).expect("a pod");
        pod["status"] = status.clone();
        self.store("pods", host, Some(pod));
    }

    /// Its process ends by itself.
    pub(super) fn exits(&mut self, host: &str, uid: &str) {
        self.running.retain(|(_, running)| running != uid);
        self.tell(Happening::Exited { host: host.to_owned(), uid: uid.to_owned() });
        let ended = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
        self.show(host, &json!({"phase": "Failed", "containerStatuses": [{"name": "app", "state": ended}]}));
    }

    /// The daemon deletes a pod; one that has ended goes at once.
    pub(super) fn delete(&mut self, host: &str, uid: &str, grace_s: i64) {
        let step = Step::DeletePod { host: name(host), uid: Uid::new(uid).expect("a uid"), grace_s: 0, forced: false };
        let step = self.issue(step);
        let mut pod = self.object("pods", host).expect("a pod");
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T12:00:00Z");
        self.store("pods", host, Some(pod));
        self.write(step, "delete", "pods", host, |entry| entry.grace_s = Some(grace_s));
        if grace_s == 0 {
            self.store("pods", host, None);
        }
    }

    /// The daemon gets an answer.
    pub(super) fn answer(&mut self, host: &str, say: Say) {
        let live_host = say.live.map(str::to_owned);
        let truth = AppTruth { release: 1, host: host.to_owned(), failed: say.failed, live_host: live_host.clone() };
        if self.truth.get(APP) != Some(&truth) {
            self.truth.insert(APP.to_owned(), truth);
            self.tell(Happening::Wanted(self.truth.clone()));
        }
        let want = WantTold { host: host.to_owned(), release: 1, registered: say.registered, failed: say.failed, live_host };
        let apps = Some(BTreeMap::from([(APP.to_owned(), want)]));
        self.tell(Happening::Answered { status: 200, world: "demo".to_owned(), apps });
    }

    /// The daemon gets an answer that names no app.
    pub(super) fn answer_empty(&mut self) {
        self.tell(Happening::Answered { status: 200, world: "demo".to_owned(), apps: Some(BTreeMap::new()) });
    }

    pub(super) fn report(&mut self, host: &str, state: &str, why: &str) {
        let report = Report { app: APP.to_owned(), host: host.to_owned(), state: state.to_owned(), why: why.to_owned() };
        self.tell(Happening::Asked { what: GatewayAsk::Beat(vec![report]), taken: true, status: 200 });
    }

    pub(super) fn secret(&mut self, host: &str) {
        let name = format!("{host}-env");
        let annotations = json!({"wharfinger.dev/app": APP});
        let metadata = json!({"name": name, "uid": format!("s-{host}"), "labels": Self::labels(), "annotations": annotations});
        self.store("secrets", &name, Some(json!({"metadata": metadata})));
    }

    /// Everything is to be at rest.
    pub(super) fn rest(&mut self, fate: Fate) {
        let of =
            |kind: &str| self.objects.iter().filter(|((resource, _), _)| *resource == kind).map(|(_, object)| object.clone()).collect();
        let rest = Rest {
            pods: of("pods"),
            secrets: of("secrets"),
            services: Vec::new(),
            policies: Vec::new(),
            apps: self.truth.clone(),
            fates: BTreeMap::from([(APP.to_owned(), fate)]),
            running: self.running.clone(),
        };
        self.tell(Happening::AtRest(Box::new(rest)));
    }

    /// What was found, each once.
    pub(super) fn found(mut self) -> Vec<String> {
        self.found.dedup();
        self.found
    }
}

pub(super) fn name(host: &str) -> HostName {
    HostName::new(host).expect("a host")
}

pub(super) fn create(host: &str) -> Step {
    Step::CreatePod { host: name(host), release: 1, sha256: None }
}
