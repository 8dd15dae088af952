//! Checkpoints (C2SP tlog-checkpoint): which log, how many leaves, which root, as the text of a signed note.
//!
//! The origin is the key's name, a slash and the log's id. Each log id has a tree of its own, so each has an origin of its own; the
//! key and its name stay, so that an auditor needs no new key when a log begins anew.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::key::{SigningKey, is_name};
use super::note;
use crate::events::tree::TreeHead;
use crate::ids::LogId;

/// What a checkpoint says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Whose: the first line.
    pub origin: String,
    /// Leaves and root.
    pub tree: TreeHead,
}

/// A text that is no checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadCheckpoint {
    /// Fewer than three lines, an empty one, or no line feed at the end.
    #[error("it is not at least three lines")]
    Lines,
    /// The second line is no number as it is written: decimal, without leading zeros.
    #[error("its second line is not a size")]
    Size,
    /// The third line is not 32 bytes in base64.
    #[error("its third line is not a root")]
    Root,
}

impl Checkpoint {
    /// Of a log's tree, by the one who holds that key.
    #[must_use]
    pub fn new(key_name: &str, log: LogId, tree: TreeHead) -> Self {
        Self { origin: format!("{key_name}/{log}"), tree }
    }

    /// From a note's text. Lines after the third are somebody else's extensions and mean nothing here.
    ///
    /// # Errors
    /// Any [`BadCheckpoint`].
    pub fn parse(text: &str) -> Result<Self, BadCheckpoint> {
        let lines: Vec<&str> = text.strip_suffix('\n').ok_or(BadCheckpoint::Lines)?.split('\n').collect();
        let [origin, size, root, ..] = lines.as_slice() else { return Err(BadCheckpoint::Lines) };
        if lines.iter().any(|line| line.is_empty()) {
            return Err(BadCheckpoint::Lines);
        }
        let plain = size.bytes().all(|byte| byte.is_ascii_digit()) && (*size == "0" || !size.starts_with('0'));
        let size = plain.then(|| size.parse().ok()).flatten().ok_or(BadCheckpoint::Size)?;
        let root = STANDARD.decode(root).ok().and_then(|root| root.try_into().ok()).ok_or(BadCheckpoint::Root)?;
        Ok(Self { origin: (*origin).to_owned(), tree: TreeHead { size, root } })
    }

    /// The note's text.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.tree.size, STANDARD.encode(self.tree.root))
    }

    /// The whole note.
    #[must_use]
    pub fn signed(&self, key: &SigningKey) -> String {
        note::sign(&self.text(), key)
    }

    /// The key's name and the log that the origin names; `None` when it is not an origin of ours.
    #[must_use]
    pub fn named(&self) -> Option<(&str, LogId)> {
        let (name, log) = self.origin.rsplit_once('/')?;
        is_name(name).then_some(())?;
        Some((name, LogId::parse(log)?))
    }
}

/// The name of the key of a daemon: stable for the life of its data folder.
#[must_use]
pub fn key_name(world: &str, instance: &str) -> String {
    format!("wharfinger/{world}/{instance}")
}
