//! The log in memory, over a disk that can fail and lose what was not synced: for tests and the simulation.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cache::{self, Cache, Change};
use super::engine::{self, Engine};
use super::erase::{Erasure, NotErased};
use super::log::{AppendError, EventLog, LogReader, OpenError, OpenOptions, Opened, StoredSize};
use super::marks::{self, Slot};
use super::record::{Reaction, Record};
use super::retention::{NotRemoved, Removed};
use super::store::{Batch, Removal, Store};
use crate::clock::{Clock, Entropy};
use crate::ids::Seq;

/// A disk that outlives the logs on it; clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemDisk(Arc<Mutex<Disk>>);

#[derive(Debug, Clone, Default)]
struct Left {
    removed: BTreeMap<Seq, Vec<u8>>,
    numbers: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Default)]
struct Disk {
    blocks: BTreeMap<Seq, Vec<u8>>,
    /// What a power cut leaves of the blocks that were written since the last sync: each as it was before, if it was there.
    unsynced: BTreeMap<Seq, Option<Vec<u8>>>,
    /// What stays of removed blocks, and the subjects' numbers; and what of both a power cut leaves.
    left: Left,
    unsynced_left: Option<Left>,
    /// Survives every power cut, so that it can be ahead of the blocks.
    cached: BTreeMap<Vec<u8>, Vec<u8>>,
    marks: Vec<u8>,
    durable_marks: Vec<u8>,
    fault: Option<MemFault>,
    /// Counts power cuts: a store of an earlier life cannot write any more.
    life: u64,
}

/// What goes wrong next, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemFault {
    /// There is no room for the next batch.
    Full,
    /// The next batch is written and its sync fails: it may survive a power cut or not.
    Sync,
}

/// What a power cut leaves of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    /// Nothing: all of it is lost.
    Lost,
    /// The blocks are lost, the marks file is kept.
    MarksKept,
    /// Everything is kept: the process was killed, the machine went on.
    Kept,
}

impl MemDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next write go wrong.
    pub fn fail(&self, fault: MemFault) {
        self.disk().fault = Some(fault);
    }

    /// Cuts the power. Every log that is open on it stops; open it again.
    pub fn crash(&self, unsynced: Unsynced) {
        let mut disk = self.disk();
        if unsynced == Unsynced::Lost {
            disk.marks = disk.durable_marks.clone();
        }
        if unsynced != Unsynced::Kept {
            if let Some(left) = disk.unsynced_left.take() {
                disk.left = left;
            }
            for (key, before) in std::mem::take(&mut disk.unsynced) {
                match before {
                    Some(block) => drop(disk.blocks.insert(key, block)),
                    None => drop(disk.blocks.remove(&key)),
                }
            }
        }
        disk.unsynced.clear();
        disk.unsynced_left = None;
        disk.durable_marks = disk.marks.clone();
        disk.fault = None;
        disk.life += 1;
    }

    /// Loses every mark, and keeps the ceilings.
    pub fn tear_marks(&self) {
        let mut disk = self.disk();
        let marks = disk.marks.len().min(2 * marks::SLOT);
        disk.marks[marks..].fill(0);
        disk.durable_marks = disk.marks.clone();
    }

    /// Changes what is stored, durably: a disk that lies, or somebody who writes to it.
    pub fn edit(&self, change: impl FnOnce(&mut BTreeMap<Seq, Vec<u8>>)) {
        change(&mut self.disk().blocks);
    }

    /// The same for what stays of removed blocks.
    pub fn edit_removed(&self, change: impl FnOnce(&mut BTreeMap<Seq, Vec<u8>>)) {
        change(&mut self.disk().left.removed);
    }

    /// Changes what is cached.
    pub fn edit_cached(&self, change: impl FnOnce(&mut BTreeMap<Vec<u8>, Vec<u8>>)) {
        change(&mut self.disk().cached);
    }

    /// The same for the marks file.
    pub fn edit_marks(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut disk = self.disk();
        change(&mut disk.marks);
        disk.durable_marks = disk.marks.clone();
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A log in memory. See [`EventLog`].
pub struct MemLog(Engine<MemStore>);

impl MemLog {
    /// Opens the log on that disk, or makes one.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(disk: &MemDisk, clock: &Clock, entropy: Entropy, options: &OpenOptions) -> Result<(Self, Opened), OpenError> {
        let (engine, opened) = Engine::open(MemStore::new(disk), clock, entropy, options)?;
        Ok((Self(engine), opened))
    }

    /// Opens the log on that disk for reading alone.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_for_reading(disk: &MemDisk) -> Result<Arc<dyn LogReader>, OpenError> {
        let reader = engine::open_for_reading(MemStore::new(disk))?;
        Ok(reader)
    }
}

impl EventLog for MemLog {
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError> {
        self.0.append(reactions)
    }

