//! The persisted vocabulary: every event kind with its number, its version, and whether it decides or informs. Only grows.
//!
//! A number is never given twice and a released payload struct is never edited: a change is a new version beside the old one,
//! with a pure conversion from old to new (docs/log-format.md). Who decides what a kind means is `app`, never this folder.

use super::kinds::{carried, daemon, operator, pod, session, session_policy, step, tail, verdict, want};
use crate::ids::{Seq, Subject};

/// Which part an event plays in a reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A fact from outside, folded into the state before planning.
    Input,
    /// What the plan concluded: compared by `wharf verify` with what planning again gives.
    Decision,
    /// Told for the reader alone: neither fold nor plan looks at it.
    Note,
}

/// Bit 15 of a kind number: set when the record _decides_ (fold or plan read it), clear when it only _informs_.
pub const DECIDES: u16 = 0x8000;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident($payload:ty) = $number:literal v $version:literal, $role:ident;)*) => {
        /// One fact, in the past tense.
        #[expect(clippy::large_enum_variant, reason = "the largest, PodSeen, is also the most frequent")]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Event {
            $($(#[$doc])* $name($payload),)*
        }

        /// What kind a record is of; the discriminant is its number in the log without the top bit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            /// Every kind of this build, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The kind's name as shown everywhere, for example `PodSeen`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The version in which this build writes the payload.
            #[must_use]
            pub fn version(self) -> u16 {
                match self { $(Self::$name => $version,)* }
            }

            /// The part it plays in a reaction.
            #[must_use]
            pub fn role(self) -> Role {
                match self { $(Self::$name => Role::$role,)* }
            }
        }

        impl Event {
            /// The event's kind.
            #[must_use]
            pub fn kind(&self) -> Kind {
                match self { $(Self::$name(_) => Kind::$name,)* }
            }
        }

        /// Calls `$visit!` with every `name(payload) = number v version`: how `codec` learns which struct a kind has.
        macro_rules! for_each_event {
            ($visit:ident) => { $visit! { $($name($payload) = $number v $version;)* } };
        }
        pub(super) use for_each_event;
    };
}

