//! The log on disk: the only file that names sled. Knows blocks as bytes; what is in them is the engine's.
//!
//! A folder holds `store/` (sled's), `marks` (src/events/marks.rs) and `lock`. What this file does besides calling sled, and
//! why, is measured in DESIGN.md, "The log": sled's own flush does not survive a power cut, its `conf` and its folder are never
//! synced, and a value above a quarter of the segment leaves the store for a file that is never synced either.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ahead::{Take, read_ahead};
use super::cache::{self, Cache, Change};
use super::dividers;
use super::engine::{self, Engine};
use super::erase::{Erasure, NotErased};
use super::folder::{close_to_others, lock, make_folder, parent, remove_unusable_snapshots, repair_conf, sync_path, wait_for_threads};
use super::keys::{
    BLOCK_KEY, CACHE_KEY, DIVIDED_KEY, LEAVES_KEY, NUMBERS_KEY, cache_key, divider_key, divider_of, key, key_of, leaves_key, numbers_key,
    place_of, seq_of,
};
use super::log::{AppendError, EventLog, LogReader, OpenError, OpenOptions, Opened, StoredSize};
use super::marks::{self, Slot};
use super::packed::{pack, unpack};
use super::record::{Reaction, Record};
use super::renew;
use super::retention::{NotRemoved, Removed};
use super::store::{Batch, Removal, Store};
use crate::clock::{Clock, Entropy};
use crate::ids::Seq;

/// Fixed when the store is created: a block of 24 KiB, and a full leaf of them, stay below a quarter of it.
const SEGMENT: usize = 2 << 20;

/// sled's own default is 1 GiB. Whatever is read again soon is in the page cache too, packed.
const CACHE: u64 = 32 << 20;

/// How often a walk asks again for what it leaves behind. sled's cache has 256 parts, and each puts something out only when it was
/// asked 64 times: a walk that asks for each value once would keep 256 times what a few leaves take.
const ASKED_AGAIN: usize = 4;

/// Values that a walk reads itself before the rest is read ahead: who looks for one record shall not start a thread.
const ALONE: usize = 4;

/// How sled keeps its files. A store is always opened with the segment it was made with.
#[derive(Debug, Clone, Copy)]
pub struct Tuning {
    /// A segment, bytes.
    pub segment: usize,
    /// Between two garbage collections, milliseconds: sled collects in its flusher and nowhere else.
    pub collect_every_ms: u64,
}

impl Tuning {
    /// What every store is opened with; tests alone use another, to see much happen in a small file. The time is sled's default.
    pub const USUAL: Self = Self { segment: SEGMENT, collect_every_ms: 500 };
}

/// A log in a folder. See [`EventLog`].
pub struct SledLog {
    engine: Engine<SledStore>,
    dir: PathBuf,
}

impl SledLog {
    /// Opens the log of that folder, or makes one, with mode 0700.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(dir: &Path, clock: &Clock, entropy: Entropy, options: &OpenOptions) -> Result<(Self, Opened), OpenError> {
        Self::open_tuned(dir, clock, entropy, options, Tuning::USUAL)
    }

    /// The same with files that are kept otherwise: for tests.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_tuned(
        dir: &Path,
        clock: &Clock,
        entropy: Entropy,
        options: &OpenOptions,
        tuning: Tuning,
    ) -> Result<(Self, Opened), OpenError> {
        make_folder(dir).map_err(engine::open_error)?;
        close_to_others(dir).map_err(engine::open_error)?;
        let lock = lock(dir)?;
        renew::finish(dir).map_err(engine::open_error)?;
        if renew::is_asked(dir)
            && let Err(error) = renew::renew(dir, &lock)
        {
            tracing::warn!(%error, "the store cannot be written anew: what was erased may still be in its file");
        }
        let store = SledStore::open(dir, lock, Access::Writing { extra_sync: options.extra_sync }, tuning)?;
        let (engine, opened) = Engine::open(store, clock, entropy, options)?;
        Ok((Self { engine, dir: dir.to_path_buf() }, opened))
    }

    /// Opens the log of that folder for reading alone: appends nothing and leaves marks and ceiling as they are. The store may
    /// tidy its own files, as it does at every opening.
    ///
    /// # Errors
    /// See [`OpenError`]; a damaged log opens, and its reader names what is damaged.
    pub fn open_for_reading(dir: &Path) -> Result<Arc<dyn LogReader>, OpenError> {
        if !dir.join("store/db").exists() && !renew::is_begun(dir) {
            return Err(OpenError::Missing);
        }
        let lock = lock(dir)?;
        renew::finish(dir).map_err(engine::open_error)?;
        let reader = engine::open_for_reading(SledStore::open(dir, lock, Access::Reading, Tuning::USUAL)?)?;
        Ok(reader)
    }

    /// Writes the store of that folder anew, so that nothing of what was taken out of a block is left in its file. Takes as much
    /// room again while it runs; a crash at any point leaves the one or the other.
    ///
    /// # Errors
    /// See [`OpenError`]; the store is then as it was.
    pub fn renew(dir: &Path) -> Result<(), OpenError> {
        renew::renew(dir, &lock(dir)?)
    }
}

