//! The task of one pod: carries out what its life asks for, tells the gateway's hooks, keeps its log.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::life::Life;
use super::log_book::LogBook;
use super::parts::{Action, Command, Container};
use super::requests::{Failed, Requests};
use super::roster::Roster;
use super::script::{Register, Script};
use super::status::{Addresses, patch};
use crate::clock::Clock;
use crate::sim::api::logs::{LogKey, LogRead};

/// Before a failed request is sent again.
const RETRY: Duration = Duration::from_secs(1);
/// Before a missing Secret or node is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Who hears of apps that run.
pub trait AppHooks: Send + Sync {
    /// The app of this host and pod uid runs; it registers as its script says.
    fn app_running(&self, host: &str, uid: &str, register: Register);
    /// It runs no more.
    fn app_ended(&self, host: &str, uid: &str);
}

/// What all pods of a fleet share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) requests: Requests,
    pub(super) clock: Clock,
    pub(super) roster: Arc<Mutex<Roster>>,
    pub(super) logs: Arc<LogBook>,
    /// The port of the kubelet that serves the logs.
    pub(super) endpoint: Option<u16>,
    pub(super) hooks: Arc<dyn AppHooks>,
}

/// What a pod's task is told.
#[derive(Debug, Clone)]
pub(super) enum Told {
    /// The object as it is now.
    Seen(Arc<Value>),
    /// The object is gone.
    Vanished,
    /// A test's or the node's doing.
    Command(Command),
    /// The node is cut off; its processes go on or not.
    Lost { dead: bool },
    /// The node is back.
    Back,
}

/// One pod's task.
pub(super) struct Driver {
    shared: Shared,
    pod: Arc<Value>,
    life: Life,
    lost: bool,
    /// The object is gone, the process goes on.
    orphan: bool,
    unseen: Option<Arc<Value>>,
    ran: bool,
    register: Register,
    wait_until_us: i64,
    told_grace_s: Option<i64>,
}

impl Driver {
    pub(super) fn new(shared: Shared, pod: Arc<Value>, script: Script) -> Self {
        let now_us = shared.clock.now_us();
        let register = script.register;
        let life = Life::new(&pod, script, now_us);
        Self { shared, pod, life, lost: false, orphan: false, unseen: None, ran: false, register, wait_until_us: 0, told_grace_s: None }
    }

    /// Drives the pod until its object is gone.
    pub(super) async fn run(mut self, mut told: mpsc::UnboundedReceiver<Told>) {
        let first = self.pod.clone();
        let mut goes_on = self.hear(Told::Seen(first));
        while goes_on {
            let now_us = self.shared.clock.now_us();
            while self.life.advance(now_us) {}
            self.after_change();
            let action = self.life.action(now_us).filter(|_| !self.lost && self.wait_until_us <= now_us);
            if let Some(action) = action {
                goes_on = self.act(action).await;
                continue;
            }
            let pending = self.life.action(now_us).is_some() && !self.lost;
            let retry = pending.then_some(self.wait_until_us);
            let wake_us = [self.life.due_us().filter(|due| *due > now_us), retry].into_iter().flatten().min();
            tokio::select! {
                biased;
                next = told.recv() => goes_on = next.is_some_and(|next| self.hear(next)),
                () = self.shared.clock.sleep_until(wake_us.unwrap_or_default()), if wake_us.is_some() => {}
            }
        }
        self.leave();
    }

    /// Takes in what it is told. Returns whether there is still a pod.
    fn hear(&mut self, told: Told) -> bool {
        let now_us = self.shared.clock.now_us();
        match told {
            // A kubelet that is cut off learns of it when it is back.
            Told::Seen(pod) if self.lost => self.unseen = Some(pod),
            Told::Seen(pod) => self.see(pod, now_us),
            // The kubelet ends what has no object; one that is cut off does not know.
            Told::Vanished => {
                self.orphan = true;
                return self.lost && self.life.app_runs();
            }
            Told::Command(command) => self.life.command(command, now_us),
            Told::Lost { dead } => {
                self.lost = true;
                if dead {
                    self.life.command(Command::Crash, now_us);
                }
            }
            Told::Back => {
                self.lost = false;
                if let Some(pod) = self.unseen.take() {
                    self.see(pod, now_us);
                }
                return !self.orphan;
            }
        }
        true
    }

    fn see(&mut self, pod: Arc<Value>, now_us: i64) {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if !node.is_empty() {
            self.life.bound(now_us);
        }
        let grace_s = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
        if grace_s.is_some() && grace_s != self.told_grace_s {
            self.told_grace_s = grace_s;
            let grace = Duration::from_secs(u64::try_from(grace_s.unwrap_or(0)).unwrap_or(0));
            self.life.command(Command::Delete(grace), now_us);
        }
        self.pod = pod;
    }

