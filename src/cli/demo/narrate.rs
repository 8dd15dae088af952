//! Records in sentences, as they come: what a person would say who watches.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::app::words::{Detail, why_failed};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::clock::Clock;
use crate::events::kinds::pod::{ContainerState, PodSeen};
use crate::events::kinds::step::{Outcome, Purpose, Step};
use crate::events::kinds::verdict::{EndCause, PodEnded, Verdict};
use crate::events::log::LogReader;
use crate::events::record::Event;
use crate::events::stored::Body;
use crate::ids::{HostName, Seq, Subject};

/// Follows a log and tells it.
pub(super) struct Narrator {
    clock: Clock,
    begun_us: i64,
    reader: Option<Arc<dyn LogReader>>,
    told: Seq,
    records: u64,
    by_kind: BTreeMap<&'static str, u64>,
    /// What was last said of a host's pod, so that it is said once.
    stages: BTreeMap<HostName, &'static str>,
}

impl Narrator {
    pub(super) fn new(clock: Clock) -> Self {
        let begun_us = clock.now_us();
        Self { clock, begun_us, reader: None, told: Seq::NONE, records: 0, by_kind: BTreeMap::new(), stages: BTreeMap::new() }
    }

    pub(super) fn follow(&mut self, reader: Arc<dyn LogReader>) {
        self.reader = Some(reader);
    }

    /// Lets go of the log.
    pub(super) fn leave(&mut self) {
        self.reader = None;
    }

    /// Says something that is in no record.
    pub(super) fn say(&self, text: &str) -> Result<(), CliError> {
        output::print(&format!("\n{text}\n"))?;
        Ok(())
    }

    /// Tells what is new.
    pub(super) fn tell(&mut self) -> Result<(), CliError> {
        let Some(reader) = self.reader.clone() else { return Ok(()) };
        let mut lines = String::new();
        let read = reader.scan(Seq(self.told.0 + 1), &mut |item| {
            if let Ok(stored) = item {
                self.told = stored.header.seq;
                self.records += 1;
                if let Body::Known(event) = &stored.body {
                    *self.by_kind.entry(event.kind().name()).or_default() += 1;
                    // An incarnation is told once, not for each subject that learns of it.
                    let again =
                        matches!((event, &stored.header.subject), (Event::IncarnationStarted(_), Subject::App(_) | Subject::Session(_)));
                    if let Some(sentence) = self.sentence(event).filter(|_| !again) {
                        let seconds = (stored.header.time_us - self.begun_us).max(0) / 100_000;
                        let subject = match &stored.header.subject {
                            Subject::App(app) => app.to_string(),
                            Subject::Session(id) => id.to_string(),
                            Subject::Daemon(_) => "wharf".to_owned(),
                        };
                        lines.push_str(&format!("{:>3}.{}s  {subject:<10} {sentence}\n", seconds / 10, seconds % 10));
                    }
                }
            }
            ControlFlow::Continue(())
        });
        read.map_err(|error| CliError::refused(error.to_string(), ""))?;
        output::print(&lines)?;
        Ok(())
    }

