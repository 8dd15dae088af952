//! Keys of signed notes: Ed25519, in the text forms of C2SP signed-note and of Go's `note` package. The only file that names ring.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};

use crate::ids::{hex, unhex};

/// A signature's length, bytes.
pub const SIGNATURE: usize = 64;

/// The longest name of a key, bytes: whoever reads a note bounds it.
pub const NAME_MAX: usize = 255;

/// The signature type of an Ed25519 key in its encoding and its id.
const ED25519_TYPE: u8 = 0x01;

const PRIVATE: &str = "PRIVATE+KEY+";

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Not of the form.
    #[error("it is not of the form NAME+ID+KEY")]
    Form,
    /// No name of a key: empty, longer than [`NAME_MAX`], or with a space, a control character or a plus.
    #[error("its name is none of a key")]
    Name,
    /// Another kind of key than Ed25519, or one of another length.
    #[error("it is not an Ed25519 key")]
    Type,
    /// The id is another than that of the name and the key: a part of it was changed.
    #[error("its id is another than its name and key give")]
    Id,
}

/// Whether a text can be the name of a key.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let fits = |c: char| !c.is_whitespace() && !c.is_control() && c != '+';
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(fits)
}

/// The public half: what an auditor holds. Shown as its `vkey` text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    public: [u8; 32],
}

impl VerifierKey {
    /// From the text `NAME+ID+KEY`: id in hex, type and key in base64.
    ///
    /// # Errors
    /// Any [`BadKey`].
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let (name, id, public) = parts(text)?;
        let key = Self { name: name.to_owned(), public };
        if key.id() == id { Ok(key) } else { Err(BadKey::Id) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first four bytes of SHA-256 of name, line feed, type and key: recognises the key, proves nothing.
    #[must_use]
    pub fn id(&self) -> [u8; 4] {
        let digest = Sha256::new().chain_update(&self.name).chain_update([b'\n', ED25519_TYPE]).chain_update(self.public).finalize();
        [digest[0], digest[1], digest[2], digest[3]]
    }

    /// Whether the signature is this key's over that text.
    #[must_use]
    pub fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.public).verify(text.as_bytes(), signature).is_ok()
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.name, self.id(), &self.public))
    }
}

/// The private half: what the daemon signs with. Never shown.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    seed: [u8; 32],
    verifier: VerifierKey,
}

impl SigningKey {
    /// The key of that seed, under that name.
    ///
    /// # Errors
    /// [`BadKey::Name`] alone.
    pub fn new(name: &str, seed: [u8; 32]) -> Result<Self, BadKey> {
        if !is_name(name) {
            return Err(BadKey::Name);
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed of 32 bytes");
        let public = pair.public_key().as_ref().try_into().expect("a public key of 32 bytes");
        Ok(Self { pair, seed, verifier: VerifierKey { name: name.to_owned(), public } })
    }

    /// From its text: `PRIVATE+KEY+NAME+ID+SEED`, where the id is that of the public half, so that a changed byte is noticed.
    ///
    /// # Errors
    /// Any [`BadKey`].
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let (name, id, seed) = parts(text.strip_prefix(PRIVATE).ok_or(BadKey::Form)?)?;
        let key = Self::new(name, seed)?;
        if key.verifier.id() == id { Ok(key) } else { Err(BadKey::Id) }
    }

    /// Its text, for the file it is kept in and for nothing else.
    #[must_use]
    pub fn secret_text(&self) -> String {
        format!("{PRIVATE}{}", joined(&self.verifier.name, self.verifier.id(), &self.seed))
    }

    /// The public half.
    #[must_use]
    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// The signature over a text.
    #[must_use]
    pub fn sign(&self, text: &str) -> [u8; SIGNATURE] {
        self.pair.sign(text.as_bytes()).as_ref().try_into().expect("an Ed25519 signature of 64 bytes")
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.verifier)
    }
}

fn joined(name: &str, id: [u8; 4], key: &[u8; 32]) -> String {
    let typed = [&[ED25519_TYPE][..], key].concat();
    format!("{name}+{}+{}", hex(&id), STANDARD.encode(typed))
}

/// Name, id and key of `NAME+ID+KEY`.
fn parts(text: &str) -> Result<(&str, [u8; 4], [u8; 32]), BadKey> {
    // base64 may hold a plus, a name and an id may not.
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else { return Err(BadKey::Form) };
    if !is_name(name) {
        return Err(BadKey::Name);
    }
    let id = unhex(id).and_then(|id| id.try_into().ok()).ok_or(BadKey::Form)?;
    let typed = STANDARD.decode(key).map_err(|_| BadKey::Form)?;
    match typed.split_first() {
        Some((&ED25519_TYPE, key)) => Ok((name, id, key.try_into().map_err(|_| BadKey::Type)?)),
        _ => Err(BadKey::Type),
    }
}
