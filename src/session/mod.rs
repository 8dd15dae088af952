//! What a fact means to one session: state, fold, plan, and the answer that a caller gets. Pure: no async, no I/O, no clock, no
//! randomness, ordered maps.
//!
//! A session is a claim that lives and a pod that comes and goes (sessions.md). Who waits for an answer is not known here: whoever
//! keeps the callers asks [`view::answer`] after each reaction whether there is one.

pub mod calls;
pub mod carry;
pub mod fold;
pub mod held;
mod known;
pub mod news;
pub mod plan;
pub mod state;
pub mod table;
pub mod view;

#[cfg(test)]
pub(crate) mod tests;
