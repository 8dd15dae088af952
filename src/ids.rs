//! Names and numbers that identify things, each valid by construction. Knows no I/O, no clock and no cluster.
//!
//! Every string from outside becomes one of these at one edge, or is refused with a reason; what is inside never checks again.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Why a string is not the name it was offered as: the field, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value}: {allowed}")]
pub struct BadName {
    /// What the string was offered as, for example `org`.
    pub field: &'static str,
    /// The offered string, escaped and cut to 80 characters.
    pub value: String,
    /// What would have been accepted.
    pub allowed: &'static str,
}

fn bad(field: &'static str, value: &str, allowed: &'static str) -> BadName {
    BadName { field, value: format!("\"{}\"", shown(value, 80)), allowed }
}

/// A string from outside as it may be printed: control, bidi and escape characters escaped, cut to `max` characters.
#[must_use]
pub fn shown(text: &str, max: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == max {
            out.push('…');
            break;
        }
        if c.is_control() || is_bidi_or_invisible(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

fn is_bidi_or_invisible(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Whether `s` is an RFC 1123 label: 1 to `max` of `[a-z0-9-]`, beginning and ending with a letter or digit.
#[must_use]
pub fn is_dns_label(s: &str, max: usize) -> bool {
    let bytes = s.as_bytes();
    let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=max).contains(&bytes.len())
        && bytes.iter().all(|b| edge(b) || *b == b'-')
        && bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
}

/// An app: `org/name`, both DNS labels of at most 63 characters (hosted-apps.md, "Answers are judged").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppId {
    // Shared, because every record of an app has it in its header.
    org: Arc<str>,
    name: Arc<str>,
}

impl AppId {
    /// # Errors
    /// When either part is no DNS label.
    pub fn new(org: &str, name: &str) -> Result<Self, BadName> {
        const ALLOWED: &str = "a DNS label: 1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends";
        if !is_dns_label(org, 63) {
            return Err(bad("org", org, ALLOWED));
        }
        if !is_dns_label(name, 63) {
            return Err(bad("name", name, ALLOWED));
        }
        Ok(Self { org: org.into(), name: name.into() })
    }

    /// From `org/name`, as the pod annotation and the command line write it.
    ///
    /// # Errors
    /// When it is not two DNS labels with one slash between them.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        match text.split_once('/') {
            Some((org, name)) => Self::new(org, name),
            None => Err(bad("app", text, "org/name")),
        }
    }

    /// The organisation: the unit of fairness inside a lane.
    #[must_use]
    pub fn org(&self) -> &str {
        &self.org
    }

    /// The app's name within its organisation.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The app as a label value takes it: the first 16 hex digits of SHA-256 of `org/name`.
    #[must_use]
    pub fn stamp(&self) -> String {
        let mut digits = hex(&Sha256::digest(self.to_string().as_bytes()));
        digits.truncate(16);
        digits
    }
}

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.org, self.name)
    }
}

/// One pod of one release of an app, by the gateway's name for it; it is the pod's name too. RFC 1123 without dots, at most
/// 249 characters, so that `<host>-env` is still a valid Secret name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct HostName(String);

impl HostName {
    /// # Errors
    /// When it is no such name.
    pub fn new(text: &str) -> Result<Self, BadName> {
        Self::check(text).map(|()| Self(text.to_owned()))
    }

    fn check(text: &str) -> Result<(), BadName> {
        if is_dns_label(text, 249) {
            Ok(())
        } else {
            Err(bad("host", text, "1 to 249 of a-z, 0-9 and -, with a letter or digit at both ends"))
        }
    }

    /// The name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The Secret that holds this host's environment.
    #[must_use]
    pub fn secret(&self) -> String {
        format!("{}-env", self.0)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The SHA-256 of a release's package. A capability: feeds and pages show [`PackageDigest::short`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PackageDigest([u8; 32]);

impl PackageDigest {
    /// From 64 lower-case hex digits.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let refused = || bad("sha256", text, "64 lower-case hex digits");
        if text.len() != 64 || text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(refused());
        }
        let bytes = unhex(text).ok_or_else(refused)?;
        Ok(Self(bytes.try_into().map_err(|_| refused())?))
    }

    /// From the digest's bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 12 hex digits: enough to recognise, not enough to fetch.
    #[must_use]
    pub fn short(&self) -> String {
        hex(&self.0[..6])
    }
}

impl fmt::Display for PackageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// A log's identity: 16 random bytes, shown as 32 hex digits. A new log (new folder, lost tail, take-over) has a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogId(pub [u8; 16]);

