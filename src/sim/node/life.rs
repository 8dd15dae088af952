//! One pod on its node, as a state machine: what it is doing, what is to be done next. Pure: time comes in, no request goes out.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::parts::{Action, Command, Container, End, Eviction, Stage};
use super::script::{Pull, Run, Schedule, Script, Start};

/// Exit code of a process that was killed.
const KILLED: i32 = 137;
/// Between the first two tries to pull an image; doubled with each.
const PULL_RETRY: Duration = Duration::from_secs(10);
/// The most between two tries.
const PULL_RETRY_MAX: Duration = Duration::from_secs(300);
/// How long an error is shown before the back-off is.
const PULL_ERROR: Duration = Duration::from_secs(2);

/// One pod's life.
#[derive(Debug, Clone)]
pub struct Life {
    pub(super) script: Script,
    pub(super) stage: Stage,
    pub(super) since_us: i64,
    pub(super) inits: Vec<(String, Container)>,
    pub(super) mains: Vec<(String, Container)>,
    pub(super) started_us: Option<i64>,
    pub(super) eviction: Option<Eviction>,
    pub(super) unschedulable: Option<String>,
    /// Condition type to status and time of its last change.
    pub(super) conditions: BTreeMap<&'static str, (bool, i64)>,
    next_us: Option<i64>,
    /// When TERM takes effect or KILL comes, whichever is first, and with what exit code.
    dying: Option<(i64, i32)>,
    kill_us: Option<i64>,
    deleted: bool,
    publish: bool,
    volumes_ready: bool,
    pulls: u32,
    lines: Vec<String>,
}

impl Life {
    /// A pod that is first seen at `now_us`.
    #[must_use]
    pub fn new(pod: &Value, script: Script, now_us: i64) -> Self {
        let names = |kind: &str| -> Vec<(String, Container)> {
            let containers = pod["spec"][kind].as_array().into_iter().flatten();
            containers.map(|one| (one["name"].as_str().unwrap_or_default().to_owned(), waiting("PodInitializing"))).collect()
        };
        let (inits, mut mains) = (names("initContainers"), names("containers"));
        if inits.is_empty() {
            for (_, main) in &mut mains {
                *main = waiting("ContainerCreating");
            }
        }
        let mut life = Self {
            script,
            stage: Stage::Unscheduled,
            since_us: now_us,
            inits,
            mains,
            started_us: None,
            eviction: None,
            unschedulable: None,
            conditions: BTreeMap::new(),
            next_us: None,
            dying: None,
            kill_us: None,
            deleted: false,
            publish: false,
            volumes_ready: false,
            pulls: 0,
            lines: Vec::new(),
        };
        if let Schedule::After(after) = life.script.schedule {
            life.next_us = Some(now_us + micros(after));
        } else if let Schedule::Never(why) = &life.script.schedule {
            life.unschedulable = Some(why.clone());
            life.publish = true;
        }
        life
    }

    /// What to do now; `None` until [`Life::due_us`] or a command.
    #[must_use]
    pub fn action(&self, now_us: i64) -> Option<Action> {
        if self.publish {
            return Some(Action::Publish);
        }
        let due = self.next_us.is_some_and(|next| next <= now_us);
        match self.stage {
            Stage::Unscheduled => (due && self.script_schedules()).then_some(Action::Bind),
            Stage::Volumes => (!self.volumes_ready && !self.deleted).then_some(Action::CheckVolumes),
            Stage::Ended => self.deleted.then_some(Action::Remove),
            // These wait for time.
            Stage::Pulling | Stage::Installing(_) | Stage::Starting | Stage::Running | Stage::Ending => None,
        }
    }

    fn script_schedules(&self) -> bool {
        matches!(self.script.schedule, Schedule::After(_))
    }

    /// When to look again, microseconds.
    #[must_use]
    pub fn due_us(&self) -> Option<i64> {
        let dying = self.dying.map(|(at, _)| at);
        match (self.next_us, dying) {
            (Some(next), Some(dying)) => Some(next.min(dying)),
            (next, dying) => next.or(dying),
        }
    }

    /// Whether the app runs.
    #[must_use]
    pub fn app_runs(&self) -> bool {
        matches!(self.mains.first(), Some((_, Container::Running(_))))
    }

    /// Where the pod is.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// No node takes it, for now.
    pub fn not_schedulable(&mut self, why: &str, again_us: i64) {
        self.publish = self.unschedulable.as_deref() != Some(why);
        self.unschedulable = Some(why.to_owned());
        self.next_us = Some(again_us);
    }

    /// It has its node.
    pub fn bound(&mut self, now_us: i64) {
        if self.stage != Stage::Unscheduled {
            return;
        }
        self.unschedulable = None;
        self.conditions.insert("PodScheduled", (true, now_us));
        self.started_us = Some(now_us);
        if let Pull::Refused(reason, message) = &self.script.pull {
            let (reason, message) = (reason.clone(), message.clone());
            self.eviction = Some(Eviction { reason, message, disruption: None, grace: Duration::ZERO });
            self.mains.clear();
            self.inits.clear();
            self.go(Stage::Ended, now_us, None);
        } else {
            self.go(Stage::Volumes, now_us, None);
        }
    }

