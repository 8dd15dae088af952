//! A checkpoint against a log: who signed it, and whether the log extends it. For `wharf verify`, in JSON and in words.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::CliError;
use crate::events::extends::{Extends, extends};
use crate::events::log::{LogReader, ReadError};
use crate::ids::{LogId, hex, shown};
use crate::proof::checkpoint::Checkpoint;
use crate::proof::key::VerifierKey;
use crate::proof::note::{NOTE_MAX, Note};

/// What became of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The log extends it, and the signature holds, if it was checked.
    Holds,
    /// One of the two is not so.
    DoesNotHold,
    /// What is stored cannot be read that far.
    CannotBeVerified,
}

/// A checkpoint whose form holds.
pub(super) struct Seen {
    checkpoint: Checkpoint,
    log: LogId,
    /// Who says that they signed it, each with the id of the key.
    signers: Vec<String>,
    /// What is wrong with the signature of the key that was given; `None` when none was.
    signature: Option<Result<(), String>>,
}

impl Seen {
    /// Reads a checkpoint's file, and checks its signature when a key is given.
    ///
    /// # Errors
    /// When the file cannot be read, or is no checkpoint of a log like ours.
    pub(super) fn read(path: &Path, key: Option<&VerifierKey>) -> Result<Self, CliError> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(NOTE_MAX as u64 + 1).read_to_end(&mut bytes));
        read.map_err(|error| error.to_string()).and_then(|_| Self::parse(&bytes, key)).map_err(|what| {
            let at = shown(&path.display().to_string(), 200);
            CliError::input(format!("{at}: {what}"), "a checkpoint is what /v1/log/checkpoint answers, byte by byte")
        })
    }

    /// From a checkpoint's bytes.
    ///
    /// # Errors
    /// When they are no checkpoint of a log like ours: why.
    pub(super) fn parse(bytes: &[u8], key: Option<&VerifierKey>) -> Result<Self, String> {
        let note = Note::parse(bytes).map_err(|error| format!("no signed note: {error}"))?;
        let checkpoint = Checkpoint::parse(note.text).map_err(|error| format!("no checkpoint: {error}"))?;
        let named = checkpoint.named().ok_or_else(|| format!("it is of {}, which is no log of a wharf", shown(&checkpoint.origin, 200)));
        let (name, log) = named?;
        let signature = key.map(|key| match note.verify(key) {
            Ok(()) if key.name() == name => Ok(()),
            Ok(()) => Err(format!("the key is {}'s, the log {name}'s", key.name())),
            Err(error) => Err(error.to_string()),
        });
        let signers = note.signers().map(|(name, id)| format!("{}+{}", shown(name, 200), hex(&id))).collect();
        Ok(Self { log, signers, signature, checkpoint })
    }

    /// Compares it with the log.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) fn compare(&self, reader: &dyn LogReader) -> Result<(Verdict, Value), ReadError> {
        let tree = self.checkpoint.tree;
        let found = extends(reader, self.log, &tree)?;
        let signed = !matches!(self.signature, Some(Err(_)));
        let verdict = match &found {
            Extends::Yes { .. } if signed => Verdict::Holds,
            Extends::Unreadable { .. } if signed => Verdict::CannotBeVerified,
            Extends::Yes { .. } | Extends::Unreadable { .. } | Extends::Differs { .. } | Extends::Shorter { .. } | Extends::NoSuchLog => {
                Verdict::DoesNotHold
            }
        };
        let log = match &found {
            Extends::Yes { since } => format!("extends it by {since} records"),
            Extends::Differs { root } => format!("begins with other records: their root is {}", STANDARD.encode(root)),
            Extends::Shorter { size } => format!("has {size} records: what came after them is gone"),
            Extends::NoSuchLog => "is not in this folder".to_owned(),
            Extends::Unreadable { seq, what } => format!("cannot be read that far: at {seq}: {what}"),
        };
        let signature = match &self.signature {
            None => "not checked: no --key was given".to_owned(),
            Some(Ok(())) => "holds".to_owned(),
            Some(Err(why)) => format!("does not hold: {why}"),
        };
        let document = json!({
            "origin": shown(&self.checkpoint.origin, 200),
            "size": tree.size,
            "root": STANDARD.encode(tree.root),
            "signed_by": self.signers,
            "signature": signature,
            "log": log,
        });
        Ok((verdict, document))
    }

    /// Which log it is of.
    pub(super) fn log(&self) -> LogId {
        self.log
    }
}

/// What the log is to the checkpoint, in words.
pub(super) fn in_words(what: &str, document: &Value) -> String {
    let text = |key: &str| document[key].as_str().unwrap_or_default();
    format!("{what} of {}, {} records: the log {}\n", text("origin"), document["size"], text("log"))
}

/// Who signed it, and whether that was checked, in words.
pub(super) fn signature_in_words(document: &Value) -> String {
    let signers: Vec<&str> = document["signed_by"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("  signed by {}; signature {}\n", signers.join(", "), document["signature"].as_str().unwrap_or_default())
}
