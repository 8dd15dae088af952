//! Joins the parts into a daemon: what is shared, one incarnation after another, the listeners, the end by a signal.

pub mod embedded;
mod guard;
pub mod incarnation;
pub mod keys;
mod lease;
pub mod recover;
pub mod serve;
mod steps;
pub mod verify;
pub mod window;

pub use incarnation::{Incarnation, NotBegun, Outside};
pub use window::Window;