events! {
    /// A log began: the first record of a log id.
    LogRestarted(daemon::LogRestarted) = 1 v 1, Input;
    /// A life of the process began; written to each subject with its next reaction.
    IncarnationStarted(daemon::IncarnationStarted) = 2 v 1, Input;
    /// A life of the process ended in order.
    IncarnationStopped(daemon::IncarnationStopped) = 3 v 1, Note;
    /// The settings that the following reactions are decided under.
    SettingsInForce(daemon::SettingsInForce) = 4 v 1, Input;
    /// The wall clock was stepped; log time went on.
    ClockStepped(daemon::ClockStepped) = 5 v 1, Note;
    /// Nobody watched for a while, and why; a list follows.
    WatchLost(daemon::WatchLost) = 6 v 1, Note;
    /// A complete, consistent list of the cluster was taken; what it did not name is gone.
    Listed(daemon::Listed) = 7 v 1, Input;
    /// A node's condition, as far as a subject with pods on it is concerned.
    NodeSeen(pod::NodeSeen) = 8 v 1, Input;
    /// A pod as a list or the watch showed it.
    PodSeen(pod::PodSeen) = 9 v 1, Input;
    /// A pod's uid is gone for good.
    PodGone(pod::PodGone) = 10 v 1, Input;
    /// A Secret of ours as a list or a write showed it: metadata alone.
    SecretSeen(pod::SecretSeen) = 11 v 1, Input;
    /// A Secret of ours is not there.
    SecretGone(pod::SecretGone) = 12 v 1, Input;
    /// What the gateway says of the app, when it changed.
    WantSeen(want::WantSeen) = 13 v 1, Input;
    /// A good answer named the app as before: the first of an incarnation, or one that was waited for.
    WantConfirmed(want::WantConfirmed) = 14 v 1, Input;
    /// A counted answer did not name the app.
    WantMissing(want::WantMissing) = 15 v 1, Input;
    /// A want that could not be believed: it names the app all the same.
    WantRefused(want::WantRefused) = 16 v 1, Input;
    /// What was concluded of a host.
    VerdictReached(verdict::VerdictReached) = 17 v 1, Decision;
    /// A pod's end, with its cause.
    PodEnded(verdict::PodEnded) = 18 v 1, Decision;
    /// Something that a person should look at began.
    AlarmRaised(verdict::AlarmRaised) = 19 v 1, Decision;
    /// It ended.
    AlarmCleared(verdict::AlarmCleared) = 20 v 1, Decision;
    /// An effect on the cluster was decided; nothing is sent before this is durable.
    StepIssued(step::StepIssued) = 21 v 1, Decision;
    /// What became of a step.
    StepSettled(step::StepSettled) = 22 v 1, Input;
    /// A step was asked back while it was still unsent.
    StepRevoked(step::StepRevoked) = 23 v 1, Decision;
    /// A step was decided and not sent, because the daemon may not act.
    StepWithheld(step::StepWithheld) = 24 v 1, Input;
    /// One attempt of a mutating API call.
    ApiCalled(step::ApiCalled) = 25 v 1, Note;
    /// The server's words about a refused step.
    StepExplained(step::StepExplained) = 26 v 1, Note;
    /// The last lines of a container were asked for.
    TailAsked(tail::TailAsked) = 27 v 1, Decision;
    /// They were read, redacted and kept.
    TailKept(tail::TailKept) = 28 v 1, Input;
    /// They could not be had.
    TailUnavailable(tail::TailUnavailable) = 29 v 1, Input;
    /// A part of a kept tail.
    TailText(tail::TailText) = 30 v 1, Note;
    /// A container's termination message.
    MessageText(tail::MessageText) = 31 v 1, Note;
    /// An operator stopped acting, on everything or on one subject.
    Frozen(operator::Frozen) = 32 v 1, Input;
    /// An operator let it act again.
    Thawed(operator::Thawed) = 33 v 1, Input;
    /// An operator asked to try a failed release again.
    RetryAsked(operator::RetryAsked) = 34 v 1, Input;
    /// An operator asked to stop the pods of an app that no want names.
    StopAsked(operator::StopAsked) = 35 v 1, Input;
    /// The fold broke an invariant: the subject is visible and not acted on.
    Quarantined(daemon::Quarantined) = 36 v 1, Input;
    /// An environment was fetched: its keyed digest shows a change, no value is kept.
    EnvironmentFetched(want::EnvironmentFetched) = 37 v 1, Note;
    /// A release's package is on disk, verified.
    SourceKept(want::SourceKept) = 38 v 1, Note;
    /// Everything that was set, for the reader.
    SettingsTold(daemon::SettingsTold) = 39 v 1, Note;
    /// Which operator asked, and why.
    OperatorSaid(operator::OperatorSaid) = 40 v 1, Note;
    /// What a record said was taken away.
    RecordErased(operator::RecordErased) = 45 v 1, Note;
    /// A subject's whole state, or a part of it: it outlives the records before it.
    SubjectCarried(carried::SubjectCarried) = 46 v 1, Input;
    /// Callers were refused for want of a right.
    CallRefused(operator::CallRefused) = 47 v 1, Note;
    /// The settings that the following reactions of sessions are decided under.
    SessionSettingsInForce(session::SessionSettingsInForce) = 50 v 1, Input;
    /// A caller asked for a session to run.
    SessionAsked(session::SessionAsked) = 51 v 1, Input;
    /// A caller asked for a session to be deleted or suspended.
    SessionDeleteAsked(session::SessionDeleteAsked) = 52 v 1, Input;
    /// A caller says that a session is in use.
    SessionTouched(session::SessionTouched) = 53 v 1, Input;
    /// A call about a session was refused.
    SessionCallRefused(session::SessionCallRefused) = 54 v 1, Note;
    /// A session's claim as a list, the watch or a write showed it.
    ClaimSeen(session::ClaimSeen) = 55 v 1, Input;
    /// A claim's uid is gone for good.
    ClaimGone(session::ClaimGone) = 56 v 1, Input;
    /// A session's Service as a list, the watch or a write showed it.
    ServiceSeen(session::ServiceSeen) = 57 v 1, Input;
    /// A Service's uid is gone for good.
    ServiceGone(session::ServiceGone) = 58 v 1, Input;
    /// An effect on a session's objects was decided; nothing is sent before this is durable.
    SessionStepIssued(session::SessionStepIssued) = 59 v 1, Decision;
    /// What was asked of a session is given up.
    SessionFailed(session::SessionFailed) = 60 v 1, Decision;
    /// What was asked to be removed of a session is gone.
    SessionRemoved(session::SessionRemoved) = 61 v 1, Decision;
    /// The network policy of sessions is repaired; nothing is sent before this is durable.
    SessionPolicyRepairIssued(session_policy::SessionPolicyRepairIssued) = 62 v 1, Note;
    /// Other network policies select pods of sessions.
    SessionPolicyWidened(session_policy::SessionPolicyWidened) = 63 v 1, Note;
}

