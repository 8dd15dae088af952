//! Erasing what a record says. Its header and its leaf stay, so that every number, root and proof holds as before; that it was erased
//! is a record, stored with the rewritten block as one atomic batch. Knows no store.

use std::io;

use super::block::{Block, BlockError, BlockWriter};
use super::frame::{self, FrameBody, FrameError};
use super::log::AppendError;
use super::record::Kind;
use crate::ids::{LogId, Seq, Subject, Word};

/// The longest reason, bytes.
pub const WHY_MAX: usize = 1_024;

/// What is to be erased, and what is recorded of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    /// The record.
    pub seq: Seq,
    /// What the record of the erasure is about: the daemon.
    pub daemon: Subject,
    /// When it was asked, log time.
    pub time_us: i64,
    /// Who asked: the token's name; empty where nobody was asked for one.
    pub who: Word,
    /// Why, in their words: at most [`WHY_MAX`] bytes.
    pub why: String,
}

/// Why nothing was erased. Nothing was changed either, but after [`NotErased::Append`].
#[derive(Debug, thiserror::Error)]
pub enum NotErased {
    /// No record has that number.
    #[error("there is no record {0}")]
    NoSuchRecord(Seq),
    /// It decides: planning again needs it, and nothing in it is anybody's text.
    #[error("record {seq} decides ({kind}) and is never erased: names and numbers alone are in it")]
    Decides {
        /// Which.
        seq: Seq,
        /// Of which kind.
        kind: String,
    },
    /// Its payload is not there any more.
    #[error("record {0} is erased already")]
    Already(Seq),
    /// The reason is empty or too long.
    #[error("a reason of {0} bytes: 1 to {WHY_MAX}")]
    Why(usize),
    /// What stands for a payload of under 16 bytes is longer than it, and its block is full.
    #[error("record {0} is shorter than what would stand in its place, and its block is full")]
    NoRoom(Seq),
    /// Its block cannot be read.
    #[error("the block of the record: {0}")]
    Block(#[from] BlockError),
    /// It cannot be read.
    #[error("the record: {0}")]
    Frame(#[from] FrameError),
    /// The store does not answer.
    #[error("the log cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The store does not take it: open the log again, and look whether it is erased.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// The block without what that record says, and the log it belongs to.
///
/// # Errors
/// When the record is not there, or may not be erased.
pub(super) fn without(bytes: &[u8], seq: Seq) -> Result<(LogId, Vec<u8>), NotErased> {
    let block = Block::read(bytes)?;
    if !(block.head.first..=block.last()).contains(&seq) {
        return Err(NotErased::NoSuchRecord(seq));
    }
    let mut writer = BlockWriter::new(block.head);
    for ((number, found), stored) in block.records().zip(block.frames()) {
        let withheld = if number == seq { Some(withheld(seq, &found?)?) } else { None };
        let frame = withheld.as_deref().unwrap_or(stored);
        if !writer.has_room(frame.len()) {
            return Err(NotErased::NoRoom(seq));
        }
        writer.push(frame);
    }
    Ok((block.head.log, writer.finish()))
}

fn withheld(seq: Seq, found: &frame::Frame<'_>) -> Result<Vec<u8>, NotErased> {
    if found.decides() {
        let kind = Kind::from_number(found.kind()).map_or("of a newer version", Kind::name);
        return Err(NotErased::Decides { seq, kind: kind.to_owned() });
    }
    match found.body {
        FrameBody::Withheld(_) => Err(NotErased::Already(seq)),
        FrameBody::Whole { .. } => Ok(frame::withhold(found)),
    }
}
