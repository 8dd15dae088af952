//! What a disk can hold after the power was cut at some point of a recording. Knows nothing of logs.
//!
//! A file's content is durable as it was when the file was last synced; what was written since is lost, or kept in part: any of
//! the writes, in pages, in sectors. `sync_file_range` makes nothing durable. A name is durable once any file was synced, as ext4's journal has
//! it, or, strictly, only once its folder was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::recorder::op;
use crate::support::random::Random;

/// What a write can be torn into, bytes.
pub(super) const WRITE: usize = usize::MAX;
pub(super) const PAGE: usize = 4096;
pub(super) const SECTOR: usize = 512;

/// One recorded call.
#[derive(Debug)]
pub(super) struct Call {
    op: u8,
    path: String,
    number: u64,
    data: Vec<u8>,
}

impl Call {
    /// Where it wrote into the store's data file, and how much.
    pub(super) fn wrote_data(&self) -> Option<(u64, usize)> {
        (self.op == op::WRITE && self.path.ends_with("store/db")).then_some((self.number, self.data.len()))
    }

    /// What was acknowledged here, when that is what it notes.
    pub(super) fn acknowledged(&self) -> Option<&[u8]> {
        (self.op == op::ACKNOWLEDGED).then_some(&self.data)
    }
}

/// The calls of a recording.
pub(super) fn read(mut bytes: &[u8]) -> Vec<Call> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let (number, rest) = bytes.split_first_chunk::<8>().expect("a whole entry");
        *bytes = rest;
        u64::from_le_bytes(*number)
    }
    fn part(bytes: &mut &[u8]) -> Vec<u8> {
        let length = usize::try_from(number(bytes)).expect("small");
        let (part, rest) = bytes.split_at(length);
        *bytes = rest;
        part.to_vec()
    }
    let mut calls = Vec::new();
    while let Some((op, rest)) = bytes.split_first() {
        bytes = rest;
        let number = number(&mut bytes);
        let path = String::from_utf8(part(&mut bytes)).expect("a path of text");
        calls.push(Call { op: *op, path, number, data: part(&mut bytes) });
    }
    calls
}

/// What becomes of writes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsynced {
    /// All are lost.
    Lost,
    /// Some pieces of that length are there, whichever the seed says.
    Some {
        /// [`WRITE`], [`PAGE`] or [`SECTOR`].
        piece: usize,
        /// Another one, another subset.
        seed: u64,
    },
    /// All are there.
    Kept,
}

impl Unsynced {
    /// The same with another subset for each point.
    pub(super) fn at(self, point: usize) -> Self {
        match self {
            Self::Some { piece, seed } => Self::Some { piece, seed: seed.wrapping_add(point as u64) },
            Self::Lost | Self::Kept => self,
        }
    }
}

#[derive(Debug, Default)]
struct Inode {
    durable: Vec<u8>,
    /// Since the last sync: offset and bytes, or a new length.
    since: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// A name's target: a file by number, or a folder.
type Names = BTreeMap<String, Option<usize>>;

/// A disk on which the recorded calls are carried out.
#[derive(Debug, Default)]
pub(super) struct Disk {
    inodes: Vec<Inode>,
    names: Names,
    /// As a journal keeps them: at the last sync of anything.
    journaled: Names,
    /// As they were when each one's folder was last synced.
    strict: Names,
}

impl Disk {
    pub(super) fn apply(&mut self, call: &Call) {
        match call.op {
            op::OPEN => self.open(&call.path, call.number),
            op::WRITE => {
                let at = usize::try_from(call.number).expect("small");
                self.file(&call.path).since.push(Change::Write(at, call.data.clone()));
            }
            op::TRUNCATE => {
                let length = usize::try_from(call.number).expect("small");
                self.file(&call.path).since.push(Change::Length(length));
            }
            op::SYNC => self.sync(&call.path),
            op::RENAME => {
                let target = self.names.remove(&call.path).expect("a known name");
                self.names.insert(String::from_utf8(call.data.clone()).expect("a path of text"), target);
            }
            op::UNLINK => drop(self.names.remove(&call.path)),
            op::MKDIR => drop(self.names.insert(call.path.clone(), None)),
            _ => {}
        }
    }

    fn open(&mut self, path: &str, makes: u64) {
        if makes & 1 == 1 && !self.names.contains_key(path) {
            self.inodes.push(Inode::default());
            self.names.insert(path.to_owned(), Some(self.inodes.len() - 1));
        }
        if makes & 2 == 2 {
            self.file(path).since.push(Change::Length(0));
        }
    }

    fn file(&mut self, path: &str) -> &mut Inode {
        let inode = self.names.get(path).copied().flatten().expect("a known file");
        &mut self.inodes[inode]
    }

    fn sync(&mut self, path: &str) {
        self.journaled = self.names.clone();
        // The root stands for the folder that was there before, which has no name of its own.
        if path.is_empty() || self.names.get(path) == Some(&None) {
            let inside = |name: &String| name.rsplit_once('/').map_or("", |(above, _)| above) == path;
            self.strict.retain(|name, _| !inside(name));
            self.strict.extend(self.names.iter().filter(|(name, _)| inside(name)).map(|(name, target)| (name.clone(), *target)));
        } else {
            let inode = self.file(path);
            for change in std::mem::take(&mut inode.since) {
                change.apply(&mut inode.durable);
            }
        }
    }

    /// Writes what the disk holds after a power cut into an empty folder.
    pub(super) fn image(&self, unsynced: Unsynced, strict_names: bool, into: &Path) {
        let names = match (unsynced, strict_names) {
            (Unsynced::Kept, _) => &self.names,
            (_, true) => &self.strict,
            (_, false) => &self.journaled,
        };
        let mut folders = BTreeSet::from([""]);
        let mut random = Random::new(if let Unsynced::Some { seed, .. } = unsynced { seed } else { 0 });
        for (name, target) in names {
            let above = name.rsplit_once('/').map_or("", |(above, _)| above);
            if !folders.contains(above) {
                continue;
            }
            match target {
                None => {
                    folders.insert(name);
                    fs::create_dir_all(into.join(name)).expect("made");
                }
                Some(inode) => fs::write(into.join(name), self.inodes[*inode].after(unsynced, &mut random)).expect("written"),
            }
        }
    }
}

impl Inode {
    fn after(&self, unsynced: Unsynced, random: &mut Random) -> Vec<u8> {
        let mut content = self.durable.clone();
        for change in &self.since {
            match (unsynced, change) {
                (Unsynced::Lost, _) => {}
                (Unsynced::Kept, change) => change.apply(&mut content),
                (Unsynced::Some { .. }, Change::Length(_)) => {
                    if random.coin() {
                        change.apply(&mut content);
                    }
                }
                (Unsynced::Some { piece, .. }, Change::Write(at, bytes)) => {
                    let mut from = 0;
                    while from < bytes.len() {
                        let to = from.saturating_add(piece - (at + from) % piece).min(bytes.len());
                        if random.coin() {
                            put(&mut content, at + from, &bytes[from..to]);
                        }
                        from = to;
                    }
                }
            }
        }
        content
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => put(content, *at, bytes),
            Self::Length(length) => content.resize(*length, 0),
        }
    }
}

fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}
