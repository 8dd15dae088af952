//! Verdicts in words for the people behind the gateway.

use crate::events::kinds::step::Refusal;
use crate::events::kinds::verdict::{FailedWhy, NeverStarted, Stage};

/// Why a host failed, with its last lines, in at most `max` characters: of the lines the end is kept, the cause always.
#[must_use]
pub fn why_failed(why: FailedWhy, lines: &str, max: usize) -> String {
    let cause = cause(why);
    let lines = lines.trim_end();
    if lines.is_empty() {
        return cause;
    }
    let room = max.saturating_sub(cause.chars().count() + 2);
    let skip = lines.chars().count().saturating_sub(room);
    let kept: String = lines.chars().skip(skip).collect();
    format!("{cause}:\n{kept}")
}

fn cause(why: FailedWhy) -> String {
    match why {
        FailedWhy::Exited => "the process ended before it was registered".to_owned(),
        FailedWhy::NeverRegistered => "nothing registered in time".to_owned(),
        FailedWhy::KeepsExiting => "the process keeps exiting and is not run again".to_owned(),
        FailedWhy::InstallFailed => "the install failed".to_owned(),
        FailedWhy::Stuck(stage) => format!("it did not get past {} in time", stage_words(stage)),
        FailedWhy::NeverStarted(NeverStarted::Image) => "its image cannot be pulled".to_owned(),
        FailedWhy::NeverStarted(NeverStarted::Config) => "its container cannot be started as configured".to_owned(),
        FailedWhy::NeverStarted(NeverStarted::Runtime) => "the platform's runtime cannot start it".to_owned(),
        FailedWhy::NeverStarted(NeverStarted::Unschedulable) => "no node takes it".to_owned(),
        FailedWhy::NeverStarted(NeverStarted::Quota) => "the platform's quota is used up".to_owned(),
        FailedWhy::NeverStarted(NeverStarted::Webhook) => "the platform's admission refuses it".to_owned(),
        FailedWhy::Refused(refusal) => refused(refusal).to_owned(),
    }
}

fn stage_words(stage: Stage) -> &'static str {
    match stage {
        Stage::Scheduling => "scheduling",
        Stage::Pull => "pulling its image",
        Stage::Install => "its install",
        Stage::Register => "registering",
        Stage::Serving => "serving",
        Stage::Terminating => "terminating",
    }
}

fn refused(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Invalid => "the cluster refuses its pod as invalid",
        Refusal::Forbidden => "the platform may not run it",
        Refusal::Quota => "the platform's quota is used up",
        Refusal::Policy => "the cluster's policy forbids its pod",
        Refusal::Webhook => "the platform's admission refuses it",
        Refusal::Namespace => "the platform's namespace is not there",
        Refusal::RuntimeClass => "the platform's runtime class is not there",
        Refusal::Foreign => "its name is taken by an object that is not ours",
        Refusal::Different => "its name is taken by another pod of ours",
        Refusal::Source => "its package cannot be used: missing, too large, or not what its digest says",
        Refusal::Environment => "its environment cannot be used: a name, a NUL, or its size",
        Refusal::NetworkPolicy => "the platform's network policy is not in place",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_and_the_end_of_the_lines_are_kept() {
        let why = why_failed(FailedWhy::Exited, &"x\n".repeat(2_000), 2_000);
        assert_eq!(why.chars().count(), 2_000);
        assert!(why.starts_with("the process ended before it was registered:\n"), "{why}");
        assert_eq!(why_failed(FailedWhy::InstallFailed, "", 2_000), "the install failed");
        assert_eq!(why_failed(FailedWhy::Exited, "ü\n", 2_000), "the process ended before it was registered:\nü");
    }
}
