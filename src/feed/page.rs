//! Some of the feed: what comes after a position, bounded by records and bytes. Blocks on the disk.

use std::ops::ControlFlow;

use super::cloudevent::{self, Around};
use super::correlation::Correlation;
use super::cursor::minimum;
use super::filter::Filter;
use crate::events::log::{LogReader, ReadError};
use crate::ids::{LogId, RecordId, Seq};

/// A page ends with the event that brings it to this, bytes.
const BYTES: usize = 256 << 10;

/// The most records that are looked at for a page, whether they are wanted or not.
const RECORDS: usize = 8_192;

/// Some events, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Each with its position, on one line.
    pub events: Vec<(RecordId, String)>,
    /// How far was read: every record up to there is in `events`, or was not wanted.
    pub position: RecordId,
    /// Nothing more is there now.
    pub at_head: bool,
    /// Records behind the position that was asked for aged out before they were read; the first position that is left.
    pub pruned: Option<RecordId>,
}

/// The events after `after`, at most `limit` of them.
///
/// # Errors
/// When the store does not answer.
pub fn page(
    reader: &dyn LogReader,
    after: Seq,
    filter: &Filter,
    around: Around<'_>,
    limit: usize,
    correlation: &mut Correlation,
) -> Result<Page, ReadError> {
    let now = reader.acknowledged();
    let (mut events, mut bytes, mut looked, mut read) = (Vec::new(), 0, 0, after);
    let mut is_full = false;
    let mut failed = None;
    reader.scan_proved(Seq(after.0 + 1), &mut |item, leaf| {
        let seq = item.as_ref().map_or_else(|damage| damage.seq, |stored| stored.header.seq);
        if seq > now.head {
            return ControlFlow::Break(());
        }
        is_full = looked == RECORDS || bytes >= BYTES || events.len() >= limit;
        if is_full {
            return ControlFlow::Break(());
        }
        looked += 1;
        read = seq;
        let (id, line) = match item {
            Ok(stored) => {
                if let Err(error) = correlation.see(reader, &stored) {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
                if !filter.takes(&stored.header) {
                    return ControlFlow::Continue(());
                }
                (position(now.log, seq), cloudevent::line(&stored, leaf, correlation.of(&stored).as_deref(), around))
            }
            // Nothing is passed over in silence, whatever the filter: it may have been wanted.
            Err(damage) => (position(now.log, seq), cloudevent::damaged(now.log, &damage, around)),
        };
        bytes += line.len();
        events.push((id, line));
        ControlFlow::Continue(())
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    // Asked after reading: what ages out meanwhile is not passed over in silence.
    let minimum = minimum(reader);
    let pruned = (after < minimum.seq).then_some(minimum);
    let read = if is_full { read } else { now.head.max(read) };
    Ok(Page { events, position: position(now.log, read), at_head: !is_full, pruned })
}

/// A position is one of the log that is written now, also where the record is of one before it in the same folder.
fn position(log: LogId, seq: Seq) -> RecordId {
    RecordId { log, seq }
}
