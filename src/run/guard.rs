//! Whether this log may act, by the Lease (DESIGN.md, "Being many"). Pure.

use crate::ids::{LogId, Seq};
use crate::kube::lease::Held;

/// What is ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ours<'a> {
    /// Our data folder, by the name that it gives itself.
    pub(super) holder: &'a str,
    /// Our log.
    pub(super) log: LogId,
    /// Its last record.
    pub(super) head: Seq,
    /// The log whose place ours took.
    pub(super) former: Option<LogId>,
}

/// What to do about a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judged {
    /// Write it and act.
    Take,
    /// It may be ours in a moment: another process of this log renewed it lately.
    Wait,
    /// It names another log than ours, or knows more of ours than we do.
    StandBy(String),
}

/// Judges a Lease. `unrenewed`: it has not changed for as long as it holds. `lost`: this process held it and another took it.
pub(super) fn judge(ours: Ours<'_>, held: &Held, unrenewed: bool, lost: bool) -> Judged {
    let is_ours = held.log == Some(ours.log);
    if is_ours && held.head > ours.head {
        let (known, here) = (held.head, ours.head);
        return Judged::StandBy(format!(
            "the lease knows record {known} of this log, which ends at {here}: the data folder is an older copy"
        ));
    }
    if !is_ours && (held.log.is_none() || held.log != ours.former) {
        let whose = held.log.map_or_else(|| "no log".to_owned(), |log| format!("log {log}"));
        return Judged::StandBy(format!("the lease names {whose}, this is log {}", ours.log));
    }
    if unrenewed || (held.holder == ours.holder && !lost) { Judged::Take } else { Judged::Wait }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(log: Option<u8>, head: u64, holder: &str) -> Held {
        let log = log.map(|byte| LogId([byte; 16]));
        Held { resource_version: "7".to_owned(), holder: holder.to_owned(), process: "p".to_owned(), log, head: Seq(head) }
    }

    #[test]
    fn only_the_log_that_the_lease_names_or_its_heir_acts() {
        let ours = Ours { holder: "folder", log: LogId([1; 16]), head: Seq(50), former: Some(LogId([2; 16])) };
        let stands_by = |held: &Held, unrenewed| matches!(judge(ours, held, unrenewed, false), Judged::StandBy(_));
        for unrenewed in [true, false] {
            assert_eq!(judge(ours, &held(Some(1), 50, "folder"), unrenewed, false), Judged::Take, "a restart does not wait");
            assert_eq!(judge(ours, &held(Some(2), 90, "folder"), unrenewed, false), Judged::Take, "it took that log's place");
            assert!(stands_by(&held(Some(1), 51, "folder"), unrenewed), "an older copy");
            assert!(stands_by(&held(Some(3), 1, "folder"), unrenewed), "another log");
            assert!(stands_by(&held(None, 0, "folder"), unrenewed), "no log");
        }
        for log in [1, 2] {
            assert_eq!(judge(ours, &held(Some(log), 50, "copy"), false, false), Judged::Wait, "another folder renews it");
            assert_eq!(judge(ours, &held(Some(log), 50, "copy"), true, false), Judged::Take, "another folder has let it go");
        }
        assert_eq!(judge(ours, &held(Some(1), 50, "folder"), false, true), Judged::Wait, "a copy of the folder took it from us");
        let orphan = Ours { former: None, ..ours };
        assert!(matches!(judge(orphan, &held(None, 0, "folder"), true, false), Judged::StandBy(_)), "none is not no former log");
    }
}
