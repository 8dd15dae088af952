//! The only integration test binary.

mod contract;
mod power_cut;
mod real_nodes;
mod support;
mod tidy;
