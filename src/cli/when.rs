//! A moment of a log as people name it: a record's number, a time, or how long ago. Pure.

use super::error::CliError;
use crate::ids::{Seq, shown};

/// A moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// A record.
    Seq(Seq),
    /// Log time, microseconds since 1970.
    TimeUs(i64),
}

impl When {
    /// Reads what stands behind `option`; `now_us` is what `-15m` counts from.
    ///
    /// # Errors
    /// Usage: it is none of the three.
    pub(super) fn parse(option: &str, text: &str, now_us: i64) -> Result<Self, CliError> {
        if let Ok(seq) = text.parse::<u64>() {
            return Ok(Self::Seq(Seq(seq)));
        }
        if let Some(ago_us) = text.strip_prefix('-').and_then(ago_us) {
            return Ok(Self::TimeUs(now_us.saturating_sub(ago_us)));
        }
        let time = text.parse::<jiff::Timestamp>().map_err(|_| {
            CliError::input(
                format!("{option} {}: neither a record's number nor a time", shown(text, 80)),
                "a time is RFC 3339, such as 2026-01-31T12:00:00Z, or before now, such as -15m",
            )
        })?;
        Ok(Self::TimeUs(time.as_microsecond()))
    }
}

/// `15m` in microseconds.
fn ago_us(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.parse::<u32>().ok().map(|number| i64::from(number) * seconds * 1_000_000)
}
