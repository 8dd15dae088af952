//! Makes things go wrong, and makes them good again.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::fault::{Fault, Fuse, Kind, Scheduled, Which};
use super::history::Happening;
use super::lives::Lives;
use super::plan::Plan;
use super::stage::{NAMESPACE, Stage};
use crate::sim::gateway::{Endpoint, Fault as GatewayFault};
use crate::sim::node::{Loss, Register};

/// What has to be made good again.
#[derive(Debug, Clone)]
pub(super) enum Undo {
    /// A rule of the API server's faults.
    Rule(u64),
    /// A node that is lost or shut down.
    Node(String),
    /// A process whose connection seems gone.
    Connect { host: String, uid: String },
    /// What was lit burns down now.
    Burn,
}

/// The faults of one trial as they happen.
pub(super) struct Weather {
    /// Kinds that happened to somebody.
    met: BTreeSet<Kind>,
    /// Rules of the API server's faults, each with its kind.
    rules: Vec<(u64, Kind)>,
    /// Nodes that are away.
    away: BTreeSet<String>,
    /// Objects of others that have names of ours: their kinds and names.
    squatters: BTreeSet<(&'static str, String)>,
}

impl Weather {
    pub(super) fn new() -> Self {
        Self { met: BTreeSet::new(), rules: Vec::new(), away: BTreeSet::new(), squatters: BTreeSet::new() }
    }

    /// Lets a fault begin; how it ends, if it does.
    pub(super) async fn begin(&mut self, stage: &Stage, plan: &Plan, lives: &mut Lives, scheduled: &Scheduled) -> Option<(Duration, Undo)> {
        let Scheduled { number, lasts, kind, fault, .. } = scheduled;
        stage.note(Happening::Fault { number: *number, kind: kind.name(), what: format!("{fault:?}"), begins: true });
        let target = |app: usize, which: Which| target(stage, plan, app, which);
        let mut happened = true;
        let undo = match fault {
            Fault::Requests { matching, skip, times, action } => {
                let rule = stage.api.faults().set(matching.clone(), *skip, *times, action.clone());
                self.rules.push((rule, *kind));
                happened = false;
                Some(Undo::Rule(rule))
            }
            Fault::Cut(plural, cut) => {
                happened = stage.api.open_watches(plural) > 1;
                stage.api.cut_watches(plural, *cut);
                None
            }
            Fault::Mute(plural) => {
                stage.api.mute_watches(plural);
                None
            }
            Fault::Repeat(plural) => {
                for object in stage.api.objects(plural, None) {
                    stage.api.send_watch_line(plural, &format!("{{\"type\":\"MODIFIED\",\"object\":{}}}", object.value()));
                }
                None
            }
            Fault::Line(plural, line) => {
                stage.api.send_watch_line(plural, line);
                None
            }
            Fault::Compact => {
                stage.api.compact();
                None
            }
            Fault::Skip(revisions) => {
                stage.api.skip_revisions(*revisions);
                None
            }
            Fault::Restart => {
                stage.api.restart();
                None
            }
            Fault::Exit { app, which, code } => {
                target(*app, *which).inspect(|host| stage.nodes.kill_app(host, *code));
                None
            }
            Fault::OutOfMemory { app, which } => {
                target(*app, *which).inspect(|host| stage.nodes.out_of_memory(host));
                None
            }
            Fault::Evict { app, which } => {
                target(*app, *which).inspect(|host| stage.nodes.evict(host));
                None
            }
            Fault::ShutDown { node, grace } => {
                stage.nodes.shut_down(node, *grace);
                None
            }
            Fault::Lose { node, dead, evict } => {
                if self.away.insert(node.clone()) {
                    stage.nodes.lose(node, if *dead { Loss::Dead } else { Loss::Unreachable }, *evict);
                    Some(Undo::Node(node.clone()))
                } else {
                    None
                }
            }
            Fault::Delete { app, which, grace_s } => {
                if let Some(host) = target(*app, *which) {
                    // Whether it is there, and whether the API server takes it, is not known here.
                    let _ = stage.nodes.delete_by_other(&host, *grace_s).await;
                }
                None
            }
            Fault::Remove { app, which } => {
                target(*app, *which).inspect(|host| stage.api.remove_raw("pods", NAMESPACE, host));
                None
            }
            Fault::RemoveSecret { app, which } => {
                target(*app, *which).inspect(|host| stage.api.remove_raw("secrets", NAMESPACE, &format!("{host}-env")));
                None
            }
            Fault::RemovePolicies => {
                for policy in stage.api.objects("networkpolicies", Some(NAMESPACE)) {
                    stage.api.remove_raw("networkpolicies", NAMESPACE, policy["metadata"]["name"].as_str().unwrap_or_default());
                }
                None
            }
            Fault::Gateway { endpoint, times, fault } => {
                stage.gateway.fail(*endpoint, *times, fault.clone());
                None
            }
            Fault::Stale { answers, times } => {
                happened = self.say_again(stage, lives, *answers, *times);
                None
            }
            Fault::Squat { app, secret } => {
                happened = self.squat(stage, plan, *app, *secret).is_some();
                None
            }
            Fault::Flap { app, which } => self.disconnect(stage, target(*app, *which)),
            Fault::Step(by_us) => {
                lives.step(*by_us);
                None
            }
            Fault::Disk(fault) => {
                lives.disk.fail(*fault);
                None
            }
            Fault::Stop { down } => {
                happened = lives.runs();
                lives.stop(stage, *down).await;
                None
            }
            Fault::Crash { fuse, unsynced, down } => {
                happened = lives.runs();
                lives.light(*fuse, *unsynced, *down);
                (*fuse != Fuse::Now).then_some(Undo::Burn)
            }
        };
        if happened {
            self.met.insert(*kind);
        }
        undo.map(|undo| (if matches!(undo, Undo::Burn) { Duration::from_secs(60) } else { *lasts }, undo))
    }

