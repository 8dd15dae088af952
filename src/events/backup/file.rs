//! A backup file as the storage under a reader: reading commands work on it in place. Nothing is ever written to it.

use std::fs::File;
use std::io::{self, BufReader};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use super::BackupError;
use super::about::About;
use super::entry::{End, Entries, Next};
use crate::events::engine;
use crate::events::log::{LogReader, OpenError, StoredSize};
use crate::events::marks::{self, Mark, Marks, Slot};
use crate::events::retention::Base;
use crate::events::store::{Batch, Removal, Store};
use crate::ids::Seq;

/// Opens a backup file: all of it is read and every checksum checked.
///
/// # Errors
/// See [`BackupError`].
pub fn open(path: &Path) -> Result<Arc<dyn LogReader>, BackupError> {
    let file = File::open(path)?;
    let (mut entries, document) = Entries::of_file(BufReader::with_capacity(256 << 10, &file))?;
    about(&document).map_err(|what| entries.damaged(what))?;
    let (mut places, mut removed, mut numbers, mut base) = (Vec::new(), Vec::new(), Vec::new(), None);
    let end = loop {
        match entries.step()? {
            Some(Next::Block { key, at, bytes }) => places.push(Place { key, at, length: bytes.len() }),
            Some(Next::Removed { key, at, bytes }) => removed.push(Place { key, at, length: bytes.len() }),
            Some(Next::Numbers { subject, bytes }) => numbers.push((subject, bytes)),
            Some(Next::Base(found)) => base = Some(found),
            Some(Next::End(end)) => break end,
            None => return Err(entries.damaged("the file ends before its end")),
        }
    };
    let bytes = file.metadata()?.len();
    let store = BackupStore { marks: marks_of(&end), part: end.whole.is_none(), file, places, removed, numbers, base, bytes };
    let reader = engine::open_for_reading(store).map_err(|error| match error {
        OpenError::Io(error) => BackupError::Io(error),
        other @ (OpenError::Held
        | OpenError::Missing
        | OpenError::ReadOnly(_)
        | OpenError::Full(_)
        | OpenError::Damaged { .. }
        | OpenError::NeedsVersion { .. }) => BackupError::Io(io::Error::other(other)),
    })?;
    Ok(reader)
}

/// What a backup says of itself.
///
/// # Errors
/// In words, when it does not read.
pub(super) fn about(document: &[u8]) -> Result<About, String> {
    serde_json::from_slice(document).map_err(|error| format!("the document in its head does not read: {error}"))
}

/// The file of marks that a folder with these blocks would have: of a part none, because its tree cannot be followed.
fn marks_of(end: &End) -> Vec<u8> {
    let Some(tree) = end.whole.clone() else { return Vec::new() };
    let slot = Marks::default().set_mark(Mark { log: end.log, last: end.last, clean: true, tree });
    let mut bytes = vec![0; marks::FILE];
    let at = usize::try_from(slot.offset).expect("a slot of the file");
    bytes[at..at + slot.bytes.len()].copy_from_slice(&slot.bytes);
    bytes
}

/// Where a block's value is in the file.
#[derive(Debug, Clone, Copy)]
struct Place {
    key: Seq,
    at: u64,
    length: usize,
}

struct BackupStore {
    file: File,
    /// In the order of their keys.
    places: Vec<Place>,
    /// What stays of removed blocks, likewise.
    removed: Vec<Place>,
    numbers: Vec<(String, Vec<u8>)>,
    base: Option<Base>,
    marks: Vec<u8>,
    part: bool,
    bytes: u64,
}

fn read_only<T>() -> io::Result<T> {
    Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem))
}

impl BackupStore {
    fn visit_places(&self, places: &[Place], from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        let behind = places.partition_point(|place| place.key <= from);
        let mut value = Vec::new();
        for place in &places[behind.saturating_sub(1)..] {
            value.resize(place.length, 0);
            self.file.read_exact_at(&mut value, place.at)?;
            if visit(place.key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Store for BackupStore {
    fn visit(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        self.visit_places(&self.places, from, visit)
    }

    fn put(&self, _batch: Batch) -> io::Result<()> {
        read_only()
    }

    fn remove(&self, _removal: Removal) -> io::Result<()> {
        read_only()
    }

    fn visit_removed(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        self.visit_places(&self.removed, from, visit)
    }

    fn visit_numbers(&self, visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>) -> io::Result<()> {
        let _ = self.numbers.iter().try_for_each(|(subject, numbers)| visit(subject, numbers));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        read_only()
    }

    fn read_marks(&self) -> io::Result<Vec<u8>> {
        Ok(self.marks.clone())
    }

    fn write_mark(&self, _slot: &Slot) -> io::Result<()> {
        read_only()
    }

    fn sync_marks(&self) -> io::Result<()> {
        read_only()
    }

    fn needs_newer(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn is_part(&self) -> bool {
        self.part
    }

    fn base(&self) -> Option<Base> {
        self.base.clone()
    }

    fn size(&self) -> io::Result<StoredSize> {
        Ok(StoredSize { bytes: self.bytes, ..StoredSize::default() })
    }
}
