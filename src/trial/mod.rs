//! Trials: the whole daemon on paused time against the embedded world, with faults drawn from a seed and an oracle that judges.
//! The same seed gives the same trial, byte for byte.

pub mod history;
pub mod oracle;
