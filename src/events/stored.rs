//! A stored record as it is read back: known, opaque, withheld or damaged, each by name. Knows no store.

use std::ops::ControlFlow;

use super::block::{Block, BlockError};
use super::codec::{self, BINCODE_2_STANDARD, CodecError};
use super::frame::{Frame, FrameBody, FrameError};
use super::record::{Event, Header, Kind};
use crate::ids::{LogId, RecordId, Seq, Subject};

/// One record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Which log it belongs to.
    pub log: LogId,
    /// Its leaf's index in that log's tree.
    pub position: u64,
    /// Where and when.
    pub header: Header,
    /// How many records of its reaction come after it.
    pub following: u16,
    /// What.
    pub body: Body,
}

impl StoredRecord {
    /// Its name outside the log.
    #[must_use]
    pub fn id(&self) -> RecordId {
        RecordId { log: self.log, seq: self.header.seq }
    }
}

/// What a stored record says.
#[expect(clippy::large_enum_variant, reason = "nearly every record is an event, and a scan holds one at a time")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// An event of this build.
    Known(Event),
    /// It only informs, and a newer build wrote it: the payload as stored.
    Opaque(Vec<u8>),
    /// It decides, and a newer build wrote it: whoever folds must stop here.
    NeedsVersion(Vec<u8>),
    /// Its payload was erased or is left out.
    Withheld,
}

/// A record that is there and cannot be read, or a block of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {seq}: {fault}", if *.whole_block { "the block at" } else { "record" })]
pub struct Damage {
    /// The record, or the block's first.
    pub seq: Seq,
    /// Whether the whole block is concerned.
    pub whole_block: bool,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with stored bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The block.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The record around its payload.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The payload.
    #[error(transparent)]
    Payload(#[from] CodecError),
    /// It is about a kind of subject that a newer build knows.
    #[error("the subject is not known to this build")]
    NewerSubject,
    /// It is not where its number says.
    #[error("it says that it is {0}")]
    Misplaced(Seq),
}

impl Fault {
    /// Whether a newer build could read it.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Block(BlockError::Newer(_)) | Self::Frame(FrameError::Newer { .. }) | Self::NewerSubject)
    }
}

/// One record of a scan: bad ones are named and hide no other.
pub type Item = Result<StoredRecord, Damage>;

/// Takes the records of a scan, and may end it.
pub type Visit<'a> = dyn FnMut(Item) -> ControlFlow<()> + 'a;

/// Whose payloads are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payloads {
    /// Every record's.
    All,
    /// Those of what decides; the others are left out.
    Deciding,
}

/// The records of a block from `from` on, of one subject or of all.
pub(super) fn each_item(
    key: Seq,
    bytes: &[u8],
    from: Seq,
    subject: Option<&str>,
    payloads: Payloads,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let mut former = None;
    let block = match Block::read(bytes) {
        Ok(block) => block,
        Err(error) => return visit(Err(Damage { seq: key, whole_block: true, fault: error.into() })),
    };
    if block.head.first != key {
        return visit(Err(Damage { seq: key, whole_block: true, fault: Fault::Misplaced(block.head.first) }));
    }
    for (seq, frame) in block.records() {
        let wanted = match &frame {
            Ok(frame) => subject.is_none_or(|subject| subject == frame.subject),
            Err(_) => subject.is_none(),
        };
        if seq >= from && wanted {
            let position = block.head.before.size.saturating_add(seq.0 - block.head.first.0);
            let item = frame.map_err(Fault::from).and_then(|frame| stored(block.head.log, position, seq, &frame, payloads, &mut former));
            visit(item.map_err(|fault| Damage { seq, whole_block: false, fault }))?;
        }
    }
    ControlFlow::Continue(())
}

/// `former` is the last subject of the block and its text: a reaction's records have one, and parsing is a good part of reading.
fn stored<'a>(
    log: LogId,
    position: u64,
    seq: Seq,
    frame: &Frame<'a>,
    payloads: Payloads,
    former: &mut Option<(&'a str, Subject)>,
) -> Result<StoredRecord, Fault> {
    if frame.seq() != seq {
        return Err(Fault::Misplaced(frame.seq()));
    }
    let subject = match former {
        Some((text, subject)) if *text == frame.subject => subject.clone(),
        _ => {
            let subject = Subject::parse(frame.subject).map_err(|_| Fault::NewerSubject)?;
            former.insert((frame.subject, subject)).1.clone()
        }
    };
    let header = frame.decoded_about(subject);
    let body = match frame.body {
        FrameBody::Withheld(_) => Body::Withheld,
        FrameBody::Whole { .. } if payloads == Payloads::Deciding && !frame.decides() => Body::Withheld,
        FrameBody::Whole { payload, .. } => match decoded(frame, payload)? {
            Some(event) => Body::Known(event),
            None if frame.decides() => Body::NeedsVersion(payload.to_vec()),
            None => Body::Opaque(payload.to_vec()),
        },
    };
    Ok(StoredRecord { log, position, header, following: frame.following(), body })
}

/// The event, or `None` when a newer build wrote it.
fn decoded(frame: &Frame<'_>, payload: &[u8]) -> Result<Option<Event>, Fault> {
    let (Some(kind), BINCODE_2_STANDARD) = (Kind::from_number(frame.kind()), frame.codec()) else {
        return Ok(None);
    };
    match codec::decode(kind, frame.kind_version(), payload) {
        Ok(event) => Ok(Some(event)),
        Err(CodecError::NewerVersion { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
