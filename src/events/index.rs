//! Which blocks a subject has records in. Held in memory, built by a walk over the headers when a log is opened.
//!
//! 8 bytes for each block that a subject appears in: a million records of one subject a block are 8 MB.

use std::collections::BTreeMap;

use crate::ids::{Seq, Subject};

#[derive(Debug, Default)]
struct Entry {
    /// The last subject seq in the current log id; 0 for none.
    last: u64,
    /// The time of its last record in the store.
    time_us: i64,
    /// The keys of the blocks, ascending.
    blocks: Vec<Seq>,
    /// Records of it aged out.
    cut: bool,
}

/// What a commit appends of one subject.
#[derive(Debug)]
pub(super) struct Added {
    /// The last subject seq.
    pub(super) last: u64,
    /// The time of the last record.
    pub(super) time_us: i64,
    pub(super) records: u64,
    /// The keys of the blocks, ascending: none of them was there before.
    pub(super) blocks: Vec<Seq>,
}

/// Subjects by their text.
#[derive(Debug, Default)]
pub(super) struct Index {
    subjects: BTreeMap<String, Entry>,
    pub(super) blocks: u64,
    pub(super) records: u64,
    /// Of all blocks.
    pub(super) bytes: u64,
}

impl Index {
    /// Takes where the numbers of a subject stand after what aged out: 0 when its last record was of an earlier log.
    pub(super) fn cut(&mut self, subject: &str, (last, time_us): (u64, i64)) {
        self.subjects.insert(subject.to_owned(), Entry { last, time_us, blocks: Vec::new(), cut: true });
    }

    /// Forgets the blocks before `kept` of these subjects.
    pub(super) fn remove<'a>(&mut self, subjects: impl Iterator<Item = &'a String>, kept: Seq) {
        for subject in subjects {
            if let Some(entry) = self.subjects.get_mut(subject) {
                entry.cut = true;
                entry.blocks.drain(..entry.blocks.partition_point(|key| *key < kept));
            }
        }
    }

    /// The subjects of which records aged out.
    pub(super) fn cut_subjects(&self) -> Vec<Subject> {
        self.subjects.iter().filter(|(_, entry)| entry.cut).filter_map(|(text, _)| Subject::parse(text).ok()).collect()
    }

    /// The subjects that have records in blocks before that one.
    pub(super) fn subjects_before(&self, kept: Seq) -> Vec<Subject> {
        let before = self.subjects.iter().filter(|(_, entry)| entry.blocks.first().is_some_and(|first| *first < kept));
        before.filter_map(|(text, _)| Subject::parse(text).ok()).collect()
    }

    /// The subject's last subject seq in the current log id, 0 for none; and the time of its last record in the store,
    /// microseconds since 1970 UTC, the earliest there is for none.
    pub(super) fn last(&self, subject: &str) -> (u64, i64) {
        self.subjects.get(subject).map_or((0, i64::MIN), |entry| (entry.last, entry.time_us))
    }

    /// Takes all that one commit appended of a subject.
    pub(super) fn extend(&mut self, subject: String, added: Added) {
        self.records += added.records;
        let entry = self.subjects.entry(subject).or_default();
        (entry.last, entry.time_us) = (added.last, added.time_us);
        entry.blocks.extend(added.blocks);
    }

    /// Takes a record that is in the block of that key, with its subject seq and time; records come in order. Gives those of the
    /// subject's record before it.
    pub(super) fn add(&mut self, subject: &str, (last, time_us): (u64, i64), block: Seq) -> (u64, i64) {
        self.records += 1;
        let Some(entry) = self.subjects.get_mut(subject) else {
            self.subjects.insert(subject.to_owned(), Entry { last, time_us, blocks: vec![block], cut: false });
            return (0, i64::MIN);
        };
        if entry.blocks.last() != Some(&block) {
            entry.blocks.push(block);
        }
        (std::mem::replace(&mut entry.last, last), std::mem::replace(&mut entry.time_us, time_us))
    }

    /// A new log id begins: every subject counts from 1 again.
    pub(super) fn begin_log(&mut self) {
        self.subjects.values_mut().for_each(|entry| entry.last = 0);
    }

    /// The blocks of a subject that can hold records from `from` on.
    pub(super) fn blocks_of(&self, subject: &Subject, from: Seq) -> Vec<Seq> {
        let blocks = self.subjects.get(&subject.to_string()).map_or(&[][..], |entry| &entry.blocks);
        let behind = blocks.partition_point(|key| *key <= from);
        blocks[behind.saturating_sub(1)..].to_vec()
    }

    /// Every subject of a kind that this build knows.
    pub(super) fn subjects(&self) -> Vec<Subject> {
        self.subjects.keys().filter_map(|text| Subject::parse(text).ok()).collect()
    }
}
