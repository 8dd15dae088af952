//! A subject whose actor failed: it gets its state of the log, and what was durable and perhaps never handed on is handed on again;
//! after too many failures it is quarantined.

use std::collections::BTreeMap;

use super::carry::carried;
use super::kept::{Flying, Kept};
use super::replay::{Replayed, replay};
use super::subject::Shared;
use crate::events::kinds::daemon::Quarantined;
use crate::events::kinds::step::StepWithheld;
use crate::events::kinds::tail::TailOf;
use crate::events::log::LogReader;
use crate::events::record::{Draft, Event, Reaction};
use crate::ids::{RecordId, Seq, Word};
use crate::subject::rules::Rules;

/// Failures of a subject's actor in a row after which the subject is quarantined.
const FAILURES: u32 = 3;

/// It goes on, or is quarantined.
pub(super) struct Restarted;

/// Gives a subject whose actor failed its state of the log, and what its actor had in hand if that is not in there; after too many
/// failures, or when its log cannot be folded, it is quarantined: visible, not acted on.
///
/// # Errors
/// In words, when its log cannot be read.
pub(super) async fn restart<M: Kept>(reader: &dyn LogReader, shared: &Shared<M>, key: &M::Key) -> Result<Restarted, String> {
    let Replayed { state, tails, broken, .. } = replay::<M>(reader, &M::subject(key))?;
    if broken {
        let last = shared.registry.state(key).map(|state| M::clone(&state)).unwrap_or_default();
        quarantine(reader, shared, key, last).await;
    } else if shared.registry.failed(key, state.clone()) >= FAILURES {
        quarantine(reader, shared, key, state).await;
    } else {
        hand_on_again(shared, key, &state, &tails);
        // Its next reaction says what of this holds.
        M::heard(&shared.beside, key, &state, false);
        shared.registry.nudge(key);
    }
    Ok(Restarted)
}

async fn quarantine<M: Kept>(reader: &dyn LogReader, shared: &Shared<M>, key: &M::Key, state: M) {
    tracing::error!(subject = %key, "quarantined: its actor fails again and again");
    shared.registry.quarantine(key, state);
    let quarantined = Quarantined { invariant: Word::new("no_panic"), at: reader.head() };
    let drafts = vec![Draft::input(Event::Quarantined(quarantined))];
    if let Err(error) = shared.committer.append(reaction(shared, key, drafts)).await {
        tracing::error!(subject = %key, %error, "the quarantine cannot be recorded");
    }
}

/// Carries the state of a subject that has no actor, as its log has it.
pub(super) async fn carry<M: Kept>(reader: &dyn LogReader, shared: &Shared<M>, key: &M::Key) {
    let replayed = replay::<M>(reader, &M::subject(key)).ok().filter(|replayed| !replayed.broken && replayed.state.is_quarantined());
    let drafts = replayed.map(|replayed| carried(key, &replayed.state)).unwrap_or_default();
    let records =
        if drafts.is_empty() { Vec::new() } else { shared.committer.append(reaction(shared, key, drafts)).await.unwrap_or_default() };
    shared.registry.has_carried(key, records.last().map(|record| record.header.seq));
}

fn reaction<M: Kept>(shared: &Shared<M>, key: &M::Key, drafts: Vec<Draft>) -> Reaction {
    Reaction {
        subject: M::subject(key),
        time_us: shared.clock.now_us(),
        rules: Rules::CURRENT.number(),
        settings: shared.settings_seq,
        drafts,
    }
}

/// What is durable and was perhaps never handed on: the cluster actor takes each once.
fn hand_on_again<M: Kept>(shared: &Shared<M>, key: &M::Key, state: &M, tails: &BTreeMap<TailOf, Seq>) {
    let Shared { registry, cluster, log, .. } = shared;
    let subject = M::subject(key);
    let id = |seq: Seq| RecordId { log: *log, seq };
    let mut withheld = Vec::new();
    for Flying { seq, what, lane, revoking, .. } in state.flights().into_iter().filter(|flying| !flying.withheld) {
        if state.holds_back() {
            let is_word = |event: &Event| matches!(event, Event::StepWithheld(withheld) if withheld.step == seq);
            if registry.awaits(key, |_| true, is_word) {
                withheld.push(Event::StepWithheld(StepWithheld { step: seq }));
            }
            continue;
        }
        cluster.submit_again(&subject, id(seq), what, lane);
        if revoking {
            cluster.revoke(seq);
        }
    }
    for (of, seq) in state.unread().into_iter().filter_map(|of| Some((of.clone(), *tails.get(&of)?))) {
        cluster.read_tail_again(&subject, id(seq), of);
    }
    if !withheld.is_empty() {
        registry.bring(key, withheld);
    }
}
