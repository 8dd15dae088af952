//! A model of what is outside: a cluster that carries out steps, and a gateway that wants and believes reports. Knows nothing of
//! the state, the fold or the plan; what it does next is chosen by whoever drives it.

use std::collections::{BTreeMap, BTreeSet};

use super::story::{name, shape};
use crate::events::kinds::pod::{
    Container, ContainerState, Disruption, GoneHow, NodeReady, NodeSeen, Phase, PodGone, PodSeen, Scheduling, SecretSeen,
};
use crate::events::kinds::step::{ObjectSeen, Outcome, Step};
use crate::events::kinds::want::WantSeen;
use crate::events::record::Event;
use crate::ids::{HostName, LogId, PackageDigest, RecordId, Seq, Uid, Word};

/// How far a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Created,
    Installing,
    Running,
    Exited(i32),
    Evicted,
}

#[derive(Debug, Clone)]
pub(super) struct ModelPod {
    pub(super) uid: Uid,
    pub(super) life: Life,
    pub(super) deleting: bool,
    /// Its node is lost: nothing happens to it any more, unless it is forced away.
    pub(super) lost: bool,
    version: u64,
    release: u64,
    step: Option<Seq>,
    disruption: Option<Disruption>,
}

/// Pods and Secrets of one app, and what a watch would show of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Cluster {
    pub(super) pods: BTreeMap<HostName, ModelPod>,
    pub(super) secrets: BTreeMap<HostName, ObjectSeen>,
    /// What the watch has not brought yet, oldest first.
    pub(super) watch: Vec<Event>,
    /// Pods whose own process ended by itself: the only ends that may count.
    pub(super) own_exits: BTreeSet<Uid>,
    version: u64,
    uids: u64,
    now_us: i64,
}

