//! Proofs over the log that is being written, for the control listener: what is asked becomes subtrees, and their roots a proof.

use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::checkpoints::{Checkpoints, Inner, lock};
use crate::events::leaves::{Leaves, LeavesError};
use crate::events::log::{LogReader, ReadError};
use crate::events::removed::RemovedBlock;
use crate::events::tree::TreeHead;
use crate::http::proofs::{Asked, Leaf, NotProved, ProofsView, Proved, ProvedOf};
use crate::ids::Seq;
use crate::proof::merkle;

impl ProofsView for Checkpoints {
    fn key(&self) -> String {
        self.0.key.verifier().to_string()
    }

    fn checkpoint(&self) -> Option<String> {
        self.newest().map(|(_, note)| note.to_string())
    }

    fn prove(&self, asked: Asked) -> BoxFuture<'_, Result<Proved, NotProved>> {
        async move {
            let (log, (of, _)) = self.log().zip(self.newest()).ok_or(NotProved::NoLog)?;
            let permit = Arc::clone(&self.0.proving).acquire_owned().await.map_err(|_| NotProved::Busy)?;
            let inner = Arc::clone(&self.0);
            // Whoever asked may have gone; what was read is kept for the next one all the same.
            let made = tokio::task::spawn_blocking(move || {
                let made = prove(&inner, log.as_ref(), of.tree.size, asked);
                drop(permit);
                made
            });
            made.await.map_err(|error| NotProved::Unreadable(error.to_string()))?
        }
        .boxed()
    }
}

fn prove(inner: &Inner, reader: &dyn LogReader, signed: u64, asked: Asked) -> Result<Proved, NotProved> {
    let now = reader.acknowledged();
    let (log, within) =
        (now.log, |size: u64| if size > now.tree.size { Err(NotProved::Ahead { log: now.log, size: now.tree.size }) } else { Ok(size) });
    // The roots and the leaf that it is about come first, the proof behind them.
    let (about, path) = match asked {
        Asked::Consistency { first, second } => {
            let second = within(second.unwrap_or(signed))?;
            let path = merkle::consistency(within(first)?, second).ok_or(NotProved::Outside(second))?;
            (About::Consistency(first, second), path)
        }
        Asked::Inclusion { leaf, size } => {
            let size = within(size.unwrap_or(signed))?;
            let index = position(reader, leaf)?;
            let path = merkle::inclusion(index, size).ok_or(NotProved::Outside(size))?;
            (About::Inclusion(index, size), path)
        }
    };
    let mut ranges = match about {
        About::Consistency(first, second) => vec![0..first, 0..second],
        About::Inclusion(index, size) => vec![index..index + 1, 0..size],
    };
    ranges.extend(path);
    let mut leaves = lock(&inner.leaves);
    let leaves = match leaves.take() {
        Some(known) if known.log() == log => leaves.insert(known),
        Some(_) | None => leaves.insert(Leaves::new(log)),
    };
    let mut hashes = leaves.roots(reader, &ranges)?;
    let proof = hashes.split_off(2);
    let of = match about {
        About::Consistency(first, second) => {
            ProvedOf::Consistency(TreeHead { size: first, root: hashes[0] }, TreeHead { size: second, root: hashes[1] })
        }
        About::Inclusion(index, size) => ProvedOf::Inclusion(index, hashes[0], TreeHead { size, root: hashes[1] }),
    };
    Ok(Proved { log, of, hashes: proof })
}

#[derive(Clone, Copy)]
enum About {
    Consistency(u64, u64),
    Inclusion(u64, u64),
}

/// A record's position in the log that is open.
fn position(reader: &dyn LogReader, leaf: Leaf) -> Result<u64, NotProved> {
    let seq = match leaf {
        Leaf::Position(position) => return Ok(position),
        Leaf::Seq(seq) => seq,
    };
    let log = reader.id();
    let found = reader.record(seq).map_err(|error| NotProved::Unreadable(error.to_string()))?;
    match found {
        Some(Ok(record)) if record.log == log => Ok(record.position),
        Some(Err(damage)) => Err(NotProved::Unreadable(damage.to_string())),
        Some(Ok(_)) | None => match removed_position(reader, seq) {
            Ok(Some(position)) => Ok(position),
            Ok(None) => Err(NotProved::NoRecord { log, seq }),
            Err(error) => Err(NotProved::Unreadable(error.to_string())),
        },
    }
}

/// The position of a record that aged out, in the log that is open.
fn removed_position(reader: &dyn LogReader, seq: Seq) -> Result<Option<u64>, ReadError> {
    let (log, mut position) = (reader.id(), None);
    reader.removed_blocks(seq, &mut |_, bytes| {
        let block = RemovedBlock::read(bytes).filter(|block| block.head.log == log && (block.head.first..=block.last()).contains(&seq));
        position = block.map(|block| block.head.before.size + (seq.0 - block.head.first.0));
        ControlFlow::Break(())
    })?;
    Ok(position)
}

impl From<LeavesError> for NotProved {
    fn from(error: LeavesError) -> Self {
        match error {
            LeavesError::Missing(position) => Self::Gone(position),
            LeavesError::Read(_) | LeavesError::Damaged(_) => Self::Unreadable(error.to_string()),
        }
    }
}
