//! A subject's state at a moment, by its records alone, and what each of them changed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::{Entry, History};
use crate::events::record::{DECIDES, Record};
use crate::ids::Seq;
use crate::subject::react::committed_safely;
use crate::subject::rules::Rules;
use crate::subject::stored::{Stored, Waiting};

/// The last record that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// All of them.
    Head,
    /// The record of that number, or the last before it.
    Seq(Seq),
    /// The last record of that time or before, log time in microseconds.
    TimeUs(i64),
}

impl Until {
    fn takes(self, entry: &Entry) -> bool {
        match self {
            Self::Head => true,
            Self::Seq(last) => entry.header.seq <= last,
            Self::TimeUs(last) => entry.header.time_us <= last,
        }
    }
}

/// One field that a record changed: its path, and its value before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Keys from the top, by dots.
    pub path: String,
    /// `None`: it was not there.
    pub before: Option<String>,
    /// `None`: it is not there any more.
    pub after: Option<String>,
}

/// Why a state is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReplayed {
    /// A record that decides cannot be read.
    #[error("record {0} decides and cannot be read here")]
    Unreadable(Seq),
    /// It was decided under rules of a newer version.
    #[error("record {0} was decided under rules {1}, which a newer version knows")]
    NewerRules(Seq, u16),
    /// The fold broke an invariant there.
    #[error("record {0} cannot be folded: the subject is quarantined from there on")]
    Broken(Seq),
}

/// Folds a subject's records up to `until`; `each` sees the state after each of them. What is left of a subject of which records
/// aged out says nothing before the record that carries its state: the state is the default's until then.
///
/// # Errors
/// At the first record that cannot be folded; `each` has seen what was before it.
pub fn replay<'a, M: Stored>(history: &'a History, until: Until, mut each: impl FnMut(&'a Entry, &M)) -> Result<M, NotReplayed> {
    let mut state = M::default();
    let mut waiting = Waiting::of(history.is_cut.then(|| history.subject.clone()));
    for entry in history.entries.iter().take_while(|entry| until.takes(entry)) {
        let seq = entry.header.seq;
        match &entry.event {
            Some(event) => {
                let rules = Rules::of(entry.header.rules).ok_or(NotReplayed::NewerRules(seq, entry.header.rules))?;
                let record = Record { header: entry.header.clone(), event: event.clone() };
                if !waiting.passes_over(&mut state, &record) && !committed_safely(&mut state, rules, std::slice::from_ref(&record)) {
                    return Err(NotReplayed::Broken(seq));
                }
            }
            None if entry.header.kind & DECIDES != 0 => return Err(NotReplayed::Unreadable(seq)),
            None => {}
        }
        each(entry, &state);
    }
    Ok(state)
}

/// What differs between two documents, field by field, in the order of the paths.
#[must_use]
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let (before, after) = (flat(before), flat(after));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| Change { path: path.clone(), before: before.get(path).cloned(), after: after.get(path).cloned() })
        .collect()
}

/// Every value that is no object, by its path. A list is one value.
fn flat(document: &Value) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![(String::new(), document)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(key, value)| (if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, value)));
            }
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => drop(all.insert(path, value.to_string())),
        }
    }
    all
}
