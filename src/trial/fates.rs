//! What becomes of a release's pods: a character is drawn, and a script made of it. Pure.

use std::time::Duration;

use super::dice::Dice;
use crate::sim::node::{Pull, Register, Run, Schedule, Script, Start};

/// What the pods of a release are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Character {
    /// They come up and stay.
    Healthy,
    /// They come up slowly, within every limit.
    Slow,
    /// They come up and do not heed TERM.
    Stubborn,
    /// They come up, serve for a while and end, again and again.
    Crashes,
    /// As that, by the kernel for their memory.
    OutOfMemory,
    /// They end before they register.
    ExitsAtOnce,
    /// Their install fails.
    InstallFails,
    /// They run and never register.
    NeverRegisters,
    /// Their image cannot be had.
    BadImage,
    /// Their container cannot be made.
    BadConfig,
    /// No node takes them.
    Unschedulable,
    /// Their sandbox never comes up.
    Stuck,
    /// The kubelet refuses them.
    Refused,
}

/// A character; most are good.
pub(super) fn draw_character(dice: &Dice) -> Character {
    use Character::{
        BadConfig, BadImage, Crashes, ExitsAtOnce, Healthy, InstallFails, NeverRegisters, OutOfMemory, Refused, Slow, Stubborn, Stuck,
        Unschedulable,
    };
    match dice.below(100) {
        0..45 => Healthy,
        45..53 => Slow,
        53..58 => Stubborn,
        _ => *dice.pick(&[
            Crashes,
            Crashes,
            OutOfMemory,
            ExitsAtOnce,
            InstallFails,
            NeverRegisters,
            BadImage,
            BadConfig,
            Unschedulable,
            Stuck,
            Refused,
        ]),
    }
}

impl Character {
    /// Its script.
    pub(super) fn script(self) -> Script {
        let usual = Script::default();
        let seconds = Duration::from_secs;
        match self {
            Self::Healthy => usual,
            Self::Slow => Script {
                schedule: Schedule::After(seconds(4)),
                pull: Pull::Takes(seconds(40)),
                install: Run { lasts: Some(seconds(50)), ..usual.install },
                start: Start::Takes(seconds(3)),
                register: Register::After(seconds(20)),
                ..usual
            },
            Self::Stubborn => Script { app: Run::forever().ignoring_term(), ..usual },
            Self::Crashes => usual.app(Run::ends(seconds(37), 1)),
            Self::OutOfMemory => usual.app(Run::out_of_memory(seconds(53))),
            Self::ExitsAtOnce => Script { register: Register::After(seconds(5)), ..usual.app(Run::ends(seconds(1), 3)) },
            Self::InstallFails => usual.install_fails(seconds(2), 1),
            Self::NeverRegisters => Script { register: Register::Never, ..usual },
            Self::BadImage => Script { pull: Pull::BackOff, ..usual },
            Self::BadConfig => Script { pull: Pull::ConfigError("no such key".to_owned()), ..usual },
            Self::Unschedulable => Script { schedule: Schedule::Never("0/2 nodes are available".to_owned()), ..usual },
            Self::Stuck => Script { pull: Pull::Stuck, ..usual },
            Self::Refused => {
                Script { pull: Pull::Refused("OutOfcpu".to_owned(), "Node didn't have enough resource: cpu".to_owned()), ..usual }
            }
        }
    }
}