    async fn act(&mut self, action: Action) -> bool {
        let done = match action {
            Action::Bind => self.bind().await,
            Action::CheckVolumes => self.check_volumes().await,
            Action::Publish => self.publish().await,
            Action::Remove => match self.shared.requests.delete(&self.path(""), &self.pod["metadata"]["uid"], 0).await {
                Ok(_) => return false,
                Err(failed) => Err(failed),
            },
        };
        match done {
            Ok(()) => true,
            Err(Failed::Gone(_)) => false,
            Err(Failed::Conflict(why) | Failed::Retry(why)) => {
                tracing::debug!(pod = self.name(), why, "node's request failed");
                self.wait_until_us = self.shared.clock.now_us() + micros(RETRY);
                // A conflict may mean that another of the name is there.
                self.is_still_there().await
            }
        }
    }

    async fn is_still_there(&self) -> bool {
        match self.shared.requests.get(&self.path("")).await {
            Ok(pod) => pod["metadata"]["uid"] == self.pod["metadata"]["uid"],
            Err(Failed::Gone(_)) => false,
            Err(Failed::Conflict(_) | Failed::Retry(_)) => true,
        }
    }

    async fn bind(&mut self) -> Result<(), Failed> {
        let picked = self.roster().pick();
        let Some(node) = picked else {
            let again_us = self.shared.clock.now_us() + micros(LOOK_AGAIN);
            let count = self.roster().len();
            let why = format!("0/{count} nodes are available: {count} node(s) had untolerated taint(s).");
            self.life.not_schedulable(&why, again_us);
            return Ok(());
        };
        let metadata = json!({"name": self.name(), "uid": self.pod["metadata"]["uid"]});
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target});
        if let Err(failed) = self.shared.requests.post(&self.path("/binding"), &binding).await {
            self.roster().left(&node);
            return Err(failed);
        }
        let mut pod = Value::clone(&self.pod);
        pod["spec"]["nodeName"] = json!(node);
        self.pod = Arc::new(pod);
        self.life.bound(self.shared.clock.now_us());
        Ok(())
    }

    /// A kubelet starts nothing before every Secret that is mounted is there.
    async fn check_volumes(&mut self) -> Result<(), Failed> {
        let volumes = self.pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        let namespace = self.pod["metadata"]["namespace"].as_str().unwrap_or_default();
        for secret in volumes.iter().filter_map(|volume| volume["secret"]["secretName"].as_str()) {
            match self.shared.requests.get(&format!("/api/v1/namespaces/{namespace}/secrets/{secret}")).await {
                Ok(_) => {}
                Err(Failed::Gone(_)) => {
                    self.wait_until_us = self.shared.clock.now_us() + micros(LOOK_AGAIN);
                    return Ok(());
                }
                Err(failed) => return Err(failed),
            }
        }
        self.life.volumes_there(self.shared.clock.now_us());
        Ok(())
    }

    async fn publish(&mut self) -> Result<(), Failed> {
        let node = self.pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let addresses = Addresses { host: self.roster().address(node), pod: pod_address(&self.pod) };
        let body = patch(&mut self.life, &self.pod, &addresses, self.shared.clock.now_us());
        self.shared.requests.patch(&self.path("/status"), &body).await?;
        self.life.published(self.shared.clock.now_us());
        Ok(())
    }

    /// After every change: the hooks at the app's start and end, and the log.
    fn after_change(&mut self) {
        let runs = self.life.app_runs();
        if runs != self.ran {
            self.ran = runs;
            if runs {
                self.shared.hooks.app_running(self.name(), self.uid(), self.register);
            } else {
                self.shared.hooks.app_ended(self.name(), self.uid());
            }
        }
        for (name, container) in self.life.containers() {
            let read = match (self.lost, self.life.output(name), container) {
                (true, _, _) => LogRead::Unreachable,
                (false, Some(text), _) => LogRead::Text(text),
                (false, None, Container::Waiting(reason, _)) => LogRead::Waiting(reason.clone()),
                (false, None, _) => LogRead::Text(String::new()),
            };
            self.shared.logs.set(self.log_key(name), read);
        }
    }

    fn leave(&mut self) {
        if self.ran {
            self.shared.hooks.app_ended(self.name(), self.uid());
        }
        for (name, _) in self.life.containers() {
            self.shared.logs.forget(&self.log_key(name));
        }
        if let Some(node) = self.pod["spec"]["nodeName"].as_str() {
            self.roster().left(node);
        }
    }

    fn log_key(&self, container: &str) -> LogKey {
        let text = |field: &str| self.pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        LogKey { namespace: text("namespace"), pod: text("name"), uid: text("uid"), container: container.to_owned() }
    }

    fn roster(&self) -> std::sync::MutexGuard<'_, Roster> {
        self.shared.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self) -> &str {
        self.pod["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.pod["metadata"]["uid"].as_str().unwrap_or_default()
    }

    fn path(&self, tail: &str) -> String {
        let namespace = self.pod["metadata"]["namespace"].as_str().unwrap_or_default();
        format!("/api/v1/namespaces/{namespace}/pods/{}{tail}", self.name())
    }
}

/// An address made of the pod's uid: the same for the same pod.
fn pod_address(pod: &Value) -> String {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
    let sum = uid.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    format!("10.88.{}.{}", (sum >> 8) & 0xff, 1 + (sum & 0x7f))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}
