//! When to look again: limits and pauses against the reaction's time. Looks at no clock.

/// One pass's time, and when the next one is due though nothing happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wake {
    /// The reaction's time, log time.
    pub now_us: i64,
    /// When to look again, log time.
    pub at_us: Option<i64>,
}

impl Wake {
    /// Nothing is waited for yet.
    #[must_use]
    pub fn new(now_us: i64) -> Self {
        Self { now_us, at_us: None }
    }

    /// Looks again at that time, if not before.
    pub fn at(&mut self, time_us: i64) {
        self.at_us = Some(self.at_us.map_or(time_us, |wake| wake.min(time_us)));
    }

    /// Whether the limit is over; if not, looks again just after it.
    pub fn over(&mut self, since_us: i64, limit_us: u64) -> bool {
        if is_over(since_us, limit_us, self.now_us) {
            return true;
        }
        self.at(after(since_us, limit_us).saturating_add(1));
        false
    }

    /// Whether a pause still lasts; if so, looks again when it has passed.
    pub fn paused(&mut self, since_us: i64, pause_us: u64) -> bool {
        let until = after(since_us, pause_us);
        if self.now_us < until {
            self.at(until);
        }
        self.now_us < until
    }
}

/// That much later.
#[must_use]
pub fn after(since_us: i64, span_us: u64) -> i64 {
    since_us.saturating_add_unsigned(span_us)
}

/// Whether more than `limit_us` have passed since `since_us`; exactly the limit has not (cases B31).
#[must_use]
pub fn is_over(since_us: i64, limit_us: u64, now_us: i64) -> bool {
    now_us.checked_sub(since_us).is_none_or(|passed| u64::try_from(passed).is_ok_and(|passed| passed > limit_us))
}
