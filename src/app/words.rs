//! Verdicts in words for the people behind the gateway.

use crate::events::kinds::step::Refusal;
use crate::events::kinds::verdict::{EndCause, FailedWhy, NeverStarted, PodEnded, Stage};
use crate::ids::shown;

/// The most characters of the words that explain a refusal.
const EXPLAINED_CHARS: usize = 1_000;

/// What the log says of a verdict's cause.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Detail {
    /// Nothing.
    #[default]
    None,
    /// Why a step was refused, in the words of whoever refused it.
    Explained(String),
    /// The end that it rests on.
    Ended(PodEnded),
}

/// Why a host failed, with its last lines, in at most `max` characters, but for a cause that is longer: of the lines the end is kept.
#[must_use]
pub fn why_failed(why: FailedWhy, detail: &Detail, lines: &str, max: usize) -> String {
    let mut cause = cause(why);
    match detail {
        Detail::None => {}
        Detail::Explained(text) => cause = format!("{cause}: {}", shown(text.trim(), EXPLAINED_CHARS)),
        Detail::Ended(ended) => cause += &end(ended),
    }
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

/// What is known of an end: the raw code and reason, and what they may mean (cases B21).
fn end(ended: &PodEnded) -> String {
    let code = ended.exit_code.map(|code| format!("exit code {code}"));
    let signal = ended.signal.map(|signal| format!("signal {signal}"));
    let reason = (!ended.reason.is_empty()).then(|| shown(ended.reason.as_str(), 80));
    let memory = match (ended.cause, ended.reason.as_str()) {
        (EndCause::Oom, "OOMKilled") => Some("it used more memory than it may".to_owned()),
        (EndCause::Oom, _) => Some("this may be memory".to_owned()),
        _ => None,
    };
    let known: Vec<String> = [code, signal, reason, memory].into_iter().flatten().collect();
    if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) }
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
        Refusal::Source => "its package cannot be used",
        Refusal::Environment => "its environment cannot be used",
        Refusal::NetworkPolicy => "the platform's network policy is not in place",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{HostName, Uid, Word};

    fn ended(cause: EndCause, exit_code: Option<i32>, reason: &str) -> Detail {
        Detail::Ended(PodEnded {
            host: HostName::new("bot-r1").expect("a host"),
            uid: Uid::new("uid-1").expect("a uid"),
            container: Word::new("app"),
            restart: 0,
            cause,
            exit_code,
            signal: None,
            reason: Word::new(reason),
            stage: Stage::Register,
            node: Word::default(),
            at_us: 0,
            counted: true,
        })
    }

    #[test]
    fn the_cause_and_the_end_of_the_lines_are_kept() {
        let why = why_failed(FailedWhy::Exited, &Detail::None, &"x\n".repeat(2_000), 2_000);
        assert_eq!(why.chars().count(), 2_000);
        assert!(why.starts_with("the process ended before it was registered:\n"), "{why}");
        assert_eq!(why_failed(FailedWhy::InstallFailed, &Detail::None, "", 2_000), "the install failed");
        assert_eq!(why_failed(FailedWhy::Exited, &Detail::None, "ü\n", 2_000), "the process ended before it was registered:\nü");
    }

    #[test]
    fn b21_an_end_says_its_code_and_what_it_may_be() {
        let why = |detail: &Detail| why_failed(FailedWhy::KeepsExiting, detail, "", 2_000);
        let head = "the process keeps exiting and is not run again";
        assert_eq!(why(&ended(EndCause::AppExit, Some(3), "Error")), format!("{head} (exit code 3, Error)"));
        assert_eq!(
            why(&ended(EndCause::Oom, Some(137), "OOMKilled")),
            format!("{head} (exit code 137, OOMKilled, it used more memory than it may)")
        );
        assert_eq!(why(&ended(EndCause::Oom, Some(128), "Error")), format!("{head} (exit code 128, Error, this may be memory)"));
        assert_eq!(why(&ended(EndCause::Stuck(Stage::Pull), None, "ImagePullBackOff")), format!("{head} (ImagePullBackOff)"));
        assert_eq!(why(&ended(EndCause::Stuck(Stage::Pull), None, "")), head);
    }

    #[test]
    fn b24_a_refusal_says_who_refused_what_in_bounds() {
        let why = |text: &str| why_failed(FailedWhy::Refused(Refusal::Invalid), &Detail::Explained(text.to_owned()), "", 2_000);
        assert_eq!(why("spec: Invalid\u{1b}"), "the cluster refuses its pod as invalid: spec: Invalid\\u{1b}");
        assert!(why(&"x".repeat(4_096)).chars().count() < 1_100);
    }
}
