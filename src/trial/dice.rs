//! Dice: everything that a trial draws, from its seed.

use std::time::Duration;

use crate::clock::Entropy;

/// Draws; the same seed and purpose give the same draws.
#[derive(Debug, Clone)]
pub(super) struct Dice(Entropy);

impl Dice {
    /// For one purpose of a trial, so that more draws for one do not change another's.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        Self(Entropy::seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ purpose))
    }

    /// Below `limit`, which is not 0.
    pub(super) fn below(&self, limit: u64) -> u64 {
        u64::from_le_bytes(self.0.bytes()) % limit.max(1)
    }

    /// From `least` to `most`.
    pub(super) fn between(&self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// From `least` to `most` milliseconds.
    pub(super) fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least, most))
    }

    /// From `least` to `most` seconds, to the millisecond.
    pub(super) fn seconds(&self, least: u64, most: u64) -> Duration {
        self.millis(least * 1_000, most * 1_000)
    }

    /// True so many times in a hundred.
    pub(super) fn percent(&self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of these.
    ///
    /// # Panics
    /// When there are none.
    pub(super) fn pick<'a, T>(&self, of: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        &of[at]
    }

    /// One of the words.
    pub(super) fn word(&self, words: &[&'static str]) -> &'static str {
        let &word = self.pick(words);
        word
    }
}