    /// Kinds that happened to somebody so far.
    pub(super) fn met(&self, stage: &Stage) -> BTreeSet<Kind> {
        let by_rules = self.rules.iter().filter(|(rule, _)| stage.api.faults().met_by(*rule) > 0).map(|(_, kind)| *kind);
        self.met.iter().copied().chain(by_rules).collect()
    }

    fn say_again(&self, stage: &Stage, lives: &Lives, answers: usize, times: u32) -> bool {
        let said = lives.heard().said(answers);
        let Some(said) = said else { return false };
        stage.gateway.fail(Endpoint::Heartbeat, times, GatewayFault::Body(said));
        times > 0
    }

    /// Somebody makes an object of the name that the app's next host will have, until faults stop; what is there already stays.
    fn squat(&mut self, stage: &Stage, plan: &Plan, app: usize, secret: bool) -> Option<()> {
        let mut next = stage.gateway.app(plan.apps.get(app)?)?;
        let host = next.deploy(next.release + 1, None);
        let (plural, name) = if secret { ("secrets", format!("{host}-env")) } else { ("pods", host) };
        if stage.api.object(plural, NAMESPACE, &name).is_some() {
            return None;
        }
        let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": {"app": "theirs"}});
        let mut object = json!({"apiVersion": "v1", "kind": if secret { "Secret" } else { "Pod" }, "metadata": metadata});
        if !secret {
            let container = json!({"name": "theirs", "image": "registry.example/theirs:1"});
            object["spec"] = json!({"containers": [container], "schedulerName": "theirs"});
            object["status"] = json!({"phase": "Pending"});
        }
        stage.api.put_raw(object);
        self.squatters.insert((plural, name));
        Some(())
    }

    fn disconnect(&self, stage: &Stage, host: Option<String>) -> Option<Undo> {
        let host = host?;
        let uid = stage.onlooker.running().keys().find(|(name, _)| *name == host).map(|(_, uid)| uid.clone())?;
        stage.gateway.lock().disconnect(&host, &uid);
        Some(Undo::Connect { host, uid })
    }

    /// Makes it good again.
    pub(super) fn end(&mut self, stage: &Stage, lives: &mut Lives, undo: Undo) {
        match undo {
            Undo::Rule(rule) => stage.api.faults().clear(rule),
            Undo::Node(node) => {
                self.away.remove(&node);
                stage.nodes.bring_back(&node);
            }
            Undo::Connect { host, uid } => {
                let register = stage.onlooker.running().get(&(host.clone(), uid.clone())).copied();
                if matches!(register, Some(Register::After(_))) {
                    stage.gateway.lock().connect(&host, &uid, Some(stage.clock.now_us()));
                }
            }
            Undo::Burn => lives.burn(),
        }
    }

    /// Makes everything good that is not yet.
    pub(super) fn clear(&mut self, stage: &Stage) {
        self.met = self.met(stage);
        self.rules.clear();
        stage.api.faults().clear_all();
        stage.gateway.heal();
        for (plural, name) in std::mem::take(&mut self.squatters) {
            stage.api.remove_raw(plural, NAMESPACE, &name);
        }
        for node in std::mem::take(&mut self.away) {
            stage.nodes.bring_back(&node);
        }
    }
}

/// The host that is meant, if there is one.
fn target(stage: &Stage, plan: &Plan, app: usize, which: Which) -> Option<String> {
    let app = stage.gateway.app(plan.apps.get(app)?)?;
    match which {
        Which::Wanted => Some(app.host).filter(|host| !host.is_empty()),
        Which::Live => app.live_host,
    }
}
