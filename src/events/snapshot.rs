//! What the subjects' records came to up to some record, kept in the log's cache so that a start folds only what came after.
//! Knows subjects as text and their states as bytes; what a state is, and how it is folded, is its user's.
//!
//! It is worth nothing unless everything fits: the log id, the record, the tree's root there, the rules, the schema, and every
//! byte of every state. docs/log-format.md, "Caches", is the layout.

use std::io;
use std::ops::ControlFlow;

use sha2::{Digest as _, Sha256};

use super::block::Block;
use super::cache::{Cache, Change, VALUE_MAX};
use super::log::{Acknowledged, LogReader, ReadError};
use super::tree::{Hash, TreeHead};
use crate::ids::{LogId, Seq};

const HEAD: &[u8] = b"h";
const STATE: u8 = b'a';
const VERSION: u8 = 1;
const HEAD_LENGTH: usize = 140;

/// A part of a state: its value begins with how many parts there are.
const PART: usize = VALUE_MAX - 2;

/// Changes of one batch, bytes.
const BATCH: usize = 1 << 20;

/// What the states were folded by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The number of fold and plan.
    pub rules: u16,
    /// The version of a state's layout.
    pub state: u16,
}

/// What is kept beside the states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Lives of the process so far.
    pub incarnations: u64,
    /// The latest time of any record.
    pub last_us: i64,
    /// Records folded.
    pub records: u64,
}

/// A snapshot that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The log id that its last record is of.
    pub log: LogId,
    /// Its last record.
    pub seq: Seq,
    /// The tree of that log up to it.
    pub tree: TreeHead,
    /// What the states were folded by.
    pub schema: Schema,
    /// What is kept beside the states.
    pub totals: Totals,
    subjects: u64,
    /// All states together: the digests of the single ones, each bit by exclusive or.
    digest: Hash,
}

impl Snapshot {
    /// The one that a log's cache holds, with every state given to `take`; `None` when there is none or anything of it does not
    /// fit: what `take` was given is worth nothing then.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn load(reader: &dyn LogReader, schema: Schema, take: &mut dyn FnMut(&str, &[u8]) -> bool) -> Result<Option<Self>, ReadError> {
        let Some(cache) = reader.cache() else { return Ok(None) };
        let Some(found) = cache.get(HEAD)?.and_then(|head| Self::read(&head)) else { return Ok(None) };
        if found.schema != schema || !found.stands(reader)? {
            return Ok(None);
        }
        let mut states = States { digest: [0; 32], subjects: 0, open: None, sound: true };
        cache.each(&mut |key, value| {
            states.take(key, value, take);
            if states.sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let sound = states.sound && states.open.is_none() && states.subjects == found.subjects && states.digest == found.digest;
        Ok(sound.then_some(found))
    }

    /// Whether its record is where it says, and the chain of what is stored goes through it.
    fn stands(&self, reader: &dyn LogReader) -> Result<bool, ReadError> {
        let mut stands = None;
        reader.blocks(self.seq, &mut |key, bytes| {
            let Ok(Block { head, .. }) = Block::read(bytes) else {
                stands = Some(false);
                return ControlFlow::Break(());
            };
            if key <= self.seq && head.log == self.log {
                return ControlFlow::Continue(());
            }
            stands = Some(key > self.seq && head.log == self.log && head.previous == self.seq && head.before == self.tree);
            ControlFlow::Break(())
        })?;
        let at_the_end = Acknowledged { log: self.log, head: self.seq, tree: self.tree };
        Ok(stands.unwrap_or_else(|| reader.acknowledged() == at_the_end))
    }

    /// The state of one subject.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn state(cache: &dyn Cache, subject: &str) -> io::Result<Option<Vec<u8>>> {
        let mut state = Vec::new();
        for part in 0.. {
            let value = cache.get(&key(subject, part))?;
            let Some((count, bytes)) = value.as_ref().and_then(|value| value.split_first_chunk::<2>()) else { return Ok(None) };
            state.extend_from_slice(bytes);
            if part + 1 >= u16::from_le_bytes(*count) {
                break;
            }
        }
        Ok(Some(state))
    }