impl EventLog for SledLog {
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError> {
        self.engine.append(reactions)
    }

    fn append_taking(&mut self, reactions: &mut Vec<Reaction>) -> Result<Vec<Vec<Record>>, AppendError> {
        self.engine.append_taking(reactions)
    }

    fn erase(&mut self, erasure: &Erasure) -> Result<Record, NotErased> {
        // Before it is erased, so that a crash cannot come between: writing the store anew for nothing is no harm.
        let was_asked = renew::is_asked(&self.dir);
        renew::ask(&self.dir).map_err(NotErased::Read)?;
        let erased = self.engine.erase(erasure);
        let nothing_done = erased.as_ref().is_err_and(|error| !matches!(error, NotErased::Append(_)));
        if nothing_done && !was_asked {
            renew::not_any_more(&self.dir).map_err(NotErased::Read)?;
        }
        erased
    }

    fn remove(&mut self, upto: Seq) -> Result<Option<Removed>, NotRemoved> {
        self.engine.remove(upto)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.engine.reader()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        Box::new(self.engine).close()
    }
}

/// Makes a store that is to be filled with blocks as they are.
pub(super) fn make_store(dir: &Path) -> Result<SledStore, OpenError> {
    make_folder(dir).map_err(engine::open_error)?;
    SledStore::open(dir, lock(dir)?, Access::Writing { extra_sync: true }, Tuning::USUAL)
}

/// Closes a store and returns when nothing writes to its folder any more.
pub(super) fn leave_store(store: SledStore, dir: &Path) -> Result<(), OpenError> {
    drop(store);
    wait_for_threads(&dir.join("store/db"))
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Reading alone: a marks file that is missing or cut stays so.
    Reading,
    /// Appending too; whether its data file is synced after sled's flush.
    Writing { extra_sync: bool },
}

pub(super) struct SledStore {
    /// There until the store is dropped.
    db: Option<sled::Db>,
    /// sled's data file by a descriptor of our own: what is synced before anything is acknowledged.
    data: File,
    /// `None` only when it is opened for reading and there is none.
    marks: Option<File>,
    blobs: std::path::PathBuf,
    extra_sync: bool,
    /// fdatasync calls so far.
    syncs: AtomicU64,
    /// The last divider that was put.
    divided: AtomicU64,
    /// Held as long as the store is open; released after it, because fields are dropped in order.
    _lock: File,
}

impl SledStore {
    fn open(dir: &Path, lock: File, access: Access, tuning: Tuning) -> Result<Self, OpenError> {
        Self::open_at(dir, &dir.join("store"), lock, access, tuning)
    }

