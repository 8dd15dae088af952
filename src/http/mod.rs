//! What is served over HTTP: health, metrics, apps, proofs, packages.

pub mod control;
pub mod guard;
pub mod listener;
pub mod problem;
pub mod proofs;
pub mod readiness;
pub mod sources;

#[cfg(test)]
mod tests;
