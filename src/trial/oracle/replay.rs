//! Invariants 1 and 2 of a log as a whole, when its trial is over: it is what it says, each decision is what planning again gives,
//! and the replay of any prefix, kept and read again, and then of the rest equals one pass.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::Found;
use crate::events::check::check;
use crate::events::log::LogReader;
use crate::ids::{Seq, Subject};
use crate::run::recover::{Recovered, fold_on};
use crate::run::verify::verify_decisions;
use crate::subject::stored::Stored;

/// Into how many prefixes a log is cut.
const CUTS: u64 = 12;

/// What is wrong with this log: an invariant's number, and what, in words.
#[must_use]
pub fn judge(reader: &dyn LogReader) -> Vec<Found> {
    let mut found = Vec::new();
    match check(reader) {
        Ok(report) => found.extend(report.difference.map(|difference| (1, format!("the log is not what it says {difference}")))),
        Err(error) => found.push((1, format!("the log cannot be read: {error}"))),
    }
    match verify_decisions(reader) {
        Ok(verified) => {
            let differs =
                |(subject, difference)| (2, format!("a decision of {subject} is another when it is planned again: {difference:?}"));
            found.extend(verified.difference.map(differs));
            found.extend(verified.unverifiable.map(|(seq, why)| (2, format!("record {seq} cannot be planned again: {why}"))));
        }
        Err(error) => found.push((1, format!("the log cannot be read: {error}"))),
    }
    found.extend(cut(reader).err().map(|why| (2, why)));
    found
}

/// Replays the log in one pass and in two, with the states between them written and read as a snapshot's are.
fn cut(reader: &dyn LogReader) -> Result<(), String> {
    let head = reader.head();
    let fold = |recovered: &mut Recovered, part: RangeInclusive<u64>| {
        let folded = fold_on(recovered, reader, Seq(*part.start()), Seq(*part.end()));
        folded.map(drop).map_err(|error| format!("the log cannot be replayed: {error}"))
    };
    let mut whole = Recovered::default();
    fold(&mut whole, 1..=head.0)?;
    for number in 1..CUTS {
        let at = head.0 * number / CUTS;
        let mut parts = Recovered::default();
        fold(&mut parts, 1..=at)?;
        stored_and_read(&mut parts.apps.states);
        stored_and_read(&mut parts.sessions.states);
        fold(&mut parts, at + 1..=head.0)?;
        let subject = differs(&parts.apps.states, &whole.apps.states).or_else(|| differs(&parts.sessions.states, &whole.sessions.states));
        if let Some(subject) = subject {
            return Err(format!("the replay up to record {at}, and then of the rest, gives another state of {subject} than one pass"));
        }
    }
    Ok(())
}

fn stored_and_read<M: Stored>(states: &mut BTreeMap<M::Key, M>) {
    let kept = std::mem::take(states);
    states.extend(kept.into_iter().filter_map(|(key, state)| Some((key, M::from_bytes(&state.to_bytes().ok()?)?))));
}

/// The first subject that the two have otherwise.
fn differs<M: Stored + PartialEq>(parts: &BTreeMap<M::Key, M>, whole: &BTreeMap<M::Key, M>) -> Option<Subject> {
    let named = parts.keys().chain(whole.keys()).find(|key| parts.get(key) != whole.get(key));
    named.map(M::subject)
}
