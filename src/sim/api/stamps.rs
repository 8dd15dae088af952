//! Uids, generated names and timestamps as the API server writes them.

use crate::clock::Entropy;

/// A random (version 4) uid.
#[must_use]
pub fn uid(entropy: &Entropy) -> String {
    let mut number = u128::from_be_bytes(entropy.bytes());
    number = (number & !(0xf << 76)) | (0x4 << 76);
    number = (number & !(0x3 << 62)) | (0x2 << 62);
    let digits = format!("{number:032x}");
    let part = |from, to| digits.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// The five characters that `generateName` is completed with.
#[must_use]
pub fn suffix(entropy: &Entropy) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let letters = entropy.bytes::<5>();
    letters.iter().filter_map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len())).map(|letter| char::from(*letter)).collect()
}

/// A time in whole seconds, RFC 3339 in UTC.
#[must_use]
pub fn seconds(time_us: i64) -> String {
    let whole = jiff::Timestamp::from_second(time_us.div_euclid(1_000_000)).unwrap_or_default();
    whole.to_string()
}

/// The microseconds of an RFC 3339 time.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}
