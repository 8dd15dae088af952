//! Tests of the log as a whole: one contract for both logs, golden encodings, and bytes that are not what they should be.

mod bytes;
mod contract;
mod damage;
mod evolution;
mod faults;
mod forgeries;
mod goldens;
pub(super) mod samples;
mod world;
