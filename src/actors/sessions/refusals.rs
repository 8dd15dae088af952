//! Calls about sessions that were refused, as they are recorded: together, now and then, so that nobody fills the log by asking.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Sessions;
use crate::actors::committer::Committer;
use crate::events::kinds::session::{CallRefusal, SessionCall, SessionCallRefused};
use crate::events::record::{Draft, Event, Reaction};
use crate::ids::{Seq, SessionId, Subject, Word};
use crate::subject::rules::Rules;

/// Between two records of the same.
const EVERY: Duration = Duration::from_secs(10);

/// Different refusals between two records; those beyond it are told apart by what was asked and why not.
const TOLD_APART: usize = 256;

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RefusedCall {
    pub(super) session: Option<SessionId>,
    pub(super) by: Word,
    pub(super) call: SessionCall,
    pub(super) why: CallRefusal,
}

/// What was refused and no record says yet.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<BTreeMap<RefusedCall, u64>>);

impl Refusals {
    pub(super) fn note(&self, refused: RefusedCall) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_one_more = noted.len() >= TOLD_APART && !noted.contains_key(&refused);
        let refused = if is_one_more { RefusedCall { session: None, by: Word::default(), ..refused } } else { refused };
        *noted.entry(refused).or_default() += 1;
    }

    fn take(&self) -> Vec<Draft> {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let event = noted.into_iter().map(|(RefusedCall { session, by, call, why }, times)| {
            Event::SessionCallRefused(SessionCallRefused { session, by, call, why, times })
        });
        event.map(Draft::input).collect()
    }
}

/// Records refusals until the log takes no more.
pub(in crate::actors) async fn record(sessions: Sessions, committer: Committer, daemon: Subject, settings: Seq) {
    loop {
        tokio::time::sleep(EVERY).await;
        let drafts = sessions.0.refusals.take();
        if drafts.is_empty() {
            continue;
        }
        let (subject, time_us, rules) = (daemon.clone(), sessions.0.clock.now_us(), Rules::CURRENT.number());
        if committer.append(Reaction { subject, time_us, rules, settings, drafts }).await.is_err() {
            return std::future::pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_and_told_apart_within_a_bound() {
        let refusals = Refusals::default();
        let refused = |id: usize| RefusedCall {
            session: SessionId::new(&format!("s{id}")).ok(),
            by: Word::new("token"),
            call: SessionCall::Create,
            why: CallRefusal::TooMany,
        };
        for id in 0..1_000 {
            refusals.note(refused(id));
            refusals.note(refused(7));
        }
        let drafts = refusals.take();
        assert_eq!(drafts.len(), TOLD_APART + 1);
        let times = |draft: &Draft| {
            let Event::SessionCallRefused(refused) = &draft.event else { return 0 };
            refused.times
        };
        assert_eq!(drafts.iter().map(times).sum::<u64>(), 2_000);
        assert!(refusals.take().is_empty());
    }
}
