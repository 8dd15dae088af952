//! Tests of the log as a whole: one contract for both logs, golden encodings, and bytes that are not what they should be.

mod backups;
mod bytes;
mod contract;
mod damage;
mod erase;
mod evolution;
mod faults;
mod forgeries;
mod goldens;
mod kept;
mod leaves;
mod retention;
pub(crate) mod samples;
mod session_samples;
mod snapshots;
mod texts;
mod world;