impl LogId {
    /// From 32 lower-case hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text)?.try_into().ok().map(Self)
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// A record's position in the total order: from 1, never used twice. 0 stands for "none" in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Seq(pub u64);

impl Seq {
    /// No record.
    pub const NONE: Self = Self(0);
    const PROVISIONAL: u64 = 1 << 63;

    /// The `index`-th record of a reaction that is not appended yet: known before its real number is.
    #[must_use]
    pub fn provisional(index: u64) -> Self {
        Self(Self::PROVISIONAL | index)
    }

    /// The real number, once the reaction's first record has one.
    #[must_use]
    pub fn resolved(self, first: Self) -> Self {
        if self.0 & Self::PROVISIONAL == 0 { self } else { Self(first.0 + (self.0 & !Self::PROVISIONAL)) }
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A record's name outside its log: `<log-id>:<seq>`, the pod annotation `step` and the feed's cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordId {
    /// Which log.
    pub log: LogId,
    /// Which record of it.
    pub seq: Seq,
}

impl RecordId {
    /// From `<log-id>:<seq>`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (log, seq) = text.split_once(':')?;
        let plain = !seq.is_empty() && seq.bytes().all(|b| b.is_ascii_digit());
        let seq = plain.then(|| seq.parse().ok()).flatten()?;
        Some(Self { log: LogId::parse(log)?, seq: Seq(seq) })
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.log, self.seq)
    }
}

/// A session: 1 to 40 of `[a-z0-9-]`, beginning and ending with a letter or digit, so that every name made of it is whole
/// (sessions.md, "What a session is").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionId(String);

impl SessionId {
    /// The longest id, characters: what a label of 63 leaves beside the longest prefix.
    pub const MAX: usize = 40;

    /// # Errors
    /// When it is no such name.
    pub fn new(text: &str) -> Result<Self, BadName> {
        Self::check(text).map(|()| Self(text.to_owned()))
    }

    fn check(text: &str) -> Result<(), BadName> {
        if is_dns_label(text, Self::MAX) {
            Ok(())
        } else {
            Err(bad("session", text, "1 to 40 of a-z, 0-9 and -, with a letter or digit at both ends"))
        }
    }

    /// The id as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose a session is, for life: a DNS label, the unit of fairness and of limits among sessions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Tenant(String);

impl Tenant {
    /// # Errors
    /// When it is no DNS label.
    pub fn new(text: &str) -> Result<Self, BadName> {
        Self::check(text).map(|()| Self(text.to_owned()))
    }

    fn check(text: &str) -> Result<(), BadName> {
        if is_dns_label(text, 63) { Ok(()) } else { Err(bad("tenant", text, "a DNS label of at most 63 characters")) }
    }

    /// The name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a record is about: one app, one session, or the daemon itself (DESIGN.md, "The loop").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// `app/<org>/<name>`
    App(AppId),
    /// `session/<id>`
    Session(SessionId),
    /// `daemon/<instance>`: settings, adoption, leftovers, watch gaps.
    Daemon(String),
}

impl Subject {
    /// The daemon of the given instance.
    ///
    /// # Errors
    /// When the instance is no DNS label.
    pub fn daemon(instance: &str) -> Result<Self, BadName> {
        if is_dns_label(instance, 63) {
            Ok(Self::Daemon(instance.to_owned()))
        } else {
            Err(bad("instance", instance, "a DNS label of at most 63 characters"))
        }
    }

    /// From the form in which it is stored and shown.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        match text.split_once('/') {
            Some(("app", rest)) => AppId::parse(rest).map(Self::App),
            Some(("session", rest)) => SessionId::new(rest).map(Self::Session),
            Some(("daemon", rest)) => Self::daemon(rest),
            _ => Err(bad("subject", text, "app/ORG/NAME, session/ID or daemon/INSTANCE")),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App(app) => write!(f, "app/{app}"),
            Self::Session(id) => write!(f, "session/{id}"),
            Self::Daemon(instance) => write!(f, "daemon/{instance}"),
        }
    }
}

/// The uid that the API server gave an object: at most 64 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Uid(String);

impl Uid {
    /// # Errors
    /// When it is empty, too long, or not visible ASCII.
    pub fn new(text: &str) -> Result<Self, BadName> {
        Self::check(text).map(|()| Self(text.to_owned()))
    }

    fn check(text: &str) -> Result<(), BadName> {
        if (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(())
        } else {
            Err(bad("uid", text, "1 to 64 visible ASCII characters"))
        }
    }

