//! Which known apps an answer left out, and whether that counts. Pure: told the time, keeps no count of its own per app.
//!
//! How many absences withdraw an app is decided by the app's own plan from its own records; this says only, once per answer
//! that counts, for whom there is one (hosted-apps.md, "Withdrawal").

use std::collections::{BTreeMap, BTreeSet};

use super::judge::Judged;
use crate::events::kinds::want::WantMissing;
use crate::ids::AppId;

/// An answer that misses apps is `mass` only when more than this many were known: of three, two may well go at once.
const MASS_ABOVE_APPS: usize = 3;

/// Which answers count: those at least a beat interval after the last one that counted.
#[derive(Debug, Clone)]
pub struct Withdrawals {
    /// Between two beats, microseconds.
    beat_us: i64,
    /// When the beat was sent whose answer counted last; written by [`Withdrawals::missing`].
    counted_us: Option<i64>,
}

impl Withdrawals {
    /// `beat_ms` is the setting `gateway.beat_ms`.
    #[must_use]
    pub fn new(beat_ms: u64) -> Self {
        Self { beat_us: i64::try_from(beat_ms.saturating_mul(1_000)).unwrap_or(i64::MAX), counted_us: None }
    }

    /// For whom a believed answer counts as an absence: nobody, when the answer itself does not count. To be called once per
    /// believed answer; `sent_us` is when its beat was sent, log time, so that the network's pace does not matter.
    pub fn missing(&mut self, sent_us: i64, judged: &Judged, known: &BTreeSet<AppId>) -> BTreeMap<AppId, WantMissing> {
        if self.counted_us.is_some_and(|last| sent_us.saturating_sub(last) < self.beat_us) {
            return BTreeMap::new();
        }
        self.counted_us = Some(sent_us);
        let named = judged.named();
        let missed: Vec<&AppId> = known.iter().filter(|app| !named.contains(app)).collect();
        let most = known.len() > MASS_ABOVE_APPS && missed.len() * 2 > known.len();
        let mass = most || named.is_empty();
        missed.into_iter().map(|app| (app.clone(), WantMissing { answer: judged.answer, mass })).collect()
    }
}
