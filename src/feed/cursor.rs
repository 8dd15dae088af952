//! Positions in the feed: `<log-id>:<seq>`, the last record that a reader has. Pure, but for the look at where the log stands.

use crate::events::log::LogReader;
use crate::ids::{LogId, RecordId, Seq};

/// Why a cursor cannot be gone on from (feed.md, "Forms").
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCursor {
    /// It is no cursor.
    #[error("a cursor is LOG-ID:SEQ, 32 hexadecimal digits and a number, as in the id of an event")]
    Malformed,
    /// It is of another log, or of one that lost its tail since.
    #[error("the cursor is of another log; go on from {start}")]
    OtherLog {
        /// The position from which on this log can be read without a gap.
        start: RecordId,
    },
    /// It is beyond the last record.
    #[error("the cursor is ahead of the last record, {head}")]
    Ahead {
        /// The last record.
        head: RecordId,
    },
    /// Records behind it aged out.
    #[error("records after {requested} aged out; what is left is after {minimum}")]
    Pruned {
        /// The cursor.
        requested: RecordId,
        /// The position before the first record that is left.
        minimum: RecordId,
    },
}

/// Reads a cursor.
///
/// # Errors
/// [`BadCursor::Malformed`].
pub fn parse(text: &str) -> Result<RecordId, BadCursor> {
    RecordId::parse(text).ok_or(BadCursor::Malformed)
}

/// The position before the first record that is there.
#[must_use]
pub fn minimum(reader: &dyn LogReader) -> RecordId {
    let kept = reader.removed().map_or(1, |removed| removed.kept.0);
    RecordId { log: reader.id(), seq: Seq(kept.saturating_sub(1)) }
}

/// Where reading goes on after a cursor; without one, where the log begins.
///
/// # Errors
/// Any [`BadCursor`] but a malformed one.
pub fn place(reader: &dyn LogReader, cursor: Option<RecordId>) -> Result<Seq, BadCursor> {
    let (now, minimum) = (reader.acknowledged(), minimum(reader));
    let Some(cursor) = cursor else { return Ok(minimum.seq) };
    if cursor.log != now.log {
        return Err(BadCursor::OtherLog { start: start_of(reader, now.log, minimum, cursor) });
    }
    if cursor.seq > now.head {
        return Err(BadCursor::Ahead { head: RecordId { log: now.log, seq: now.head } });
    }
    if cursor.seq < minimum.seq {
        return Err(BadCursor::Pruned { requested: cursor, minimum });
    }
    Ok(cursor.seq)
}

/// Numbers go on over the logs of one folder: a reader that has a record which is still here goes on behind it, any other from the
/// first record that it can have missed.
fn start_of(reader: &dyn LogReader, log: LogId, minimum: RecordId, cursor: RecordId) -> RecordId {
    let is_here = |seq: Seq| matches!(reader.record(seq), Ok(Some(Ok(stored))) if stored.id() == cursor);
    if cursor.seq >= minimum.seq && is_here(cursor.seq) { RecordId { log, seq: cursor.seq } } else { minimum }
}
