//! One record as bytes: the header's fixed layout, the frame around it, and the leaf. Knows no block, no store and no payload.
//!
//! docs/log-format.md, "Record", is the specification; this file follows it byte by byte. Nothing is decoded before the
//! frame's checksum has been verified, and no bytes make it panic.

use super::codec::{BINCODE_2_STANDARD, PAYLOAD_MAX};
use super::record::{DECIDES, Header};
use super::tree::{self, Hash};
use crate::ids::{Seq, Subject};

/// The version of the header's layout.
pub const RECORD_VERSION: u8 = 1;

/// The header's fixed part, bytes; the subject's text follows.
pub const HEADER_FIXED: usize = 64;

/// The longest subject, bytes of its text: `app/`, two labels of 63 and a slash make 131; the rest is for kinds to come.
pub const SUBJECT_MAX: usize = 255;

const SALT: usize = 16;
const DIGEST: usize = 32;
const PREFIX: usize = 5;

/// The longest frame, bytes.
pub const FRAME_MAX: usize = PREFIX + HEADER_FIXED + SUBJECT_MAX + SALT + PAYLOAD_MAX;

/// The length of a whole record's frame, bytes.
#[must_use]
pub fn length(subject: usize, payload: usize) -> usize {
    PREFIX + HEADER_FIXED + subject + SALT + payload
}

const FORM_WHOLE: u8 = 0;
const FORM_WITHHELD: u8 = 1;

/// Why bytes are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Too short to be a frame.
    #[error("{0} bytes are no record")]
    Short(usize),
    /// The checksum does not hold.
    #[error("the record's checksum does not hold")]
    Checksum,
    /// A newer build wrote a layout that this one does not know.
    #[error("record version {version}, form {form} is not known to this build")]
    Newer {
        /// The header's first byte.
        version: u8,
        /// The frame's form byte.
        form: u8,
    },
    /// A length in the header does not fit the frame.
    #[error("the record's {field} is {value}, which does not fit its {frame} bytes")]
    Length {
        /// Which.
        field: &'static str,
        /// What it says.
        value: usize,
        /// The frame's length.
        frame: usize,
    },
    /// The subject is not UTF-8.
    #[error("the record's subject is not text")]
    Subject,
}

/// A record's bytes, checked, not yet decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The header as stored: what the leaf commits to.
    pub header: &'a [u8],
    /// The subject's text.
    pub subject: &'a str,
    /// Salt and payload, or their digest.
    pub body: FrameBody<'a>,
}

/// A record's body as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameBody<'a> {
    /// All of it.
    Whole {
        /// The salt that keeps the digest from being guessed.
        salt: &'a [u8; SALT],
        /// The payload.
        payload: &'a [u8],
    },
    /// Erased, or left out for this reader: the digest alone.
    Withheld(&'a Hash),
}

/// Appends the frame of a record to `out` and gives its leaf.
///
/// `following` says how many records of the reaction come after this one; `subject` is the header's, as text. The caller has
/// kept the payload within [`PAYLOAD_MAX`] and the subject within [`SUBJECT_MAX`].
pub fn write(header: &Header, subject: &str, following: u16, salt: &[u8; SALT], payload: &[u8], out: &mut Vec<u8>) -> Hash {
    let start = out.len();
    write_unhashed(header, subject, following, salt, payload, out);
    leaf_of_whole(&out[start..])
}

/// The same for a caller that hashes later.
pub fn write_unhashed(header: &Header, subject: &str, following: u16, salt: &[u8; SALT], payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, FORM_WHOLE]);
    write_header(header, subject, following, payload.len(), out);
    out.extend_from_slice(salt);
    out.extend_from_slice(payload);
    seal(out, start);
}

/// The leaf of a frame that [`write_unhashed`] wrote.
#[must_use]
pub fn leaf_of_whole(frame: &[u8]) -> Hash {
    let body = PREFIX + HEADER_FIXED + usize::from(u16_at(frame, PREFIX + 8));
    tree::leaf(&frame[PREFIX..body], &tree::digest(&frame[body..]))
}

/// Appends the header alone, for a payload of that length.
pub fn write_header(header: &Header, subject: &str, following: u16, payload: usize, out: &mut Vec<u8>) {
    let header_at = out.len();
    out.extend_from_slice(&[RECORD_VERSION, BINCODE_2_STANDARD]);
    let subject_length = u16::try_from(subject.len()).expect("a subject of at most SUBJECT_MAX bytes");
    for field in [header.kind, header.kind_version, header.rules, subject_length, following] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    let payload_length = u32::try_from(payload).expect("a payload of at most PAYLOAD_MAX bytes");
    out.extend_from_slice(&payload_length.to_le_bytes());
    out.extend_from_slice(&header.seq.0.to_le_bytes());
    out.extend_from_slice(&header.subject_seq.to_le_bytes());
    out.extend_from_slice(&header.time_us.to_le_bytes());
    for seq in [header.reaction, header.cause, header.settings] {
        out.extend_from_slice(&seq.0.to_le_bytes());
    }
    debug_assert_eq!(out.len() - header_at, HEADER_FIXED, "the fixed part");
    out.extend_from_slice(subject.as_bytes());
}