    /// How much there was.
    pub(super) fn summary(&self) -> String {
        let count = |kind: &str| self.by_kind.get(kind).copied().unwrap_or(0);
        let seconds = (self.clock.now_us() - self.begun_us) / 1_000_000;
        format!(
            "{} records in {seconds} s: {} wants, {} observations of pods, {} steps, {} verdicts, {} ends, {} API writes; every step names its cause.",
            self.records,
            count("WantSeen"),
            count("PodSeen"),
            count("StepIssued") + count("SessionStepIssued"),
            count("VerdictReached"),
            count("PodEnded"),
            count("ApiCalled"),
        )
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "of the closed list of kinds the other ones are no story")]
    fn sentence(&mut self, event: &Event) -> Option<String> {
        Some(match event {
            Event::IncarnationStarted(started) if started.number == 1 => "the daemon starts on an empty log".to_owned(),
            Event::IncarnationStarted(started) => {
                format!("the daemon starts again, for the {} time, from its log", ordinal(started.number))
            }
            Event::WantSeen(want) => {
                let live = want.live_host.as_ref().map_or_else(|| "nothing is live yet".to_owned(), |host| format!("{host} is live"));
                let registered = if want.registered { ", which is registered" } else { "" };
                let failed = if want.failed { ", which failed" } else { "" };
                format!("the gateway wants release {} as {}{registered}{failed}; {live}", want.release, want.host)
            }
            Event::WantMissing(_) => "the gateway does not name the app".to_owned(),
            Event::PodSeen(seen) => self.stage(seen)?,
            Event::PodEnded(ended) => ended_words(ended),
            Event::StepIssued(issued) => step_words(&issued.step, issued.purpose),
            Event::StepSettled(settled) => {
                let expected = matches!(settled.outcome, Outcome::Done | Outcome::AlreadySo | Outcome::Gone);
                return (!expected).then(|| format!("step {} came to: {:?}", settled.step, settled.outcome));
            }
            Event::StepRevoked(revoked) => format!("step {} is asked back ({})", revoked.step, revoked.rule),
            Event::VerdictReached(reached) => match reached.verdict {
                Verdict::Live => format!("{} serves: the gateway is asked to make it live", reached.host),
                Verdict::Failed(why) => format!("{} is reported failed: {}", reached.host, why_failed(why, &Detail::None, "", 200)),
            },
            Event::SessionAsked(asked) => format!("is asked for by {}, for the tenant {}", asked.by, asked.tenant),
            Event::SessionStepIssued(issued) => format!("-> {} {} ({})", issued.step.name(), issued.step.object(), issued.rule),
            Event::AlarmRaised(alarm) => format!("alarm: {}", alarm.name),
            Event::AlarmCleared(alarm) => format!("the alarm {} is over", alarm.name),
            _ => return None,
        })
    }

    fn stage(&mut self, seen: &PodSeen) -> Option<String> {
        let running = |state: &ContainerState| matches!(state, ContainerState::Running { .. });
        let stage = match (&seen.app.state, &seen.install.state) {
            _ if seen.deleting => "is being stopped",
            (ContainerState::Ended(_), _) => return None,
            (app, _) if running(app) => "runs",
            (_, install) if running(install) => "installs",
            _ if seen.node.is_empty() => "is there",
            _ => return None,
        };
        let before = self.stages.insert(seen.host.clone(), stage);
        (before != Some(stage)).then(|| format!("{} {stage}", seen.host))
    }
}

fn ended_words(ended: &PodEnded) -> String {
    let code = ended.exit_code.map(|code| format!(" with {code}")).unwrap_or_default();
    let counted = if ended.counted { "; it counts" } else { "; it does not count" };
    let what = match ended.cause {
        EndCause::AppExit => format!("exited{code}"),
        EndCause::Oom => "ran out of memory".to_owned(),
        EndCause::InstallFailed => format!("did not install: it ended{code}"),
        EndCause::Evicted => "was evicted".to_owned(),
        EndCause::DeletedByUs => return format!("{} is gone, as we asked", ended.host),
        EndCause::DeletedByOther => "was deleted by somebody else".to_owned(),
        EndCause::Vanished => "vanished while nobody watched".to_owned(),
        other @ (EndCause::Preempted
        | EndCause::NodeLost
        | EndCause::NodeShutdown
        | EndCause::NodeRefused
        | EndCause::Stuck(_)
        | EndCause::NeverStarted(_)) => format!("ended: {other:?}"),
    };
    format!("{} {what}{counted}", ended.host)
}

fn step_words(step: &Step, purpose: Purpose) -> String {
    let what = match purpose {
        Purpose::Start => "to start",
        Purpose::Revive { .. } => "to revive",
        Purpose::Stop => "to stop",
    };
    format!("-> {} {what} {}", step.name(), step.host())
}

fn ordinal(number: u64) -> String {
    match number {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        other => format!("{other}th"),
    }
}
