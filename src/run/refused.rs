//! Records what the control listener refused: together, now and then, so that nobody fills the log by asking.

use std::time::Duration;

use tokio::task::AbortHandle;

use super::Outside;
use crate::actors::Committer;
use crate::app::rules::Rules;
use crate::clock::Clock;
use crate::events::kinds::operator::CallRefused;
use crate::events::record::{Draft, Event, Reaction};
use crate::http::access::refusals::Refusals;
use crate::ids::{Seq, Subject, Word};

/// Between two records of the same.
const EVERY: Duration = Duration::from_secs(10);

/// Records refusals until this is dropped, or the log takes no more.
pub(super) struct RefusalsRecorder(AbortHandle);

impl RefusalsRecorder {
    pub(super) fn start(outside: &Outside, committer: &Committer, daemon: Subject, settings: Seq) -> Self {
        let (refusals, clock) = (outside.refusals.clone(), outside.clock.clone());
        Self(tokio::spawn(record_refusals(refusals, clock, committer.clone(), daemon, settings)).abort_handle())
    }
}

impl Drop for RefusalsRecorder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn record_refusals(refusals: Refusals, clock: Clock, committer: Committer, daemon: Subject, settings: Seq) {
    loop {
        tokio::time::sleep(EVERY).await;
        let drafts = drafts(&refusals);
        if drafts.is_empty() {
            continue;
        }
        let (subject, time_us, rules) = (daemon.clone(), clock.now_us(), Rules::CURRENT.number());
        if committer.append(Reaction { subject, time_us, rules, settings, drafts }).await.is_err() {
            return;
        }
    }
}

fn drafts(refusals: &Refusals) -> Vec<Draft> {
    let refused = refusals.take().into_iter();
    let event =
        refused.map(|(refusal, times)| CallRefused { who: refusal.who, route: refusal.route, code: Word::new(refusal.code), times });
    event.map(|event| Draft::input(Event::CallRefused(event))).collect()
}
