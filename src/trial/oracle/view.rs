//! The world as the history has told it so far: pods with who did what to them, answers as the daemon got them, its lives.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Promises;
use super::pods::Pod;
use crate::sim::api::{DAEMON, Entry};
use crate::trial::history::{AppTruth, End, GatewayAsk, Happening, Moment, Stored, WantTold};

/// Microseconds in a second.
pub(super) const SECOND_US: i64 = 1_000_000;

/// Within so long an answer is in the log.
const RECORDED_US: i64 = 2 * SECOND_US;

/// One life of the daemon.
#[derive(Debug, Clone)]
pub(super) struct Life {
    /// Counts from 1.
    pub(super) number: u32,
    /// When it began.
    pub(super) began_us: i64,
    /// When it ended.
    pub(super) ended_us: Option<i64>,
    /// When its first complete list of the pods was answered.
    pub(super) listed_us: Option<i64>,
    /// When its last list of the pods was answered.
    pub(super) last_list_us: Option<i64>,
    /// From when on what it heard may be in no log: an append failed, or it ended otherwise than in order.
    pub(super) forgets_us: Option<i64>,
}

/// A good answer of the gateway that the daemon got.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// When.
    pub(super) time_us: i64,
    /// In which life.
    pub(super) life: u32,
    /// What it says, by app.
    pub(super) apps: BTreeMap<String, WantTold>,
    /// The host that each app was last named live with, as of this answer.
    pub(super) live: BTreeMap<String, String>,
    /// Apps that have been absent long enough to be withdrawn, as of this answer.
    pub(super) withdrawn: Vec<String>,
    /// Those of them that the daemon must hold withdrawn.
    surely_withdrawn: Vec<String>,
}

/// Absences of an app, as hosted-apps.md counts them ("Withdrawal"); what could not have counted is counted too.
#[derive(Debug, Clone, Copy, Default)]
struct Absent {
    in_row: u32,
    before_mass: u32,
    any_mass: bool,
    /// Those that surely counted: apart by more than any beat.
    apart: u32,
    apart_us: i64,
}

/// Answers closer together than this may be of one beat interval.
const APART_US: i64 = 6 * SECOND_US;
/// So many of those that count may be in no log, over crashes.
const FORGOTTEN: u32 = 3;

/// Everything that the judges ask about.
#[derive(Debug)]
pub(super) struct View {
    pub(super) promises: Promises,
    pub(super) now_us: i64,
    /// Every life, in order.
    pub(super) lives: Vec<Life>,
    /// Every pod there ever was, by uid.
    pub(super) pods: BTreeMap<String, Pod>,
    /// The uid that holds a name now.
    pub(super) named: BTreeMap<String, String>,
    /// The good answers, in order.
    pub(super) answers: Vec<Answer>,
    /// What the gateway wants and knows, and since when.
    pub(super) truth: BTreeMap<String, (AppTruth, i64)>,
    /// Nodes that are not ready or gone, and since when.
    pub(super) lost_nodes: BTreeMap<String, i64>,
    /// Nodes that are there.
    nodes: BTreeMap<String, bool>,
    absent: BTreeMap<String, Absent>,
    /// Changes whose request was not told yet.
    pub(super) pending: Vec<Stored>,
    /// When the trial last did anything, or stopped doing it.
    pub(super) disturbed_us: i64,
    /// The wall clock was stepped: a life that begins after that may have slept for hours, for all it knows.
    pub(super) clock_stepped: bool,
    /// Hosts that were ever reported failed, and when last.
    pub(super) failed: BTreeMap<String, i64>,
    /// Secrets that somebody else removed last.
    pub(super) robbed: BTreeSet<String>,
}

