//! Facts and their storage: what a record is, how it is encoded, and the logs that keep it. Knows nothing of what a fact means.

pub mod archive;
mod assemble;
pub mod backup;
pub mod block;
pub mod cache;
pub mod carried;
pub mod check;
pub mod codec;
pub mod damage;
mod dividers;
mod engine;
pub mod erase;
pub mod extends;
pub mod folder;
pub mod frame;
mod index;
mod keys;
pub mod kinds;
mod leaf_blocks;
pub mod leaves;
pub mod log;
pub mod marks;
pub mod mem_log;
pub mod packed;
pub mod record;
mod recover;
pub mod removed;
mod renew;
pub mod retention;
pub mod sled_log;
pub mod snapshot;
mod store;
pub mod stored;
#[cfg(test)]
pub(crate) mod tests;
pub mod tree;
pub mod words;
