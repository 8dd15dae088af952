//! A log, or a part of it, as one file to hand on: made, read in place, restored. Knows blocks as they are stored, and of their
//! records only what the chain needs.
//!
//! docs/log-format.md, "Backup file", is the specification.

pub mod about;
pub mod entry;
pub mod file;
mod follow;
pub mod restore;
pub mod select;
pub mod write;

use std::io;

use super::log::ReadError;
use crate::ids::Seq;

impl From<ReadError> for BackupError {
    fn from(ReadError(error): ReadError) -> Self {
        Self::Io(error)
    }
}

/// Why a backup cannot be made, read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Reading or writing failed: look at the disk.
    #[error("cannot read or write it: {0}")]
    Io(#[from] io::Error),
    /// It is no backup file at all.
    #[error("it is no backup file")]
    NotOne,
    /// A newer build wrote it.
    #[error("a newer build is needed: {0}")]
    Newer(String),
    /// It is cut, or changed since it was made.
    #[error("at byte {at}, after record {after}: {what}")]
    Damaged {
        /// Where in the file.
        at: u64,
        /// The last record before that place; [`Seq::NONE`] for none.
        after: Seq,
        /// What is wrong.
        what: String,
    },
    /// What was to be kept is not a log that can be kept whole.
    #[error("at {seq}: {what}")]
    Source {
        /// The block's first record.
        seq: Seq,
        /// What is wrong.
        what: String,
    },
    /// Nothing is in the range that was asked for.
    #[error("no record is in that range")]
    Nothing,
    /// It holds a part of a log, and only a whole one can be restored.
    #[error("it holds a part of a log, and only a whole one can be restored")]
    Part,
}
