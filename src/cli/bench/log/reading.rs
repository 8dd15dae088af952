//! Reading what was appended: opened, replayed, decoded without a log around it, and checked.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::figures::Replay;
use super::plain_file;
use crate::cli::error::CliError;
use crate::cli::run::failed;
use crate::clock::{self, Clock, Entropy};
use crate::events::block::Block;
use crate::events::check::check;
use crate::events::codec;
use crate::events::frame::FrameBody;
use crate::events::log::{EventLog as _, LogReader, OpenOptions};
use crate::events::record::Kind;
use crate::events::sled_log::SledLog;
use crate::ids::Seq;
use crate::run::recover::{Recovered, fold_on};
use crate::run::serve::ServeError;

/// Payloads that are held in memory to be decoded again and again: more than any cache of a processor core.
const SAMPLE: usize = 50_000;

/// Passes of everything that is read; the fastest counts, because whatever else the machine does only makes one slower.
const PASSES: usize = 3;

/// What reading showed.
pub(super) struct Reading {
    pub(super) records: u64,
    pub(super) open_ms: f64,
    pub(super) replay: Replay,
    pub(super) verify_records_per_s: f64,
    /// Headers and payloads, bytes.
    pub(super) bytes: u64,
    pub(super) stored_bytes: u64,
    pub(super) blobs: u64,
}

impl Reading {
    /// Of the log of that folder, which nobody has open.
    pub(super) fn measure(dir: &Path, clock: &Clock, options: &OpenOptions) -> Result<Self, CliError> {
        let begun = clock::now();
        let (log, _) = SledLog::open(dir, clock, Entropy::os(), options).map_err(|error| failed(ServeError::Open(error)))?;
        let open_ms = begun.elapsed().as_secs_f64() * 1_000.0;
        let reader = log.reader();

        let (mut records, mut records_per_s, mut verify_records_per_s) = (0, 0.0_f64, 0.0_f64);
        for _ in 0..PASSES {
            let begun = clock::now();
            let mut recovered = Recovered::default();
            fold_on(&mut recovered, &*reader, Seq(1), reader.head()).map_err(|error| CliError::refused(error.to_string(), "report it"))?;
            records = recovered.records;
            records_per_s = records_per_s.max(per_s(records, begun));
        }
        for _ in 0..PASSES {
            let begun = clock::now();
            let report = check(&*reader).map_err(|error| CliError::refused(error.to_string(), "look at the disk"))?;
            verify_records_per_s = verify_records_per_s.max(per_s(report.records, begun));
            if let Some(difference) = report.difference {
                return Err(CliError::refused(difference.to_string(), "look at the disk, and report it"));
            }
        }

        let sample = Sample::take(&reader)?;
        let mut plain_decode_records_per_s = 0.0_f64;
        for _ in 0..PASSES {
            plain_decode_records_per_s = plain_decode_records_per_s.max(sample.decode(records)?);
        }
        let stored = reader.stored();
        let replay = Replay { records_per_s, plain_decode_records_per_s, ratio: records_per_s / plain_decode_records_per_s.max(1e-9) };
        drop(reader);
        Box::new(log).close()?;
        Ok(Self {
            records,
            open_ms,
            replay,
            verify_records_per_s,
            bytes: sample.all_bytes,
            stored_bytes: stored.bytes,
            blobs: stored.blobs,
        })
    }
}

fn per_s(records: u64, begun: tokio::time::Instant) -> f64 {
    records as f64 / begun.elapsed().as_secs_f64().max(1e-9)
}

/// The first payloads of the log, and how long all its records are.
struct Sample {
    payloads: Vec<(Kind, u16, Vec<u8>)>,
    all_bytes: u64,
}

impl Sample {
    fn take(reader: &Arc<dyn LogReader>) -> Result<Self, CliError> {
        let mut sample = Self { payloads: Vec::new(), all_bytes: 0 };
        let read = reader.blocks(Seq::NONE, &mut |_, bytes| {
            let Ok(block) = Block::read(bytes) else { return ControlFlow::Break(()) };
            for (_, frame) in block.records() {
                let Ok(frame) = frame else { return ControlFlow::Break(()) };
                let FrameBody::Whole { payload, .. } = frame.body else { return ControlFlow::Break(()) };
                sample.all_bytes += plain_file::length(frame.subject.len(), payload.len()) as u64;
                if let Some(kind) = Kind::from_number(frame.kind()).filter(|_| sample.payloads.len() < SAMPLE) {
                    sample.payloads.push((kind, frame.kind_version(), payload.to_vec()));
                }
            }
            ControlFlow::Continue(())
        });
        read.map_err(|error| CliError::refused(error.to_string(), "look at the disk"))?;
        Ok(sample)
    }

    /// Decodes so many payloads, one after the other, and says how many a second.
    fn decode(&self, records: u64) -> Result<f64, CliError> {
        let begun = clock::now();
        let mut decoded = 0;
        while decoded < records && !self.payloads.is_empty() {
            for (kind, version, payload) in &self.payloads {
                let event = codec::decode(*kind, *version, payload);
                black_box(event.map_err(|error| CliError::refused(error.to_string(), "report it"))?);
            }
            decoded += self.payloads.len() as u64;
        }
        Ok(per_s(decoded, begun))
    }
}