    /// The store of a log's folder, under another name than its own.
    pub(super) fn open_at(dir: &Path, path: &Path, lock: File, access: Access, tuning: Tuning) -> Result<Self, OpenError> {
        let conf = path.join("conf");
        repair_conf(&conf).and_then(|()| remove_unusable_snapshots(path)).map_err(engine::open_error)?;
        wait_for_threads(&path.join("db"))?;
        let config = sled::Config::new().path(path).segment_size(tuning.segment).cache_capacity(CACHE);
        let config = config.flush_every_ms(Some(tuning.collect_every_ms));
        // sled takes some damage for a broken promise of its own code, and panics.
        let db = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| config.open()))
            .map_err(|_| OpenError::Damaged { seq: Seq::NONE, what: "the store cannot be opened at all".to_owned() })?
            .map_err(|error| engine::open_error(from_sled(error)))?;
        Self::beside(dir, path, db, lock, access).map_err(engine::open_error)
    }

    fn beside(dir: &Path, path: &Path, db: sled::Db, lock: File, access: Access) -> io::Result<Self> {
        let data = File::open(path.join("db"))?;
        let (blobs, syncs, divided) = (path.join("blobs"), AtomicU64::new(0), AtomicU64::new(last_divider(&db)?.0));
        let Access::Writing { extra_sync } = access else {
            let marks = match File::open(dir.join("marks")) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                marks => Some(marks?),
            };
            return Ok(Self { db: Some(db), data, marks, blobs, extra_sync: false, syncs, divided, _lock: lock });
        };
        let marks = File::options().create(true).truncate(false).read(true).write(true).open(dir.join("marks"))?;
        let length = usize::try_from(marks.metadata()?.len()).unwrap_or(marks::FILE);
        if length < marks::FILE {
            // Written, not only lengthened: a ceiling must find its place when the disk is full.
            marks.write_all_at(&[0; marks::FILE][length..], length as u64)?;
            marks.sync_all()?;
        }
        sync_path(&path.join("conf"))?;
        data.sync_all()?;
        sync_path(path)?;
        sync_path(dir)?;
        sync_path(parent(dir))?;
        Ok(Self { db: Some(db), data, marks: Some(marks), blobs, extra_sync, syncs, divided, _lock: lock })
    }
}

impl SledStore {
    /// Copies everything, durably: also what a newer build has put there.
    pub(super) fn copy_to(&self, other: &Self) -> io::Result<()> {
        for found in self.db().iter() {
            let (key, value) = found.map_err(from_sled)?;
            other.db().insert(key, value).map_err(from_sled)?;
        }
        other.sync()
    }

    pub(super) fn db(&self) -> &sled::Db {
        self.db.as_ref().expect("it is taken by drop alone")
    }

    /// Puts and removes, all or nothing.
    fn apply(&self, changes: impl Iterator<Item = Change>) -> io::Result<()> {
        let mut all = sled::Batch::default();
        for (key, value) in changes {
            match value {
                Some(value) => all.insert(key, value),
                None => all.remove(key),
            }
        }
        self.db().apply_batch(all).map_err(from_sled)
    }