    /// The uid as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A short technical word from outside: a Kubernetes reason, a node's or container's name. At most 253 of letters, digits and
/// `.`, `-`, `_`; what does not fit becomes the empty word, because a reason that nobody can read must not stop a stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(from = "String")]
pub struct Word(String);

impl Word {
    /// The word, or the empty one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(if Self::fits(text) { text.to_owned() } else { String::new() })
    }

    fn fits(text: &str) -> bool {
        text.len() <= 253 && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
    }

    /// The word as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing was said, or nothing readable.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self(if Self::fits(&text) { text } else { String::new() })
    }
}

macro_rules! checked_when_read {
    ($($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = BadName;

            fn try_from(text: String) -> Result<Self, BadName> {
                Self::check(&text).map(|()| Self(text))
            }
        }
    )*};
}
checked_when_read!(HostName, Uid, Tenant, SessionId);

// Written from where it is and read into where it stays: a payload has several names, and a replay millions of payloads.
macro_rules! stored_as_string {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    )*};
}
stored_as_string!(HostName, Uid, Word, Tenant, SessionId);

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// The bytes that lower-case hex digits stand for; `None` when they are not hex digits in pairs.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b32_names_that_are_not_valid_are_refused() {
        let label63 = "a".repeat(63);
        for good in ["a", "0", "a-b", label63.as_str()] {
            assert!(AppId::new(good, good).is_ok(), "{good}");
        }
        let label64 = "a".repeat(64);
        for evil in ["", "-a", "a-", "A", "a_b", "a.b", "ß", "a b", "a\0", "..", "a/b", "%2e", "x,app=other", label64.as_str()] {
            assert!(AppId::new("org", evil).is_err(), "{evil}");
            assert!(AppId::new(evil, "name").is_err(), "{evil}");
        }
        assert!(HostName::new(&"h".repeat(249)).is_ok());
        assert!(HostName::new(&"h".repeat(250)).is_err());
        assert!(PackageDigest::parse(&"a".repeat(64)).is_ok());
        for evil in ["A".repeat(64), "a".repeat(63), "g".repeat(64), "é".repeat(32)] {
            assert!(PackageDigest::parse(&evil).is_err(), "{evil}");
        }
    }

    #[test]
    fn what_is_shown_is_what_is_parsed() {
        let id = RecordId { log: LogId([0xab; 16]), seq: Seq(17) };
        assert_eq!(RecordId::parse(&id.to_string()), Some(id));
        for evil in ["", ":", "ab:1", "abababababababababababababababab:-1", "abababababababababababababababab:+1"] {
            assert_eq!(RecordId::parse(evil), None, "{evil}");
        }
        for subject in ["app/acme/bot", "session/7f3a", "daemon/world"] {
            assert_eq!(Subject::parse(subject).expect("a subject").to_string(), subject);
        }
        for evil in ["", "app", "app/a", "app/a/b/c", "daemon/", "session/x y"] {
            assert!(Subject::parse(evil).is_err(), "{evil}");
        }
    }

    #[test]
    fn b34_hostile_session_ids_and_tenants_are_refused() {
        let longest = "a".repeat(40);
        for good in ["a", "7f3a-1", longest.as_str()] {
            assert!(SessionId::new(good).is_ok(), "{good}");
        }
        let (long, tenant) = ("a".repeat(41), "a".repeat(64));
        let evil = [
            "",
            "-a",
            "a-",
            "A",
            "x,app=other",
            "x in (a,b)",
            "..",
            ".",
            "../secrets/y",
            "%2e%2e%2fpods",
            "a%00b",
            "a/b",
            "a?fieldSelector=",
            "a#b",
            "a\r\nX: y",
            "ß",
            "a_b",
            "a.b",
        ];
        for evil in evil {
            assert!(SessionId::new(evil).is_err() && Tenant::new(evil).is_err(), "{evil}");
        }
        assert!(SessionId::new(&long).is_err() && Tenant::new(&tenant).is_err());
    }

    #[test]
    fn strings_from_outside_are_shown_escaped() {
        assert_eq!(shown("a\u{1b}[31m\u{202e}b", 80), "a\\u{1b}[31m\\u{202e}b");
        assert_eq!(shown("abcdef", 3), "abc…");
    }

    #[test]
    fn a_provisional_number_becomes_real() {
        assert_eq!(Seq::provisional(2).resolved(Seq(40)), Seq(42));
        assert_eq!(Seq(7).resolved(Seq(40)), Seq(7));
    }
}