impl Kind {
    /// The number as the header holds it: the top bit says that it decides.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16 | if self.role() == Role::Note { 0 } else { DECIDES }
    }

    /// The kind of a header's number; `None` when this build does not know it.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        let at = Self::ALL.binary_search_by_key(&(number & !DECIDES), |kind| *kind as u16).ok()?;
        Self::ALL.get(at).copied().filter(|kind| kind.number() == number)
    }

    /// The kind of a name as shown.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// What precedes every payload; committed by the record's leaf (docs/log-format.md gives the bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The kind's number, with the top bit: kept as stored, because a newer build may have written it.
    pub kind: u16,
    /// The payload struct's version within its kind.
    pub kind_version: u16,
    /// The number of the fold and plan that the reaction was decided under.
    pub rules: u16,
    /// Position in the total order.
    pub seq: Seq,
    /// What it is about.
    pub subject: Subject,
    /// Position within the subject: from 1, without gaps in one log id.
    pub subject_seq: u64,
    /// When the reaction was decided: log time, microseconds since 1970 UTC. Never below the record before it of its subject; what
    /// waited longer for its append can be a little below the record before it in the log.
    pub time_us: i64,
    /// The first record of the reaction; its records are consecutive.
    pub reaction: Seq,
    /// The record that made it so; [`Seq::NONE`] for an input.
    pub cause: Seq,
    /// The `SettingsInForce` record that the reaction was decided under, of a session the `SessionSettingsInForce`;
    /// [`Seq::NONE`] before the first.
    pub settings: Seq,
}

/// A fact with its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where and when.
    pub header: Header,
    /// What.
    pub event: Event,
}

/// An event that has no place in the log yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What.
    pub event: Event,
    /// The record that made it so; may be [provisional](Seq::provisional) when it is of the same reaction.
    pub cause: Seq,
}

impl Draft {
    /// An input: nothing in the log made it so.
    #[must_use]
    pub fn input(event: Event) -> Self {
        Self { event, cause: Seq::NONE }
    }
}

/// What one reaction appends, atomically: all of it or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    /// What it is about.
    pub subject: Subject,
    /// When it was decided. The log keeps it as it is, because planning again at another time could decide otherwise; it is moved
    /// up only to the last record of the subject, and to the latest of all when the log was opened.
    pub time_us: i64,
    /// The rules it was decided under.
    pub rules: u16,
    /// The settings it was decided under.
    pub settings: Seq,
    /// Its events: inputs first, then decisions.
    pub drafts: Vec<Draft>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_number_alone() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind.number()), Some(*kind));
            assert_eq!(Kind::from_number(kind.number() ^ DECIDES), None);
        }
        assert!(Kind::ALL.is_sorted_by_key(|kind| *kind as u16), "it is searched by halves");
        assert_eq!([0, 9_999, u16::MAX].map(Kind::from_number), [None; 3]);
    }
}
