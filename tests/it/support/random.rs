//! Chance with a seed: the same seed gives the same coins everywhere. Knows nothing of what is drawn.

use wharfinger::clock::Entropy;

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

/// So many letters. The first half is by chance, so that a store cannot pack it; the rest it can.
pub(crate) fn letters(random: &mut Random, length: usize) -> String {
    let mut text: String = (0..length / 32).map(|_| format!("{:016x}", random.next())).collect();
    text.push_str(&"x".repeat(length - text.len()));
    text
}

/// The seed that the variable names, or a new one; say it, so that a failure can be looked for again.
pub(crate) fn seed(variable: &str) -> u64 {
    number(variable).unwrap_or_else(|| u64::from_le_bytes(Entropy::os().bytes()) >> 16)
}

/// A number that a variable of the environment names.
#[expect(clippy::disallowed_methods, reason = "how many of a slow thing a test does is said by whoever runs it")]
pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