/// Whether the daemon asked for a change of anything; whether it got it is another matter.
pub(super) fn is_write(entry: &Entry) -> bool {
    entry.user == DAEMON && !entry.dry_run && matches!(entry.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
}

/// Writes that need no step (invariant 1): they change nothing that anybody runs on.
pub(super) fn is_exempt(entry: &Entry) -> bool {
    matches!(entry.resource, "leases" | "events" | "tokenreviews" | "subjectaccessreviews" | "selfsubjectaccessreviews")
}

impl View {
    pub(super) fn new(promises: Promises) -> Self {
        Self {
            promises,
            now_us: 0,
            lives: Vec::new(),
            pods: BTreeMap::new(),
            named: BTreeMap::new(),
            answers: Vec::new(),
            truth: BTreeMap::new(),
            lost_nodes: BTreeMap::new(),
            nodes: BTreeMap::new(),
            absent: BTreeMap::new(),
            pending: Vec::new(),
            disturbed_us: 0,
            clock_stepped: false,
            failed: BTreeMap::new(),
            robbed: BTreeSet::new(),
        }
    }

    /// Takes in a moment, before it is judged.
    pub(super) fn take(&mut self, moment: &Moment) {
        self.now_us = moment.time_us;
        match &moment.what {
            Happening::Phase(_) => self.disturbed_us = moment.time_us,
            Happening::Fault { kind, .. } => {
                self.disturbed_us = moment.time_us;
                self.clock_stepped |= *kind == "clock";
            }
            Happening::Began { life, .. } => {
                self.disturbed_us = moment.time_us;
                let began_us = moment.time_us;
                self.lives.push(Life { number: *life, began_us, ended_us: None, listed_us: None, last_list_us: None, forgets_us: None });
            }
            Happening::Ended { how, .. } => {
                if let Some(life) = self.lives.last_mut() {
                    life.ended_us = Some(moment.time_us);
                    life.forgets_us = life.forgets_us.or(Some(moment.time_us).filter(|_| *how != End::Stopped));
                }
            }
            Happening::Attempted { .. } => {
                if let Some(life) = self.lives.last_mut() {
                    life.forgets_us.get_or_insert(moment.time_us);
                }
            }
            Happening::Stored(stored) => self.stored(stored),
            Happening::Requested(entry) => self.requested(entry),
            Happening::Running { host, uid } => {
                let pod = self.pods.entry(uid.clone()).or_insert_with(|| Pod::unseen(uid, host));
                pod.running_us = Some(moment.time_us);
                pod.exited_us = None;
            }
            Happening::Exited { uid, .. } => {
                if let Some(pod) = self.pods.get_mut(uid) {
                    pod.exited(moment.time_us);
                }
            }
            Happening::Wanted(truth) => {
                let former = std::mem::take(&mut self.truth);
                let since = |app: &String, now: &AppTruth| former.get(app).filter(|(was, _)| was == now).map(|(_, since_us)| *since_us);
                self.truth =
                    truth.iter().map(|(app, now)| (app.clone(), (now.clone(), since(app, now).unwrap_or(moment.time_us)))).collect();
            }
            Happening::Answered { status, world, apps } => {
                if let Some(apps) = apps.as_ref().filter(|_| (200..300).contains(status) && *world == self.promises.world) {
                    self.answered(apps);
                }
            }
            Happening::Asked { what: GatewayAsk::Beat(reports), .. } => {
                let failed = reports.iter().filter(|report| report.state == "failed");
                self.failed.extend(failed.map(|report| (report.host.clone(), moment.time_us)));
            }
            Happening::Durable { .. } | Happening::Asked { .. } | Happening::AtRest(_) => {}
        }
    }

    /// Forgets what belonged to this moment alone, after it was judged.
    pub(super) fn settle(&mut self, moment: &Moment) {
        if matches!(moment.what, Happening::Requested(_)) {
            self.pending.clear();
        }
    }

    fn stored(&mut self, stored: &Stored) {
        if stored.resource == "nodes" {
            return self.node(stored);
        }
        if stored.namespace == self.promises.namespace && stored.resource == "pods" {
            self.pod(stored);
        }
        if stored.resource == "secrets" && stored.after.is_none() {
            self.robbed.insert(stored.name.clone());
        } else if stored.resource == "secrets" {
            self.robbed.remove(&stored.name);
        }
        self.pending.push(stored.clone());
    }

    fn node(&mut self, stored: &Stored) {
        let ready = stored.after.as_ref().is_some_and(|node| {
            let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
            conditions.filter(|one| one["type"] == "Ready").all(|one| one["status"] == "True")
        });
        self.nodes.insert(stored.name.clone(), ready);
        if ready {
            self.lost_nodes.remove(&stored.name);
        } else {
            self.lost_nodes.entry(stored.name.clone()).or_insert(self.now_us);
        }
    }

    fn pod(&mut self, stored: &Stored) {
        let Some(object) = stored.after.as_ref().or(stored.before.as_ref()) else { return };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let pod = self.pods.entry(uid.clone()).or_insert_with(|| Pod::unseen(&uid, &stored.name));
        if stored.after.is_some() {
            pod.seen(object, &self.promises, self.now_us);
            self.named.insert(stored.name.clone(), uid);
        } else {
            pod.gone_us = Some(self.now_us);
            self.named.retain(|_, held| *held != uid);
        }
    }

    /// Who did what was told just before.
    fn requested(&mut self, entry: &Entry) {
        if entry.user == DAEMON && entry.verb == "list" && entry.resource == "pods" && entry.code == 200 && is_heard(entry) {
            let (asked_us, now_us) = (entry.asked_us, entry.time_us);
            if let Some(life) = self.lives.last_mut().filter(|life| life.ended_us.is_none() && life.began_us <= asked_us) {
                life.listed_us.get_or_insert(now_us);
                life.last_list_us = Some(now_us);
            }
        }
        if entry.user == DAEMON && entry.resource == "secrets" && entry.verb == "delete" && entry.changed() {
            self.robbed.remove(&entry.name);
        }
        if entry.resource != "pods" || !entry.changed() {
            return;
        }
        for stored in self.pending.iter().filter(|stored| stored.resource == "pods" && stored.name == entry.name) {
            let object = stored.after.as_ref().or(stored.before.as_ref());
            let uid = object.and_then(|object| object["metadata"]["uid"].as_str()).unwrap_or_default();
            let Some(pod) = self.pods.get_mut(uid) else { continue };
            match entry.verb {
                // A pod is bound to its node by a create too.
                "create" if entry.subresource.is_empty() => pod.made_by.clone_from(&entry.user),
                "delete" => {
                    pod.deleted_by.get_or_insert_with(|| entry.user.clone());
                    if entry.user == DAEMON && entry.grace_s == Some(0) {
                        pod.removed_at_once_us.get_or_insert(entry.time_us);
                    }
                }
                _ => {}
            }
        }
    }

    fn answered(&mut self, apps: &BTreeMap<String, WantTold>) {
        let mut live = self.answers.last().map(|last| last.live.clone()).unwrap_or_default();
        let (after, after_mass) = self.promises.withdraw_after;
        let is_withdrawn = |absent: &Absent| absent.before_mass >= after || absent.in_row >= after_mass;
        for (app, want) in apps {
            self.absent.insert(app.clone(), Absent::default());
            if let Some(host) = want.live_host.as_ref().filter(|host| !host.is_empty()) {
                live.insert(app.clone(), host.clone());
            }
        }
        // Which apps were known, so that an answer misses most of them, only the daemon knows; that it names none is plain.
        let mass = apps.is_empty();
        for (_, absent) in self.absent.iter_mut().filter(|(app, _)| !apps.contains_key(*app)) {
            absent.any_mass |= mass;
            absent.in_row += 1;
            absent.before_mass += u32::from(!absent.any_mass);
            if self.now_us - absent.apart_us >= APART_US {
                absent.apart += 1;
                absent.apart_us = self.now_us;
            }
        }
        let surely = self.absent.iter().filter(|(_, absent)| absent.apart >= after_mass + FORGOTTEN);
        let surely_withdrawn = surely.map(|(app, _)| app.clone()).collect();
        let withdrawn: Vec<String> = self.absent.iter().filter(|(_, absent)| is_withdrawn(absent)).map(|(app, _)| app.clone()).collect();
        let life = self.lives.last().map_or(0, |life| life.number);
        self.answers.push(Answer { time_us: self.now_us, life, apps: apps.clone(), live, withdrawn, surely_withdrawn });
    }

    /// The answers that can have been the daemon's last word at `at_us`: the last one that it had for longer than `slack_us` and
    /// that is surely in the log when another life asks, and all that came after it and not after that.
    pub(super) fn last_words(&self, at_us: i64, slack_us: i64) -> &[Answer] {
        &self.answers[self.last_answers(at_us, slack_us)]
    }

    /// The same of one app: an answer that leaves it out says nothing of it until so many do that it is withdrawn, and which of them
    /// count only the daemon knows.
    pub(super) fn last_words_of(&self, app: &str, at_us: i64, slack_us: i64) -> &[Answer] {
        let Range { start, end } = self.last_answers(at_us, slack_us);
        let says = |answer: &Answer| answer.apps.contains_key(app) || answer.surely_withdrawn.iter().any(|name| name == app);
        let said = self.answers[..(start + 1).min(end)].iter().rposition(says).unwrap_or(0);
        &self.answers[said.min(start)..end]
    }

    fn last_answers(&self, at_us: i64, slack_us: i64) -> Range<usize> {
        let mut since = self.answers.partition_point(|answer| answer.time_us <= at_us.saturating_sub(slack_us));
        while self.answers[..since].last().is_some_and(|answer| self.may_be_forgotten(answer)) {
            since -= 1;
        }
        let until = self.answers.partition_point(|answer| answer.time_us <= at_us);
        since.saturating_sub(1).min(until)..until
    }

    /// Whether the life that got this answer may have ended before it was in the log.
    fn may_be_forgotten(&self, answer: &Answer) -> bool {
        let forgets_us = self.lives.iter().find(|life| life.number == answer.life).and_then(|life| life.forgets_us);
        forgets_us.is_some_and(|forgets_us| answer.time_us.saturating_add(RECORDED_US) > forgets_us)
    }

    /// The pod of that name that is there.
    pub(super) fn pod_named(&self, name: &str) -> Option<&Pod> {
        self.pods.get(self.named.get(name)?)
    }

    /// Every pod that ever had that name.
    pub(super) fn pods_of<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Pod> {
        self.pods.values().filter(move |pod| pod.name == host)
    }

    /// The app of a host, by its pods and by what the gateway says.
    pub(super) fn app_of(&self, host: &str) -> Option<String> {
        let of_pod = self.pods_of(host).find(|pod| !pod.app.is_empty()).map(|pod| pod.app.clone());
        of_pod.or_else(|| {
            let said = |answer: &Answer| answer.apps.iter().find(|(_, want)| want.host == host).map(|(app, _)| app.clone());
            self.answers.iter().rev().find_map(said)
        })
    }
}

/// Whether whoever asked got the whole answer.
pub(super) fn is_heard(entry: &Entry) -> bool {
    matches!(entry.fault, None | Some("delay" | "delay_after"))
}
