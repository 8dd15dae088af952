//! Who may ask a daemon: the access file, and what it says of a caller. Pure.

mod caller;
mod file;

pub use caller::{Caller, Need, Role, Tenants};
pub use file::{Access, FILE_BYTES, token_digest};
