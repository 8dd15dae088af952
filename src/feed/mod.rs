//! The audit feed: the log's records as CloudEvents, from any position on, in order and without a gap. Knows no HTTP.

pub mod cloudevent;
pub mod correlation;
pub mod cursor;
pub mod file_sink;
pub mod filter;
pub mod page;

#[cfg(test)]
mod tests;
