//! The only integration test binary.

mod contract;
mod power_cut;
mod real_nodes;
mod stories;
mod support;
mod tidy;
