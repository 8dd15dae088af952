//! Joins the parts into a daemon: what is shared, one incarnation after another, the listeners, the end by a signal.

pub mod embedded;
pub mod incarnation;
pub mod keys;
pub mod recover;
pub mod rescue;
pub mod serve;
pub mod verify;
pub mod window;

pub use incarnation::{Incarnation, NotBegun, Outside};
pub use window::Window;
