//! Records that the wall clock was stepped: log time goes on as it did, so that who reads a time knows how far it is from a clock's.

use std::time::Duration;

use tokio::task::AbortHandle;

use crate::actors::Committer;
use crate::app::rules::Rules;
use crate::clock::Clock;
use crate::events::kinds::daemon::ClockStepped;
use crate::events::record::{Draft, Event, Reaction};
use crate::ids::{Seq, Subject};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);

/// What a clock is slewed by in the ordinary course, microseconds: not worth a record.
const SLEW_US: u64 = 1_000_000;

/// Looks at the wall clock until this is dropped, or the log takes no more.
pub(super) struct ClockWatch(AbortHandle);

impl ClockWatch {
    pub(super) fn start(clock: &Clock, committer: &Committer, daemon: Subject, settings: Seq) -> Self {
        Self(tokio::spawn(record_steps(clock.clone(), committer.clone(), daemon, settings)).abort_handle())
    }
}

impl Drop for ClockWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn record_steps(clock: Clock, committer: Committer, daemon: Subject, settings: Seq) {
    let mut noted_us = 0;
    loop {
        if let Some(event) = stepped(noted_us, clock.wall_ahead_us()) {
            let reaction = Reaction {
                subject: daemon.clone(),
                time_us: clock.now_us(),
                rules: Rules::CURRENT.number(),
                settings,
                drafts: vec![Draft::input(Event::ClockStepped(event.clone()))],
            };
            if committer.append(reaction).await.is_err() {
                return;
            }
            tracing::warn!(ahead_us = event.ahead_us, "the wall clock was stepped: log time goes on as it did");
            noted_us = event.ahead_us;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The step between what was noted and what is, if it is one.
fn stepped(noted_us: i64, ahead_us: i64) -> Option<ClockStepped> {
    (noted_us.abs_diff(ahead_us) >= SLEW_US).then_some(ClockStepped { ahead_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b31_a_step_is_told_once_and_a_slew_never() {
        assert_eq!(stepped(0, 999_999), None);
        assert_eq!(stepped(0, -3_600_000_000), Some(ClockStepped { ahead_us: -3_600_000_000 }));
        assert_eq!(stepped(-3_600_000_000, -3_600_400_000), None);
        assert_eq!(stepped(-3_600_000_000, 0), Some(ClockStepped { ahead_us: 0 }));
        assert_eq!(stepped(i64::MIN, i64::MAX), Some(ClockStepped { ahead_us: i64::MAX }));
    }
}
