//! Ordering and ownership: who handles what, one thing at a time, and what happens when one ends. No business `if`.
//!
//! Others hold typed handles, never a channel or an actor's reference. The guarantees are in ARCHITECTURE.md, "Actors".

mod apps;
mod beat;
mod carry;
mod cluster;
mod committer;
mod daemon;
mod environments;
mod facts;
mod health;
mod inbox;
mod kept;
mod perform;
mod registry;
mod replay;
mod reports;
mod restart;
mod secrets;
mod sessions;
mod slot;
mod start;
mod subject;
mod supervisor;
mod tails;
mod watcher;
mod wheel;
mod work;

#[cfg(test)]
pub(crate) mod tests;

pub use committer::{Committer, CommitterThread};
pub use daemon::{Daemon, Ended, Parts};
pub use health::{Health, Vitals};
pub(crate) use kept::Kept;
pub use registry::Registry;
pub use sessions::{Called, NotCalled, Sessions};
