//! Signed notes (C2SP signed-note): a text, an empty line, and a line for each signature. Knows nothing of what a text says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::key::{SigningKey, VerifierKey, is_name};

/// The longest note, bytes: room for the 16 signatures that every reader must accept, and for many more.
pub const NOTE_MAX: usize = 64 << 10;

/// The most signatures of a note.
pub const SIGNATURES_MAX: usize = 128;

/// Bytes that are no note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadNote {
    /// Longer than [`NOTE_MAX`], or with more signatures than [`SIGNATURES_MAX`].
    #[error("it is longer than a note may be")]
    TooLong,
    /// Not UTF-8, or with a control character other than a line feed.
    #[error("it is not plain text")]
    Text,
    /// No empty line, or no signature behind it.
    #[error("it is not a text, an empty line and signatures")]
    Form,
    /// A line behind the empty one is no signature.
    #[error("line {0} of its signatures is none")]
    Signature(usize),
}

/// Why a note does not count as signed by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSigned {
    /// None of its signatures is of that key.
    #[error("none of its signatures is of that key")]
    Unknown,
    /// One says that it is of that key, and does not hold.
    #[error("its signature does not hold")]
    Broken,
}

/// A note whose form holds. Its text is to be believed only once a key that is trusted has verified it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'a> {
    /// What is signed, with its last line feed.
    pub text: &'a str,
    signatures: Vec<Signature<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Signature<'a> {
    name: &'a str,
    id: [u8; 4],
    signature: Vec<u8>,
}

impl<'a> Note<'a> {
    /// Reads a note's form, strictly.
    ///
    /// # Errors
    /// Any [`BadNote`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BadNote> {
        if bytes.len() > NOTE_MAX {
            return Err(BadNote::TooLong);
        }
        let all = std::str::from_utf8(bytes).map_err(|_| BadNote::Text)?;
        if all.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
            return Err(BadNote::Text);
        }
        // The last empty line: the text may have others.
        let end = all.rfind("\n\n").ok_or(BadNote::Form)? + 1;
        let (text, lines) = (&all[..end], &all[end + 1..]);
        let lines = lines.strip_suffix('\n').ok_or(BadNote::Form)?;
        if lines.split('\n').count() > SIGNATURES_MAX {
            return Err(BadNote::TooLong);
        }
        let signature = |(number, line)| Signature::parse(line).ok_or(BadNote::Signature(number));
        Ok(Self { text, signatures: (1..).zip(lines.split('\n')).map(signature).collect::<Result<_, _>>()? })
    }

    /// Checks the signature of that key; those of others are nobody's here.
    ///
    /// # Errors
    /// Any [`NotSigned`].
    pub fn verify(&self, key: &VerifierKey) -> Result<(), NotSigned> {
        let id = key.id();
        let mut of_key = self.signatures.iter().filter(|signature| signature.name == key.name() && signature.id == id).peekable();
        if of_key.peek().is_none() {
            return Err(NotSigned::Unknown);
        }
        if of_key.all(|signature| key.verifies(self.text, &signature.signature)) { Ok(()) } else { Err(NotSigned::Broken) }
    }

    /// The names of those who say that they signed, in order, each with its id.
    pub fn signers(&self) -> impl Iterator<Item = (&'a str, [u8; 4])> {
        self.signatures.iter().map(|signature| (signature.name, signature.id))
    }
}

impl<'a> Signature<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, encoded) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
        let bytes = STANDARD.decode(encoded).ok()?;
        let (id, signature) = bytes.split_first_chunk::<4>()?;
        (is_name(name) && !signature.is_empty()).then(|| Self { name, id: *id, signature: signature.to_vec() })
    }
}

/// The note of a text, signed. The text is lines, each with its line feed.
#[must_use]
pub fn sign(text: &str, key: &SigningKey) -> String {
    debug_assert!(text.ends_with('\n'), "a note's text is lines");
    let signature = [&key.verifier().id()[..], &key.sign(text)].concat();
    format!("{text}\n\u{2014} {} {}\n", key.verifier().name(), STANDARD.encode(signature))
}
