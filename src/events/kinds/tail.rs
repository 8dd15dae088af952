//! Payloads about a container's last words. What was said is in kinds of its own that only inform and can be erased.

use serde::{Deserialize, Serialize};

use crate::ids::{HostName, Uid, Word};

/// Which container's lines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TailOf {
    /// The pod's name.
    pub host: HostName,
    /// The pod's identity.
    pub uid: Uid,
    /// The container: `app` or `install`.
    pub container: Word,
    /// Whether it was read from an ended container: then it is the last word.
    pub ended: bool,
}

/// The last lines were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailAsked {
    /// Whose.
    pub of: TailOf,
}

/// They were kept; the text is in the `TailText` records of the same reaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailKept {
    /// Whose.
    pub of: TailOf,
    /// How many lines.
    pub lines: u32,
    /// How many bytes, after redaction.
    pub bytes: u32,
    /// How many parts.
    pub parts: u32,
    /// Whether lines or bytes were left out.
    pub cut: bool,
}

/// Why a tail could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TailLack {
    /// Neither the environment nor the Secret could be had, so nothing could be redacted.
    NoRedaction,
    /// It took longer than its limit.
    TimedOut,
    /// The API server or the node answered no.
    Refused,
    /// The pod, or its log, is gone.
    Gone,
    /// The container has not started.
    NotStarted,
}

/// They could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailUnavailable {
    /// Whose.
    pub of: TailOf,
    /// Why.
    pub why: TailLack,
}

/// A part of a kept tail, at most 16,000 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailText {
    /// Whose.
    pub of: TailOf,
    /// Counts from 0.
    pub part: u32,
    /// The text, redacted.
    pub text: String,
}

/// A container's termination message, redacted, at most 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageText {
    /// Whose.
    pub of: TailOf,
    /// The text.
    pub text: String,
}
