//! What is served over HTTP: health, metrics, apps, the log, its proofs and its erasures, packages.

pub mod access;
pub mod control;
pub mod erase;
pub mod events;
pub mod guard;
pub mod listener;
pub mod log;
pub mod problem;
pub mod proofs;
pub mod readiness;
pub mod sources;

#[cfg(test)]
mod tests;
