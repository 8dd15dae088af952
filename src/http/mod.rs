//! What is served over HTTP: health, metrics, apps, sessions, the log, its proofs and its erasures, the feed, packages.

pub mod access;
pub mod control;
pub mod erase;
pub mod events;
pub mod guard;
pub mod listener;
pub mod log;
pub mod openapi;
pub mod problem;
pub mod proofs;
pub mod readiness;
pub mod sessions;
pub mod sources;
mod why;

#[cfg(test)]
pub(crate) mod tests;
