//! The only reader of time and randomness. Everything else is given a [`Clock`] or an [`Entropy`].
//!
//! Log time is the wall clock at start plus the monotonic time since, from the last record on where the wall clock is behind
//! that: a step of the wall clock moves no deadline, and stops none. The monotonic time is tokio's, so that tests and the
//! simulation run on paused time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// Microseconds in a second.
pub const SECOND_US: u64 = 1_000_000;

/// Log time; cheap to clone, all clones agree.
#[derive(Debug, Clone)]
pub struct Clock(Arc<ClockInner>);

#[derive(Debug)]
struct ClockInner {
    started: Instant,
    started_us: i64,
    /// How far log time is ahead of that: the log that was replayed ended later than the wall clock began.
    ahead_us: AtomicI64,
    /// Whether the wall clock is real; a simulated one is never stepped by the machine.
    real: bool,
    /// How far a simulated wall clock was stepped.
    stepped_us: AtomicI64,
}

impl Clock {
    /// The machine's clock. Must be made inside a tokio runtime.
    #[must_use]
    pub fn real() -> Self {
        Self::starting_at(wall_us(), true)
    }

    /// A clock that starts at `started_us` and follows the runtime's (paused) time.
    #[must_use]
    pub fn simulated(started_us: i64) -> Self {
        Self::starting_at(started_us, false)
    }

    /// The wall clock now, for a command that measures times against it; the daemon's times are log times.
    #[must_use]
    pub fn wall_now_us() -> i64 {
        wall_us()
    }

    fn starting_at(started_us: i64, real: bool) -> Self {
        Self(Arc::new(ClockInner { started: now(), started_us, ahead_us: AtomicI64::new(0), real, stepped_us: AtomicI64::new(0) }))
    }

    /// Log time now, microseconds since 1970 UTC; never runs backwards, never stands still.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        self.plain_us().saturating_add(self.0.ahead_us.load(Ordering::Relaxed))
    }

    fn plain_us(&self) -> i64 {
        let elapsed = i64::try_from(now().duration_since(self.0.started).as_micros()).unwrap_or(i64::MAX);
        self.0.started_us.saturating_add(elapsed)
    }

    /// Lets log time go on from `time_us`, if it is not there yet: the time of the last record of the log that was replayed.
    pub fn raise(&self, time_us: i64) {
        self.0.ahead_us.fetch_max(time_us.saturating_sub(self.plain_us()), Ordering::Relaxed);
    }

    /// How far the wall clock is ahead of log time, microseconds; a simulated one only as far as it was stepped.
    #[must_use]
    pub fn wall_ahead_us(&self) -> i64 {
        if self.0.real { wall_us() - self.now_us() } else { self.0.stepped_us.load(Ordering::Relaxed) }
    }

    /// Steps a simulated wall clock: log time goes on as it did.
    pub fn step_wall(&self, by_us: i64) {
        self.0.stepped_us.fetch_add(by_us, Ordering::Relaxed);
    }

    /// Waits until log time is `time_us`, at most a day.
    pub async fn sleep_until(&self, time_us: i64) {
        let wait = u64::try_from(time_us.saturating_sub(self.now_us())).unwrap_or(0);
        tokio::time::sleep(Duration::from_micros(wait).min(Duration::from_secs(86_400))).await;
    }
}

/// The monotonic time, for durations alone.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
pub fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "the one place that reads the wall clock")]
fn wall_us() -> i64 {
    match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

/// Random bytes: the operating system's, or a seed's.
#[derive(Debug, Clone)]
pub struct Entropy(Arc<Mutex<Pool>>);

#[derive(Debug)]
struct Pool {
    /// `None`: the operating system.
    seed: Option<[u8; 32]>,
    counter: u64,
    bytes: Vec<u8>,
}

impl Entropy {
    /// The operating system's randomness, fetched 4 KiB at a time.
    #[must_use]
    pub fn os() -> Self {
        Self(Arc::new(Mutex::new(Pool { seed: None, counter: 0, bytes: Vec::new() })))
    }

    /// The same bytes for the same seed: for the simulation alone.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let seed = Sha256::digest(seed.to_le_bytes()).into();
        Self(Arc::new(Mutex::new(Pool { seed: Some(seed), counter: 0, bytes: Vec::new() })))
    }

    /// `N` random bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut pool = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut out = [0; N];
        let mut filled = 0;
        while filled < N {
            if pool.bytes.is_empty() {
                pool.refill();
            }
            // From the end: what is given once is gone from the pool.
            let taken = pool.bytes.len().min(N - filled);
            let rest = pool.bytes.len() - taken;
            out[filled..filled + taken].copy_from_slice(&pool.bytes[rest..]);
            out[filled..filled + taken].reverse();
            pool.bytes.truncate(rest);
            filled += taken;
        }
        out
    }
}

impl Pool {
    fn refill(&mut self) {
        self.counter += 1;
        match self.seed {
            Some(seed) => {
                let block = Sha256::new().chain_update(seed).chain_update(self.counter.to_le_bytes()).finalize();
                self.bytes.extend_from_slice(&block);
            }
            None => {
                let mut block = vec![0; 4096];
                // Without randomness no salt, no log id and no key can be made: there is nothing safe to go on with.
                getrandom::fill(&mut block).expect("the operating system gives random bytes");
                self.bytes = block;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn b31_log_time_never_runs_backwards_and_never_stands_still() {
        let clock = Clock::simulated(1_000);
        assert_eq!(clock.now_us(), 1_000);
        clock.raise(5_000_000);
        assert_eq!(clock.now_us(), 5_000_000);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(clock.now_us(), 7_000_000, "a deadline does not wait until the wall clock has caught up");
        clock.raise(6_000_000);
        assert_eq!(clock.now_us(), 7_000_000);
    }

    #[test]
    fn a_seed_gives_the_same_bytes() {
        let first: [u8; 40] = Entropy::seeded(7).bytes();
        assert_eq!(first, Entropy::seeded(7).bytes());
        assert_ne!(first, Entropy::seeded(8).bytes());
        let one: [u8; 16] = Entropy::os().bytes();
        assert_ne!(one, Entropy::os().bytes());
    }
}