    /// The values of a letter in the order of their seqs, from the greatest that is not above `from`. Whoever wants more than a few
    /// gets the rest read ahead.
    fn visit_values(&self, letter: u8, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        let key = |seq| key_of(letter, seq);
        let mut before = self.db().range(key(Seq::NONE)..=key(from)).rev();
        let before = before.find_map(|found| found.map(|(key, _)| seq_of(&key)).transpose());
        let first = before.transpose().map_err(from_sled)?.unwrap_or(from);
        let (mut few, mut further, mut room) = (ALONE, None, Vec::new());
        self.walk(letter, &key(first), &mut |key, value| {
            if few == 0 {
                further = Some(key.to_vec());
                return ControlFlow::Break(());
            }
            few -= 1;
            match Found::of(letter, key, value) {
                Found::Nothing => ControlFlow::Continue(()),
                found @ (Found::Value(_) | Found::Foreign(_)) => visit(found.put(letter, value, &mut room), &room),
            }
        })?;
        let Some(further) = further else { return Ok(()) };
        let read = |take: &mut Take<'_, (Seq, Vec<u8>)>| {
            self.walk(letter, &further, &mut |key, value| match Found::of(letter, key, value) {
                Found::Nothing => ControlFlow::Continue(()),
                found @ (Found::Value(_) | Found::Foreign(_)) => take(&mut |place| place.0 = found.put(letter, value, &mut place.1)),
            })
        };
        read_ahead(read, &mut |(seq, value)| visit(*seq, value))
    }

    /// Keys of a letter and their values, from that key on.
    fn walk(&self, letter: u8, from: &[u8], take: &mut Walked<'_>) -> io::Result<()> {
        for found in self.db().range(from.to_vec()..vec![letter + 1]) {
            let (key, value) = found.map_err(from_sled)?;
            if take(&key, &value).is_break() {
                break;
            }
            // A divider takes nothing.
            for _ in 0..if value.is_empty() { 0 } else { ASKED_AGAIN } {
                self.db().contains_key(&key).map_err(from_sled)?;
            }
        }
        Ok(())
    }

    /// The dividers up to that block: they have nothing to divide any more once it is gone.
    fn dividers_to(&self, last: Seq) -> io::Result<Vec<Vec<u8>>> {
        let mut dividers = Vec::new();
        for found in self.db().range(key(Seq::NONE)..key(last)) {
            let (key, value) = found.map_err(from_sled)?;
            if divider_of(&key, &value).is_some() {
                dividers.push(key.to_vec());
            }
        }
        Ok(dividers)
    }

    /// Divides the tree where these blocks go, before them: outside of their batch, because it says nothing.
    fn divide(&self, batch: &Batch) -> io::Result<()> {
        let bytes: usize = batch.iter().map(|(_, value)| value.len()).sum();
        let Some(last) = batch.iter().map(|(seq, _)| *seq).max().filter(|_| bytes >= dividers::WORTHWHILE) else { return Ok(()) };
        let divided = Seq(self.divided.load(Ordering::Relaxed));
        for (place, seq) in dividers::wanted(divided, last).enumerate() {
            if place == 0 && divided == Seq::NONE {
                self.db().insert(DIVIDED_KEY, &[]).map_err(from_sled)?;
            }
            self.db().insert(divider_key(seq), &[]).map_err(from_sled)?;
            self.divided.store(seq.0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn marks_file(&self) -> io::Result<&File> {
        self.marks.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn sync_file(&self, file: &File) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        file.sync_data()
    }
}

/// sled syncs its file when it is dropped, and panics when that fails: the log has failed by then, and its owner goes on.
impl Drop for SledStore {
    fn drop(&mut self) {
        let db = self.db.take();
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(db))).is_err() {
            tracing::warn!("the store could not be closed");
        }
    }
}

/// Takes keys and values, and may end the walk.
type Walked<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// What a key among those of a letter is.
enum Found {
    Value(Seq),
    /// A divider.
    Nothing,
    /// What lies under no such key is no such value, whatever it is: damage with a name, which hides nothing.
    Foreign(Seq),
}

impl Found {
    fn of(letter: u8, key: &[u8], value: &[u8]) -> Self {
        match seq_of(key) {
            Some(seq) => Self::Value(seq),
            None if letter == BLOCK_KEY && divider_of(key, value).is_some() => Self::Nothing,
            None => Self::Foreign(place_of(key)),
        }
    }

    /// Writes what is to be visited, and gives its place.
    fn put(&self, letter: u8, value: &[u8], out: &mut Vec<u8>) -> Seq {
        match *self {
            Self::Value(seq) if letter == BLOCK_KEY => {
                unpack(value, out);
                seq
            }
            Self::Value(seq) => {
                value.clone_into(out);
                seq
            }
            Self::Nothing => {
                out.clear();
                Seq::NONE
            }
            Self::Foreign(place) => {
                out.clear();
                place
            }
        }
    }
}

fn last_divider(db: &sled::Db) -> io::Result<Seq> {
    let last = db.range([BLOCK_KEY]..[BLOCK_KEY + 1]).next_back().transpose().map_err(from_sled)?;
    Ok(last.and_then(|(key, value)| divider_of(&key, &value)).unwrap_or(Seq::NONE))
}

