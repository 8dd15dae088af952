//! The payloads of record version 1: frozen structs, one file a topic. Names and numbers alone in what decides; free text of
//! tenants only in kinds that inform.
//!
//! bincode stores fields and variants by position: never reorder, insert or remove one. `tests/data/format` holds a golden
//! encoding of each kind that fails when anybody does.

pub mod carried;
pub mod daemon;
pub mod operator;
pub mod pod;
pub mod session;
pub mod session_carried;
pub mod session_policy;
pub mod step;
pub mod tail;
pub mod verdict;
pub mod want;
