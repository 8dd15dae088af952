//! What tenants wrote, left out of a block for a reader who may not have it: number, header and leaf of each record stay. Pure.

use super::block::{Block, BlockWriter};
use super::frame::{self, Frame, FrameBody, FrameError};
use super::record::Kind;
use crate::ids::Seq;

/// What stands for the texts does not fit their block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the block at {0} has no room for what stands in the place of its texts")]
pub struct NoRoom(pub Seq);

/// The block without what tenants wrote. Nothing of what cannot be read is in it, because nobody knows what it says: a block comes
/// empty, a record without a byte, each of them damage with a name.
///
/// # Errors
/// See [`NoRoom`]: only a text of a few bytes is shorter than its digest.
pub fn without_texts(key: Seq, stored: Vec<u8>) -> Result<Vec<u8>, NoRoom> {
    let Ok(block) = Block::read(&stored) else { return Ok(Vec::new()) };
    let held_back = |found: &Result<Frame<'_>, FrameError>| found.as_ref().map_or(true, is_text);
    if !block.records().any(|(_, found)| held_back(&found)) {
        return Ok(stored);
    }
    let mut writer = BlockWriter::new(block.head);
    for ((_, found), as_stored) in block.records().zip(block.frames()) {
        let withheld = match &found {
            Ok(found) if is_text(found) => Some(frame::withhold(found)),
            Ok(_) => None,
            Err(_) => Some(Vec::new()),
        };
        let frame = withheld.as_deref().unwrap_or(as_stored);
        if !writer.has_room(frame.len()) {
            return Err(NoRoom(key));
        }
        writer.push(frame);
    }
    Ok(writer.finish())
}

/// Whether a tenant wrote it. Of a kind that a newer build wrote nobody knows, unless it decides: nobody's words are in those.
fn is_text(found: &Frame<'_>) -> bool {
    let whole = matches!(found.body, FrameBody::Whole { .. });
    whole && !found.decides() && Kind::from_number(found.kind()).is_none_or(Kind::is_text)
}
