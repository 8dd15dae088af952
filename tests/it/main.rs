//! The only integration test binary.

mod contract;
mod damage;
mod decoder;
mod disk;
mod kills;
mod power_cut;
mod real_nodes;
mod stories;
mod support;
mod tidy;
