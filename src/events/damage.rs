//! How much of a log cannot be read, and what, by name: unlike the check it does not end at the first. Knows no meaning.

use std::ops::ControlFlow;

use super::log::{LogReader, ReadError};
use super::stored::Damage;
use crate::ids::Seq;

/// How many are named; the rest are counted.
pub const NAMED: usize = 100;

/// What reading everything gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Census {
    /// Records that can be read.
    pub readable: u64,
    /// Records, and blocks of them, that cannot; what a newer build wrote is not among them.
    pub damaged: u64,
    /// The first of these, in order, at most [`NAMED`].
    pub named: Vec<Damage>,
    /// Records, and blocks of them, that a newer build could read.
    pub newer: u64,
}

/// Reads the whole log.
///
/// # Errors
/// When the store does not answer.
pub fn census(reader: &dyn LogReader) -> Result<Census, ReadError> {
    let mut census = Census::default();
    reader.scan(Seq::NONE, &mut |item| {
        match item {
            Ok(_) => census.readable += 1,
            Err(damage) if damage.fault.is_newer() => census.newer += 1,
            Err(damage) => {
                census.damaged += 1;
                if census.named.len() < NAMED {
                    census.named.push(damage);
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(census)
}
