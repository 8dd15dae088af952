//! The only integration test binary.

mod power_cut;
mod stories;
mod tidy;
