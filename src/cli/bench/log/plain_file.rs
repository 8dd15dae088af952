//! The limit: a plain file that the same records are appended to, header and payload and nothing else, with one fdatasync a
//! commit. It has no checksum, no salt, no tree, no index, no block and no order of keys; nothing durable is faster on this disk.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use crate::events::codec;
use crate::events::erase::{Erasure, NotErased};
use crate::events::frame::{self, HEADER_FIXED};
use crate::events::log::{AppendError, EventLog, LogReader};
use crate::events::record::{Header, Reaction, Record};
use crate::events::retention::{NotRemoved, Removed};
use crate::ids::Seq;

/// The file.
#[derive(Debug)]
pub(super) struct PlainFile(File);

impl PlainFile {
    /// A new one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        File::options().write(true).create_new(true).open(path).map(Self)
    }

    /// Appends the bytes of one commit, durably.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.sync_data()
    }
}

/// The bytes of a record that say something: its header, with the subject, and its payload.
#[must_use]
pub(super) fn length(subject: usize, payload: usize) -> usize {
    HEADER_FIXED + subject + payload
}

/// The records of a reaction and their bytes, from that number on.
fn write(reaction: &Reaction, first: Seq, out: &mut Vec<u8>, frame: &mut Vec<u8>) -> Result<Vec<Record>, AppendError> {
    let subject = reaction.subject.to_string();
    let mut records = Vec::with_capacity(reaction.drafts.len());
    for (number, draft) in reaction.drafts.iter().enumerate() {
        let payload = codec::encode(&draft.event).map_err(|error| AppendError::Io(io::Error::other(error)))?;
        let seq = Seq(first.0 + number as u64);
        let header = Header {
            kind: draft.event.kind().number(),
            kind_version: draft.event.kind().version(),
            rules: reaction.rules,
            seq,
            subject: reaction.subject.clone(),
            subject_seq: seq.0,
            time_us: reaction.time_us,
            reaction: first,
            cause: draft.cause.resolved(first),
            settings: reaction.settings,
        };
        frame.clear();
        frame::write_header(&header, &subject, 0, payload.len(), frame);
        out.extend_from_slice(frame);
        out.extend_from_slice(&payload);
        records.push(Record { header, event: draft.event.clone() });
    }
    Ok(records)
}

/// The bytes of a reaction.
///
/// # Errors
/// When a payload cannot be encoded.
pub(super) fn bytes(reaction: &Reaction, first: Seq) -> Result<Vec<u8>, AppendError> {
    let mut out = Vec::new();
    write(reaction, first, &mut out, &mut Vec::new())?;
    Ok(out)
}

/// The file behind the same committer as the log: so that a group commit is measured beside one.
pub(super) struct PlainLog {
    file: PlainFile,
    next: Seq,
    out: Vec<u8>,
    frame: Vec<u8>,
    /// Another log's: nobody reads here.
    reader: Arc<dyn LogReader>,
}

impl PlainLog {
    /// On that file.
    #[must_use]
    pub(super) fn new(file: PlainFile, reader: Arc<dyn LogReader>) -> Self {
        Self { file, next: Seq(1), out: Vec::new(), frame: Vec::new(), reader }
    }
}

impl EventLog for PlainLog {
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError> {
        self.out.clear();
        let mut all = Vec::with_capacity(reactions.len());
        for reaction in reactions {
            let records = write(reaction, self.next, &mut self.out, &mut self.frame)?;
            self.next = Seq(self.next.0 + records.len() as u64);
            all.push(records);
        }
        self.file.append(&self.out).map_err(AppendError::Io)?;
        Ok(all)
    }

    fn erase(&mut self, erasure: &Erasure) -> Result<Record, NotErased> {
        Err(NotErased::NoSuchRecord(erasure.seq))
    }

    fn remove(&mut self, _upto: Seq) -> Result<Option<Removed>, NotRemoved> {
        Ok(None)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        Arc::clone(&self.reader)
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::life::Life;
    use super::*;

    #[test]
    fn it_holds_header_and_payload_of_each_record_and_nothing_else() {
        let reaction = Life::new(3).and_then(|mut life| life.reaction(13, Seq(1), 1_000)).expect("names");
        let subject = reaction.subject.to_string().len();
        let payloads = reaction.drafts.iter().map(|draft| codec::encode(&draft.event).expect("small").len());
        let expected: usize = payloads.map(|payload| length(subject, payload)).sum();
        assert_eq!(bytes(&reaction, Seq(1)).expect("small").len(), expected);
        assert!((120..200).contains(&(expected / 13)), "records as long as real ones: {}", expected / 13);
    }
}