    /// Its Secrets are there.
    pub fn volumes_there(&mut self, now_us: i64) {
        if self.stage == Stage::Volumes {
            self.volumes_ready = true;
            let after = match self.script.pull {
                Pull::Takes(after) => Some(after),
                Pull::BackOff => Some(PULL_ERROR),
                Pull::InvalidImageName | Pull::ConfigError(_) => Some(Duration::ZERO),
                Pull::Stuck | Pull::Refused(..) => None,
            };
            let publish = self.publish;
            self.go(Stage::Pulling, now_us, after);
            // Nothing of it shows yet.
            self.publish = publish;
        }
    }

    /// The status was taken.
    pub fn published(&mut self, now_us: i64) {
        self.publish = false;
        if self.stage == Stage::Ending {
            self.go(Stage::Ended, now_us, None);
        }
    }

    fn go(&mut self, stage: Stage, now_us: i64, after: Option<Duration>) {
        self.stage = stage;
        self.since_us = now_us;
        self.next_us = after.map(|after| now_us + micros(after));
        self.publish = true;
    }

    /// Lets one thing happen that is due at `now_us`. Returns whether there was one.
    pub fn advance(&mut self, now_us: i64) -> bool {
        if let Some((_, exit_code)) = self.dying.filter(|(at, _)| *at <= now_us) {
            self.end_processes(now_us, exit_code, None, None);
            return true;
        }
        if self.next_us.is_none_or(|next| next > now_us) {
            return false;
        }
        match self.stage {
            Stage::Pulling => self.pulled(now_us),
            Stage::Installing(index) => self.installed(index, now_us),
            Stage::Starting => self.start(now_us),
            Stage::Running => {
                let run = self.script.app.clone();
                self.end_processes(now_us, run.exit_code, run.reason, run.message);
            }
            // These wait for an action, not for time.
            Stage::Unscheduled | Stage::Volumes | Stage::Ending | Stage::Ended => return false,
        }
        true
    }

    fn pulled(&mut self, now_us: i64) {
        let failed = match &self.script.pull {
            Pull::Takes(_) | Pull::Stuck | Pull::Refused(..) => None,
            Pull::InvalidImageName => {
                let why = "Failed to apply default image tag \"\": couldn't parse image name \"\": invalid reference format";
                Some(("InvalidImageName", why.to_owned(), None))
            }
            Pull::ConfigError(why) => Some(("CreateContainerConfigError", why.clone(), None)),
            Pull::BackOff => {
                let error = "failed to pull and unpack image: failed to resolve reference: dial tcp: connect: connection refused";
                if self.first_waiting().is_some_and(|reason| reason == "ErrImagePull") {
                    self.pulls += 1;
                    let pause = PULL_RETRY.saturating_mul(1 << (self.pulls - 1).min(8)).min(PULL_RETRY_MAX);
                    Some(("ImagePullBackOff", format!("Back-off pulling image: ErrImagePull: {error}"), Some(pause)))
                } else {
                    Some(("ErrImagePull", error.to_owned(), Some(PULL_ERROR)))
                }
            }
        };
        let Some((reason, message, again)) = failed else {
            self.next_container(0, now_us);
            return;
        };
        let first = if self.inits.is_empty() { self.mains.first_mut() } else { self.inits.first_mut() };
        if let Some((_, container)) = first {
            *container = Container::Waiting(reason.to_owned(), Some(message));
        }
        self.go(Stage::Pulling, now_us, again);
    }

    fn first_waiting(&self) -> Option<&str> {
        match self.inits.first().or(self.mains.first()) {
            Some((_, Container::Waiting(reason, _))) => Some(reason),
            _ => None,
        }
    }

    fn next_container(&mut self, index: usize, now_us: i64) {
        if let Some((_, init)) = self.inits.get_mut(index) {
            *init = Container::Running(now_us);
            self.go(Stage::Installing(index), now_us, self.script.install.lasts);
        } else {
            let after = match self.script.start {
                Start::Takes(after) => after,
                Start::Error(_) => Duration::ZERO,
            };
            self.go(Stage::Starting, now_us, Some(after));
        }
    }

    fn installed(&mut self, index: usize, now_us: i64) {
        let run = self.script.install.clone();
        if let Some((_, init)) = self.inits.get_mut(index) {
            end(init, now_us, run.exit_code, run.reason, run.message);
        }
        if run.exit_code == 0 {
            self.next_container(index + 1, now_us);
        } else {
            self.go(Stage::Ending, now_us, None);
        }
    }

