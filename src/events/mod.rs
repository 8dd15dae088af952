//! Facts and their storage: what a record is, how it is encoded, and the logs that keep it. Knows nothing of what a fact means.

pub mod kinds;
pub mod record;
