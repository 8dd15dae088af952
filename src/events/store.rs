//! What a log needs of the storage under it: ordered blocks, a true sync, and the small file of marks. Knows nothing of records.

use std::io;
use std::ops::ControlFlow;

use super::cache::Cache;
use super::log::StoredSize;
use super::marks::Slot;
use super::retention::Base;
use crate::ids::Seq;

/// Blocks to be stored, with their keys, each as [`Store::pack`] gave it.
pub(super) type Batch = Vec<(Seq, Vec<u8>)>;

/// What is taken out, and what stays of it.
#[derive(Debug, Default)]
pub(super) struct Removal {
    /// The keys of the blocks that go, each with what stays of it.
    pub(super) blocks: Vec<(Seq, Vec<u8>)>,
    /// Subjects, each with where its numbers stand.
    pub(super) numbers: Vec<(String, Vec<u8>)>,
}

/// Storage under a log. Everything takes `&self`, because readers share it with the one writer.
pub(super) trait Store: Send + Sync + 'static {
    /// Visits the blocks in the order of their keys, from the greatest key that is not above `from`.
    fn visit(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()>;

    /// A block as this store keeps it: computed apart from storing it, on whatever thread has time.
    fn pack(block: Vec<u8>) -> Vec<u8>
    where
        Self: Sized,
    {
        block
    }

    /// Stores all blocks of the batch or none; durable only after [`Store::sync`].
    fn put(&self, batch: Batch) -> io::Result<()>;

    /// Takes blocks out and puts what stays of them, all or nothing; durable only after [`Store::sync`].
    fn remove(&self, removal: Removal) -> io::Result<()>;

    /// Visits what stays of removed blocks as [`Store::visit`] visits blocks.
    fn visit_removed(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()>;

    /// Visits the subjects' numbers in the order of their texts.
    fn visit_numbers(&self, visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>) -> io::Result<()>;

    /// Returns when everything that was put survives a power cut.
    fn sync(&self) -> io::Result<()>;

    /// The marks file, whole; empty when it is not there.
    fn read_marks(&self) -> io::Result<Vec<u8>>;

    /// Writes one slot of it, not synced.
    fn write_mark(&self, slot: &Slot) -> io::Result<()>;

    /// Returns when the written slots survive a power cut.
    fn sync_marks(&self) -> io::Result<()>;

    /// Whether a newer build has stored something that must be understood to go on (docs/log-format.md, "The folder").
    fn needs_newer(&self) -> io::Result<bool>;

    /// Whether it holds a part of a log alone: blocks may be missing at its begin or in it, and none of them is lost.
    fn is_part(&self) -> bool {
        false
    }

    /// What is before the first block, when it is elsewhere and its leaves are too.
    fn base(&self) -> Option<Base> {
        None
    }

    /// Where values are kept that may be lost; `None` where none are.
    fn cache(&self) -> Option<&dyn Cache> {
        None
    }

    /// Bytes and blobs; the rest is counted above.
    fn size(&self) -> io::Result<StoredSize>;
}
