//! What ages out, written as files before it goes: segments of the log in the form of a backup, each followed from what is before it.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::backup::BackupError;
use super::backup::about::About;
use super::backup::write::NewBackup;
use super::block::Block;
use super::folder::make_folder;
use super::log::{LogReader, ReadError};
use super::removed::RemovedBlock;
use super::retention::Base;
use super::tree::Tree;
use crate::ids::{LogId, Seq};

/// How a segment's name ends.
const END: &str = ".wharf-log";

/// A folder of segments.
#[derive(Debug)]
pub struct Archive {
    dir: PathBuf,
    /// Where the last segment that was written ends, so that the leaves before it are read once in a life.
    base: Option<Base>,
}

/// A segment, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The file.
    pub path: PathBuf,
    /// The log of its first record.
    pub log: LogId,
    /// Its first record.
    pub first: Seq,
    /// Its last record.
    pub last: Seq,
}

impl Archive {
    /// In that folder, which is made when it is needed.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf(), base: None }
    }

    /// Writes what is there up to `upto`, where a block and a reaction end; returns when it is on the disk under its name.
    ///
    /// # Errors
    /// See [`BackupError`]; nothing is lost then, and nothing may be removed.
    pub fn write(&mut self, reader: &dyn LogReader, upto: Seq, made_us: i64) -> Result<Segment, BackupError> {
        make_folder(&self.dir)?;
        let base = self.base_of(reader)?;
        let first = first_of(reader)?.ok_or(BackupError::Nothing)?;
        let segment = Segment { path: self.dir.join(name(first.1, first.0, upto)), log: first.1, first: first.0, last: upto };
        let about = About { from: first.0.0, to: upto.0, segment: true, ..About::of(reader, made_us)? };
        let mut new = NewBackup::begin(&segment.path, about)?;
        if let Some(base) = base {
            new.numbers_of(reader)?;
            new.base(base)?;
        }
        let mut failed = Ok(());
        reader.blocks(first.0, &mut |key, bytes| {
            if key > upto {
                return ControlFlow::Break(());
            }
            failed = new.block(key, bytes);
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        failed?;
        let end = new.finish()?;
        self.base = end.whole.map(|tree| Base { log: end.log, last: end.last, tree });
        Ok(segment)
    }

    /// The tree of what aged out so far; `None` when nothing did.
    fn base_of(&self, reader: &dyn LogReader) -> Result<Option<Base>, BackupError> {
        let Some(removed) = reader.removed() else { return Ok(None) };
        if let Some(base) = self.base.as_ref().filter(|base| base.last == removed.to) {
            return Ok(Some(base.clone()));
        }
        let mut base: Option<Base> = None;
        let mut unreadable = None;
        reader.removed_blocks(Seq::NONE, &mut |key, bytes| {
            let Some(block) = RemovedBlock::read(bytes) else {
                unreadable = Some(key);
                return ControlFlow::Break(());
            };
            let mut tree = base.take().filter(|base| base.log == block.head.log).map_or_else(Tree::default, |base| base.tree);
            block.leaves.iter().for_each(|leaf| tree.push(*leaf));
            base = Some(Base { log: block.head.log, last: block.last(), tree });
            ControlFlow::Continue(())
        })?;
        match unreadable {
            Some(seq) => Err(BackupError::Source { seq, what: "what stays of the block does not read".to_owned() }),
            None => Ok(base),
        }
    }
}

fn first_of(reader: &dyn LogReader) -> Result<Option<(Seq, LogId)>, ReadError> {
    let mut first = None;
    reader.blocks(Seq::NONE, &mut |key, bytes| {
        first = Block::read(bytes).ok().map(|block| (key, block.head.log));
        ControlFlow::Break(())
    })?;
    Ok(first)
}

fn name(log: LogId, first: Seq, last: Seq) -> String {
    format!("{log}-{:020}-{:020}{END}", first.0, last.0)
}

fn parse(path: PathBuf) -> Option<Segment> {
    let name = path.file_name()?.to_str()?.strip_suffix(END)?;
    let mut parts = name.split('-');
    let (log, first, last) = (LogId::parse(parts.next()?)?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(Segment { path, log, first: Seq(first), last: Seq(last) })
}

/// The segments in a folder that hold the record.
///
/// # Errors
/// As [`segments`].
pub fn holding(dir: &Path, seq: Seq) -> io::Result<Vec<Segment>> {
    let mut found = segments(dir)?;
    found.retain(|segment| (segment.first..=segment.last).contains(&seq));
    Ok(found)
}

/// The segments in a folder, by their first records; none when there is no such folder.
///
/// # Errors
/// When it cannot be read.
pub fn segments(dir: &Path) -> io::Result<Vec<Segment>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        found.extend(parse(entry?.path()));
    }
    found.sort_by_key(|segment| (segment.first, segment.last));
    Ok(found)
}