impl Cluster {
    pub(super) fn at(&mut self, now_us: i64) {
        self.now_us = now_us;
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn next_object(&mut self, kind: &str) -> ObjectSeen {
        self.uids += 1;
        let uid = Uid::new(&format!("{kind}-{}", self.uids)).expect("a valid uid");
        ObjectSeen { uid, resource_version: self.next_version() }
    }

    /// A pod that is not there by a step of this log.
    pub(super) fn found(&mut self, host: &HostName, life: Life) {
        self.add_pod(host, 1, None);
        if let Some(pod) = self.pods.get_mut(host) {
            pod.life = life;
        }
        self.show(host);
    }

    fn add_pod(&mut self, host: &HostName, release: u64, step: Option<Seq>) -> ObjectSeen {
        let object = self.next_object("pod");
        let pod = ModelPod {
            uid: object.uid.clone(),
            life: Life::Created,
            deleting: false,
            lost: false,
            version: object.resource_version,
            release,
            step,
            disruption: None,
        };
        self.pods.insert(host.clone(), pod);
        self.show(host);
        object
    }

    /// Does what a step says, and answers truly.
    pub(super) fn carry_out(&mut self, seq: Seq, step: &Step) -> (Outcome, Option<ObjectSeen>) {
        match step {
            Step::PutSecret { host, .. } => {
                let fresh = self.next_object("secret");
                let uid = self.secrets.get(host).map_or(fresh.uid, |known| known.uid.clone());
                let object = ObjectSeen { uid, resource_version: fresh.resource_version };
                self.secrets.insert(host.clone(), object.clone());
                (Outcome::Done, Some(object))
            }
            Step::CreatePod { host, release, .. } => match self.pods.get(host) {
                Some(pod) if pod.deleting => (Outcome::NameHeld, None),
                Some(pod) => {
                    let object = ObjectSeen { uid: pod.uid.clone(), resource_version: pod.version };
                    (if pod.step.is_some() { Outcome::AlreadySo } else { Outcome::Conflict }, Some(object))
                }
                None => (Outcome::Done, Some(self.add_pod(host, *release, Some(seq)))),
            },
            Step::DeletePod { host, uid, grace_s, forced } => (self.delete(host, uid, *grace_s == 0 || *forced), None),
            Step::DeleteSecret { host, uid } => match self.secrets.get(host) {
                Some(known) if known.uid == *uid => {
                    self.secrets.remove(host);
                    (Outcome::Done, None)
                }
                _ => (Outcome::Gone, None),
            },
            Step::ReadPod { host } => (if self.pods.contains_key(host) { Outcome::Done } else { Outcome::Gone }, None),
            Step::ReadSecret { host } => match self.secrets.get(host) {
                Some(known) => (Outcome::Done, Some(known.clone())),
                None => (Outcome::Gone, None),
            },
        }
    }

    fn delete(&mut self, host: &HostName, uid: &Uid, at_once: bool) -> Outcome {
        let Some(pod) = self.pods.get_mut(host).filter(|pod| pod.uid == *uid) else { return Outcome::Gone };
        pod.deleting = true;
        if at_once || pod.life == Life::Created {
            self.remove(host);
        } else {
            self.show(host);
        }
        Outcome::Done
    }

    /// A pod goes on: installs, runs, or ends its drain.
    pub(super) fn advance(&mut self, host: &HostName) -> bool {
        let has_secret = self.secrets.contains_key(host);
        let Some(pod) = self.pods.get_mut(host).filter(|pod| !pod.lost) else { return false };
        if pod.deleting {
            if pod.life == Life::Running {
                pod.life = Life::Exited(143);
                self.show(host);
            } else {
                self.remove(host);
            }
            return true;
        }
        let next = match pod.life {
            Life::Created if has_secret => Life::Installing,
            Life::Installing => Life::Running,
            Life::Created | Life::Running | Life::Exited(_) | Life::Evicted => return false,
        };
        pod.life = next;
        self.show(host);
        true
    }

    /// Something bad happens to a pod.
    pub(super) fn harm(&mut self, host: &HostName, how: u16) {
        let Some(pod) = self.pods.get_mut(host).filter(|pod| !pod.lost) else { return };
        match how % 7 {
            0 | 1 if pod.life == Life::Running && !pod.deleting => {
                pod.life = Life::Exited(i32::from(how % 2));
                self.own_exits.insert(pod.uid.clone());
            }
            2 if pod.life == Life::Installing && !pod.deleting => pod.life = Life::Exited(-1),
            3 if pod.life != Life::Created && !matches!(pod.life, Life::Exited(_)) => pod.life = Life::Evicted,
            4 => {
                let uid = pod.uid.clone();
                self.delete(host, &uid, false);
                return;
            }
            5 => return self.remove(host),
            6 if pod.life != Life::Created => {
                pod.lost = true;
                pod.deleting = true;
                pod.disruption = Some(Disruption::Tainted);
            }
            _ => return,
        }
        self.show(host);
    }

    fn remove(&mut self, host: &HostName) {
        let version = self.next_version();
        if let Some(pod) = self.pods.remove(host) {
            let gone = PodGone { host: host.clone(), uid: pod.uid, resource_version: version, how: GoneHow::Deleted };
            self.watch.push(Event::PodGone(gone));
        }
    }

    fn show(&mut self, host: &HostName) {
        let version = self.next_version();
        if let Some(pod) = self.pods.get_mut(host) {
            pod.version = version;
            let seen = self.view(host);
            self.watch.push(Event::PodSeen(seen));
        }
    }

    /// A pod as the API server shows it.
    pub(super) fn view(&self, host: &HostName) -> PodSeen {
        let pod = &self.pods[host];
        let absent = Container { state: ContainerState::Absent, restarts: 0, last_end: None };
        let log = LogId([7; 16]);
        let mut seen = PodSeen {
            host: host.clone(),
            uid: pod.uid.clone(),
            resource_version: pod.version,
            release: pod.release,
            sha256: Some(PackageDigest::from_bytes([1; 32])),
            step: pod.step.map(|seq| RecordId { log, seq }),
            phase: Phase::Pending,
            reason: Word::default(),
            deleting: pod.deleting,
            node: node_of(&pod.uid),
            scheduling: Scheduling::Done,
            disruption: pod.disruption,
            ready: false,
            created_us: self.now_us,
            install: absent.clone(),
            app: absent,
        };
        let state = match pod.life {
            Life::Created => "created".to_owned(),
            Life::Installing => "installing".to_owned(),
            Life::Running => "running".to_owned(),
            Life::Exited(-1) => "install-failed".to_owned(),
            Life::Exited(code) => format!("exited:{code}"),
            Life::Evicted => "failed:Evicted".to_owned(),
        };
        // Views of one state are equal but for their version, as the API server's are.
        shape(&mut seen, &state, super::story::START_US);
        seen
    }

    /// A complete list, with what it does not name: the watch begins again behind it.
    pub(super) fn list(&mut self, known_pods: &[(HostName, Uid)], known_secrets: &[HostName]) -> Vec<Event> {
        self.watch.clear();
        let version = self.next_version();
        let mut facts: Vec<Event> = self.pods.keys().map(|host| Event::PodSeen(self.view(host))).collect();
        let absent = known_pods.iter().filter(|(host, uid)| self.pods.get(host).is_none_or(|pod| pod.uid != *uid));
        facts.extend(absent.map(|(host, uid)| {
            Event::PodGone(PodGone { host: host.clone(), uid: uid.clone(), resource_version: version, how: GoneHow::Absent })
        }));
        let lacking = known_secrets.iter().filter(|host| !self.secrets.contains_key(*host));
        facts.extend(lacking.map(|host| Event::SecretGone(crate::events::kinds::pod::SecretGone { host: host.clone(), uid: None })));
        facts.extend(self.secrets.iter().map(|(host, object)| {
            let ObjectSeen { uid, resource_version } = object.clone();
            Event::SecretSeen(SecretSeen { host: host.clone(), uid, resource_version })
        }));
        facts
    }
}

/// What a watch of the nodes tells: those that are lost.
impl Cluster {
    pub(super) fn lost_nodes(&self) -> Vec<NodeSeen> {
        let lost = self.pods.values().filter(|pod| pod.lost);
        lost.map(|pod| NodeSeen { node: node_of(&pod.uid), ready: NodeReady::NotReady }).collect()
    }
}

fn node_of(uid: &Uid) -> Word {
    Word::new(&format!("node-of-{uid}"))
}

/// The gateway: what it wants of the app, and what it believes of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Gateway {
    /// The release that is wanted; 0 for none.
    pub(super) release: u64,
    pub(super) live: Option<HostName>,
    pub(super) failed: BTreeSet<HostName>,
}

impl Gateway {
    pub(super) fn host(&self) -> HostName {
        name(&format!("bot-r{}", self.release))
    }

    /// Its answer; `None` when it does not name the app.
    pub(super) fn answer(&self, cluster: &Cluster) -> Option<WantSeen> {
        let host = (self.release > 0).then(|| self.host())?;
        let digest = u8::try_from(self.release).expect("few releases");
        Some(WantSeen {
            answer: 1,
            release: self.release,
            sha256: PackageDigest::from_bytes([digest; 32]),
            registered: cluster.pods.get(&host).is_some_and(|pod| pod.life == Life::Running && !pod.lost),
            failed: self.failed.contains(&host),
            live_host: self.live.clone(),
            host,
        })
    }
}