fn from_sled(error: sled::Error) -> io::Error {
    match error {
        sled::Error::Io(error) => error,
        sled::Error::Corruption { .. } => io::Error::new(io::ErrorKind::InvalidData, error),
        sled::Error::CollectionNotFound(_) | sled::Error::Unsupported(_) | sled::Error::ReportableBug(_) => io::Error::other(error),
    }
}

impl Store for SledStore {
    fn visit(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        self.visit_values(BLOCK_KEY, from, visit)
    }

    fn pack(block: Vec<u8>) -> Vec<u8> {
        pack(block)
    }

    fn put(&self, batch: Batch) -> io::Result<()> {
        self.divide(&batch)?;
        if let [(seq, value)] = batch.as_slice() {
            self.db().insert(key(*seq), value.as_slice()).map_err(from_sled)?;
            return Ok(());
        }
        let mut all = sled::Batch::default();
        for (seq, value) in batch {
            all.insert(&key(seq), value);
        }
        self.db().apply_batch(all).map_err(from_sled)
    }

    fn remove(&self, removal: Removal) -> io::Result<()> {
        let Removal { blocks, numbers } = removal;
        let last = blocks.iter().map(|(seq, _)| *seq).max().unwrap_or(Seq::NONE);
        let dividers = self.dividers_to(last)?.into_iter().map(|divider| (divider, None));
        let blocks = blocks.into_iter().flat_map(|(seq, leaves)| [(key(seq).to_vec(), None), (leaves_key(seq).to_vec(), Some(leaves))]);
        self.apply(dividers.chain(blocks).chain(numbers.into_iter().map(|(subject, numbers)| (numbers_key(&subject), Some(numbers)))))
    }

    fn visit_removed(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        self.visit_values(LEAVES_KEY, from, visit)
    }

    fn visit_numbers(&self, visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        for found in self.db().scan_prefix([NUMBERS_KEY]) {
            let (key, numbers) = found.map_err(from_sled)?;
            if visit(&String::from_utf8_lossy(&key[1..]), &numbers).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.db().flush().map_err(from_sled)?;
        if self.extra_sync { self.sync_file(&self.data) } else { Ok(()) }
    }

    fn read_marks(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; marks::FILE];
        let length = self.marks.as_ref().map_or(Ok(0), |marks| marks.read_at(&mut bytes, 0))?;
        bytes.truncate(length);
        Ok(bytes)
    }

    fn write_mark(&self, slot: &Slot) -> io::Result<()> {
        self.marks_file()?.write_all_at(&slot.bytes, slot.offset)
    }

    fn sync_marks(&self) -> io::Result<()> {
        self.sync_file(self.marks_file()?)
    }

    fn needs_newer(&self) -> io::Result<bool> {
        let known = |key: &[u8]| key == DIVIDED_KEY || key.first() == Some(&NUMBERS_KEY);
        let capital = self.db().range([b'A']..[b'Z' + 1]).map(|found| found.map(|(key, _)| key));
        let mut unknown = capital.filter(|key| !matches!(key, Ok(key) if known(key)));
        unknown.next().transpose().map(|found| found.is_some()).map_err(from_sled)
    }

    fn cache(&self) -> Option<&dyn Cache> {
        Some(self)
    }

    fn size(&self) -> io::Result<StoredSize> {
        let bytes = self.db().size_on_disk().map_err(from_sled)?;
        let blobs = fs::read_dir(&self.blobs)?.count() as u64;
        Ok(StoredSize { bytes, blobs, syncs: self.syncs.load(Ordering::Relaxed), ..StoredSize::default() })
    }
}

impl Cache for SledStore {
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.db().get(cache_key(key)).map_err(from_sled)?.map(|value| value.to_vec()))
    }

    fn each(&self, visit: &mut cache::Visit<'_>) -> io::Result<()> {
        for found in self.db().scan_prefix([CACHE_KEY]) {
            let (key, value) = found.map_err(from_sled)?;
            if visit(&key[1..], &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn change(&self, changes: Vec<Change>) -> io::Result<()> {
        self.apply(changes.into_iter().map(|(key, value)| (cache_key(&key), value)))
    }
}
