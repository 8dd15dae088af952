//! Joins the parts into a daemon: what is shared, one incarnation after another, the listeners, the end by a signal.

pub mod checkpoint_key;
pub mod checkpoints;
pub mod embedded;
mod guard;
pub mod incarnation;
pub mod keys;
mod lease;
mod proving;
pub mod recover;
mod refused;
pub mod rescue;
mod retention;
pub mod serve;
mod sessions;
mod sinks;
pub mod snapshot;
mod steps;
#[cfg(test)]
mod tests;
pub mod verify;
pub mod window;

pub use checkpoints::Checkpoints;
pub use incarnation::{Incarnation, NotBegun, Outside};
pub use window::Window;