/// The same record with its salt and payload replaced by their digest: its leaf stays what it was.
#[must_use]
pub fn withhold(frame: &Frame<'_>) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 0, FORM_WITHHELD];
    out.extend_from_slice(frame.header);
    out.extend_from_slice(&frame.body_digest());
    seal(&mut out, 0);
    out
}

fn seal(out: &mut [u8], start: usize) {
    let checksum = crc32fast::hash(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
}

impl<'a> Frame<'a> {
    /// Checks a frame and finds its parts: the checksum first, then every length.
    ///
    /// # Errors
    /// Any [`FrameError`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let (Some((checksum, rest)), true) = (bytes.split_first_chunk::<4>(), bytes.len() > PREFIX) else {
            return Err(FrameError::Short(bytes.len()));
        };
        if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
            return Err(FrameError::Checksum);
        }
        // Before any length: a newer one may be shorter.
        let (form, version) = (rest[0], rest[1]);
        if version != RECORD_VERSION || form > FORM_WITHHELD {
            return Err(FrameError::Newer { version, form });
        }
        if bytes.len() < PREFIX + HEADER_FIXED {
            return Err(FrameError::Short(bytes.len()));
        }
        let rest = &rest[1..];
        let wrong = |field, value| FrameError::Length { field, value, frame: bytes.len() };
        let subject_length = usize::from(u16_at(rest, 8));
        if subject_length > SUBJECT_MAX || rest.len() < HEADER_FIXED + subject_length {
            return Err(wrong("subject length", subject_length));
        }
        let (header, body) = rest.split_at(HEADER_FIXED + subject_length);
        let subject = std::str::from_utf8(&header[HEADER_FIXED..]).map_err(|_| FrameError::Subject)?;
        let payload_length = u32_at(rest, 12) as usize;
        if payload_length > PAYLOAD_MAX {
            return Err(wrong("payload length", payload_length));
        }
        let body = if form == FORM_WHOLE {
            let (salt, payload) = body.split_first_chunk::<SALT>().ok_or_else(|| wrong("salt", SALT))?;
            if payload.len() != payload_length {
                return Err(wrong("payload length", payload_length));
            }
            FrameBody::Whole { salt, payload }
        } else {
            FrameBody::Withheld(body.try_into().map_err(|_| wrong("digest", DIGEST))?)
        };
        Ok(Self { header, subject, body })
    }

    /// The payload's encoding.
    #[must_use]
    pub fn codec(&self) -> u8 {
        self.header[1]
    }

    /// The kind's number, with its top bit.
    #[must_use]
    pub fn kind(&self) -> u16 {
        u16_at(self.header, 2)
    }

    /// The payload's version within its kind.
    #[must_use]
    pub fn kind_version(&self) -> u16 {
        u16_at(self.header, 4)
    }

    /// Whether fold or plan read it.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.kind() & DECIDES != 0
    }

    /// How many records of its reaction come after it.
    #[must_use]
    pub fn following(&self) -> u16 {
        u16_at(self.header, 10)
    }

    /// Position in the total order.
    #[must_use]
    pub fn seq(&self) -> Seq {
        Seq(u64_at(self.header, 16))
    }

    /// Position within the subject.
    #[must_use]
    pub fn subject_seq(&self) -> u64 {
        u64_at(self.header, 24)
    }

    /// Log time, microseconds since 1970 UTC.
    #[must_use]
    pub fn time_us(&self) -> i64 {
        i64::from_le_bytes(u64_at(self.header, 32).to_le_bytes())
    }

    /// The record that made it so.
    #[must_use]
    pub fn cause(&self) -> Seq {
        Seq(u64_at(self.header, 48))
    }

    /// The settings it was decided under.
    #[must_use]
    pub fn settings(&self) -> Seq {
        Seq(u64_at(self.header, 56))
    }

    /// The first record of its reaction.
    #[must_use]
    pub fn reaction(&self) -> Seq {
        Seq(u64_at(self.header, 40))
    }

    /// The header as a struct; `None` when its subject is of a kind that this build does not know.
    #[must_use]
    pub fn decoded(&self) -> Option<Header> {
        Subject::parse(self.subject).ok().map(|subject| self.decoded_about(subject))
    }

    /// The same, for a caller that knows the subject already.
    #[must_use]
    pub fn decoded_about(&self, subject: Subject) -> Header {
        Header {
            kind: self.kind(),
            kind_version: self.kind_version(),
            rules: u16_at(self.header, 6),
            seq: self.seq(),
            subject,
            subject_seq: self.subject_seq(),
            time_us: self.time_us(),
            reaction: self.reaction(),
            cause: self.cause(),
            settings: self.settings(),
        }
    }

    /// SHA-256 of salt and payload, whether they are there or not.
    #[must_use]
    pub fn body_digest(&self) -> Hash {
        match self.body {
            FrameBody::Whole { salt, payload } => tree::body_digest(salt, payload),
            FrameBody::Withheld(digest) => *digest,
        }
    }

    /// The record's leaf in its log's tree.
    #[must_use]
    pub fn leaf(&self) -> Hash {
        tree::leaf(self.header, &self.body_digest())
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
