//! An embedded cluster, node and gateway, behind the same interfaces as the real ones: for `wharf demo`, `wharf bench`, the
//! simulation and the tests. Must not know apps, actors or the log; only `link` knows what the daemon asks of a gateway.

pub mod api;
pub mod contract;
pub mod gateway;
pub mod link;
pub mod node;
pub mod world;

#[cfg(test)]
mod tests;