    fn start(&mut self, now_us: i64) {
        if let Start::Error(message) = self.script.start.clone() {
            for (_, main) in &mut self.mains {
                let reason = "StartError".to_owned();
                *main =
                    Container::Ended(End { exit_code: 128, reason, message: Some(message.clone()), started_us: 0, finished_us: now_us });
            }
            self.go(Stage::Ending, now_us, None);
            return;
        }
        for (_, main) in &mut self.mains {
            *main = Container::Running(now_us);
        }
        self.go(Stage::Running, now_us, self.script.app.lasts);
    }

    fn end_processes(&mut self, now_us: i64, exit_code: i32, reason: Option<String>, message: Option<String>) {
        for (_, container) in self.inits.iter_mut().chain(&mut self.mains) {
            if matches!(container, Container::Running(_)) {
                end(container, now_us, exit_code, reason.clone(), message.clone());
            }
        }
        self.dying = None;
        // What is ended on request is seen ended at once; what ends by itself is first seen without its phase.
        let asked = self.deleted || self.eviction.is_some();
        self.go(if asked { Stage::Ended } else { Stage::Ending }, now_us, None);
    }

    /// Takes a command.
    pub fn command(&mut self, command: Command, now_us: i64) {
        match command {
            Command::Delete(grace) => {
                self.deleted = true;
                self.terminate(grace, now_us);
            }
            Command::Evict(eviction) if self.stage < Stage::Ending && self.eviction.is_none() => {
                let grace = eviction.grace;
                self.eviction = Some(eviction);
                self.terminate(grace, now_us);
            }
            Command::Kill(exit_code, reason) if self.process().is_some() => self.end_processes(now_us, exit_code, reason, None),
            Command::Crash if self.stage > Stage::Unscheduled && self.stage < Stage::Ending => {
                self.end_processes(now_us, 255, Some("Unknown".to_owned()), None);
            }
            Command::Print(line) => self.lines.push(line),
            // Nothing is left that could be killed or evicted.
            Command::Evict(_) | Command::Kill(..) | Command::Crash => {}
        }
    }

    /// The process that TERM would reach.
    fn process(&self) -> Option<&Run> {
        match self.stage {
            Stage::Installing(_) => Some(&self.script.install),
            Stage::Running => Some(&self.script.app),
            Stage::Unscheduled | Stage::Volumes | Stage::Pulling | Stage::Starting | Stage::Ending | Stage::Ended => None,
        }
    }

    fn terminate(&mut self, grace: Duration, now_us: i64) {
        let kill_us = (now_us + micros(grace)).min(self.kill_us.unwrap_or(i64::MAX));
        let first = self.kill_us.is_none();
        self.kill_us = Some(kill_us);
        match self.process() {
            Some(run) => {
                let by_term = run.term_after.map(|after| (now_us + micros(after), run.term_exit_code)).filter(|_| first);
                let soonest = self.dying.or(by_term).filter(|(at, _)| *at <= kill_us);
                self.dying = Some(soonest.unwrap_or((kill_us, KILLED)));
            }
            None if self.stage < Stage::Ending => self.end_processes(now_us, KILLED, None, None),
            None => {}
        }
    }

    /// Whether the phase is decided by an eviction: not when the app ended well on TERM.
    #[must_use]
    pub(super) fn ended_well(&self) -> bool {
        let ended_well = |container: &Container| matches!(container, Container::Ended(end) if end.exit_code == 0);
        !self.mains.is_empty() && self.inits.iter().chain(&self.mains).all(|(_, container)| ended_well(container))
    }

    /// What a container has printed; `None` when it has not started.
    #[must_use]
    pub fn output(&self, name: &str) -> Option<String> {
        let find = |containers: &[(String, Container)]| containers.iter().find(|(known, _)| known == name).map(|(_, one)| one.clone());
        let (container, run, printed) = match find(&self.inits) {
            Some(container) => (container, &self.script.install, &[][..]),
            None => (find(&self.mains)?, &self.script.app, self.lines.as_slice()),
        };
        let last: &[String] = match &container {
            Container::Waiting(..) => return None,
            Container::Ended(end) if end.exit_code == run.exit_code && run.lasts.is_some() => &run.last_lines,
            Container::Running(_) | Container::Ended(_) => &[],
        };
        Some(run.first_lines.iter().chain(printed).chain(last).map(|line| format!("{line}\n")).collect())
    }

    /// The names of all containers.
    pub fn containers(&self) -> impl Iterator<Item = (&str, &Container)> {
        self.inits.iter().chain(&self.mains).map(|(name, container)| (name.as_str(), container))
    }
}

fn waiting(reason: &str) -> Container {
    Container::Waiting(reason.to_owned(), None)
}

fn end(container: &mut Container, now_us: i64, exit_code: i32, reason: Option<String>, message: Option<String>) {
    let started_us = if let Container::Running(since_us) = container { *since_us } else { now_us };
    let by_code = if exit_code == 0 { "Completed" } else { "Error" };
    let reason = reason.unwrap_or_else(|| by_code.to_owned());
    *container = Container::Ended(End { exit_code, reason, message, started_us, finished_us: now_us });
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}