    /// Keeps the states that changed since `before`, and then that they are those at `at`. With no snapshot before it `states` are
    /// all there are, and whatever else is kept is removed.
    ///
    /// # Errors
    /// When the store does not take it: there is no snapshot then that anybody would take for one.
    pub fn store(
        cache: &dyn Cache,
        before: Option<Self>,
        at: Acknowledged,
        (schema, totals): (Schema, Totals),
        states: impl Iterator<Item = (String, Vec<u8>)>,
    ) -> io::Result<Self> {
        let mut writer = Writer { cache, changes: Vec::new(), bytes: 0 };
        let (mut digest, mut subjects) = before.map_or(([0; 32], 0), |before| (before.digest, before.subjects));
        if before.is_none() {
            writer.clear()?;
        }
        for (subject, state) in states {
            let known = if before.is_some() { Self::state(cache, &subject)? } else { None };
            match &known {
                Some(known) => add(&mut digest, &digest_of(&subject, known)),
                None => subjects += 1,
            }
            add(&mut digest, &digest_of(&subject, &state));
            writer.state(&subject, &state, known.as_ref().map_or(0, |known| parts(known)))?;
        }
        let Acknowledged { log, head: seq, tree } = at;
        let snapshot = Self { log, seq, tree, schema, totals, subjects, digest };
        writer.put(HEAD.to_vec(), Some(snapshot.bytes()))?;
        writer.flush()?;
        Ok(snapshot)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0, 0, 0, 0, VERSION, 0, 0, 0];
        out.extend_from_slice(&self.schema.rules.to_le_bytes());
        out.extend_from_slice(&self.schema.state.to_le_bytes());
        out.extend_from_slice(&self.log.0);
        out.extend_from_slice(&self.seq.0.to_le_bytes());
        out.extend_from_slice(&self.tree.size.to_le_bytes());
        out.extend_from_slice(&self.tree.root);
        out.extend_from_slice(&self.totals.incarnations.to_le_bytes());
        out.extend_from_slice(&self.totals.last_us.to_le_bytes());
        out.extend_from_slice(&self.totals.records.to_le_bytes());
        out.extend_from_slice(&self.subjects.to_le_bytes());
        out.extend_from_slice(&self.digest);
        debug_assert_eq!(out.len(), HEAD_LENGTH, "the fixed layout");
        let checksum = crc32fast::hash(&out[4..]);
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != HEAD_LENGTH || crc32fast::hash(&bytes[4..]).to_le_bytes() != bytes[..4] || bytes[4] != VERSION {
            return None;
        }
        let short = |at: usize| Some(u16::from_le_bytes(bytes[at..at + 2].try_into().ok()?));
        let number = |at: usize| Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?));
        Some(Self {
            schema: Schema { rules: short(8)?, state: short(10)? },
            log: LogId(bytes[12..28].try_into().ok()?),
            seq: Seq(number(28)?),
            tree: TreeHead { size: number(36)?, root: bytes[44..76].try_into().ok()? },
            totals: Totals { incarnations: number(76)?, last_us: number(84)?.cast_signed(), records: number(92)? },
            subjects: number(100)?,
            digest: bytes[108..140].try_into().ok()?,
        })
    }
}

fn key(subject: &str, part: u16) -> Vec<u8> {
    let mut key = vec![STATE];
    key.extend_from_slice(subject.as_bytes());
    key.push(0);
    key.extend_from_slice(&part.to_be_bytes());
    key
}

/// Subject and part of a state's key.
fn subject_of(key: &[u8]) -> Option<(&str, u16)> {
    let (text, part) = key.strip_prefix(&[STATE])?.split_last_chunk::<2>()?;
    let text = std::str::from_utf8(text.strip_suffix(&[0])?).ok()?;
    Some((text, u16::from_be_bytes(*part)))
}

fn digest_of(subject: &str, state: &[u8]) -> Hash {
    Sha256::new().chain_update(subject).chain_update([0]).chain_update(state).finalize().into()
}

/// Adds what is not in it, and takes out what is.
fn add(digest: &mut Hash, one: &Hash) {
    digest.iter_mut().zip(one).for_each(|(all, one)| *all ^= one);
}

fn parts(state: &[u8]) -> u16 {
    u16::try_from(state.len().div_ceil(PART).max(1)).unwrap_or(u16::MAX)
}

/// States as their parts come, in the order of the keys.
struct States {
    digest: Hash,
    subjects: u64,
    /// The subject whose parts are coming: the next one, how many there are, and what has come.
    open: Option<(String, u16, u16, Vec<u8>)>,
    sound: bool,
}

impl States {
    fn take(&mut self, key: &[u8], value: &[u8], take: &mut dyn FnMut(&str, &[u8]) -> bool) {
        let Some((subject, part)) = subject_of(key) else {
            self.sound &= key == HEAD;
            return;
        };
        let Some((count, bytes)) = value.split_first_chunk::<2>() else {
            self.sound = false;
            return;
        };
        let count = u16::from_le_bytes(*count);
        let (known, next, all, mut state) = self.open.take().unwrap_or_else(|| (subject.to_owned(), 0, count, Vec::new()));
        if known != subject || next != part || all != count || part >= count {
            self.sound = false;
            return;
        }
        state.extend_from_slice(bytes);
        if part + 1 < count {
            self.open = Some((known, next + 1, all, state));
            return;
        }
        add(&mut self.digest, &digest_of(subject, &state));
        self.subjects += 1;
        self.sound = take(subject, &state);
    }
}

/// Collects changes into batches.
struct Writer<'a> {
    cache: &'a dyn Cache,
    changes: Vec<Change>,
    bytes: usize,
}

impl Writer<'_> {
    fn put(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> io::Result<()> {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        self.changes.push((key, value));
        if self.bytes >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.bytes = 0;
        self.cache.change(std::mem::take(&mut self.changes))
    }

    fn clear(&mut self) -> io::Result<()> {
        let mut keys = Vec::new();
        self.cache.each(&mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        })?;
        keys.into_iter().try_for_each(|key| self.put(key, None))
    }

    fn state(&mut self, subject: &str, state: &[u8], parts_before: u16) -> io::Result<()> {
        let count = parts(state);
        if usize::from(count) * PART < state.len() {
            return Err(io::Error::other(format!("the state of {subject} is too large to be kept")));
        }
        for part in 0..count {
            let from = usize::from(part) * PART;
            let bytes = &state[from..state.len().min(from + PART)];
            self.put(key(subject, part), Some([&count.to_le_bytes(), bytes].concat()))?;
        }
        (count..parts_before).try_for_each(|part| self.put(key(subject, part), None))
    }
}
