//! Progress lines with the time since the start, on stderr.

use std::sync::LazyLock;
use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "progress for people, no part of the program")]
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Says what is done now.
pub(crate) fn line(text: &str) {
    let seconds = STARTED.elapsed().as_secs();
    eprintln!("[{:>3}:{:02}] {text}", seconds / 60, seconds % 60);
}