    fn append_taking(&mut self, reactions: &mut Vec<Reaction>) -> Result<Vec<Vec<Record>>, AppendError> {
        self.0.append_taking(reactions)
    }

    fn erase(&mut self, erasure: &Erasure) -> Result<Record, NotErased> {
        self.0.erase(erasure)
    }

    fn remove(&mut self, upto: Seq) -> Result<Option<Removed>, NotRemoved> {
        self.0.remove(upto)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.0.reader()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        Box::new(self.0).close()
    }
}

struct MemStore {
    disk: MemDisk,
    life: u64,
}

impl MemStore {
    fn new(disk: &MemDisk) -> Self {
        let life = disk.disk().life;
        Self { disk: disk.clone(), life }
    }

    fn alive(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.disk.disk();
        if disk.life == self.life { Ok(disk) } else { Err(io::Error::other("the power was cut")) }
    }
}

impl MemStore {
    fn writable(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let mut disk = self.alive()?;
        if disk.fault == Some(MemFault::Full) {
            disk.fault = None;
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(disk)
    }

    fn each(
        &self,
        of: impl Fn(&Disk) -> &BTreeMap<Seq, Vec<u8>>,
        from: Seq,
        visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut at = of(&self.disk.disk()).range(..=from).next_back().map_or(from, |(key, _)| *key);
        // A value at a time, so that the visitor may append.
        loop {
            let next = of(&self.disk.disk()).range(at..).next().map(|(key, value)| (*key, value.clone()));
            let Some((key, value)) = next else { return Ok(()) };
            if visit(key, &value).is_break() {
                return Ok(());
            }
            let Some(next) = key.0.checked_add(1) else { return Ok(()) };
            at = Seq(next);
        }
    }
}

impl Store for MemStore {
    fn visit(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        self.each(|disk| &disk.blocks, from, visit)
    }

    fn remove(&self, removal: Removal) -> io::Result<()> {
        let mut disk = self.writable()?;
        if disk.unsynced_left.is_none() {
            disk.unsynced_left = Some(disk.left.clone());
        }
        for (key, leaves) in removal.blocks {
            let before = disk.blocks.remove(&key);
            disk.unsynced.entry(key).or_insert(before);
            disk.left.removed.insert(key, leaves);
        }
        disk.left.numbers.extend(removal.numbers);
        Ok(())
    }

    fn visit_removed(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        self.each(|disk| &disk.left.removed, from, visit)
    }

    fn visit_numbers(&self, visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        let all = self.disk.disk().left.numbers.clone();
        let _ = all.iter().try_for_each(|(subject, numbers)| visit(subject, numbers));
        Ok(())
    }

    fn put(&self, batch: Batch) -> io::Result<()> {
        let mut disk = self.writable()?;
        for (key, block) in batch {
            let before = disk.blocks.insert(key, block);
            disk.unsynced.entry(key).or_insert(before);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.alive()?;
        if disk.fault == Some(MemFault::Sync) {
            disk.fault = None;
            return Err(io::Error::other("the sync failed"));
        }
        disk.unsynced.clear();
        disk.unsynced_left = None;
        Ok(())
    }

    fn read_marks(&self) -> io::Result<Vec<u8>> {
        Ok(self.disk.disk().marks.clone())
    }

    fn write_mark(&self, slot: &Slot) -> io::Result<()> {
        let mut disk = self.alive()?;
        let at = usize::try_from(slot.offset).map_err(io::Error::other)?;
        disk.marks.resize(marks::FILE, 0);
        disk.marks[at..at + slot.bytes.len()].copy_from_slice(&slot.bytes);
        Ok(())
    }

    fn sync_marks(&self) -> io::Result<()> {
        let mut disk = self.alive()?;
        disk.durable_marks = disk.marks.clone();
        Ok(())
    }

    fn needs_newer(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn cache(&self) -> Option<&dyn Cache> {
        Some(self)
    }

    fn size(&self) -> io::Result<StoredSize> {
        let bytes = self.disk.disk().blocks.values().map(|block| block.len() as u64).sum();
        Ok(StoredSize { bytes, ..StoredSize::default() })
    }
}

impl Cache for MemStore {
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.disk.disk().cached.get(key).cloned())
    }

    fn each(&self, visit: &mut cache::Visit<'_>) -> io::Result<()> {
        let all = self.disk.disk().cached.clone();
        let _ = all.iter().try_for_each(|(key, value)| visit(key, value));
        Ok(())
    }

    fn change(&self, changes: Vec<Change>) -> io::Result<()> {
        let mut disk = self.alive()?;
        for (key, value) in changes {
            match value {
                Some(value) => drop(disk.cached.insert(key, value)),
                None => drop(disk.cached.remove(&key)),
            }
        }
        Ok(())
    }
}
