//! What a fact means to one app: state, fold, plan, step. Pure: no async, no I/O, no clock, no randomness, ordered maps.

pub mod carry;
pub mod fold;
mod known;
pub(crate) mod marks;
pub mod plan;
pub mod report;
pub mod show;
pub mod state;
pub mod table;
pub mod words;

pub use crate::subject::{ends, react, rules};

#[cfg(test)]
mod tests;
