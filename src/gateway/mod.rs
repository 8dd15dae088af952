//! The gateway: its protocol, how its answers are judged, and the packages it hands out.

pub mod api;
pub mod client;
pub mod judge;
pub mod protocol;
pub mod report;
pub mod sources;
pub mod withdrawals;

#[cfg(test)]
mod tests;
