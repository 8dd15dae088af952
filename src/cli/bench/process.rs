//! What this process takes of the machine, as Linux tells it.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock;

/// Clock ticks a second in `/proc`: fixed on Linux, whatever the kernel's own timer does.
const TICKS_PER_S: f64 = 100.0;

/// Resident memory, bytes; `None` when the system does not tell.
pub(super) fn resident_bytes() -> Option<u64> {
    status_bytes("VmRSS:")
}

fn status_bytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// The most that was resident since the process began, bytes; `None` when the system does not tell.
pub(super) fn peak_resident_bytes() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// The processor's time of this process from a moment on.
pub(super) struct Spent {
    ticks: u64,
    begun: Instant,
}

impl Spent {
    /// Begins now; `None` when the system does not tell.
    pub(super) fn begin() -> Option<Self> {
        Some(Self { ticks: ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)?, begun: clock::now() })
    }

    /// Percent of one core since then.
    pub(super) fn percent(&self) -> Option<f64> {
        let now = ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
        let spent_s = now.saturating_sub(self.ticks) as f64 / TICKS_PER_S;
        Some(100.0 * spent_s / self.begun.elapsed().max(Duration::from_millis(1)).as_secs_f64())
    }
}

/// User and system time of a `/proc/PID/stat` line. The program's name in it may hold anything, so what counts begins behind it.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 1 2 3";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("7 (a"), None);
        assert!(resident_bytes().is_none_or(|bytes| bytes > 100_000));
        assert!(peak_resident_bytes().is_none_or(|bytes| bytes > 100_000));
    }
}
